"""What is wrong with a forecast: a stage before the controller, which learns it from the labels.

A correction never sees θ, risks or levels, so nothing it does can cost anything in a guarantee.
It reads a prediction into a row of numbers, makes a base of it, a centre and two sides, and learns
from the label. Its rules are pure functions of floats, the same live and compiled:

    predict(params, memory, table, row, waiting) -> (memory, base)
    learn(params, memory, table, base, y) -> memory

`params` are the part's own and, as the last two, the support of y; `memory` is a tuple of floats;
`table` has rows of floats that rules write in place, none where a correction keeps none; `waiting`
is how many other predictions wait for their label; `base` begins with the numbers that the family
of sets reads and goes on with whatever the label will be judged and learnt against. Neither rule
may raise on a sound row and a finite label: `learn` may have written into the table by then.
"""

from typing import Any, Protocol, runtime_checkable

from setpoint.correction.intervals import Intervals, Learnt
from setpoint.parts import Capability

__all__ = ["Correction", "Explains", "Intervals", "Learnt"]


@runtime_checkable
class Correction(Protocol, metaclass=Capability):
    """What the controller asks of a correction.

    `columns` names the numbers of a row, in any of the `forms`, which `arranged` turns into rows;
    `sound` says whether the numbers are a prediction. `gives` names those numbers at the beginning
    of a base that the family of sets reads.
    """

    @property
    def columns(self) -> tuple[str, ...]: ...
    @property
    def gives(self) -> tuple[str, ...]: ...
    @property
    def forms(self) -> tuple[tuple[str, ...], ...]: ...
    @property
    def params(self) -> tuple[float, ...]: ...
    @property
    def predict(self) -> Any: ...
    @property
    def learn(self) -> Any: ...
    @property
    def sound(self) -> Any: ...
    @property
    def table(self) -> tuple[int, int]: ...
    def init(self) -> tuple[float, ...]: ...
    def read(self, prediction: Any) -> tuple[float, ...]: ...
    def arranged(self, names: tuple[str, ...], columns: Any) -> tuple[Any, ...]: ...
    def forecast(self, base: tuple[float, ...]) -> float: ...


@runtime_checkable
class Explains(Protocol, metaclass=Capability):
    """A correction that says what it has learnt: `learnt(state)`, a named tuple of numbers."""

    def learnt(self, state: Any) -> Any: ...
