"""Corrections: a stage before the controller that learns what is wrong with a forecast.

A correction never sees θ, risks or levels, so nothing it does can cost anything in a guarantee.
It makes a base of a prediction, a centre and two sides or a critical value for each class, and
learns from the label. Its rules are pure functions, those of numbers the same live and compiled:

    predict(params, memory, table, annex, row, waiting, base) -> memory
    learn(params, memory, table, annex, base, y) -> memory

`params` are the part's own and, as the last two, the support of y; `memory` is a tuple of floats;
`table` and `annex` are floats in a row that `learn` writes in place. Every stream has a table. An
annex it has only once the first number of its memory is positive; until then nothing in it is read
or written, and it then begins with zeros. `waiting` is how many other predictions wait for their
label. `predict` writes into `base` and nowhere else: the numbers that the family of sets reads, and
whatever the label will be judged and learnt against. Neither rule may raise on a sound
row and a finite label.

A correction of label sets (`Rescores`) has the same two rules. Its row is the probabilities of the
classes, a base begins with a critical value for each of them and one for any other label, y is the
place of the label, −1 for one that is not named, and there is no annex. How long table and base
are, the number of classes decides.

A correction of paths (`Rebases`) keeps a table of its own kind, and its `predict` gives the base:

    predict(memory, table, reading, waiting) -> (memory, base)
    learn(memory, table, base, heard) -> memory
"""

from typing import Any, Protocol, runtime_checkable

from setpoint.correction.classes import Labels
from setpoint.correction.explanation import Explanation
from setpoint.correction.intervals import Intervals
from setpoint.parts import Capability

__all__ = ["Correction", "Explanation", "Intervals", "Labels"]


@runtime_checkable
class Correction(Protocol, metaclass=Capability):
    """The interface of a correction.

    `columns` names the numbers of a row, in any of the `forms`, which `arranged` turns into rows;
    `sound` says whether the numbers are a prediction. `gives` names the numbers of a base that the
    family of sets reads, side by side from the place `begins` on. `base` and `annex` are how many
    floats these have; `init` gives the first memory and the first table.
    """

    @property
    def columns(self) -> tuple[str, ...]: ...
    @property
    def gives(self) -> tuple[str, ...]: ...
    @property
    def begins(self) -> int: ...
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
    """A correction of label sets: critical values by class, from probabilities.

    `several` says whether a row has several true labels, as the family does. `sizes(classes)` are
    the lengths of table and base. `given(base)` is the prediction as the family would read it
    without a correction. `kept(content)` is the table of a live stream: a new one, or the
    one that gave `content()`; see `correction.classes.Classes`.
    """

    @property
    def gives(self) -> tuple[str, ...]: ...
    @property
    def several(self) -> bool: ...
    @property
    def params(self) -> tuple[float, ...]: ...
    @property
    def predict(self) -> Any: ...
    @property
    def learn(self) -> Any: ...

    def init(self) -> tuple[float, ...]: ...
    def given(self, base: Any) -> tuple[Any, ...]: ...
    def sizes(self, classes: int) -> tuple[int, int]: ...
    def kept(self, content: Any = None) -> Any: ...


@runtime_checkable
class Rebases(Protocol, metaclass=Capability):
    """A correction of what a family of paths has read.

    `rules(sets)` are `predict` and `learn` for the paths of a family. `kept(sets, content)` is its
    table: a new one, or the one that gave `content()`; it also has `copy()`. `given(base)` is what
    the family had read.
    """

    @property
    def gives(self) -> tuple[str, ...]: ...
    @property
    def params(self) -> tuple[float, ...]: ...

    def given(self, base: Any) -> Any: ...
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
