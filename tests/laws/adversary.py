"""An adversary: it hands over predictions, sees the set that is shown, and only then picks y."""

from collections.abc import Callable
from itertools import pairwise
from math import inf, isfinite, nextafter
from random import Random
from typing import Any

from hypothesis import strategies as st

from setpoint import Controller, Stream
from setpoint.losses import declaration
from setpoint.predictions import QuantileGrid
from setpoint.sets import (
    Bands,
    Cumulative,
    Fan,
    LabelSet,
    Levels,
    Lower,
    Multilabel,
    Multiplied,
    Nested,
    QuantileScale,
    ScoreWindow,
    Threshold,
    TwoSided,
    Upper,
    Widen,
)
from setpoint.sets.wrapping import SidedInterval

POLICIES = ("up", "down", "swing", "runs", "random")
"""Raise θ or lower it whenever possible; raise it until it leaves its bounds and then lower it
likewise; do one of the three for a while and then another; pick any y."""


def adversaries() -> st.SearchStrategy[tuple[str, int]]:
    """A policy and the seed of its choices."""
    return st.tuples(st.sampled_from(POLICIES), st.integers(0, 2**32 - 1))


def innermost(sets: Any) -> Any:
    """The family within a family: the one that reads predictions and labels."""
    while isinstance(sets, ScoreWindow | Nested):
        sets = sets.scores if isinstance(sets, ScoreWindow) else sets.sets
    return sets


