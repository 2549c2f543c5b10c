"""Golden numbers: 200 controllers × streams × delays and more, each as fingerprints of its numbers.

`python -m tests.laws.golden write` computes them with the code at hand and writes `golden.json`;
`test_golden` computes them again. A fingerprint is the head of a sha256 over the float64 bytes of
one quantity in one mode, so that a difference says what differs. Behind it lie exp and log, whose
last bit belongs to the platform's libm: fingerprints count only where `platform()` is as stored,
the plain numbers (final θ, mean width, mean loss) everywhere. Data are drawn by arithmetic alone.

Controllers are made by public constructors, and only what a user sees is taken: sets, losses,
θ, λ, sums and counts of each risk, certificates.
"""

import hashlib
import json
import math
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy as np

import setpoint as sp
from setpoint.combine import Max, Mean
from setpoint.losses import FalseNegatives, Miscoverage, MiscoverageCounter
from setpoint.predictions import Spread
from setpoint.published import ECI, PI, SFOGD, CoinBetting, Decaying, DtACI
from setpoint.sets import (
    Cumulative,
    Lower,
    Multilabel,
    Multiplied,
    Nested,
    QuantileScale,
    Scale,
    ScoreWindow,
    Threshold,
    TwoSided,
    Upper,
    Widen,
)
from setpoint.steps import Account, Fixed
from setpoint.stretches import (
    ErrorAdaptive,
    Exponential,
    Identity,
    ScoreAdaptive,
    Tracking,
)

FILE = Path(__file__).with_name("golden.json")
ROWS, CASES = 300, 200


def platform() -> str:
    """A fingerprint of what this platform makes of exp and log."""
    points = [0.1 * k for k in range(-60, 61)]
    values = [f(x) for x in points for f in (math.exp, math.expm1, math.tanh)]
    values += [f(x) for x in points if x > 0.0 for f in (math.log, math.log1p, math.tan)]
    return print_of([*values, *np.exp(points)])


# Controllers


def risk(
    level: float = 0.1,
    step: Any = None,
    loss: Any = None,
    bounds: tuple[float, float] | None = (-3.0, 6.0),
    **options: Any,
) -> sp.Risk:
    return sp.Risk(loss or Miscoverage(), level, step or Fixed(0.25), bounds=bounds, **options)


def _adaptive() -> Iterator[tuple[str, Any]]:
    for inner in (Identity(), Exponential()):
        name = type(inner).__name__.lower()
        for reading in ("paper", "authors", "later"):
            options: Any = {"low": -0.7, "high": 0.9, "inner": inner, "reading": reading}
            if reading != "later":
                yield f"score {reading} {name}", ScoreAdaptive(0.3, **options)
            yield f"error {reading} {name}", ErrorAdaptive(0.3, 0.4, **options)


def _stepped() -> Iterator[tuple[str, str, sp.Controller]]:
    """Families with one λ in units of y, and every step rule and stretch."""
    cut = (-1.0, 7.0)
    capped, counter = MiscoverageCounter(cap=2.0), MiscoverageCounter()
    for name, kind, sets, start in (
        ("widen", "ends", Widen(), 0.0),
        ("widen cut", "ends", Widen(cut), 0.0),
        ("widen points", "point", Widen(), 0.0),
        ("scale", "spread", Scale(), 1.0),
        ("scale cut", "spread", Scale(cut), 1.0),
        ("lower", "lower", Lower(), 0.0),
        ("upper", "upper", Upper(), 0.0),
    ):
        yield name, kind, sp.Controller(sets, risk(start=start))
    yield "widen free", "ends", sp.Controller(Widen(), risk(bounds=None))
    yield "widen narrow", "ends", sp.Controller(Widen(), risk(0.3, bounds=(-0.2, 0.3)))
    yield "counter", "ends", sp.Controller(Widen(), risk(0.2, loss=counter))
    yield "counter capped", "spread", sp.Controller(Scale(), risk(0.2, loss=capped, start=1.0))
    for step in (
        Decaying(0.5), Decaying(1.0, 0.75, 0.05), SFOGD(0.5), CoinBetting(1.0), PI(0.0), PI(2.0),
        ECI(), ECI(0.2, 0.5), DtACI(2.0), DtACI(2.0, 50),
    ):  # fmt: skip
        yield repr(step), "ends", sp.Controller(Widen(), risk(step=step, bounds=(-9.0, 30.0)))
    yield "exponential", "ends", sp.Controller(Widen(), risk(), Exponential())
    for name, stretch in _adaptive():
        yield name, "ends", sp.Controller(Widen(), risk(0.2), stretch)
    yield (
        "error scale",
        "spread",
        sp.Controller(
            Scale(), risk(0.2, start=1.0), ErrorAdaptive(0.1, 0.4, -0.7, 0.9, reading="paper")
        ),
    )
    account: Any = {"step": Account(6.0, 0.5), "bounds": None}
    yield "account widen", "ends", sp.Controller(Widen(), risk(**account))
    account["step"] = Account(6.0, share=2.0, ease=5.0, ahead=2.0, wall=2)
    yield "tracking widen", "ends", sp.Controller(Widen(), risk(**account), Tracking())
    yield "around", "ends", sp.presets.around(0.8)
    yield "around spread", "spread", sp.presets.around(0.9, limit=5.0, steadiness=0.3)
    yield "multiplied", "ends", sp.Controller(Multiplied(), risk(0.2, Fixed(0.1)))


