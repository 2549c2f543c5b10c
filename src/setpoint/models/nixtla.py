"""Nixtla's frames with intervals that hold their coverage: StatsForecast, MLForecast and others.

Frames go in and frames come out: pandas, polars or Arrow, with unique_id, ds, cutoff and y. Nothing
of Nixtla's is imported, so whatever writes such frames will do.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Self

import numpy as np

from setpoint import presets
from setpoint.controller import Controller
from setpoint.errors import InputError
from setpoint.models.horizons import (
    Adapter,
    Floats,
    Forecasts,
    Horizons,
    clock,
    steps_ahead,
    unknown,
)
from setpoint.tape.columns import frame_columns, numbers, opened
from setpoint.tape.text import arrow

__all__ = ["Intervals"]

_ENDS = re.compile(r"-(lo|hi)-[\d.]+$")


class Intervals(Adapter):
    """Intervals for the forecasts of every model, series and horizon in a frame.

    `fit` takes the frame of `cross_validation`, `predict` adds columns such as Naive-lo-90 to the
    frame of a forecast, `update` takes the new rows of y. All levels come from one stream, so they
    never cross. Where a frame has both ends of the highest level already, these are corrected, else
    the intervals go around the point forecast. The ends of NHITS-median are NHITS-lo-90 and
    NHITS-hi-90, as NeuralForecast names them.

    Parameters
    ----------
    level
        The coverages in per cent, as in `level=[80, 90]`.
    models
        The columns of the models; by default all that are no key, label, cutoff, feature or
        interval.
    id_col, time_col, target_col
        The columns of the series, the time and the label.
    controller
        What makes a controller of the coverages; see `setpoint.models.horizons.Horizons`. The
        features of `partial(sp.intervals, features=["price"])` are columns of the frames.

    Examples
    --------
    >>> import pandas as pd
    >>> days = pd.date_range("2024-01-01", periods=101)
    >>> y = np.sin(np.arange(101.0))
    >>> cv = pd.DataFrame({"unique_id": "a", "ds": days[1:], "cutoff": days[:-1], "y": y[1:],
    ...                    "Naive": y[:-1]})  # fmt: skip
    >>> intervals = Intervals(level=[80, 90]).fit(cv)
    >>> tomorrow = pd.DataFrame({"unique_id": ["a"], "ds": days[-1:] + days.freq, "Naive": y[-1:]})
    >>> intervals.predict(tomorrow).columns.to_list()[3:]
    ['Naive-lo-90', 'Naive-lo-80', 'Naive-hi-80', 'Naive-hi-90']
    """

    def __init__(
        self,
        level: Iterable[float] = (80, 90),
        *,
        models: Iterable[str] | None = None,
        id_col: str = "unique_id",
        time_col: str = "ds",
        target_col: str = "y",
        controller: Callable[[Any], Controller] = presets.intervals,
    ) -> None:
        self.level = tuple(sorted(level))
        if not self.level or not all(1.0 <= each < 100.0 for each in self.level):
            raise InputError(f"level must hold per cent, such as 80 and 90, got {self.level}")
        self.models = None if models is None else tuple(models)
        self._keys, self._target = (id_col, time_col), target_col
        self._begin(
            [each / 100 for each in self.level], controller, level=self.level, models=self.models,
            id_col=id_col, time_col=time_col, target_col=target_col,
        )  # fmt: skip

    def fit_predict(self, cv: Any) -> Any:
        """Begins anew with a cross-validation; the frame with the intervals of its time."""
        self._forget()
        (target,) = frame_columns(cv, [self._target]).values()
        return self._shown(cv, Horizons.fit, numbers(target, self._target))

    def predict(self, forecast: Any) -> Any:
        """A forecast with its intervals; it waits for its labels.

        Without a cutoff the first row of a series is one step ahead.
        """
        return self._shown(forecast, Horizons.predict)

    def update(self, df: Any) -> Self:
        """New labels, in rows of id, time and target; rows nothing waits for are passed over."""
        series, time, target = frame_columns(df, [*self._keys, self._target]).values()
        for streams in self._streams.values():
            streams.update(series, clock(time), numbers(target, self._target))
        return self

    def _shown(
        self, frame: Any, show: Callable[[Horizons, Forecasts], Floats], y: Floats | None = None
    ) -> Any:
        """The frame with the intervals of every model in it."""
        series, time = frame_columns(frame, self._keys).values()
        due, (_, names) = clock(time), opened(frame)
        if not len(due):
            raise InputError("a frame of forecasts needs rows, and this one has none")
        made = None
        if y is not None or "cutoff" in names:
            made = clock(frame_columns(frame, ["cutoff"])["cutoff"])
        if y is None and made is not None and (count := len(np.unique(made))) > 1:
            raise InputError(f"a forecast must have one cutoff, got {count}: use fit_predict")
        known = [numbers(*each[::-1]) for each in frame_columns(frame, self._features).items()]
        rows = Forecasts(
            series, steps_ahead(series, due, made), due if made is None else made, due, due, due,
            unknown(len(due)) if y is None else y, np.column_stack(known) if known else None,
        )  # fmt: skip
        others = (*self._keys, self._target, "cutoff", *self._features)
        found = [name for name in names if name not in others and not _ENDS.search(name)]
        columns: dict[str, Floats] = {}
        for model in found if self.models is None else self.models:
            ends = self._ends(names, model)
            sides = [numbers(column, name) for name, column in frame_columns(frame, ends).items()]
            streams = self._of(model, corrects=len(ends) == 2)
            shown = show(streams, rows._replace(lower=sides[0], upper=sides[-1]))
            stem, last = model.removesuffix("-median"), len(self.level) - 1
            for side, end in enumerate(("lo", "hi")):
                for place in range(last, -1, -1) if end == "lo" else range(last + 1):
                    columns[f"{stem}-{end}-{self.level[place]:g}"] = shown[:, side, place]
        if not columns:
            raise InputError(f"a frame needs the column of a model, got only {names}")
        if isinstance(frame, Mapping):
            return {**frame, **columns}
        nw = arrow("narwhals")
        table = nw.from_native(frame, eager_only=True)
        added = [nw.new_series(*column, backend=table.implementation) for column in columns.items()]
        return table.with_columns(*added).to_native()

    def _ends(self, names: list[str], model: str) -> list[str]:
        """The columns with the ends of a model at the highest level, or its point forecasts."""
        stem = model.removesuffix("-median")
        levels = [[f"{stem}-{end}-{level:g}" for end in ("lo", "hi")] for level in self.level]
        missing = [name for name in levels[-1] if name not in names]
        if missing and any(name in names for ends in levels for name in ends):
            raise InputError(
                f"the frame must have both ends of {model} at the highest level, or none at any, "
                f"and it has no {', '.join(missing)}"
            )
        return [model] if missing else levels[-1]
