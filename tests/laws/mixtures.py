"""Mixtures: parts, labels and events drawn freely, and what must be true of every one of them.

`play(seed)` draws a controller of any parts. Either it is refused with a sentence, or a stream of
it is played against an adversary, with labels that are late, lost, batched or held up, with changes
and copies on the way, and keeps every bound that its certificate states; and every other way of
running it shows the same sets to the bit.
"""

import json
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import inf, nan
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

import setpoint as sp
from setpoint._rules import scalar
from setpoint.combine import Max, Mean
from setpoint.errors import InputError, LabelError, SpecError
from setpoint.losses import FalseNegatives, Keeps, Miscoverage, MiscoverageCounter, declaration
from setpoint.plan import plan
from setpoint.published import SFOGD, Decaying
from setpoint.sets import (
    Bands,
    Cumulative,
    Fan,
    Levels,
    Lower,
    Multilabel,
    Multiplied,
    Nested,
    Scale,
    Threshold,
    TwoSided,
    Upper,
    Widen,
)
from setpoint.sets.family import members_of, whole_of
from setpoint.spark.work import Work
from setpoint.steps import Account, Fixed, Measure
from setpoint.steps.account import Book
from setpoint.stretches import (
    ErrorAdaptive,
    Exponential,
    Identity,
    ScoreAdaptive,
    Tracking,
)
from tests.laws.adversary import POLICIES, Adversary
from tests.laws.parts import SUPPORTS, Outside, Relapse, Shortfall

DELAYS = ("none", "constant", "jitter", "geometric", "batch", "outage")


def controller_of(rng: Random) -> sp.Controller:
    """Any parts beside one another; an `InputError` where the mixture is refused."""
    support = rng.choice(SUPPORTS)
    sets = rng.choice([
        lambda: Widen(support), lambda: Scale(support), lambda: Multiplied(support),
        lambda: Multiplied(support), Lower, Upper, TwoSided, lambda: TwoSided(support),
        lambda: Nested(Scale(support), 3), lambda: Nested(Multiplied(support), 2),
        lambda: _fan(rng, support), lambda: _fan(rng, support),
        lambda: Nested(Threshold(), 2), Threshold, lambda: Threshold(never_empty=True), Cumulative,
        Multilabel,
    ])()  # fmt: skip
    labels = isinstance(whole_of(sets), Threshold | Cumulative | Multilabel)
    members = members_of(sets)
    owners: list[int | None] = [None] * (members if members > 1 else rng.choice([1, 1, 1, 2, 3]))
    if members > 1 and rng.random() < 0.3:  # several risks on one set, in any order
        owners = [*range(members), *rng.choices(range(members), k=rng.choice([1, 2]))]
        rng.shuffle(owners)
    risks = []
    for place, member in enumerate(owners):
        losses = [Miscoverage(), Miscoverage(), MiscoverageCounter(cap=3.0), Relapse()]
        losses += [] if labels else [Shortfall(), Outside()]
        losses += [FalseNegatives()] if isinstance(sets, Multilabel) else []
        loss = rng.choice(losses)
        step = rng.choice([
            lambda: Fixed(rng.choice([0.05, 0.5, 3.0])), Account, Account, lambda: _account(rng),
            lambda: _account(rng), lambda: Account(two_sided=True),
            lambda: Decaying(0.5, 0.6, 0.01), lambda: SFOGD(0.5),
        ])()  # fmt: skip
        low = rng.choice([-3.0, -0.5, -20.0])
        bounds = rng.choice([None, None, (low, low + rng.choice([4.0, 25.0]))])
        bounds = None if isinstance(step, Account) and rng.random() < 0.9 else bounds
        rank = place if member is None else member
        level = declaration(loss).high * rng.choice([0.1, 0.1, 0.3, 0.01]) * 0.8**rank
        if isinstance(sets, Fan):
            account = isinstance(step, Account) and not step.two_sided
            rank = member = rank if members > 1 else 0
            step = Measure() if sets.free[rank] else step if account else _account(rng)
            loss, bounds = Miscoverage(), None
            level = round(sets.tails[rank] * (1.0 + sets.pairs), 9)
        start = 0.0 if bounds is None or bounds[0] <= 0.0 <= bounds[1] else None
        risks.append(sp.Risk(loss, level, step, start=start, bounds=bounds, member=member))
    stretch = rng.choice([
        Identity, Exponential, lambda: ScoreAdaptive(0.2, -1.0, 1.0),
        lambda: ErrorAdaptive(0.2, 0.1, -1.0, 1.0), Identity, Tracking,
    ])()  # fmt: skip
    combine = rng.choice([
        None, None, None, Max(anti_windup=rng.choice([0.5, 30.0])), Max(empty_if="some"), Mean(),
        Mean(anti_windup=30.0),
    ])  # fmt: skip
    correction = None
    if type(whole_of(sets)) is Multiplied and rng.random() < 0.6:
        options = {"period": rng.choice([0, 5, None])}
        correction = sp.correction.Intervals(recentre=rng.random() < 0.8, **options)
    if type(sets) in (Threshold, Multilabel) and rng.random() < 0.6:
        correction = sp.correction.Labels(several=type(sets) is Multilabel, size=20)
    if isinstance(sets, Fan):
        levels = {"coverage": sets.coverage, "quantile": sets.quantile}
        correction = sp.correction.Intervals(sets.widest, period=rng.choice([0, None]), **levels)
        combine = None
    return sp.Controller(sets, risks, stretch, combine, correction)