def _several() -> Iterator[tuple[str, str, sp.Controller]]:
    """Several risks, and families with a λ for each."""
    capped = MiscoverageCounter(cap=2.0)
    two = [risk(0.2, Fixed(0.4)), risk(0.3, Fixed(0.25), capped, (-2.0, 6.0))]
    narrow = [replace(two[0], bounds=(-0.5, 0.6)), replace(two[1], bounds=(-0.35, 0.6))]
    three = [*two, risk(0.1, Decaying(0.5), bounds=(-3.0, 5.9))]
    for name, risks, stretch, combine in (
        ("max", two, None, Max()),
        ("mean", two, None, Mean()),
        ("max lifts", two, None, Max(anti_windup=0.3)),
        ("mean lifts", narrow, None, Mean(anti_windup=0.3)),
        ("max some", narrow, None, Max(empty_if="some")),
        ("mean some lifts", narrow, None, Mean(anti_windup=0.1, empty_if="some")),
        ("max adaptive", two, ErrorAdaptive(0.3, 0.4, -0.7, 0.9, reading="paper"), Max()),
        ("mean exponential", two, Exponential(), Mean()),
        ("max of three", three, None, Max()),
        ("mean of three lifts", three, None, Mean(anti_windup=0.3)),
    ):
        yield name, "ends", sp.Controller(Widen(), risks, stretch, combine)
    sides = [risk(0.1), risk(0.05, Fixed(0.4))]
    yield "two sides", "ends", sp.Controller(TwoSided(), sides)
    yield "two sides cut", "ends", sp.Controller(TwoSided((-1.0, 7.0)), sides, Exponential())
    tails = [risk(0.05, PI(0.0), bounds=(-9.0, 30.0))] * 2
    yield "two sides PI", "ends", sp.Controller(TwoSided(), tails)
    accounts = [risk(level, Account(8.0, 0.5), bounds=None) for level in (0.1, 0.05)]
    yield "two sides account", "ends", sp.Controller(TwoSided(), accounts)
    yield "nested", "ends", sp.Controller(Nested(Widen(), 2), [risk(0.3), risk(0.1)])
    levels = [risk(level, Fixed(0.1), start=1.0) for level in (0.4, 0.2, 0.1)]
    yield "nested scale", "spread", sp.Controller(Nested(Scale(), 3), levels)


def _defaults() -> Iterator[tuple[str, str, sp.Controller]]:
    """`sp.intervals` with its options."""
    capped = MiscoverageCounter(cap=3.0)
    held = [sp.Risk(Miscoverage(), 0.1), sp.Risk(capped, 0.25)]
    for name, kind, coverage, options in (
        ("default", "ends", 0.9, {}),
        ("default points", "point", 0.9, {}),
        ("default spread", "spread", 0.9, {}),
        ("default .5", "ends", 0.5, {}),
        ("default .8 points", "point", 0.8, {}),
        ("default .99", "ends", 0.99, {}),
        ("centred", "ends", 0.9, {"recentre": False}),
        ("no season", "ends", 0.9, {"period": 0}),
        ("no season points", "point", 0.8, {"period": 0}),
        ("period 5", "ends", 0.9, {"period": 5}),
        ("period 24", "point", 0.9, {"period": 24}),
        ("default cut", "ends", 0.9, {"support": (-1.0, 7.0)}),
        ("default half-line", "point", 0.8, {"support": (-1.0, math.inf)}),
        ("default limit", "ends", 0.8, {"limit": 4.0}),
        ("default limit 3", "ends", 0.9, {"limit": 3.0, "steadiness": 0.4}),
        ("default counter", "ends", 0.9, {"risk": sp.Risk(capped, 0.2)}),
        ("default two risks", "ends", 0.9, {"risk": held}),
        ("default two risks centred", "point", 0.9, {"risk": held, "recentre": False}),
    ):
        yield name, kind, sp.intervals(coverage, **options)


