"""What the controller asks of a family of nested sets."""

from typing import Any, Protocol

__all__ = ["Family"]


class Family(Protocol):
    """What the controller asks of a family of nested sets.

    `read` and `label` check what comes from outside once and return it as plain, unshared
    values; `at` and `critical` may rely on that. `start` and `bounds` are the family's defaults
    in units of λ; bounds of `None` mean "from a burn-in", for which `unit` says how far one unit
    of λ moves a set in units of y.

    What a family may have besides:

    - `shows`, the class of its sets, if it is always the same: a live step is faster then.
    - `ends(prediction, lam)`, `score(prediction, y)`, `columns` (the names of the numbers in a
      prediction) and `support`: a family of intervals made of pure functions of floats, which run
      compiled over tapes.
    - `criticals(prediction, y)`, the critical values of all that y consists of, for losses that are
      a share of them.
    - `extent(y)`, the least and greatest number of a label, and `change(before, after)`, how far
      two labels are apart, if a label is not one number: a burn-in asks for them.
    - `taped(y)`, the label that a tape holds as a number.
    - `bind(memory)`, if it remembers: the family at work, with `weigh(prediction, y)`, what it
      would remember of a label, `observe(weighed)`, called after every label, `memory`, the floats
      to begin with again, and `copy()`.
    - `draws`, if it is true, and `draw(reading, id)`, which gives a reading the chance that belongs
      to the id of its prediction.
    - `sides`, if every risk has a set of its own: see `setpoint.sets.joined`.
    """

    def read(self, prediction: Any) -> Any: ...
    def label(self, y: Any) -> Any: ...
    def at(self, prediction: Any, lam: float) -> Any: ...
    def critical(self, prediction: Any, y: Any) -> float: ...
    def start(self, level: float) -> float: ...
    def bounds(self) -> tuple[float, float] | None: ...
    def unit(self, prediction: Any) -> float: ...
