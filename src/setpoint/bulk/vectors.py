"""Where the numbers of a controller, and those of its states, lie in plain vectors.

Bulk loops run on arrays. Controllers made of the same scalar rules share a layout, and so a loop:
their numbers differ, their text does not.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from math import inf
from types import FunctionType
from typing import Any

import numpy as np

from setpoint.controller import Controller, State
from setpoint.errors import InputError
from setpoint.losses import declaration

__all__ = ["Layout", "layout_of", "outward", "scalar"]


def scalar(controller: Controller) -> bool:
    """Whether a controller is made of scalar rules only, and so runs in bulk loops."""
    return (
        all(hasattr(controller.sets, name) for name in ("ends", "score", "columns", "support"))
        and all(
            hasattr(risk.loss, "rule") and risk.step is not None and risk.step.needs == "excess"
            for risk in controller.risks
        )
        and all(isinstance(rule, FunctionType) for rule in _rules(controller).values())
    )


def _rules(controller: Controller) -> dict[str, Any]:
    """The rules of a controller, by the name under which the text calls them."""
    found = {
        "ends": controller.sets.ends,  # type: ignore[attr-defined]
        "score": controller.sets.score,  # type: ignore[attr-defined]
        "phi": controller.stretch.phi,
        "merge": controller.combine.rule,
    }
    if controller.stretch.move is not None:
        found["move"] = controller.stretch.move
    for i, risk in enumerate(controller.risks):
        found[f"judge{i}"] = risk.loss.rule
        found[f"step{i}"] = risk.step.rule  # type: ignore[union-attr]
    return found


_layouts: dict[Any, "Layout"] = {}
_MOST = 256
"""How many layouts are remembered; the oldest is forgotten."""


def layout_of(controller: Controller) -> "Layout":
    """The layout a controller shares with all that are made of the same rules."""
    if not scalar(controller):
        raise InputError(f"{controller!r} has a part that is not a scalar rule")
    rules = _rules(controller)
    key = (
        tuple(rules.values()),
        controller.sets.columns,  # type: ignore[attr-defined]
        controller.sets.support != (-inf, inf),  # type: ignore[attr-defined]
        controller.combine.empty_if == "some",
        len(controller.risks) > 1 and controller.combine.anti_windup is not None,
        len(controller.stretch.params),
        len(controller.stretch.init()),
        *(
            (
                bool(getattr(risk.loss, "grows", False)),
                _doubted(risk.loss),
                len(risk.loss.params),
                len(risk.step.params),  # type: ignore[union-attr]
                len(_init(risk.loss)),
                len(_init(risk.step)),
            )
            for risk in controller.risks
        ),
    )
    found = _layouts.get(key)
    if found is None:
        while len(_layouts) >= _MOST:
            _layouts.pop(next(iter(_layouts)), None)
        found = _layouts[key] = Layout(controller, rules, key)
    return found


def _doubted(loss: Any) -> bool:
    """Whether a loss is not the library's own, so that its promises are checked."""
    return type(loss).__module__ != declaration.__module__


@lru_cache(maxsize=64)
def outward(support: tuple[float, float]) -> tuple[float, float]:
    """The smallest interval with float32 ends that holds the support.

    >>> outward((0.1, 2.0)) == (float(np.nextafter(np.float32(0.1), np.float32(0))), 2.0)
    True
    """
    with np.errstate(over="ignore"):
        low, high = (np.float32(end) for end in support)
        if float(low) > support[0]:
            low = np.nextafter(low, np.float32(-inf))
        if float(high) < support[1]:
            high = np.nextafter(high, np.float32(inf))
    return float(low), float(high)


