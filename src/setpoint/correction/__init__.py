"""What is wrong with a forecast: a stage before the controller, which learns it from the labels.

A correction never sees θ, risks or levels, so nothing it does can cost anything in a guarantee.
It makes a base of a prediction, a centre and two sides or a critical value for each class, and
learns from the label. Its rules are pure functions, those of numbers the same live and compiled:

    predict(params, memory, table, annex, row, waiting, base) -> memory
    learn(params, memory, table, annex, base, y) -> memory

`params` are the part's own and, as the last two, the support of y; `memory` is a tuple of floats;
`table` and `annex` are floats in a row that `learn` writes in place. Every stream has a table. An
annex it has only once the first number of its memory is positive; until then nothing in it is read
or written, and it then begins with zeros. `waiting` is how many other predictions wait for their
label. `predict` writes into `base` and nowhere else: first the numbers that the family of sets
reads, then whatever the label will be judged and learnt against. Neither rule may raise on a sound
row and a finite label.

A correction of what a family of label sets or of paths has read (`Rescores`) keeps a table of its
own kind and no annex, and its `predict` gives the base back:

    predict(memory, table, reading, waiting) -> (memory, base)
    learn(memory, table, base, y) -> memory
"""

from typing import Any, Protocol, runtime_checkable

from setpoint.correction.explanation import Explanation, Part
from setpoint.correction.intervals import Effect, Intervals, Learnt
from setpoint.correction.labels import Labels
from setpoint.correction.paths import Paths
from setpoint.parts import Capability

__all__ = [
    "Correction", "Effect", "Explains", "Explanation", "Intervals", "Labels", "Learnt", "Part",
    "Paths", "Rescores",
]  # fmt: skip


@runtime_checkable
class Correction(Protocol, metaclass=Capability):
    """What the controller asks of a correction.

    `columns` names the numbers of a row, in any of the `forms`, which `arranged` turns into rows;
    `sound` says whether the numbers are a prediction. `gives` names those numbers at the beginning
    of a base that the family of sets reads. `base` and `annex` are how many floats these have;
    `init` gives the first memory and the first table.
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
    def base(self) -> int: ...
    @property
    def annex(self) -> int: ...
    def init(self) -> tuple[tuple[float, ...], list[float]]: ...
    def read(self, prediction: Any) -> tuple[float, ...]: ...
    def arranged(self, names: tuple[str, ...], columns: Any) -> tuple[Any, ...]: ...
    def forecast(self, base: Any) -> float: ...


@runtime_checkable
class Rescores(Protocol, metaclass=Capability):
    """A correction of what a family has read: critical values by class, or a path.

    `fits(sets)` says why it does not go with a family, and is None where it does; `rules(sets)` are
    `predict` and `learn` for it. `kept(sets, content)` is its table: a new one, or the one that
    gave `content()`; it also has `copy()`.
    """

    @property
    def gives(self) -> tuple[str, ...]: ...
    @property
    def params(self) -> tuple[float, ...]: ...
    def fits(self, sets: Any) -> str | None: ...
    def rules(self, sets: Any) -> tuple[Any, Any]: ...
    def init(self) -> tuple[float, ...]: ...
    def kept(self, sets: Any, content: Any = None) -> Any: ...


@runtime_checkable
class Explains(Protocol, metaclass=Capability):
    """A correction that says what it has learnt: `learnt(state)`, a named tuple of numbers.

    `effects(state)` has what it has learnt of each feature, and `parts(state, base)` what each of
    them does to a prediction.
    """

    def learnt(self, state: Any) -> Any: ...
    def effects(self, state: Any) -> tuple[Any, ...]: ...
    def parts(self, state: Any, base: Any) -> tuple[Any, ...]: ...