def _fan(rng: Random, support: Any) -> Fan:
    """Levels of either kind, some of them free."""
    levels = tuple(rng.sample([0.05, 0.2, 0.5, 0.8, 0.9, 0.975], rng.choice([1, 2, 3, 5])))
    guarded = tuple(rng.sample(levels, rng.randrange(1, len(levels) + 1)))
    if rng.random() < 0.5:
        return Fan(levels, guarded=guarded, support=support)
    return Fan(quantile=levels, guarded=guarded, support=support)


def _account(rng: Random) -> Account:
    return Account(
        rng.choice([1.0, 3.0, 10.0]), rng.choice([0.15, 0.5, 3.0]),
        share=rng.choice([0.0, 2.0, 4.0]), ease=rng.choice([0.5, 2.0, 5.0]),
        ahead=rng.choice([0.0, 4.0, 40.0]), wall=rng.choice([2, 4, 8]),
        floor=rng.choice([None, 2.0, inf]),
    )  # fmt: skip


@dataclass
class Late:
    """When the label of the prediction of each row comes: after which row, or never."""

    kind: str
    rng: Random
    mean: int = field(init=False)
    outage: tuple[int, int] = field(init=False)

    def __post_init__(self) -> None:
        self.mean = self.rng.choice([1, 3, 12])
        begin = self.rng.randrange(5, 60)
        self.outage = begin, begin + self.rng.randrange(5, 60)

    def due(self, row: int) -> int:
        """The row after which the label of a row comes, itself if at once."""
        if self.kind == "constant":
            return row + self.mean
        if self.kind == "jitter":
            return row + self.rng.randrange(2 * self.mean + 1)
        if self.kind == "geometric":
            late = 0
            while self.rng.random() > 1.0 / (1 + self.mean):
                late += 1
            return row + late
        if self.kind == "batch":
            return row // (self.mean + 1) * (self.mean + 1) + self.mean
        if self.kind == "outage" and self.outage[0] <= row < self.outage[1]:
            return self.outage[1]
        return row


