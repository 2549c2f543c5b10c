"""An adversary: it hands over predictions, sees the set that is shown, and only then picks y."""

from collections.abc import Callable
from math import inf, isfinite, nextafter
from random import Random
from typing import Any

from hypothesis import strategies as st

from setpoint import Controller, Stream
from setpoint.losses import declaration
from setpoint.sets import Widen

POLICIES = ("up", "down", "swing", "runs", "random")
"""Raise θ or lower it whenever possible; raise it until it leaves its bounds and then lower it
likewise; do one of the three for a while and then another; pick any y."""


def adversaries() -> st.SearchStrategy[tuple[str, int]]:
    """A policy and the seed of its choices."""
    return st.tuples(st.sampled_from(POLICIES), st.integers(0, 2**32 - 1))


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
        self.index = self.rng.randrange(len(controller.risks))
        self.mood = policy if policy in ("up", "down") else "up"

    def prediction(self) -> tuple[float, ...]:
        """Any prediction the family takes: points, crossed or infinite ends, scales of zero."""
        rng = self.rng
        pick = rng.random()
        if isinstance(self.controller.sets, Widen):
            if pick < 0.05:
                return rng.choice([(-inf, inf), (inf, -inf), (-inf, 0.0), (1.0, inf), (inf, inf)])
            lower = rng.choice([0.0, -1.0, rng.uniform(-4.0, 4.0)])
            return lower, lower + rng.choice([0.0, 1.0, rng.uniform(-2.0, 4.0)])
        centre = rng.choice([0.0, 1.5, rng.uniform(-4.0, 4.0)])
        return centre, *(rng.choice([0.0, 1.0, rng.expovariate(1.0)]) for _ in range(2))

    def label(self, stream: Stream, shown: Any) -> float:
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

    def _candidates(self, shown: Any) -> list[float]:
        """The very ends of the set, one ulp outside, inside, near, far: whatever y can be."""
        rng, (low, high) = self.rng, self.controller.sets.support
        lower, upper = shown
        near = rng.uniform(-6.0, 6.0)
        found = [
            lower, upper, nextafter(lower, -inf), nextafter(upper, inf), lower / 2 + upper / 2,
            lower - 0.7, upper + 0.7, upper + 3.0, near, -1e6, 1e6, 1e300, low, high, 0.9,
        ]  # fmt: skip
        rng.shuffle(found)
        return [y for y in found if isfinite(y) and low <= y <= high]

    def _excess(self, shown: Any) -> Callable[[float], float]:
        loss = self.controller.risks[self.index].loss
        if not callable(loss):  # a loss with memory: all of them are about misses
            return lambda y: float(not shown.contains(y))
        sign = -1.0 if declaration(loss).grows else 1.0
        level = self.controller.risks[self.index].level

        def excess(y: float) -> float:
            value = loss(shown, y)
            return 0.0 if value is None else sign * (value - level)

        return excess
