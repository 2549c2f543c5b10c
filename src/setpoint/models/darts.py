"""darts forecasts with intervals that hold their coverage (extra `darts`).

The past forecasts of a model go in first, then forecasts and longer series in turn.
"""

import json
import os
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Self

import numpy as np

from setpoint import presets
from setpoint._files import put
from setpoint.controller import Controller
from setpoint.errors import InputError, StateError
from setpoint.guarantee import Certificate
from setpoint.models.horizons import Floats, Forecasts, Horizons, clock

try:
    from darts import TimeSeries
    from darts.utils.likelihood_models.base import quantile_names
except ImportError as error:
    raise ImportError("this needs darts: pip install 'setpoint[darts]'") from error

__all__ = ["Intervals"]


class Intervals:
    """Quantiles for the forecasts of a darts model, each step ahead by itself.

    `fit` takes what `historical_forecasts(…, last_points_only=False)` gave, and the series.
    `predict` gives a forecast back as its quantiles, components such as y_q0.050. `update` takes
    the series as it is now. An actual value h steps ahead is known h steps after the forecast.

    All quantiles come from one stream, so they never cross. Of forecasts with samples the outermost
    quantiles are corrected, and those within follow from the errors they made; any other is
    corrected around its points. A model looks better than it is on the rows that it was fitted to:
    give forecasts of later rows.

    Parameters
    ----------
    quantiles
        Such as [0.05, 0.5, 0.95]: the median and pairs around it.
    gap
        The `output_chunk_shift` of the model: steps between the last row and the first forecast.
    controller
        What makes a controller of the pairs' coverages; see `setpoint.models.horizons.Horizons`.

    Examples
    --------
    >>> import numpy as np
    >>> from darts import TimeSeries
    >>> from darts.models import LinearRegressionModel
    >>> y = TimeSeries.from_values(np.cumsum(np.random.default_rng(0).normal(size=300)))
    >>> model = LinearRegressionModel(lags=3).fit(y[:100])
    >>> past = model.historical_forecasts(
    ...     y[:290], forecast_horizon=2, start=100, retrain=False, last_points_only=False
    ... )
    >>> intervals = Intervals().fit(past, y[:290])
    >>> intervals.predict(model.predict(2, y[:290])).components.to_list()
    ['0_q0.050', '0_q0.500', '0_q0.950']
    """

    def __init__(
        self,
        quantiles: Sequence[float] = (0.05, 0.5, 0.95),
        *,
        gap: int = 0,
        controller: Callable[[Any], Controller] = presets.intervals,
    ) -> None:
        self.quantiles, self.gap = [float(each) for each in quantiles], gap
        middle = len(self.quantiles) // 2
        both = zip(self.quantiles, reversed(self.quantiles), strict=True)
        rise = self.quantiles == sorted(set(self.quantiles))
        if len(self.quantiles) < 3 or not rise or self.quantiles[middle] != 0.5:
            raise InputError(f"quantiles must be 0.5 and pairs around it, got {quantiles}")
        if any(abs(low + high - 1.0) > 1e-9 for low, high in both):
            raise InputError(f"quantiles must be 0.5 and pairs around it, got {quantiles}")
        pairs = zip(self.quantiles[middle - 1 :: -1], self.quantiles[middle + 1 :], strict=True)
        coverages = [round(high - low, 12) for low, high in pairs]
        self._streams = Horizons(coverages, controller)

    def fit(self, past: Any, series: Any) -> Self:
        """Begins anew with past forecasts and the series that they are of; lists of both."""
        self.fit_predict(past, series)
        return self

    def fit_predict(self, past: Any, series: Any) -> Any:
        """Begins anew, and gives the past forecasts back as the quantiles they would have had."""
        forecasts = [[past]] if isinstance(past, TimeSeries) else list(past)
        forecasts = [forecasts] if isinstance(series, TimeSeries) else forecasts
        known = _several(series)
        if len(forecasts) != len(known) or not any(forecasts):
            raise InputError(f"{len(known)} series need as many lists of past forecasts, not empty")
        rows = [
            self._rows(place, forecast, values)
            for place, (some, values) in enumerate(zip(forecasts, known, strict=True))
            for forecast in some
        ]
        shown = self._streams.fit(Forecasts(*map(np.concatenate, zip(*rows, strict=True))))
        parts = iter(np.split(shown, np.cumsum([len(part.due) for part in rows])[:-1]))
        quantiles = [[self._shown(one, next(parts)) for one in some] for some in forecasts]
        return quantiles[0] if isinstance(series, TimeSeries) else quantiles

    def predict(self, forecast: Any) -> Any:
        """A forecast, or one of each series, as its quantiles; it waits for the actual values."""
        shown = [
            self._shown(one, self._streams.predict(self._rows(place, one)))
            for place, one in enumerate(_several(forecast))
        ]
        return shown[0] if isinstance(forecast, TimeSeries) else shown

    def update(self, series: Any) -> Self:
        """The series, or each of them, as they are now; rows nothing waits for are passed over."""
        for place, one in enumerate(_several(series)):
            for component, column in enumerate(one.values().T):
                names = np.full(len(one), _name(place, str(one.components[component])))
                self._streams.update(names, clock(one.time_index), column)
        return self

    def certificate(self, series: Any, horizon: int) -> Certificate:
        """What is guaranteed of one stream, pair by pair, the outermost first.

        `series` is a component, or, of the second series in a list and later ones, 1/component.
        """
        return self._streams.certificate(series, horizon)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes everything into a folder."""
        self._streams.save(folder)
        header = {"quantiles": self.quantiles, "gap": self.gap}
        put(Path(folder) / "intervals.json", json.dumps(header))

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> "Intervals":
        """What `save` wrote; a controller of one's own is that of the streams."""
        try:
            header = json.loads((Path(folder) / "intervals.json").read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise StateError(f"{folder} is no folder of saved intervals: {error}") from error
        other = cls(header["quantiles"], gap=header["gap"])
        other._streams = Horizons.load(folder)
        return other

    def _rows(self, place: int, forecast: Any, series: Any = None) -> Forecasts:
        """A row for each step and component, with the actual values where they are known."""
        if not isinstance(forecast, TimeSeries) or not len(forecast):
            raise InputError(f"a forecast must be a TimeSeries with steps, got {forecast!r}")
        values = forecast.all_values()
        steps, width, _ = values.shape
        due, y = clock(forecast.time_index), np.full((steps, width), np.nan)
        made = clock([forecast.start_time() - (1 + self.gap) * forecast.freq])
        if series is not None:
            times = clock(series.time_index)
            there = np.minimum(np.searchsorted(times, due), len(times) - 1)
            y = np.where((times[there] == due)[:, None], series.values()[there], np.nan)
        lower, upper = (
            np.quantile(values, level, axis=2).ravel()
            for level in (self.quantiles[0], self.quantiles[-1])
        )
        names = [_name(place, str(component)) for component in forecast.components]
        return Forecasts(
            np.tile(names, steps), np.repeat(1 + np.arange(steps) + self.gap, width),
            np.repeat(made, steps * width), np.repeat(due, width), lower, upper,
            y.ravel(),
        )  # fmt: skip

    def _shown(self, forecast: Any, ends: Floats) -> Any:
        """A forecast as its quantiles; the median is within the narrowest interval."""
        steps, width = len(forecast), forecast.n_components
        lower, upper = ends.reshape(steps, width, 2, -1).transpose(2, 0, 1, 3)
        middle = np.median(forecast.all_values(), axis=2)
        middle = np.clip(middle, lower[:, :, 0], upper[:, :, 0])
        values = np.concatenate([lower[:, :, ::-1], middle[:, :, None], upper], axis=2)
        names = chain(*(quantile_names(self.quantiles, each) for each in forecast.components))
        return TimeSeries.from_times_and_values(
            forecast.time_index, values.reshape(steps, -1), columns=list(names)
        )


def _several(series: Any) -> list[Any]:
    several = [series] if isinstance(series, TimeSeries) else series
    if not isinstance(several, Iterable):
        raise InputError(f"a TimeSeries of darts, or a list of them, is needed, got {series!r}")
    return list(several)


def _name(place: int, component: str) -> str:
    """What a component of one of several series is called."""
    return f"{place}/{component}" if place else component