class Sums:
    """Σ(l − r) of each risk since the segment began, held against what is certified.

    And the same in each group of rows that was named since.
    """

    def __init__(self, stream: sp.Stream, group: Any = None) -> None:
        self.group, self.groups = group, dict[Any, Sums]()
        self.risks = stream.controller.risks
        self.levels = [risk.level for risk in self.risks]
        self.sums = [[0.0] for _ in self.levels]
        self.promised: list[list[tuple[float, float]]] = [[] for _ in self.levels]

    def note(self, losses: Any, names: tuple[Any, ...], stream: sp.Stream) -> None:
        """Takes in what `update` returned, for a row of some groups."""
        listed = losses if isinstance(losses, tuple) else (losses,)
        for place, loss in enumerate(listed):
            sums, risk = self.sums[place], self.risks[place]
            if loss is not None and self.group is not None and isinstance(risk.loss, Keeps):
                sums.append(stream.certificate().groups[self.group][place].excess)  # its own memory
            elif loss is not None:
                sums.append(sums[-1] + (loss - risk.level))
        for name in names:
            self.groups.setdefault(name, Sums(stream, name)).note(losses, (), stream)

    def asked(self, stream: sp.Stream, names: tuple[Any, ...]) -> None:
        """A set is made: promises for fewer that wait are off."""
        others = len(_waiting(stream, self.group))
        self.promised = [[p for p in each if others <= p[1]] for each in self.promised]
        for name in names:
            self.groups.setdefault(name, Sums(stream, name)).asked(stream, ())

    def hold(self, stream: sp.Stream) -> None:
        """Every number that is certified now is true now."""
        certificate = stream.certificate()
        self._hold(stream, certificate.risks)
        for name, held in self.groups.items():
            if name in certificate.groups:
                held._hold(stream, certificate.groups[name])

    def _hold(self, stream: sp.Stream, risks: Any) -> None:
        for place, (risk, sums) in enumerate(zip(risks, self.sums, strict=True)):
            slack = 1e-7 + 1e-9 * len(sums)
            if risk.constant_upper is not None:
                assert sums[-1] <= risk.constant_upper + slack, "too many"
            if risk.constant_lower is not None:
                assert sums[-1] >= risk.constant_lower - slack, "too few"
            if risk.from_now is not None:
                promised = self.promised[place]
                assert all(sums[-1] <= most + slack for most, _ in promised), "from then on"
                promised.append((risk.from_now, risk.habit))
                del promised[:-30]
            if risk.worst is not None:
                self._hold_worst(stream, place, risk, slack)
            assert risk.status is not sp.guarantee.Status.BROKEN
            if risk.window is None:
                continue
            low = high = rise = fall = 0.0
            for total in sums:
                low, high = min(low, total), max(high, total)
                rise, fall = max(rise, total - low), max(fall, high - total)
            assert rise <= risk.window + slack, "a window with too many"
            assert risk.window_sided != "both" or fall <= risk.window + slack, "with too few"

    def _hold_worst(self, stream: sp.Stream, place: int, risk: Any, slack: float) -> None:
        """What is said to happen if all that waits misses, and what is guaranteed of that."""
        lams = [receipt.lam for receipt in _waiting(stream, self.group)]
        member = stream.controller.owners[place]
        own = [lam[member] if isinstance(lam, tuple) else lam for lam in lams]
        held, exposed = self.risks[place], sum(lam < inf for lam in own)
        promise = declaration(held.loss)
        rise = promise.high - held.level
        assert abs(risk.worst - risk.account - rise * exposed) <= slack, "what waits"
        for most in (risk.bound.since_start, risk.bound.from_now):
            if most is not None:
                assert risk.worst - risk.first <= most + slack, "if all that waits misses"


def _waiting(stream: sp.Stream, group: Any) -> list[Any]:
    """What waits in a group, or at all."""
    every = stream.pending.values()
    return [r for r in every if group is None or group in [name for name, _ in r.groups]]


def groups_of(seed: int) -> Any:
    """The groups of one row after the other: a few that overlap, or None for no groups at all."""
    rng = Random(f"groups {seed}")
    names = ["a", "b", 3, ("c", 1)][: rng.choice([1, 2, 4])]
    grouped = rng.random() < 0.4
    while True:
        row = tuple(rng.sample(names, rng.randrange(len(names) + 1)))
        yield row if grouped else None


