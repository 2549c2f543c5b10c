"""Nixtla's frames with intervals that hold their coverage: StatsForecast, MLForecast and others.

Nothing of Nixtla's is imported: whatever writes frames with unique_id, ds, cutoff and y will do.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any, Self

import numpy as np

from setpoint import presets
from setpoint.controller import Controller
from setpoint.errors import InputError
from setpoint.models.horizons import Adapter, Forecasts, clock, steps_ahead, unknown
from setpoint.tape.columns import frame_columns, numbers, opened, with_columns

__all__ = ["Intervals"]

_ENDS = re.compile(r"-(lo|hi)-[\d.]+$")


class Intervals(Adapter):
    """Intervals for the forecasts of every model, series and horizon in a frame.

    `fit` takes the frame of `cross_validation`, `predict` adds columns such as Naive-lo-90 to the
    frame of a forecast, `update` takes the new rows of y. Frames may be pandas, polars or Arrow.
    Where a frame has both ends of the highest level already, these are corrected, else the
    intervals go around the point forecast.

    Parameters
    ----------
    level
        The coverages in per cent, as in `level=[80, 90]`.
    models
        The columns of the models; by default all that are no key, label, cutoff, feature or
        interval. The ends of NHITS-median are NHITS-lo-90 and NHITS-hi-90.
    id_col, time_col, target_col
        The columns of the series, the time and the label.
    controller
        What makes a controller of the coverages. The features of
        `partial(sp.intervals, features=["price"])` are columns of the frames.
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
        return self._shown(cv, fit=True)

    def predict(self, forecast: Any) -> Any:
        """A forecast with its intervals; it waits for its labels.

        Without a cutoff the first row of a series is one step ahead.
        """
        return self._shown(forecast, fit=False)

    def update(self, df: Any) -> Self:
        """New labels, in rows of id, time and target; rows nothing waits for are passed over."""
        series, time, target = frame_columns(df, [*self._keys, self._target]).values()
        for streams in self._streams.values():
            streams.update(series, clock(time), numbers(target, self._target))
        return self

    def _shown(self, frame: Any, *, fit: bool) -> Any:
        """The frame with the intervals of every model in it."""
        _, names = opened(frame)
        cutoff = ["cutoff"] if fit or "cutoff" in names else []
        labels = [self._target] if fit else []
        found = frame_columns(frame, [*self._keys, *cutoff, *labels, *self._features])
        series, due = found[self._keys[0]], clock(found[self._keys[1]])
        if not len(due):
            raise InputError("a frame of forecasts needs rows, and this one has none")
        made = clock(found["cutoff"]) if cutoff else None
        if not fit and made is not None and (count := len(np.unique(made))) > 1:
            raise InputError(f"a forecast must have one cutoff, got {count}: use fit_predict")
        known = [numbers(found[name], name) for name in self._features]
        rows = Forecasts(
            series, steps_ahead(series, due, made), due if made is None else made, due, due, due,
            numbers(found[self._target], self._target) if fit else unknown(len(due)),
            np.column_stack(known) if known else None,
        )  # fmt: skip
        others = (*self._keys, self._target, "cutoff", *self._features)
        models = [name for name in names if name not in others and not _ENDS.search(name)]
        columns: dict[str, Any] = {}
        for model in models if self.models is None else self.models:
            stem = model.removesuffix("-median")
            lower, upper = ([f"{stem}-{e}-{each:g}" for each in self.level] for e in ("lo", "hi"))
            columns |= self._ends(rows, frame, (model, lower, upper), fit=fit)
        if not columns:
            raise InputError(f"a frame needs the column of a model, got only {names}")
        return with_columns(frame, columns)
