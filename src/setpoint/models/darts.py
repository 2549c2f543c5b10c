"""darts forecasts with intervals that hold their coverage (extra `darts`).

The past forecasts of a model go in first, then forecasts and longer series in turn.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any, Self

import numpy as np

from setpoint import presets
from setpoint.controller import Controller
from setpoint.errors import InputError
from setpoint.models.horizons import Adapter, Floats, Forecasts, clock, unknown

try:
    from darts import TimeSeries
except ImportError as error:
    raise ImportError("this needs darts: pip install 'setpoint[darts]'") from error

__all__ = ["Intervals"]


class Intervals(Adapter):
    """Quantiles for the forecasts of a darts model, each step ahead by itself.

    `fit` takes what `historical_forecasts(…, last_points_only=False)` gave, of rows that the model
    was not fitted to, and the series. `predict` gives a forecast back as its quantiles, components
    such as y_q0.050, which never cross. `update` takes the series as it is now. Of forecasts with
    samples the outermost quantiles are corrected, any other is corrected around its points.

    Parameters
    ----------
    quantiles
        Such as [0.05, 0.5, 0.95]: the median and pairs around it.
    gap
        The `output_chunk_shift` of the model: steps between the last row and the first forecast.
    controller
        What makes a controller of the pairs' coverages. The features of
        `partial(sp.intervals, features=["price"])` are components of covariates.
    """

    def __init__(
        self,
        quantiles: Sequence[float] = (0.05, 0.5, 0.95),
        *,
        gap: int = 0,
        controller: Callable[[Any], Controller] = presets.intervals,
    ) -> None:
        self.quantiles, self.gap = [float(each) for each in quantiles], gap
        middle, mirrored = len(self.quantiles) // 2, [1.0 - each for each in self.quantiles[::-1]]
        rise = self.quantiles == sorted(set(self.quantiles)) and len(self.quantiles) > 2
        if not rise or self.quantiles[middle] != 0.5 or not np.allclose(self.quantiles, mirrored):
            raise InputError(f"quantiles must be 0.5 and pairs around it, got {quantiles}")
        coverages = [round(2.0 * each - 1.0, 12) for each in self.quantiles[middle + 1 :]]
        self._begin(coverages, controller, quantiles=self.quantiles, gap=gap)

    def fit_predict(self, past: Any, series: Any, covariates: Any = None) -> Any:
        """Begins anew with past forecasts and their series, or lists of both; as their quantiles.

        Each forecast shows what it would have shown at its time.
        """
        one, known = isinstance(series, TimeSeries), _several(series)
        forecasts = [_several(past)] if one else [_several(each) for each in _several(past)]
        if len(forecasts) != len(known) or not any(forecasts):
            raise InputError(f"{len(known)} series need as many lists of past forecasts, not empty")
        self._forget()
        every = zip(forecasts, known, _each(covariates), strict=False)
        rows = [
            self._rows(place, forecast, values, beside)
            for place, (some, values, beside) in enumerate(every)
            for forecast in some
        ]
        shown = self._of().fit(rows[0].joined(*rows[1:]))
        parts = iter(np.split(shown, np.cumsum([len(part.due) for part in rows])[:-1]))
        quantiles = [[self._shown(each, next(parts)) for each in some] for some in forecasts]
        return quantiles[0] if one else quantiles

    def predict(self, forecast: Any, covariates: Any = None) -> Any:
        """A forecast, or one of each series, as its quantiles; it waits for the actual values."""
        every = enumerate(zip(_several(forecast), _each(covariates), strict=False))
        shown = [
            self._shown(one, self._of().predict(self._rows(place, one, None, known)))
            for place, (one, known) in every
        ]
        return shown[0] if isinstance(forecast, TimeSeries) else shown

    def update(self, series: Any) -> Self:
        """The series, or each of them, as they are now; rows nothing waits for are passed over."""
        for place, one in enumerate(_several(series)):
            for component, column in zip(one.components, one.values().T, strict=True):
                names = np.full(len(one), _name(place, component))
                self._of().update(names, clock(one.time_index), column)
        return self

    def _rows(self, place: int, forecast: Any, series: Any, covariates: Any) -> Forecasts:
        """A row for each step and component, with the actual values where they are known."""
        if not isinstance(forecast, TimeSeries) or not len(forecast):
            raise InputError(f"a forecast must be a TimeSeries with steps, got {forecast!r}")
        values, due = forecast.all_values(), clock(forecast.time_index)
        steps, width, _ = values.shape
        made = clock([forecast.start_time() - (1 + self.gap) * forecast.freq])
        y = unknown(steps * width) if series is None else _at(due, series).ravel()
        known = None
        if self._features:
            names = [] if covariates is None else covariates.components.to_list()
            if not {*self._features} <= {*names}:
                raise InputError(f"covariates must have {', '.join(self._features)}, got {names}")
            known = np.repeat(_at(due, covariates[[*self._features]]), width, axis=0)
        ends = [self.quantiles[0], self.quantiles[-1]]
        lower, upper = np.quantile(values, ends, axis=2).reshape(2, -1)
        return Forecasts(
            np.tile([_name(place, each) for each in forecast.components], steps),
            np.repeat(1 + np.arange(steps) + self.gap, width), np.repeat(made, steps * width),
            np.repeat(due, width), lower, upper, y, known,
        )  # fmt: skip

    def _shown(self, forecast: Any, ends: Floats) -> Any:
        """A forecast as its quantiles; the median is within the narrowest interval."""
        steps, width = len(forecast), forecast.n_components
        lower, upper = ends.reshape(steps, width, 2, -1).transpose(2, 0, 1, 3)
        middle = np.median(forecast.all_values(), axis=2)
        middle = np.clip(middle, lower[:, :, 0], upper[:, :, 0])
        values = np.concatenate([lower[:, :, ::-1], middle[:, :, None], upper], axis=2)
        names = [f"{each}_q{q:.3f}" for each in forecast.components for q in self.quantiles]
        return TimeSeries.from_times_and_values(
            forecast.time_index, values.reshape(steps, -1), columns=names
        )


def _several(series: Any) -> list[Any]:
    several = [series] if isinstance(series, TimeSeries) else series
    if not isinstance(several, Iterable):
        raise InputError(f"a TimeSeries of darts, or a list of them, is needed, got {series!r}")
    return list(several)


def _each(covariates: Any) -> Iterable[Any]:
    """The covariates of each series; one series of them is that of all."""
    one = covariates is None or isinstance(covariates, TimeSeries)
    return repeat(covariates) if one else covariates


def _at(due: Any, series: Any) -> Floats:
    """The values of a series at some times, NaN where it has none."""
    times, values = clock(series.time_index), series.values()
    there = np.minimum(np.searchsorted(times, due), len(times) - 1)
    found: Floats = np.where((times[there] == due)[:, None], values[there], np.nan)
    return found


def _name(place: int, component: Any) -> str:
    """What a component of one of several series is called, as in 1/y for the second."""
    return f"{place}/{component}" if place else str(component)