def play(seed: int, rows: int = 120) -> str:
    """One mixture: "refused", or "kept" if every bound was; anything else raises.

    Every fortieth seed plays a stream of paths too.
    """
    if seed % 40 == 0:
        play_path(seed)
    rng = Random(seed)
    try:
        controller = controller_of(rng)
    except InputError:
        return "refused"
    late = Late(rng.choice(DELAYS), rng)
    given_up, disturbed = rng.choice([0.0, 0.0, 0.1]), rng.random() < 0.4
    adversary = Adversary(controller, rng.choice(POLICIES), rng.randrange(2**32))
    stream = sp.Stream(controller, missing="skip")
    sums, shown, labels, known = Sums(stream), [], [], []
    predictions: list[Any] = []
    drawn, groups = groups_of(seed), list[Any]()
    open_rows: list[tuple[int, int]] = []
    for row in range(rows):
        predictions.append(adversary.prediction())
        groups.append(next(drawn))
        sums.asked(stream, groups[-1] or ())
        try:
            shown.append(stream.predict(predictions[-1], id=row, groups=groups[-1]))
        except InputError as error:
            two_sided = "two-sided" in str(error) and stream.pending
            if not two_sided and str(error) != plan(controller).groups.refused:
                raise
            return "refused"
        if isinstance(shown[-1], Bands):
            ends = shown[-1].ends
            assert all(low <= high for low, high in pairwise(ends)), f"{ends} cross"
        sums.hold(stream)
        labels.append(adversary.label(stream, shown[-1]))
        open_rows.append((late.due(row), row))
        if late.kind in ("jitter", "geometric"):
            rng.shuffle(open_rows)
        for due, asked in [each for each in open_rows if each[0] <= row or row == rows - 1]:
            open_rows.remove((due, asked))
            if rng.random() < given_up:
                stream.drop(asked)
                sums.hold(stream)
                continue
            sums.note(stream.update(labels[asked], id=asked), groups[asked] or (), stream)
            known.append((asked, row))
            sums.hold(stream)
        if disturbed and rng.random() < 0.03:
            stream, sums = _disturbed(stream, sums, rng)
            sums.hold(stream)
    if not given_up and not disturbed:
        _agree(controller, predictions, labels, known, shown, groups)
        if seed % 20 == 0:
            _agree_stored(controller, predictions, labels, known, shown, groups)
    return "kept"


# Paths, whose labels come step by step.


def play_path(seed: int, paths: int = 30) -> None:
    """A stream of paths against an adversary: no level crosses, every account is kept.

    Labels come in any order, some never; paths overlap, are given up, and expire.
    """
    rng, random = Random(f"path {seed}"), np.random.default_rng(seed)
    horizon = rng.randrange(2, 7)
    controller = sp.paths(
        horizon, rng.choice([0.9, [0.5, 0.9]]),
        totals=rng.choice([[], [horizon], [1, horizon]]), maximum=rng.random() < 0.5,
        minimum=rng.random() < 0.5, every=rng.randrange(1, horizon + 1),
        limit=rng.choice([1.0, 3.0, 10.0]),
    )  # fmt: skip
    stream = sp.Stream(controller, max_pending=rng.choice([4, 12]), overflow="expire")
    truth, moods = dict[int, dict[int, float]](), ["spike", "edge", "drift", "inside"]
    moods = rng.choice([moods, *([mood] for mood in moods)])
    for t in range(paths):
        shown = stream.predict(random.normal(size=horizon), id=t)
        for inner, outer in pairwise(shown.levels):
            assert (inner.lower >= outer.lower).all()
            assert (inner.upper <= outer.upper).all()
            for low, high in zip(inner.numbers, outer.numbers, strict=True):
                assert high.lower <= low.lower <= low.upper <= high.upper
        truth[t] = dict(enumerate(_path_labels(random, shown, rng.choice(moods)), 1))
        _path_kept(stream)
        for _ in range(rng.randrange(3 * horizon)):
            waits: list[Any] = [id for id in stream.pending if truth[int(id)]]
            if not waits:
                break
            id, event = rng.choice(waits), rng.random()
            if event < 0.05:
                stream.drop(id)
            elif event < 0.2:
                stream.update([truth[id].get(step, nan) for step in range(1, horizon + 1)], id=id)
            else:
                step = rng.choice(list(truth[id]))
                stream.update(truth[id].pop(step), id=id, step=step)
            _path_kept(stream)
        if rng.random() < 0.1:
            stream = sp.Stream.restored(controller, stream.content())
            _path_kept(stream)
    for id in list(stream.pending):
        stream.drop(id)
    _path_kept(stream)
    assert all(Book(*risk.step).waiting == 0.0 for risk in stream.state.risks)


