"""Whether a loss keeps its promises."""

from collections.abc import Iterable, Sequence
from copy import deepcopy
from dataclasses import is_dataclass
from itertools import product
from math import inf, isfinite
from typing import Any, NamedTuple

import numpy as np

from setpoint._check import number
from setpoint.errors import SetpointError
from setpoint.losses import Calms, Counts, Keeps, declaration
from setpoint.sets import Multilabel, PixelScale, Shares, Sides, Widen
from setpoint.testing.parts import (
    Memory,
    broken,
    check_value,
    first_memory,
    in_use,
    memory_of,
    same_values,
)
from setpoint.testing.samples import LAMS, LEVELS, ROUNDING, Sample, readings_of, samples_of
from setpoint.testing.sets import contains

__all__ = ["check_loss"]


def check_loss(
    loss: Any,
    sets: Any = None,
    predictions: Iterable[Any] | None = None,
    labels: Iterable[Any] | None = None,
) -> None:
    """Checks a loss, with or without memory, that shrinks or grows with the set.

    Parameters
    ----------
    loss
        See `setpoint.losses`.
    sets
        The family whose sets it judges; by default `sets.Widen()`, or `sets.Multilabel()` or
        `sets.PixelScale()` if it asks of a set what only sets of labels, or of pixels, have.
    predictions, labels
        What the family reads and what is judged; by default as for `check_set`.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True, slots=True)
    ... class Shortfall:
    ...     scale: float
    ...     low, high = 0.0, 1.0
    ...
    ...     def __call__(self, shown, y) -> float:
    ...         return min(max(y - shown.upper, 0.0) / self.scale, 1.0)
    >>> check_loss(Shortfall(10.0))
    >>> from setpoint.losses import Custom
    >>> check_loss(Custom(lambda shown, y: max(y - shown.upper, 0.0)))
    Traceback (most recent call last):
    setpoint.testing.ConformanceError: Custom does not keep a promise: it lies in [0, 1], got inf
    on Interval(empty) with y = 0.0
    """
    family = _judged_by(loss) if sets is None else sets
    links = _links(family, samples_of(family, predictions, labels))
    with in_use(loss):
        judge = _Judge(loss)
        first = first_memory(loss) if judge.keeps else ()
        memories = _visited(judge, first, links) if judge.keeps else [first]
        for memory, link in product(memories, links):
            for y in link.labels[:: 1 if len(memories) == 1 else 5]:
                _check_direction(judge, memory, link.chain, y)
        for link in links:
            if isinstance(loss, Calms) and isinstance(link.family, Shares):
                _check_share(loss, link)
    if is_dataclass(loss):
        check_value("losses", loss)


Chain = list[tuple[float, Any]]


class _Link(NamedTuple):
    """Sets in growing order, the empty one first, the full one last, with labels to judge."""

    family: Any
    reading: Any
    chain: Chain
    labels: list[Any]


def _links(family: Any, samples: Sequence[Sample]) -> list[_Link]:
    """The sets of every prediction, side by side where a family has several."""
    links = []
    for prediction, labels in samples:
        truths = [family.label(y) for y in labels]
        reading = readings_of(family, prediction)[0]
        pairs = [(family, reading)]
        if isinstance(family, Sides):
            pairs = [(family.side(i), family.part(reading, i)) for i in range(family.sides)]
        links += [_Link(one, part, _chain(one, part, truths), truths) for one, part in pairs]
    return links


def _chain(family: Any, reading: Any, labels: Sequence[Any]) -> Chain:
    criticals = (float(family.critical(reading, y)) for y in labels[::3])
    lams = {*LAMS[1:-1], *(s for s in criticals if isfinite(s))}
    return [(lam, family.at(reading, lam)) for lam in (-inf, *sorted(lams), inf)]


def _judged_by(loss: Any) -> Any:
    """A family of sets that the loss can judge."""
    keeps = isinstance(loss, Keeps)
    families: tuple[tuple[Any, Any, Any], ...] = (
        (Widen(), (0.5, 1.0), 0.5),
        (Multilabel(), (0.5, 1.0), (0,)),
        (PixelScale(), np.ones((3, 2, 2)), np.ones((2, 2))),
    )
    for family, prediction, y in families:
        shown = family.at(family.read(prediction), -0.5)
        try:
            loss.update(loss.init(), shown, y) if keeps else loss(shown, y)
        except AttributeError:
            continue
        except Exception:
            break
        return family
    return Widen()


