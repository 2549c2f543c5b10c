"""Alarms: a hook called once an episode, when something begins to go wrong with a stream."""

from collections.abc import Callable, Collection, Iterable, Sequence
from math import inf
from typing import Any, NamedTuple

from setpoint._check import positive, whole
from setpoint._window import Sum
from setpoint.errors import InputError
from setpoint.watch import BLOCK, Price, lasting, price_of

_QUIET = 100
"""How many labels without the safeguard end an episode, where there is no window."""
_SILENT = (
    "predictions wait for their actual values",
    "nothing is learnt or guaranteed of them until these come",
)


class Alarm(NamedTuple):
    """An alarm on a stream; print it for a sentence.

    `kind` is "dearer" where the sets cost more than they did, "model" where the model's own errors
    have grown, "world" where the actual values have become as restless as that explains, "cheaper"
    where the sets cost less; "silence" where labels do not come; "full" or "empty" where the
    safeguard chose the set, "window" where the mean loss of the last labels left its limit.
    """

    kind: str
    step: int  # labels so far
    risk: int | None = None  # of a window, the index of the risk
    value: float | None = None  # times the reference; how many wait; |mean loss − level|
    limit: float | None = None  # what it should not exceed
    since: int | None = None  # the label from which on it has been so
    said: str = ""  # in words

    def __str__(self) -> str:
        return self.said or f"{self.kind} at label {self.step:,}"


def words(kind: str, price: Price, since: str, held: str, *, intervals: bool = True) -> str:
    """What an alarm about the price says; `held` is what became of the guarantee."""
    sets, large = ("intervals", "wide") if intervals else ("sets", "large")
    by = f"by {sets} {price.sets:.2g} times as {large}"
    match kind:
        case "dearer":
            return (
                f"the {sets} need more than they did since {since}: they are {price.sets:.2g} "
                f"times as {large}, and the model's own errors {price.model:.2g} times what they "
                f"were; {held}"
            )
        case "model":
            return (
                f"your model's errors are {price.model:.2g} times what they were, since {since}; "
                f"{held}, {by}"
            )
        case "world":
            return (
                f"the actual values have become {price.world:.2g} times as restless since {since}; "
                f"the model does no worse beside a naive forecast, and {held}, {by}"
            )
    return (
        f"the {sets} need less than they did since {since}: {price.sets:.2g} times as {large}; "
        f"acknowledge it to make this the reference; {held}"
    )


class Episodes:
    """Calls a hook when something begins to go wrong: once an episode.

    An episode ends when nothing was wrong for as many labels in a row as the window has, 100
    without one. `tolerance` is what |mean loss − level| over the window should not exceed; without
    it `limits`, one for each risk, are to be set, where None means never. `one_sided` looks at a
    single mean loss, too, only where it is above its level.
    """

    def __init__(
        self, levels: Sequence[float], window: int | None, tolerance: float | None,
        one_sided: bool = False,
    ) -> None:  # fmt: skip
        if window is None and tolerance is not None:
            raise InputError(f"tolerance needs a window, got tolerance={tolerance} without one")
        self.levels = tuple(levels)
        self.one_sided = one_sided or len(self.levels) > 1
        self.window = None if window is None else whole(window, "window", 1)
        self.tolerance = None if tolerance is None else positive(tolerance, "tolerance")
        self.limits: tuple[float | None, ...] = (self.tolerance,) * len(self.levels)
        self.step = 0
        self.sums = self._sums([] for _ in levels)
        self.quiet = _QUIET if self.window is None else self.window
        # How many labels each episode will last if nothing more is wrong; 0 where there is none.
        self.alarmed = [0] * len(self.levels)
        self.saturation = {"full": 0, "empty": 0}
        self.silent = False

    def cost(
        self, watched: tuple[Any, Any] | None, hook: Callable[[Alarm], Any],
        say: Callable[[str, int], str],
    ) -> None:  # fmt: skip
        """Calls the hook for what has begun with the last label, from what a stream costs.

        `say` has an alarm of a kind since a label in words, none where it is no alarm here.
        """
        if watched is None or watched[0][0] < BLOCK:
            return
        memory = [*watched[0], *watched[1]]
        price = price_of(memory)
        if price is None:
            return
        for kind, (step, since) in lasting(memory).items():
            if step == price.labels and (said := say(kind, since)):
                times = {"model": price.model, "world": price.world}.get(kind, price.sets)
                hook(Alarm(kind, step, value=times, since=since, said=said))

    def await_labels(
        self, waiting: Collection[Any], usual: float, hook: Callable[[Alarm], Any],
        words: tuple[str, str] = _SILENT,
    ) -> None:  # fmt: skip
        """Calls the hook once where many more predictions wait than usual; the oldest is first."""
        limit, count = 20.0 + 4.0 * usual, len(waiting)
        if count < 0.5 * limit:
            self.silent = False
        elif count >= limit and not self.silent:
            self.silent = True
            said = (
                f"{count:,} {words[0]}, and usually {usual:.0f} do; the oldest is "
                f"{next(iter(waiting))!r}: {words[1]}"
            )
            hook(Alarm("silence", self.step, value=float(count), limit=limit, said=said))

    def look(
        self, lam: float, losses: Sequence[float | None], hook: Callable[[Alarm], Any],
        limits: Callable[[], tuple[float | None, ...]] | None = None,
    ) -> None:  # fmt: skip
        """Takes in one label and calls the hook for everything that begins with it.

        `limits` gives the limits of now, for a guarantee whose limits grow with delay or time.
        """
        self.step += 1
        for alarm in [*self._saturation(lam), *self._windows(losses, limits)]:
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
            "silent": self.silent,
        }

    @classmethod
    def restore(
        cls, levels: Sequence[float], content: dict[str, Any], one_sided: bool = False
    ) -> "Episodes":
        """The watch whose content was saved."""
        watch = cls(levels, content["window"], content["tolerance"], one_sided)
        watch.limits = content["limits"]
        watch.step = content["step"]
        watch.sums = watch._sums(content["losses"])
        watch.alarmed = list(content["alarmed"])
        watch.saturation, watch.silent = dict(content["saturation"]), content.get("silent", False)
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
            self.saturation[kind] = self.quiet if kind == now else max(left - 1, 0)
        return alarms

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
            value = above if self.one_sided else abs(above)
            if value > limit and limits is not None:
                self.limits = limits()
                limit = self.limits[index]
            beyond = limit is not None and value > limit
            if beyond and not self.alarmed[index]:
                alarms.append(Alarm("window", self.step, index, value, limit))
            self.alarmed[index] = self.quiet if beyond else max(self.alarmed[index] - 1, 0)
        return alarms