def _path_labels(random: np.random.Generator, shown: Any, mood: str) -> list[float]:
    """Labels chosen after the sets were seen: one step outside, all inside, a total outside."""
    lower = np.where(np.isfinite(shown.lower), shown.lower, -1e3)
    upper = np.where(np.isfinite(shown.upper), shown.upper, 1e3)
    y = lower + random.random(len(lower)) * (upper - lower)
    if mood == "spike":
        y[random.integers(len(y))] += 10.0 * (1.0 + upper.max() - lower.min())
    elif mood == "edge":
        y = upper.copy()
    elif mood == "drift":
        y = np.nextafter(upper, inf) if random.random() < 0.5 else lower - 1e-9
    y[random.random(len(y)) < 0.15] = nan
    listed: list[float] = np.clip(y, -1e100, 1e100).tolist()
    return listed


def _path_kept(stream: sp.Stream) -> None:
    """Every account within its bound; every book counts what waits, and no more."""
    told, open_paths = stream.certificate().risks, stream.pending.values()
    for place, (risk, said) in enumerate(zip(stream.state.risks, told, strict=True)):
        book = Book(*risk.step)
        share = 1.0 - stream.controller.risks[place].level
        assert risk.theta + share * book.exposed <= book.most + 1e-9
        assert said.account <= said.bound.since_start + 1e-9
        lams = [r.lam[place] for r in open_paths if r.lam[place] == r.lam[place]]
        assert (book.waiting, book.exposed) == (len(lams), sum(lam < inf for lam in lams))


def _disturbed(stream: sp.Stream, sums: Sums, rng: Random) -> tuple[sp.Stream, Sums]:
    """A stream that was written down and read again, carried to another limit, or changed."""
    event = rng.random()
    if event < 0.4:
        content = stream.content()
        return sp.Stream.restored(stream.controller, content), sums
    risks = list(stream.controller.risks)
    step, factor = risks[0].step, rng.choice([0.3, 2.0])
    if event < 0.6 and isinstance(step, Account | Fixed) and not stream.pending:
        name = "limit" if isinstance(step, Account) else "gamma"
        other = replace(step, **{name: getattr(step, name) * factor})
        risks[0] = replace(risks[0], step=other)
        controller = replace(stream.controller, risks=tuple(risks))
        carried = sp.Stream(controller, missing="skip", state=stream.state)
        goes_on = carried.certificate().risks[0].judged > 0
        return carried, sums if goes_on else Sums(carried)
    place = rng.randrange(len(stream.controller.risks))
    level = stream.controller.risks[place].level * rng.choice([0.8, 0.95])
    step = stream.controller.risks[place].step
    options: Any = {"level": level}
    if event < 0.75 and isinstance(step, Account):
        options = {"step": replace(step, limit=step.limit * rng.choice([0.5, 2.0]))}
    try:
        stream.change(risk=place, **options)
    except InputError:
        return stream, sums
    return stream, Sums(stream)