def _labels() -> Iterator[tuple[str, str, sp.Controller]]:
    """Label sets, quantile functions and score windows."""
    share: Any = {"bounds": None}
    yield "labels", "classes", sp.label_sets(0.9)
    yield "labels .7", "classes", sp.label_sets(0.7, limit=4.0, never_empty=True)
    yield "labels cumulative", "classes", sp.label_sets(0.8, sets=Cumulative())
    yield "labels random", "classes", sp.label_sets(0.8, sets=Cumulative(randomised=True))
    negatives = sp.Risk(FalseNegatives(), 0.2)
    yield "labels several", "labels", sp.label_sets(sets=Multilabel(), risk=negatives)
    fixed = risk(0.2, Fixed(0.02), **share)
    yield "threshold", "classes", sp.Controller(Threshold(), fixed)
    yield "cumulative", "classes", sp.Controller(Cumulative(), fixed)
    several = risk(0.2, Fixed(0.05), FalseNegatives(), None, unjudged="zero")
    yield "multilabel", "labels", sp.Controller(Multilabel(), several)
    windowed = ScoreWindow(Threshold(), 50)
    yield "threshold window", "classes", sp.Controller(windowed, fixed)
    levels = (0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98)
    yield "quantiles", "grid", sp.Controller(QuantileScale(levels), fixed)
    yield (
        "quantiles open",
        "grid",
        sp.Controller(QuantileScale(levels, "open"), [fixed, risk(0.3, Decaying(0.1), **share)]),
    )
    yield "aci", "ends", sp.published.aci(0.9)
    yield "aci points", "point", sp.published.aci(0.8, gamma=0.05, size=60)
    yield "aci scale", "spread", sp.published.aci(0.9, scores=Scale(), gamma=0.02, size=100)
    yield (
        "score window",
        "ends",
        sp.Controller(
            ScoreWindow(size=40),
            [risk(0.1, Fixed(0.02), **share), risk(0.3, SFOGD(0.1), **share)],
        ),
    )


@cache
def controllers() -> dict[str, tuple[str, sp.Controller]]:
    """By name: the kind of its predictions, and the controller."""
    made = chain(_stepped(), _several(), _defaults(), _labels())
    return {name: (kind, controller) for name, kind, controller in made}


# Streams

STREAMS = ("steady", "drift", "spread", "missing", "walk", "jumps")


class Data(NamedTuple):
    """Predictions as a live stream takes them, and labels; the columns of a tape if it has any."""

    predictions: list[Any]
    y: list[Any]
    columns: Any


