"""Sets calibrated on the last scores: conformal prediction with a rolling calibration set."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from math import ceil, inf, nextafter
from sys import float_info
from typing import Any

from setpoint._check import whole
from setpoint._window import Window
from setpoint.errors import InputError
from setpoint.parts import ours
from setpoint.sets.family import (
    Columns,
    Draws,
    Family,
    Remembers,
    ShareOfOne,
    Shows,
    Sides,
    Supports,
    Taped,
)
from setpoint.sets.intervals import Widen

__all__ = ["ScoreWindow"]


@ours
@dataclass(frozen=True, slots=True)
class ScoreWindow(ShareOfOne):
    """Every y whose score is at most the ⌈(1 + λ)(n + 1)⌉-th smallest of the n past scores.

    "Calibration with cal" in the paper, and the sets of adaptive conformal inference. The score is
    the critical value of another family: `Widen` gives that of conformalised quantile regression,
    or the absolute residual if the model gives a point; `Scale` the scaled residual; `Cumulative`
    the score of adaptive prediction sets. A set is made of the scores known when it is shown; if
    labels are late, its critical value is asked for under those known by then, which matters to
    adaptive stretching only. θ lives in [−1, 0] and is never clipped: from 1 + λ = 1
    on, and while there are no scores, the set is full; below 0 it is empty.

    Parameters
    ----------
    scores
        The family whose critical values are the scores.
    size
        How many of the last scores are kept.

    Examples
    --------
    >>> family = ScoreWindow(size=3).bind([0.5, -1.0, 2.0])
    >>> family.at((10.0, 14.0), -0.5)
    Interval(9.5, 14.5)
    >>> round(family.critical((10.0, 14.0), 14.2), 12)
    -0.75
    >>> family.at((10.0, 14.0), -0.25), family.at((10.0, 14.0), -0.2)
    (Interval(8.0, 16.0), Interval(-inf, inf))

    References
    ----------
    Feldman et al. 2023, algorithm 2 and section 4.1.3, with "largest" put right; Gibbs and Candès
    2021.
    """

    scores: Family = field(default_factory=Widen)
    size: int = 300

    def __post_init__(self) -> None:
        if not isinstance(self.scores, Family):
            raise InputError(f"scores must be a family of sets, got {self.scores!r}")
        if isinstance(self.scores, Draws) and self.scores.draws:
            raise InputError(f"scores must be a family without chances, got {self.scores!r}")
        for offer, what in ((Remembers, "a window"), (Sides, "several sides")):
            if isinstance(self.scores, offer):
                raise InputError(f"scores must be a family without {what}, got {self.scores!r}")
        object.__setattr__(self, "size", whole(self.size, "size", 1))

    @property
    def shows(self) -> Any:
        """The class of the sets."""
        return self.scores.shows if isinstance(self.scores, Shows) else None

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the numbers in a prediction, if the family of the scores has names."""
        return self.scores.columns if isinstance(self.scores, Columns) else None

    @property
    def support(self) -> tuple[float, float]:
        """The values y can take."""
        return self.scores.support if isinstance(self.scores, Supports) else (-inf, inf)

    @property
    def taped(self) -> Callable[[float], Any]:
        """Turns the number that a tape holds into the label."""
        return self.scores.taped if isinstance(self.scores, Taped) else self.scores.label

    def bind(self, memory: Iterable[float] = ()) -> "_Windowed":
        """The family at work: it remembers scores, those given being the past, oldest first."""
        return _Windowed(self, Window(self.size, memory))

    def read(self, prediction: Any) -> Any:
        """The prediction as the family of the scores reads it."""
        return self.scores.read(prediction)

    def label(self, y: Any) -> Any:
        """The label as the family of the scores reads it."""
        return self.scores.label(y)

    def at(self, prediction: Any, lam: float) -> Any:
        """The set at λ before any score: full above −1."""
        return self.bind().at(prediction, lam)

    def critical(self, prediction: Any, y: Any) -> float:
        """The smallest λ whose set contains y before any score: just above −1."""
        return self.bind().critical(prediction, y)


class _Windowed:
    """A score window at work: the family of its scores at the quantile that λ asks for."""

    __slots__ = ("_window", "bounds", "family", "label", "read", "scores", "start", "unit")

    def __init__(self, family: ScoreWindow, window: Window) -> None:
        self.family, self.scores, self._window = family, family.scores, window
        self.read, self.label = family.scores.read, family.scores.label
        self.start, self.bounds, self.unit = family.start, family.bounds, family.unit

    def at(self, prediction: Any, lam: float) -> Any:
        """The set at λ."""
        return self.scores.at(prediction, self._quantile(lam))

    def critical(self, prediction: Any, y: Any) -> float:
        """The smallest λ whose set contains y."""
        window = self._window
        return _opens(window.below(self.weigh(prediction, y)), len(window))

    def weigh(self, prediction: Any, y: Any) -> float:
        """The score of a label; −inf is taken as the least number, which some set still holds."""
        return max(self.scores.critical(prediction, y), -float_info.max)

    def observe(self, score: float) -> None:
        """Takes in a score; the oldest leaves a full window."""
        self._window.add(score)

    @property
    def memory(self) -> tuple[float, ...]:
        """The scores, oldest first."""
        return tuple(self._window.values)

    def copy(self) -> "_Windowed":
        """One that shares nothing with this one."""
        return self.family.bind(self._window.values)

    def _quantile(self, lam: float) -> float:
        """The score up to which the set at λ reaches."""
        if not -1.0 < lam < 0.0:
            return inf if lam > -1.0 else -inf
        count = len(self._window)
        rank = ceil((1.0 + lam) * (count + 1))
        # Defined by the critical values: rounding may have put the rank one off.
        if rank > 0 and _opens(rank - 1, count) > lam:
            rank -= 1
        elif rank <= count and _opens(rank, count) <= lam:
            rank += 1
        return self._window.smallest(rank)


def _opens(below: int, count: int) -> float:
    """The smallest λ whose set reaches beyond `below` of the scores held."""
    return nextafter(below / (count + 1) - 1.0, inf)