def _agree(
    controller: sp.Controller, predictions: Any, labels: Any, known: Any, shown: Any, groups: Any
) -> None:
    """A replay of the tape, a fleet of one, and Spark's step, show what the stream showed."""
    if not scalar(controller):
        return
    reader: Any = controller.reader
    columns = reader.columns[:3] if isinstance(reader, Multiplied) else reader.columns
    names = [name for name in columns if name != "phase"]  # rows are counted
    recorder, answers = sp.Recorder(names), {}
    for asked, row in known:
        answers.setdefault(row, []).append(asked)
    fleet = sp.Fleet(controller, 1, max_pending=len(predictions))
    known_parts = spec_known(controller)
    grouped = groups[0] is not None
    work = None
    if known_parts and not plan(controller).at_once:
        work = Work(controller, expire=10**9, groups=4 if grouped else 0)
    bucket = None
    for row, prediction in enumerate(predictions):
        reading = controller.reader.read(prediction)[: len(names)]
        recorder.predicted(row, reading)
        own = [groups[row]] if grouped else None
        given = tuple(np.array([number]) for number in reading)
        interval = fleet.predict(given, batch=row, groups=own)
        nested = isinstance(shown[row], Levels | Bands)
        parts = shown[row].parts if nested else [shown[row]]
        ends = [(part.lower, part.upper) for part in parts]
        assert list(zip(interval.lower.ravel(), interval.upper.ravel(), strict=True)) == ends
        if work is not None:
            batch = dict(zip(names, reading, strict=True)) | {"y": nan}
            if grouped:
                batch["groups"] = json.dumps(list(map(str, groups[row])))
            bucket, out = work.step(bucket or work.unpack(None), _batch(row, row, batch))
            whole = (
                (shown[row].lower, shown[row].upper) if isinstance(shown[row], Bands) else ends[-1]
            )
            assert (out["lower"][0], out["upper"][0]) == whole
        for asked in answers.get(row, []):
            recorder.observed(asked, labels[asked])
            losses = fleet.update(np.array([labels[asked]]), batch=asked)
            if work is not None:
                batch = dict.fromkeys(names, nan) | {"y": labels[asked]}
                batch |= {"groups": "[]"} if grouped else {}
                bucket, out = work.step(bucket, _batch(row, asked, batch))
                assert np.array_equal(out["loss"].ravel(), losses.ravel())
    trace = sp.replay(controller, recorder.tape(), groups={"named": groups} if grouped else None)
    parts = [list(each.parts) if isinstance(each, Levels | Bands) else [each] for each in shown]
    assert trace.levels.lower.T.tolist() == [[part.lower for part in row] for row in parts]
    assert trace.levels.upper.T.tolist() == [[part.upper for part in row] for row in parts]
    assert trace.state.position == fleet.state(0).position
    assert trace.state.groups == fleet.state(0).groups
    if work is not None:
        held = {str(name): risks for name, risks in trace.state.groups.items()}
        assert next(iter(bucket.states(controller).values())).groups == held


def _batch(time: int, id: int, columns: dict[str, Any]) -> dict[str, Any]:
    """One row as Spark's step takes it."""
    return {name: [value] for name, value in {"key": 0, "time": time, "id": id, **columns}.items()}


def spec_known(controller: sp.Controller) -> bool:
    """Whether a controller can be written down: one with a part of the test's own cannot."""
    try:
        sp.spec.to_dict(controller)
    except SpecError:
        return False
    return True


def _agree_stored(
    controller: sp.Controller, predictions: Any, labels: Any, known: Any, shown: Any, groups: Any
) -> None:
    """A store, opened again half-way, shows what the stream showed."""
    if not spec_known(controller):
        return
    answers: dict[int, list[int]] = {}
    for asked, row in known:
        answers.setdefault(row, []).append(asked)
    with TemporaryDirectory() as folder:
        store = sp.Store(f"{folder}/a.sqlite", controller)
        for row, prediction in enumerate(predictions):
            if row == len(predictions) // 2:
                store.close()
                store = sp.Store(f"{folder}/a.sqlite", controller)
            stream = store.stream("only")
            assert stream.predict(prediction, id=row, groups=groups[row]) == shown[row]
            for asked in answers.get(row, []):
                try:
                    stream.update(labels[asked], id=asked)
                except LabelError as error:  # a store takes the classes of a prediction only
                    if "must be one of the classes" not in str(error):
                        raise
                    store.close()
                    return
        store.close()