class Layout:
    """The names of a controller's numbers (`params`) and of its states' (`fields`), in order."""

    def __init__(self, controller: Controller, rules: dict[str, Any], key: Any) -> None:
        self.rules = rules
        self.key = key
        self.risks = len(controller.risks)
        self.columns: tuple[str, ...] = controller.sets.columns  # type: ignore[attr-defined]
        # What the columns are called in the text of a loop: a user's names might be its own.
        self.locals = tuple(f"x{i}" for i in range(len(self.columns)))
        self.moves = controller.stretch.move is not None
        self.grows = tuple(declaration(risk.loss).grows for risk in controller.risks)
        self.doubted = tuple(_doubted(risk.loss) for risk in controller.risks)
        self.some = controller.combine.empty_if == "some"
        self.cuts = controller.sets.support != (-inf, inf)  # type: ignore[attr-defined]
        self.lifts = self.risks > 1 and controller.combine.anti_windup is not None
        self.params = tuple(self._params(controller))
        self.sizes = (
            len(controller.stretch.init()),
            tuple((len(_init(r.step)), len(_init(r.loss))) for r in controller.risks),
        )
        self.fields = tuple(self._fields())

    def _params(self, controller: Controller) -> Iterator[str]:
        yield from ("cut_low", "cut_high", "out_low", "out_high", "delta")
        yield from (f"phi_{i}" for i in range(len(controller.stretch.params)))
        for i, risk in enumerate(controller.risks):
            yield from (f"level{i}", f"bottom{i}", f"top{i}")
            yield from (f"judge{i}_{j}" for j in range(len(risk.loss.params)))
            yield from (f"step{i}_{j}" for j in range(len(risk.step.params)))  # type: ignore[union-attr]

    def _fields(self) -> Iterator[str]:
        stretch, sizes = self.sizes
        yield from (f"stretch_{i}" for i in range(stretch))
        for i, (step, loss) in enumerate(sizes):
            yield f"theta{i}"
            yield from (f"stepping{i}_{j}" for j in range(step))
            yield from (f"judging{i}_{j}" for j in range(loss))
            yield from (f"total{i}", f"lifts{i}", f"lifted{i}")
        yield from ("judged", "full", "empty", "torn", "missing")

    def memory(self, prefix: str) -> list[str]:
        """The fields of one memory."""
        return [name for name in self.fields if name.startswith(prefix + "_")]

    def params_of(self, controller: Controller) -> list[float]:
        """The numbers of a controller."""
        support = controller.sets.support  # type: ignore[attr-defined]
        numbers = [
            *support,
            *outward(support),
            controller.combine.anti_windup or 0.0,
            *controller.stretch.params,
        ]
        for risk, (low, high) in zip(controller.risks, controller.bounds, strict=True):
            numbers += (risk.level, low, high, *risk.loss.params, *risk.step.params)  # type: ignore[union-attr]
        return numbers

    def pack(self, state: State) -> list[float]:
        """The numbers of a state."""
        numbers = [*state.stretch]
        for own in state.risks:
            numbers += (own.theta, *own.step, *own.loss, own.total, own.lifts, own.lifted)
        return [
            *numbers, state.risks[0].judged, state.full, state.empty, state.torn, state.missing
        ]  # fmt: skip

    def unpack(self, vector: Iterable[float], into: State) -> State:
        """Puts the numbers of `vector` into a state."""
        held = dict(zip(self.fields, map(float, vector), strict=True))
        stretch, sizes = self.sizes
        into.stretch = tuple(held[f"stretch_{i}"] for i in range(stretch))
        for i, (own, (step, loss)) in enumerate(zip(into.risks, sizes, strict=True)):
            own.theta, own.total = held[f"theta{i}"], held[f"total{i}"]
            own.step = tuple(held[f"stepping{i}_{j}"] for j in range(step))
            own.loss = tuple(held[f"judging{i}_{j}"] for j in range(loss))
            own.lifts, own.lifted = int(held[f"lifts{i}"]), held[f"lifted{i}"]
            own.judged = int(held["judged"])
        into.full, into.empty = int(held["full"]), int(held["empty"])
        into.torn, into.missing = int(held["torn"]), int(held["missing"])
        return into

    def pack_rest(self, state: State) -> list[float]:
        """The numbers of a state that no step of a bulk loop changes."""
        numbers = [number for own in state.risks for number in (own.first, own.unjudged)]
        return [
            *numbers, state.dropped, state.expired, state.inherited, state.peak, state.fresh
        ]  # fmt: skip

    def unpack_rest(self, vector: Iterable[float], into: State) -> State:
        """Puts the numbers of `pack_rest` into a state."""
        numbers = iter(map(float, vector))
        for own in into.risks:
            own.first, own.unjudged = next(numbers), int(next(numbers))
        dropped, expired, inherited, peak, fresh = map(int, numbers)
        into.dropped, into.expired, into.inherited = dropped, expired, inherited
        into.peak, into.fresh = peak, bool(fresh)
        return into


def _init(part: Any) -> tuple[float, ...]:
    return tuple(part.init()) if hasattr(part, "init") else ()
