"""Recorders: the rows of a tape collected one by one, beside a live stream."""

from array import array
from collections.abc import Hashable, Sequence
from math import inf, nan
from typing import Any

import numpy as np

from setpoint._check import is_missing, number
from setpoint.errors import LabelError, PredictionError, TapeError, UnknownReceipt
from setpoint.predictions import Probabilities
from setpoint.tape.columns import is_id
from setpoint.tape.tape import USUAL, Tape


class Recorder:
    """Collects the rows of a tape one by one, beside a live stream.

    `add` takes a prediction with its label. Where labels come late, `predicted` takes the
    prediction when it is issued and `observed` its label when it comes: rows stay in the order of
    the predictions, and one that has no label yet is one without a label. The tape then has the
    delay of each label, so that a replay takes it in after the same row; labels that come between
    the same two rows in another order than their rows give fractions to the delays.

    Parameters
    ----------
    names
        The names of the prediction's columns; those of the first prediction if it has names
        (`Quantiles`, `Spread`), else the usual ones for one, two or three numbers.
    classes
        For label sets: the names of all classes that can come. A prediction is then what the
        model said of them (a sequence, a mapping or `Probabilities`, whose chance `u` is kept in
        the extra column of that name), and a label is one of them, kept as its place.

    Examples
    --------
    >>> import setpoint as sp
    >>> risk = sp.Risk(sp.losses.Miscoverage(), level=0.1, step=sp.steps.Fixed(0.5))
    >>> stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk))
    >>> recorder = Recorder()
    >>> for day, prediction in [("mon", (10.0, 14.0)), ("tue", (9.0, 12.0)), ("wed", (8.0, 11.0))]:
    ...     receipt = stream.issue(prediction, id=day)
    ...     recorder.predicted(receipt.id, receipt.prediction)
    >>> for day, y in [("tue", 11.0), ("mon", 15.0)]:
    ...     loss = stream.update(y, id=day)
    ...     recorder.observed(day, y)
    >>> recorder.tape()
    Tape(3 rows, 1 stream: lower, upper; y, 1 missing; delay)
    >>> recorder.tape().y, recorder.tape().delay
    (array([15., 11., nan]), array([2.8, 1.6, 0. ]))
    """

    def __init__(
        self, names: Sequence[str] | None = None, *, classes: Sequence[Any] | None = None
    ) -> None:
        self._names = None if names is None else tuple(names)
        self._classes: dict[Any, int] | None = None
        if classes is not None:
            self._classes = {name: place for place, name in enumerate(classes)}
            self._names = tuple(map(str, classes)) if names is None else self._names
            if len(self._classes) != len(classes):
                raise TapeError(f"the names of classes must differ, got {tuple(classes)}")
        self._values, self._y, self._chances = array("d"), array("d"), array("d")
        self._keys: dict[str, list[Any]] = {}
        self._last: dict[Any, Any] = {}
        self._open: dict[Any, int] = {}
        self._counts: dict[Any, int] = {}
        # Of each row: its place in its stream, how many rows late its label came, in which turn.
        self._places, self._delays, self._turns = array("q"), array("q"), array("q")
        self._turn = 0

    def __len__(self) -> int:
        return len(self._y)

    def predicted(
        self,
        receipt: Hashable,
        prediction: Any,
        *,
        series: Any = None,
        time: Any = None,
        group: Any = None,
    ) -> None:
        """Adds a row whose label is still to come.

        `receipt` is what the label will be told by, such as the id of a stream's receipt; it must
        not wait already. With several streams, `series` names the stream, as in `add`.
        """
        if (series, receipt) in self._open:
            raise TapeError(f"a prediction already waits for its label under {receipt!r}")
        self.add(prediction, None, series=series, time=time, group=group)
        self._open[series, receipt] = len(self._y) - 1

    def observed(self, receipt: Hashable, y: Any, *, series: Any = None) -> None:
        """The label of a prediction that was recorded under `receipt`; None or NaN if it had none.

        Nothing waits under this receipt any more.
        """
        if (series, receipt) not in self._open:
            raise UnknownReceipt(
                f"no prediction waits for its label under {receipt!r}: "
                "it was never recorded, or has its label"
            )
        label, row = self._label(y), self._open.pop((series, receipt))
        self._y[row] = label
        self._delays[row] = self._counts[series] - self._places[row] - 1
        self._turns[row] = self._turn
        self._turn += 1

    def add(
        self, prediction: Any, y: Any, *, series: Any = None, time: Any = None, group: Any = None
    ) -> None:
        """Adds a row. `prediction` is one number or several; y is None or NaN if not observed.

        Whether rows have a series, a time or a group is settled by the first one.
        """
        values = prediction
        if self._classes is not None:
            values = self._of_classes(prediction, self._classes)
        reals = [number(value, "a prediction", PredictionError) for value in _listed(values)]
        if any(real != real for real in reals):
            raise PredictionError(f"a prediction must not be NaN, got {prediction!r}")
        label = self._label(y)
        if series is not None and not is_id(series):
            raise TapeError(
                f"a series must be a whole number, a string or a tuple of them, got {series!r}"
            )
        if time is not None and series in self._last and time < self._last[series]:
            raise TapeError(
                f"time must not go back within a stream: {time} after {self._last[series]}"
            )
        keys = {"series": series, "time": time, "group": group}
        row_keys = {name: key for name, key in keys.items() if key is not None}
        if not self._y:
            names = self._names or getattr(prediction, "_fields", None) or USUAL.get(len(reals))
            if names is None or len(names) != len(reals):
                raise TapeError(
                    f"names must name the {len(reals)} numbers of a prediction, got {names}"
                )
            self._names, self._keys = tuple(names), {name: [] for name in row_keys}
        size = len(self._names or ())
        if len(reals) != size or row_keys.keys() != self._keys.keys():
            raise TapeError(
                f"every row must be like the first, with {size} numbers and "
                f"{[*self._keys] or 'no key'}; got {len(reals)} and {[*row_keys] or 'no key'}"
            )
        self._values.extend(reals)
        self._y.append(label)
        self._places.append(self._counts.get(series, 0))
        self._counts[series] = self._places[-1] + 1
        self._delays.append(0)
        self._turns.append(self._turn)
        self._turn += 1
        chance = prediction.u if isinstance(prediction, Probabilities) else None
        self._chances.append(nan if chance is None else chance)
        for name, key in row_keys.items():
            self._keys[name].append(key)
        if time is not None:
            self._last[series] = time

    @staticmethod
    def _of_classes(prediction: Any, classes: dict[Any, int]) -> list[Any]:
        """The probabilities of a prediction in the order of the classes."""
        if isinstance(prediction, Probabilities):
            named, prediction = prediction.classes, prediction.p
            if named is not None:
                prediction = dict(zip(named, prediction, strict=True))
        if not hasattr(prediction, "keys"):  # a mapping or a series has them
            return list(prediction)
        strange = [name for name in prediction.keys() if name not in classes]  # noqa: SIM118
        if strange:
            raise TapeError(f"a prediction may name {list(classes)}, got {strange[0]!r}")
        return [prediction.get(name, 0.0) for name in classes]

    def _label(self, y: Any) -> float:
        if self._classes is not None and not is_missing(y):
            name = y.item() if hasattr(y, "item") else y
            if name not in self._classes:
                raise LabelError(f"a label must be one of {list(self._classes)}, got {y!r}")
            return float(self._classes[name])
        label = nan if is_missing(y) else number(y, "a label", LabelError)
        if label in (inf, -inf):
            raise LabelError(f"a label must be finite, or NaN if not observed; got {label}")
        return label

    def tape(self) -> Tape:
        """The rows so far; what is added later does not change it."""
        names = self._names or USUAL[2]
        columns = np.array(self._values).reshape(-1, len(names)).T.copy()
        more: dict[str, Any] = dict(self._keys)
        chances = np.array(self._chances)
        if not np.isnan(chances).any() and len(chances):
            more["extras"] = {"u": chances}
        delays = self._late()
        if delays.any():
            more["delay"] = delays
        return Tape.from_arrays([*columns], np.array(self._y), names=names, **more)

    def _late(self) -> np.ndarray:
        """How many rows late labels are, with fractions if some came in another order than rows."""
        delays, places = np.array(self._delays, np.int64), np.array(self._places, np.int64)
        answered = np.ones(len(delays), bool)
        for (series, _), row in self._open.items():
            delays[row], answered[row] = self._counts[series] - self._places[row] - 1, False
        numbers = {series: number for number, series in enumerate(self._counts)}
        streams = np.array([numbers[key] for key in self._keys.get("series", [None] * len(delays))])
        turns = np.array(self._turns) / max(self._turn, 1)
        by_row, by_turn = (
            [row for row in np.lexsort((last, places + delays, streams)) if answered[row]]
            for last in (places, turns)
        )
        return delays if by_row == by_turn else np.where(answered, delays + turns, delays)


def _listed(values: Any) -> list[Any]:
    """Several numbers, or one."""
    try:
        return list(values)
    except TypeError:
        return [values]