class Adversary:
    """Plays against one stream.

    Parameters
    ----------
    controller
        What the stream holds: the adversary knows everything.
    policy, seed
        What it is after, and its luck.
    """

    def __init__(self, controller: Controller, policy: str, seed: int) -> None:
        self.rng = Random(seed)
        self.policy = policy
        self.controller = controller
        self.family = innermost(controller.sets)
        self.index = self.rng.randrange(len(controller.risks))
        self.mood = policy if policy in ("up", "down") else "up"

    def prediction(self) -> Any:
        """Any prediction the family takes: points, crossed or infinite ends, scales of zero,
        classes of equal probability or of none, flat and crossing quantiles.
        """
        rng = self.rng
        if isinstance(self.family, Threshold | Cumulative | Multilabel):
            return self._probabilities()
        if isinstance(self.family, QuantileScale):
            return self._quantiles()
        if isinstance(self.family, Lower | Upper):
            return rng.choice([0.0, inf, -inf, rng.uniform(-4.0, 4.0), rng.uniform(-4.0, 4.0)])
        pick = rng.random()
        if isinstance(self.family, Multiplied | Fan) and self.controller.correction is not None:
            lower = rng.choice([0.0, -1.0, rng.uniform(-4.0, 4.0), rng.choice([1e9, -1e9, 1e-9])])
            return lower, lower + rng.choice([0.0, 0.0, 1.0, rng.uniform(-2.0, 4.0)])
        if isinstance(self.family, Widen | TwoSided):
            if pick < 0.05:
                return rng.choice([(-inf, inf), (inf, -inf), (-inf, 0.0), (1.0, inf), (inf, inf)])
            lower = rng.choice([0.0, -1.0, rng.uniform(-4.0, 4.0)])
            return lower, lower + rng.choice([0.0, 1.0, rng.uniform(-2.0, 4.0)])
        centre = rng.choice([0.0, 1.5, rng.uniform(-4.0, 4.0)])
        return centre, *(rng.choice([0.0, 1.0, rng.expovariate(1.0)]) for _ in range(2))

    def _probabilities(self) -> Any:
        """Probabilities in eighths, by name or in order; for several labels any numbers."""
        rng, known = self.rng, self.family.classes
        count = rng.randint(1, 6) if known is None else known
        count = len(count) if isinstance(count, tuple) else count
        if isinstance(self.family, Multilabel):
            found = [rng.choice([0.0, 0.5, 1.0, rng.random()]) for _ in range(count)]
        else:
            marks = sorted(rng.choice([0, 8, rng.randint(0, 8)]) for _ in range(count - 1))
            found = [(b - a) / 8 for a, b in pairwise([0, *marks, 8])]
        if known is None and rng.random() < 0.2:
            return {f"class {place}": p for place, p in enumerate(found)} if count > 1 else {}
        return found

    def _quantiles(self) -> Any:
        rng, levels = self.rng, self.family.levels
        if levels is None and rng.random() < 0.3:
            low, spread = rng.uniform(-4.0, 4.0), rng.choice([0.0, 1.0, rng.expovariate(1.0)])
            return lambda level: low + spread * (level - 0.5) / (level * (1.0 - level))
        held = levels or tuple(sorted(rng.sample([k / 16 for k in range(17)], rng.randint(1, 5))))
        values = [rng.choice([0.0, 1.0, rng.uniform(-4.0, 4.0)]) for _ in held]
        return values if levels else QuantileGrid(held, values)

    def label(self, stream: Stream, shown: Any) -> Any:
        """The y that serves the policy best, now that the set is known."""
        labels = self._candidates(shown)
        mood = self._mood(stream)
        if mood == "random":
            return self.rng.choice(labels)
        excess = self._excess(shown)
        return (max if mood == "up" else min)(labels, key=excess)

    def _mood(self, stream: Stream) -> str:
        if self.policy == "runs":
            if self.rng.random() < 0.1:
                self.mood = self.rng.choice(["up", "down", "random"])
                self.index = self.rng.randrange(len(self.controller.risks))
        elif self.policy == "swing":
            theta = stream.theta if isinstance(stream.theta, tuple) else (stream.theta,)
            low, high = self.controller.bounds[self.index]
            if theta[self.index] > high:
                self.mood = "down"
            elif theta[self.index] < low:
                self.mood = "up"
        elif self.policy == "random":
            return "random"
        return self.mood

    def _candidates(self, shown: Any) -> list[Any]:
        """The very ends of the set, one ulp outside, inside, near, far: whatever y can be."""
        if isinstance(shown, Bands | Levels | SidedInterval):
            shown = shown.parts[self.controller.owners[self.index]]
        if isinstance(shown, LabelSet):
            return self._classes(shown)
        rng, (low, high) = self.rng, self.family.support
        lower, upper = shown
        near = rng.uniform(-6.0, 6.0)
        found = [
            lower, upper, nextafter(lower, -inf), nextafter(upper, inf), lower / 2 + upper / 2,
            lower - 0.7, upper + 0.7, upper + 3.0, near, -1e6, 1e6, 1e300, low, high, 0.9,
        ]  # fmt: skip
        rng.shuffle(found)
        return [y for y in found if isfinite(y) and low <= y <= high]

    def _classes(self, shown: LabelSet) -> list[Any]:
        """Every class and one that the prediction does not name; any number of them at once."""
        rng, classes = self.rng, list(shown.classes)
        named = any(isinstance(each, str) for each in classes) or not classes
        classes.append("class 99" if named and shown.scores[1] is not None else 99)
        rng.shuffle(classes)
        if not isinstance(self.family, Multilabel):
            return classes
        inside = [each for each in classes if shown.contains(each)]
        outside = [each for each in classes if not shown.contains(each)]
        some = rng.sample(classes, rng.randint(0, len(classes)))
        return [
            (),
            tuple(classes),
            tuple(inside),
            tuple(outside),
            tuple(some),
            *((each,) for each in classes),
        ]

    def _excess(self, shown: Any) -> Callable[[Any], float]:
        loss = self.controller.risks[self.index].loss
        if isinstance(shown, Bands | Levels | SidedInterval):
            shown = shown.parts[self.controller.owners[self.index]]
        if not callable(loss):  # a loss with memory: all of them are about misses
            return lambda y: float(not shown.contains(y))
        sign = -1.0 if declaration(loss).grows else 1.0
        level = self.controller.risks[self.index].level

        def excess(y: Any) -> float:
            value = loss(shown, y)
            return 0.0 if value is None else sign * (value - level)

        return excess