@cache
def data(kind: str, stream: str, seed: int = 0, rows: int = ROWS) -> Data:
    """One of the streams, with predictions of a kind."""
    rng = np.random.default_rng([seed, STREAMS.index(stream)])
    t = np.arange(rows)
    noise = rng.random((rows, 4)).sum(axis=1) - 2.0  # nearly normal, by sums alone
    centre = 3.0 + np.abs(t % 24 - 12) / 6.0 - 1.0
    scale = np.ones(rows)
    shift = np.zeros(rows)
    if stream == "drift":
        shift = 2.0 * t / rows
    elif stream == "spread":
        scale = 0.3 + 1.5 * (t // 40 % 2) + np.abs(t % 24 - 12) / 12.0
    elif stream == "walk":
        shift = 0.3 * np.cumsum(rng.random(rows) - 0.5)
    elif stream == "jumps":
        shift = 3.0 * (t // 90 % 2)
        noise = noise + 4.0 * (rng.random(rows) < 0.02)
    y = np.clip(centre + shift + scale * noise, -1.0, 7.0)
    gone = rng.random(rows) < (0.15 if stream == "missing" else 0.0)
    if kind in ("classes", "labels"):
        return _classes(kind, stream, rng, gone)
    y[gone] = np.nan
    half = 0.7 * np.where(rng.random(rows) < 0.5, scale, 1.0)
    columns: tuple[Any, ...] = {
        "ends": (centre - half, centre + half),
        "point": (centre,),
        "spread": (centre, half, 1.2 * half),
        "lower": (centre - half,),
        "upper": (centre + half,),
        "grid": tuple(centre + half * step for step in (-2.0, -1.3, -0.6, 0.0, 0.5, 1.4, 2.1)),
    }[kind]
    listed = [column.tolist() for column in columns]
    predictions: list[Any] = listed[0] if len(listed) == 1 else list(zip(*listed, strict=True))
    if kind == "spread":
        predictions = [Spread(*each) for each in predictions]
    taped = None if kind == "grid" else columns
    return Data(predictions, y.tolist(), taped)


def _classes(kind: str, stream: str, rng: np.random.Generator, gone: Any) -> Data:
    """Probabilities of five classes that know more or less about the label."""
    rows = len(gone)
    weights = rng.random((rows, 5)) ** 4
    p = weights / weights.sum(axis=1, keepdims=True)
    late = np.arange(rows) > rows // 2
    if kind == "labels":
        chances = np.where(late[:, None] & (stream != "steady"), np.sqrt(weights), weights)
        hits = rng.random((rows, 5)) < chances
        places = [np.flatnonzero(row).tolist() for row in hits]
        several = [None if g else each for g, each in zip(gone, places, strict=True)]
        return Data(weights.tolist(), several, None)
    blur = np.where(late & (stream != "steady"), 0.5, 0.1)[:, None]
    sums = np.cumsum((1.0 - blur) * p + blur / 5.0, axis=1)
    place = np.minimum((sums < rng.random(rows)[:, None]).sum(axis=1), 4)
    y = np.where(gone, np.nan, place)
    labels = [None if g else int(k) for g, k in zip(gone, place, strict=True)]
    names = [f"p{k}" for k in range(5)]
    tape = dict(zip(names, np.ascontiguousarray(p.T), strict=True))
    return Data(p.tolist(), labels, (tape, y))


# Times at which labels come: before which row each becomes known.

DELAYS = ("0", "1", "5", "24", "jitter", "geometric", "daily")
LIVE = ("shuffled", "drops", "expire", "change", "saved", "saved late")


@cache
def known_rows(delay: str, rows: int = ROWS) -> list[int]:
    """The row before whose set each label is known."""
    rng = Random(delay)
    first = range(1, rows + 1)
    if delay == "daily":
        return [24 * ((row - 1) // 24 + 1) for row in first]
    if delay == "jitter":
        return [row + rng.randrange(7) for row in first]
    if delay == "geometric":
        return [row + next(k for k in range(99) if rng.random() < 0.3) for row in first]
    return [row + int(delay) for row in first]


class Case(NamedTuple):
    """A controller on a stream, with labels that come in some way."""

    controller: str
    stream: str
    timing: str

    def __str__(self) -> str:
        return " | ".join(self)


def cases() -> list[Case]:
    """Every controller with three streams and timings, and more up to 200, drawn evenly."""
    rng, made = Random(25), dict[Case, None]()
    names = list(controllers())
    streams, timings = _rounds(STREAMS, rng), _rounds((*DELAYS, *LIVE), rng)
    for name in chain(names, names, _rounds(names, rng)):
        made[Case(name, next(streams), next(timings))] = None
        if len(made) == CASES:
            return list(made)
    raise AssertionError


def _rounds(values: Any, rng: Random) -> Iterator[Any]:
    """All values in a random order, again and again."""
    while True:
        yield from rng.sample(list(values), len(values))


# Fingerprints


def print_of(values: Any) -> str:
    """The head of the sha256 of numbers as float64; of a text, of its characters."""
    raw = values.encode() if isinstance(values, str) else _bytes(values)
    return hashlib.sha256(raw).hexdigest()[:16]


def _bytes(values: Any) -> bytes:
    numbers = np.asarray(values, dtype="<f8")
    return np.where(np.isnan(numbers), np.nan, numbers).tobytes()


def flat(value: Any) -> Iterator[float]:
    """The numbers in something plain, names in order; None is NaN, texts are left out."""
    if isinstance(value, dict):
        for name in sorted(value, key=str):
            yield from flat(value[name])
    elif isinstance(value, list | tuple):
        for each in value:
            yield from flat(each)
    elif value is None:
        yield math.nan
    elif not isinstance(value, str):
        yield float(value)


def shown_numbers(shown: Any) -> list[float]:
    """A set as numbers."""
    if hasattr(shown, "parts"):
        return [number for part in shown.parts for number in shown_numbers(part)]
    if hasattr(shown, "labels"):
        return [float(len(shown)), *map(float, sorted(shown.labels))]
    return [shown.lower, shown.upper]


def size(shown: Any) -> float:
    return float(len(shown)) if hasattr(shown, "labels") else float(shown.length)


def end_numbers(state: Any) -> list[float]:
    """What each risk ended with."""
    names = ("theta", "total", "judged", "lifts", "lifted")
    return [float(getattr(own, name)) for own in state.risks for name in names]


def certified(certificate: Any) -> dict[str, str]:
    plain = list(flat(plain_of(certificate)))
    return {"certificate": print_of(plain), "words": print_of(str(certificate))}


class Found(NamedTuple):
    """What one mode gives: fingerprints by quantity, and plain numbers."""

    prints: dict[str, str]
    plain: list[float]


def _plain(theta: Any, sizes: Any, losses: Any) -> list[float]:
    """θ at the end, the mean of finite sizes, the mean loss of the first risk."""
    widths, values = np.asarray(sizes, np.float64), np.asarray(losses, np.float64)
    finite, told = widths[np.isfinite(widths)], values[~np.isnan(values)]
    means = [float(part.mean()) if len(part) else math.nan for part in (finite, told)]
    return [float(np.ravel(theta)[0]), *means]


# Live


class _Log:
    """A live stream, and everything it shows and answers."""

    def __init__(self, controller: sp.Controller, **options: Any) -> None:
        self.stream = sp.Stream(controller, missing="skip", **options)
        self.several = len(controller.risks)
        self.shown: list[Any] = []
        self.lam: list[float] = []
        self.theta: list[float] = []
        self.losses: list[float] = []

    def predict(self, prediction: Any, id: Any = None) -> None:
        self.lam += flat(self.stream.lam)
        self.shown.append(self.stream.predict(prediction, id))

    def update(self, y: Any, id: Any = None) -> None:
        value = self.stream.update(y, id)
        self.losses += [math.nan] * self.several if value is None else flat(value)
        self.theta += flat(self.stream.theta)

    def reload(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "stream"
            self.stream.save(path)
            self.stream = sp.Stream.load(path)

    def found(self) -> Found:
        stream = self.stream
        prints = {
            "shown": print_of([number for each in self.shown for number in shown_numbers(each)]),
            "lam": print_of(self.lam),
            "theta": print_of(self.theta),
            "losses": print_of(self.losses),
            "end": print_of(end_numbers(stream.state)),
            **certified(stream.certificate()),
        }
        widths = [size(shown) for shown in self.shown]
        return Found(prints, _plain(stream.theta, widths, self.losses[:: self.several]))


def live(case: Case) -> Found:
    """A live stream."""
    kind, controller = controllers()[case.controller]
    told = data(kind, case.stream)
    timing = case.timing
    if timing in ("shuffled", "drops", "expire"):
        return _live_by_ids(controller, told, timing)
    log = _Log(controller)
    known = known_rows({"change": "1", "saved": "0", "saved late": "jitter"}.get(timing, timing))
    order = sorted(range(ROWS), key=lambda row: (known[row], row))
    done = 0
    for row, prediction in enumerate(told.predictions):
        while done < ROWS and known[order[done]] <= row:
            log.update(told.y[order[done]], None if timing == "0" else order[done])
            done += 1
        if timing == "change" and row in (100, 200):
            first = controller.risks[0]
            log.stream.change(level=(1.5 if row == 100 else 0.8) * first.level)
        if timing.startswith("saved") and row % 100 == 50:
            log.reload()
        log.predict(prediction)
    for row in order[done:]:
        log.update(told.y[row], row)
    return log.found()


def _live_by_ids(controller: sp.Controller, told: Data, timing: str) -> Found:
    """Labels by id, out of order; some are dropped, or their predictions expire."""
    expires, rng = timing == "expire", Random(timing)
    options = {"max_pending": 4, "overflow": "expire"} if expires else {}
    log = _Log(controller, **options)
    for row, prediction in enumerate(told.predictions):
        log.predict(prediction, f"row {row}" if row % 3 else None)
        for _ in range(rng.randrange(3)):
            waiting = list(log.stream.pending)
            if not waiting:
                break
            id = rng.choice(waiting)
            if timing == "drops" and rng.random() < 0.15:
                log.stream.drop(id)
            else:
                log.update(told.y[id if isinstance(id, int) else int(id.split()[1])], id)
    return log.found()


# Tapes


def tape_of(kind: str, told: Data, delay: str) -> sp.Tape:
    """The stream as a tape."""
    late: Any = {"delay": int(delay)} if delay.isdigit() else {"known": known_rows(delay)}
    if kind == "classes":
        columns, y = told.columns
        return sp.Tape.from_arrays(columns, y, **late)
    names = {"lower": ("lower",), "upper": ("upper",)}.get(kind)
    return sp.Tape.from_arrays(list(told.columns), np.array(told.y), names=names, **late)


def taped(case: Case) -> bool:
    """Whether the case can be replayed."""
    kind = controllers()[case.controller][0]
    return case.timing in DELAYS and kind not in ("grid", "labels")


def trace_prints(trace: sp.Trace) -> Found:
    shown: Any = [trace.lower, trace.upper]
    if trace.shown is not None:
        shown = [number for each in trace.shown for number in shown_numbers(each)]
    prints = {
        "shown": print_of(shown),
        "lam": print_of(trace.lam),
        "theta": print_of(trace.theta),
        "losses": print_of(trace.losses),
        "covered": print_of(trace.covered[trace.observed]),
        "end": print_of(end_numbers(trace.state)),
        **certified(trace.certificate()),
    }
    widths = trace.upper - trace.lower if trace.shown is None else [*map(size, trace.shown)]
    return Found(prints, _plain(trace.state.risks[0].theta, widths, trace.losses[0]))


def replayed(case: Case) -> Found:
    """A replay."""
    kind, controller = controllers()[case.controller]
    return trace_prints(sp.replay(controller, tape_of(kind, data(kind, case.stream), case.timing)))


def resumed(case: Case) -> Found:
    """A replay in two parts, labels at once: the second goes on from the state of the first."""
    kind, controller = controllers()[case.controller]
    tape = tape_of(kind, data(kind, case.stream), "0")
    first = sp.replay(controller, tape[: ROWS // 3])
    return trace_prints(sp.replay(controller, tape[ROWS // 3 :], first.state))


COMPILED = ("widen", "widen narrow", "default", "default .5", "max")
"""Controllers that run as machine code too: three layouts, because compiling takes seconds."""


# Fleets and sweeps

FLEETS = (
    "widen", "scale cut", "counter capped", "error paper identity", "max lifts",
    "around spread", "default", "no season", "period 5", "default two risks",
    "Decaying(scale=0.5, power=0.6, floor=0.01)",
)  # fmt: skip
FAST_FLEETS = ("widen", "default")
WIDTH, STEPS = 5, 120


def plain_of(certificate: Any) -> dict[str, Any]:
    """A certificate in plain values, as when the file was written: without groups, older names."""
    former = {"pending": "waiting", "most_pending": "pending"}
    plain = certificate.as_dict()
    earlier = [
        {former.get(name, name): value for name, value in segment.items() if name != "groups"}
        for segment in (*plain.pop("earlier"), plain)
    ]
    return {**earlier.pop(), "earlier": earlier}


def _fleet_data(kind: str) -> tuple[tuple[Any, ...], Any]:
    many = [data(kind, STREAMS[k], 7, STEPS) for k in range(WIDTH)]
    columns = zip(*(told.columns for told in many), strict=True)
    labels = np.stack([np.array(told.y) for told in many], axis=1)
    return tuple(np.stack(each, axis=1) for each in columns), labels


def _fleet_found(fleet: sp.Fleet, shown: Any, losses: Any) -> Found:
    states = [end_numbers(fleet.state(id)) for id in fleet.ids]
    certificates = [fleet.certificate(id) for id in fleet.ids[:3]]
    prints = {
        "shown": print_of(shown),
        "losses": print_of(losses),
        "theta": print_of(fleet.theta),
        "means": print_of(fleet.means),
        "end": print_of(states),
        "certificate": print_of(list(flat([plain_of(each) for each in certificates]))),
        "words": print_of("".join(map(str, certificates))),
    }
    return Found(prints, _plain(fleet.theta, shown[1] - shown[0], np.ravel(fleet.means)))


def fleet_calls(name: str, delay: int) -> Found:
    """`predict` and `update` of a fleet; labels come so many batches later."""
    kind, controller = controllers()[name]
    columns, y = _fleet_data(kind)
    fleet = sp.Fleet(controller, [f"s{k}" for k in range(WIDTH)])
    shown, losses = np.empty((2, *y.shape)), []
    for t in range(STEPS + delay):
        if t < STEPS:
            shown[:, t] = fleet.predict(tuple(column[t] for column in columns))
        if t == STEPS // 2 and delay:
            fleet.drop(t, ["s1"])
            y[t, 1] = np.nan
        if t >= delay:
            losses.append(fleet.update(y[t - delay], batch=t - delay))
    return _fleet_found(fleet, shown, losses)


def fleet_run(name: str, late: str) -> Found:
    """`run` of a fleet."""
    kind, controller = controllers()[name]
    columns, y = _fleet_data(kind)
    fleet = sp.Fleet(controller, WIDTH)
    options: Any = {"delay": {"0": 0, "3": 3, "uneven": [0, 1, 2, 5, 9]}.get(late, 0)}
    if late == "jitter":
        rows = np.array(known_rows("jitter", STEPS))
        options = {"known": np.repeat(rows[:, None], WIDTH, axis=1)}
    shown = np.stack(fleet.run(columns, y, **options))
    return _fleet_found(fleet, shown, fleet.means)


def swept(name: str, delay: int) -> Found:
    """A sweep over levels and limits of one layout."""
    kind, controller = controllers()[name]
    tape = tape_of(kind, data(kind, "spread"), "0")
    first, *others = controller.risks
    tried = [
        replace(controller, risks=(replace(first, level=level), *others))
        for level in (0.05, 0.1, 0.2, 0.35, 0.5)
    ]
    columns = sp.sweep(tried, tape, delay=delay).columns
    later = ("risk", "finite_pinball")  # the last was added after the file was written
    prints = {each: print_of(values) for each, values in columns.items() if each not in later}
    return Found(prints, [float(columns["coverage"][k]) for k in (0, 2, 4)])


class Mode(NamedTuple):
    """One computation: whether machine code may run it, and what to call."""

    fast: bool
    call: Any
    arguments: tuple[Any, ...]


@cache
def modes() -> dict[str, Mode]:
    """Everything in the golden file, by name."""
    made: dict[str, Mode] = {}
    listed = cases()
    for case in listed:
        made[f"live: {case}"] = Mode(False, live, (case,))
        if taped(case):
            made[f"replay: {case}"] = Mode(False, replayed, (case,))
    for name in controllers():
        case = Case(name, "jumps", "0")
        if taped(case):
            made[f"resumed: {name}"] = Mode(False, resumed, (case,))
    for name in COMPILED:
        for stream, delay in (("steady", "0"), ("missing", "5"), ("jumps", "jitter")):
            case = Case(name, stream, delay)
            made[f"compiled replay: {case}"] = Mode(True, replayed, (case,))
    for name in FLEETS:
        for fast in (False, True) if name in FAST_FLEETS else (False,):
            speed = "compiled " if fast else ""
            for delay in (0, 3):
                key = f"{name}, {delay} late"
                made[f"{speed}fleet calls: {key}"] = Mode(fast, fleet_calls, (name, delay))
                made[f"{speed}sweep: {key}"] = Mode(fast, swept, (name, delay))
            for late in ("0", "3", "uneven", "jitter"):
                key = f"{speed}fleet run: {name}, {late} late"
                made[key] = Mode(fast, fleet_run, (name, late))
    return made


def stored(found: Found) -> list[Any]:
    """As the file keeps it."""
    numbers = [None if number != number else float(f"{number:.12g}") for number in found.plain]
    return [" ".join(f"{name}={each}" for name, each in found.prints.items()), *numbers]


def write() -> None:
    """Computes everything with the code at hand and writes the file."""
    lines = {}
    for name, mode in modes().items():
        os.environ["SETPOINT_PLAIN"] = "0" if mode.fast else "1"
        lines[name] = stored(mode.call(*mode.arguments))
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(line)}" for name, line in lines.items())
    FILE.write_text(f'{{"platform": "{platform()}",\n{rows}}}\n', encoding="utf-8")


if __name__ == "__main__" and sys.argv[1:] == ["write"]:
    write()