class _Judge:
    """A loss at work, with what it promises and offers asked once."""

    def __init__(self, loss: Any) -> None:
        self.loss, self.promise = loss, declaration(loss)
        self.keeps, self.counts = isinstance(loss, Keeps), isinstance(loss, Counts)

    def __call__(self, memory: Memory, shown: Any, y: Any) -> tuple[float | None, Memory]:
        """One loss, if it is the same twice, within its range, and leaves a good memory."""
        loss, promise = self.loss, self.promise

        def where() -> str:
            return f"on {shown} with y = {y}" + (f" and memory {memory}" if memory else "")

        kept = deepcopy(shown)
        untouched = same_values(kept, shown)
        got, after = self.answer(memory, shown, y)
        again = self.answer(memory, shown, y)
        same = again[0] is got or again[0] == got or got != got
        if not (same_values(again[1], after) and same):
            raise broken(loss, f"it gives one answer, got {(got, after)} and {again} {where()}")
        if untouched and not same_values(kept, shown):
            raise broken(loss, f"it leaves the set as it is, got {shown} of {kept}")
        after = memory_of(loss, after, like=memory)
        if self.counts:
            ruled = loss.rule(loss.params, memory, not contains(shown, y))
            if tuple(ruled) != (got, after):
                raise broken(loss, f"rule and call agree, got {ruled} and {(got, after)} {where()}")
        if got is None:
            return None, after
        try:
            value = number(got, "a loss")
        except SetpointError as error:
            raise broken(loss, f"it is one number or None: {error} {where()}") from error
        if not promise.low <= value <= promise.high:
            allowed = f"[{promise.low:g}, {promise.high:g}]"
            raise broken(loss, f"it lies in {allowed}, got {value} {where()}")
        return value, after

    def answer(self, memory: Memory, shown: Any, y: Any) -> tuple[Any, Any]:
        """What the loss says, and the next memory."""
        if not self.keeps:
            return self.loss(shown, y), memory
        got = self.loss.update(memory, shown, y)
        if not (isinstance(got, tuple) and len(got) == 2):
            raise broken(self.loss, f"update returns (loss, memory), got {got!r}")
        return got


def _visited(judge: _Judge, first: Memory, links: Sequence[_Link]) -> list[Memory]:
    """Memories that a random stream of sets and labels leads to."""
    rng = np.random.default_rng(2)
    memories, memory = [first], first
    for _ in range(60):
        link = links[int(rng.integers(len(links)))]
        chain, labels = link.chain, link.labels
        # Runs of small sets, then of large ones: memories that only grow show where they stop.
        third = len(chain) // 3
        place = int(rng.integers(third)) if rng.random() < 0.8 else -1 - int(rng.integers(third))
        y = labels[int(rng.integers(len(labels)))]
        _, memory = judge(memory, chain[place][1], y)
        memories.append(memory)
    return list(dict.fromkeys(memories))[:12]


def _check_direction(judge: _Judge, memory: Memory, chain: Chain, y: Any) -> None:
    """Along growing sets: the promises at both ends, and never a move in the wrong direction."""
    loss, promise = judge.loss, judge.promise
    sign = -1.0 if promise.grows else 1.0
    least, most = ("most", "least") if promise.grows else ("least", "most")
    before: float | None = None
    slack = ROUNDING * (promise.high - promise.low if isfinite(promise.high) else 1.0)
    for lam, shown in chain:
        value, _ = judge(memory, shown, y)
        if value is None:
            continue
        unkept = None
        if lam == inf and (value - promise.full) * sign > 0.0:
            unkept = f"it is at {most} {promise.full:g} on the full set"
        elif lam == -inf and (value - promise.empty) * sign < 0.0:
            unkept = f"it is at {least} {promise.empty:g} on the empty set"
        elif promise.monotone and before is not None and (value - before) * sign > slack:
            unkept = f"it does not {'shrink' if promise.grows else 'grow'} with the set"
        if unkept:
            smaller = "" if before is None else f", {before} on a smaller one"
            raise broken(loss, f"{unkept}, got {value} on {shown} with y = {y}{smaller}")
        before = value


def _check_share(loss: Any, link: _Link) -> None:
    """Whether `critical` is the smallest λ at which the loss is at its level or below."""
    for y, level in product(link.labels, LEVELS):
        values = link.family.criticals(link.reading, y)
        critical = loss.critical(values, level)
        told = np.asarray(values, dtype=float).ravel().tolist()
        for lam in filter(isfinite, (*told, *(each for each, _ in link.chain))):
            value = loss(link.family.at(link.reading, lam), y)
            if value is not None and (value <= level + ROUNDING) is not (lam >= critical):
                raise broken(
                    loss,
                    f"critical is the smallest λ that keeps the level, got {critical} for {values} "
                    f"and level {level}, and a loss of {value} at λ = {lam}",
                )
