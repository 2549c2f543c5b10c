"""Alarms: a hook told once an episode, when the safeguard acts or a window leaves its limit."""

from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any, NamedTuple

from setpoint._check import positive, whole
from setpoint._window import Sum
from setpoint.errors import InputError

_QUIET = 100
"""How many labels without the safeguard end an episode, where there is no window."""


class Alarm(NamedTuple):
    """What happened: `kind` is "full" or "empty" where the safeguard chose the set, "window" where
    the mean loss of the last labels left its limit.

    `risk` is the index of the risk, None for the safeguard; `step` the number of labels so far;
    `value` is |mean loss − level| over the window and `limit` what it should not exceed. Of
    several risks one may well stay below its level, so there `value` is mean loss − level.
    """

    kind: str
    step: int
    risk: int | None = None
    value: float | None = None
    limit: float | None = None


class Watch:
    """Tells a hook when something begins to go wrong: once an episode.

    An episode begins with the label at which something is wrong. It ends when nothing was wrong
    for as many labels in a row as the window has, 100 without a window. "full", "empty" and the
    window of each risk have episodes of their own.

    Parameters
    ----------
    levels
        The level of each risk.
    window
        The number of last labels to look at, None to watch the safeguard only.
    tolerance
        What |mean loss − level| over the window should not exceed; None leaves `limits`, one for
        each risk, to be set, where None means never.
    """

    def __init__(
        self, levels: Sequence[float], window: int | None, tolerance: float | None
    ) -> None:
        if window is None and tolerance is not None:
            raise InputError(f"tolerance needs a window, got tolerance={tolerance} without one")
        self.levels = tuple(levels)
        self.window = None if window is None else whole(window, "window", 1)
        self.tolerance = None if tolerance is None else positive(tolerance, "tolerance")
        self.limits: tuple[float | None, ...] = (self.tolerance,) * len(self.levels)
        self.step = 0
        self.sums = self._sums([] for _ in levels)
        self.quiet = _QUIET if self.window is None else self.window
        # How many labels each episode will last if nothing more is wrong; 0 where there is none.
        self.alarmed = [0] * len(self.levels)
        self.saturation = {"full": 0, "empty": 0}

    def look(
        self,
        lam: float,
        losses: Sequence[float | None],
        hook: Callable[[Alarm], Any],
        limits: Callable[[], tuple[float | None, ...]] | None = None,
    ) -> None:
        """Takes in one label and calls the hook for everything that begins with it.

        `limits` gives the limits of now, for a guarantee whose limits grow with delay or time.
        """
        self.step += 1
        alarms = [*self._saturation(lam), *self._windows(losses, limits)]
        for alarm in alarms:
            hook(alarm)

    def begin(self, levels: Sequence[float]) -> None:
        """Begins again with other levels: the losses so far were judged by the old ones."""
        self.levels = tuple(levels)
        self.sums = self._sums([] for _ in levels)
        self.alarmed = [0] * len(self.levels)

    def content(self) -> dict[str, Any]:
        """What a saved state keeps of it."""
        return {
            "window": self.window,
            "tolerance": self.tolerance,
            "limits": self.limits,
            "step": self.step,
            "losses": [total.values for total in self.sums],
            "alarmed": list(self.alarmed),
            "saturation": dict(self.saturation),
        }

    @classmethod
    def restore(cls, levels: Sequence[float], content: dict[str, Any]) -> "Watch":
        """The watch whose content was saved."""
        watch = cls(levels, content["window"], content["tolerance"])
        watch.limits = content["limits"]
        watch.step = content["step"]
        watch.sums = watch._sums(content["losses"])
        watch.alarmed = list(content["alarmed"])
        watch.saturation = dict(content["saturation"])
        return watch

    def _sums(self, losses: Iterable[Sequence[float]]) -> list[Sum]:
        """The sums over the window, one for each risk, after its losses so far."""
        return [] if self.window is None else [Sum(self.window, each) for each in losses]

    def _saturation(self, lam: float) -> list[Alarm]:
        now, alarms = "full" if lam == inf else "empty" if lam == -inf else "", list[Alarm]()
        if not (now or any(self.saturation.values())):
            return alarms
        for kind, left in self.saturation.items():
            if kind == now and not left:
                alarms.append(Alarm(kind, self.step))
            self.saturation[kind] = self._left(left, kind == now)
        return alarms

    def _left(self, left: int, wrong: bool) -> int:
        """How many labels an episode has left after one more."""
        return self.quiet if wrong else max(left - 1, 0)

    def _windows(
        self,
        losses: Sequence[float | None],
        limits: Callable[[], tuple[float | None, ...]] | None,
    ) -> list[Alarm]:
        if self.window is None:
            return []
        alarms = []
        for index, (loss, total) in enumerate(zip(losses, self.sums, strict=True)):
            limit = self.limits[index]
            if loss is None or limit is None:
                continue
            above = total.add(loss) / self.window - self.levels[index]
            if len(total) < self.window:
                continue
            value = abs(above) if len(self.levels) == 1 else above
            if value > limit and limits is not None:
                self.limits = limits()
                limit = self.limits[index]
            beyond = limit is not None and value > limit
            if beyond and not self.alarmed[index]:
                alarms.append(Alarm("window", self.step, index, value, limit))
            self.alarmed[index] = self._left(self.alarmed[index], beyond)
        return alarms
