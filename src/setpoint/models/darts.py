"""darts models with intervals that hold their coverage (extra `darts`).

`update` judges what was forecast since the last call and keeps a state: a forecast every few
minutes does not begin with the whole past again. `predict` and `historical_forecasts` change
nothing.
"""

# mypy: allow-subclassing-any, allow-untyped-calls

from collections.abc import Callable, Sequence
from copy import copy
from itertools import chain
from typing import Any, Self

import numpy as np

from setpoint import presets
from setpoint._check import whole
from setpoint.controller import Controller
from setpoint.errors import InputError
from setpoint.guarantee import Certificate
from setpoint.models.horizons import Floats, Forecasts, Horizons, replayed

try:
    import pandas as pd
    from darts import TimeSeries
    from darts.models.forecasting.forecasting_model import ForecastingModel, GlobalForecastingModel
    from darts.utils.likelihood_models.base import quantile_names
    from darts.utils.utils import n_steps_between
except ImportError as error:
    raise ImportError("this needs darts: pip install 'setpoint[darts]'") from error

__all__ = ["IntervalModel"]

_SAMPLES = 500  # of a model that draws them
_COVARIATES = ("past_covariates", "future_covariates")
_OWN = ("num_samples", "predict_likelihood_parameters", "retrain")  # decided here


class IntervalModel(GlobalForecastingModel):
    """Any darts model, with quantiles whose coverage is held online, horizon by horizon.

    Each horizon of each component of each series is a stream of its own. A label h steps ahead is
    taken in h steps later. Forecasts come as the quantiles of darts: components such as y_q0.050.
    A model that draws samples is corrected at its own quantiles, any other around its points.

    Parameters
    ----------
    model
        A forecasting model, fitted or not. One that cannot forecast other series than its own, such
        as `ExponentialSmoothing`, is fitted anew for every past forecast.
    quantiles
        Such as [0.05, 0.5, 0.95]: the median and pairs around it.
    horizon
        How many steps ahead forecasts look, at most.
    controller
        What makes a controller of a coverage, by default `setpoint.intervals`.

    Examples
    --------
    >>> import numpy as np
    >>> from darts import TimeSeries
    >>> from darts.models import LinearRegressionModel
    >>> y = TimeSeries.from_values(np.cumsum(np.random.default_rng(0).normal(size=300)))
    >>> model = IntervalModel(LinearRegressionModel(lags=3), horizon=2).fit(y[:100])
    >>> model.update(y[:290]).predict(2).components.to_list()
    ['0_q0.050', '0_q0.500', '0_q0.950']
    >>> past = model.historical_forecasts(y, forecast_horizon=2, start=200)
    >>> len(past)
    99
    """

    def __init__(
        self,
        model: ForecastingModel,
        quantiles: Sequence[float] = (0.05, 0.5, 0.95),
        horizon: int = 1,
        controller: Callable[[float], Controller] = presets.intervals,
    ) -> None:
        super().__init__()
        self.model = model
        self.quantiles = [float(each) for each in quantiles]
        self.horizon = whole(horizon, "horizon", 1)
        self.controller = controller
        middle = len(self.quantiles) // 2
        both = zip(self.quantiles, reversed(self.quantiles), strict=True)
        if (
            self.quantiles != sorted(set(self.quantiles))
            or self.quantiles[middle : middle + 1] != [0.5]
            or len(self.quantiles) < 3
            or not all(abs(low + high - 1.0) < 1e-9 for low, high in both)
        ):
            raise InputError(f"quantiles must be 0.5 and pairs around it, got {quantiles}")
        self._pairs = [
            *zip(self.quantiles[middle - 1 :: -1], self.quantiles[middle + 1 :], strict=True)
        ]
        self._coverages = [round(high - low, 12) for low, high in self._pairs]
        self._samples = _SAMPLES if model.supports_probabilistic_prediction else 1
        self._series: list[Any] = []
        self._streams = Horizons(self._coverages, controller)
        self._fit_called = model._fit_called

    def fit(self, series: Any, **options: Any) -> Self:
        """Fits the model. The past is taken in by `update`."""
        self.model.fit(series, **options)
        self._fit_called, self._series = True, []
        return self

    def update(self, series: Any, **covariates: Any) -> Self:
        """Takes in series up to their ends, from where the last call left them.

        Each step since then is forecast, judged and learnt. The first call takes in the whole past,
        and so does one with other series. Covariates are passed on to the model.
        """
        several = _several(series)
        if not self._goes_on(several):
            self._streams.fit(self._whole_past(several, covariates))
            self._series = several
            return self
        for place, (old, new) in enumerate(zip(self._series, several, strict=True)):
            if len(new) == len(old):
                continue
            options = _of_place(covariates, place) | {"overlap_end": True}
            for forecast in self._past(new, self.horizon, options, len(old)):
                rows = self._rows(place, new, forecast)
                row = int(rows.made[0]) + 1
                if row < len(new):
                    self._streams.predict(rows)
                    width = new.n_components
                    ids = place * width + np.arange(width)
                    self._streams.update(ids, np.full(width, row), new.values()[row])
        self._series = several
        return self

    def predict(self, n: int, series: Any = None, **options: Any) -> Any:
        """The quantiles of the next n steps; by default of the series last told to `update`.

        Other series, or the same at another time, are taken in from their beginning. Nothing that
        is kept changes.
        """
        if n > self.horizon:
            raise InputError(f"n must be at most the horizon, {self.horizon}, got {n}")
        several = self._series if series is None else _several(series)
        if not several:
            raise InputError("no series was taken in by `update` yet: give one")
        options = {name: value for name, value in options.items() if name not in _OWN}
        streams = copy(self._streams)
        if not self._goes_on(several) or [*map(len, several)] != [*map(len, self._series)]:
            covariates = {name: options[name] for name in _COVARIATES if name in options}
            streams.fit(self._whole_past(several, covariates))
        shown = []
        for place, each in enumerate(several):
            forecast = self._ahead(n, each, _of_place(options, place))
            ends = streams.predict(self._rows(place, each, forecast))
            shown.append(self._quantiles(forecast, ends))
        return shown[0] if len(shown) == 1 and not isinstance(series, list | tuple) else shown

    def historical_forecasts(
        self,
        series: Any,
        *,
        forecast_horizon: int = 1,
        start: Any = None,
        start_format: str = "value",
        stride: int = 1,
        last_points_only: bool = True,
        **options: Any,
    ) -> Any:
        """Past forecasts as they would have been shown, each with the labels known by then.

        They are made at every step. `start` and `stride` say which of them to give back; without
        `start` the first is the one whose ends are finite. `retrain` is as the model needs it.
        """
        options = {name: value for name, value in options.items() if name not in _OWN}
        found = []
        for place, each in enumerate(_several(series)):
            past = self._past(each, forecast_horizon, _of_place(options, place))
            rows = [self._rows(0, each, forecast) for forecast in past]
            ends, _ = replayed(_stacked(rows), self._coverages, self.controller)
            shown = np.split(ends, np.cumsum([len(part.due) for part in rows])[:-1])
            if start is None:
                first = next((i for i, part in enumerate(shown) if np.isfinite(part).all()), 0)
            else:
                point = start if start_format == "position" else each.get_index_at_point(start)
                point += len(each) if point < 0 else 0
                first = next((i for i, part in enumerate(rows) if part.due[0] >= point), len(rows))
            chosen = [*map(self._quantiles, past[first::stride], shown[first::stride])]
            found.append(_last_points(chosen, each.freq * stride) if last_points_only else chosen)
        return found if isinstance(series, list | tuple) else found[0]

    def certificate(
        self, horizon: int, coverage: float | None = None, series: int = 0, component: int = 0
    ) -> Certificate:
        """What is guaranteed of one stream, by default at the highest coverage."""
        width = self._series[series].n_components
        return self._streams.certificate(series * width + component, horizon, coverage)

    # Forecasts of the model

    @property
    def _transfers(self) -> bool:
        """Whether the model forecasts any series as it is."""
        any_series = self.model._supports_non_retrainable_historical_forecasts
        return bool(any_series and self.model._fit_called)

    def _ahead(self, n: int, series: Any, options: dict[str, Any]) -> Any:
        """The model's forecast after the end of a series."""
        if self.model.supports_transferable_series_prediction:
            return self.model.predict(n, series=series, num_samples=self._samples, **options)
        future = {name: options[name] for name in options if name == "future_covariates"}
        fitted = self.model.untrained_model().fit(series, **future)
        return fitted.predict(n, num_samples=self._samples, **options)

    def _past(self, series: Any, horizon: int, options: dict[str, Any], start: Any = None) -> Any:
        """The model's forecasts at every step, from a place on."""
        return self.model.historical_forecasts(
            series, forecast_horizon=horizon, start=start, start_format="position",
            retrain=not self._transfers, last_points_only=False, num_samples=self._samples,
            **{"show_warnings": False} | options,
        )  # fmt: skip

    def _whole_past(self, several: list[Any], covariates: dict[str, Any]) -> Forecasts:
        return _stacked([
            self._rows(place, each, forecast)
            for place, each in enumerate(several)
            for forecast in self._past(each, self.horizon, _of_place(covariates, place))
        ])  # fmt: skip

    def _goes_on(self, several: list[Any]) -> bool:
        """Whether these are the series last taken in, or longer ones."""
        return len(several) == len(self._series) and all(
            new.start_time() == old.start_time()
            and new.n_components == old.n_components
            and len(new) >= len(old)
            for new, old in zip(several, self._series, strict=True)
        )

    def _rows(self, place: int, series: Any, forecast: Any) -> Forecasts:
        """One forecast, a row for each step and component; times are places in the series."""
        values = forecast.all_values()
        count, width, _ = values.shape
        first = n_steps_between(forecast.start_time(), series.start_time(), series.freq)
        made, shift = first - 1 - self.model.output_chunk_shift, np.arange(count)
        known = max(min(len(series) - first, count), 0)
        y = np.full((count, width), np.nan)
        y[:known] = series.values()[first : first + known]
        lower, upper = (
            np.quantile(values, levels, axis=2).transpose(1, 2, 0).reshape(count * width, -1)
            for levels in zip(*self._pairs, strict=True)
        )
        return Forecasts(
            np.tile(place * width + np.arange(width), count),
            np.repeat(shift + 1, width),
            np.full(count * width, made),
            np.repeat(first + shift, width),
            lower,
            upper,
            y.ravel(),
        )

    def _quantiles(self, forecast: Any, ends: Floats) -> Any:
        """A forecast as quantiles, its median within the narrowest interval."""
        count, width = len(forecast), forecast.n_components
        lower, upper = ends.reshape(count, width, 2, -1).transpose(2, 0, 1, 3)
        middle = np.median(forecast.all_values(), axis=2)
        middle = np.clip(middle, lower[:, :, 0], upper[:, :, 0])[:, :, None]
        values = np.concatenate([lower[:, :, ::-1], middle, upper], axis=2)
        names = [quantile_names(self.quantiles, each) for each in forecast.components]
        return TimeSeries.from_times_and_values(
            forecast.time_index, values.reshape(count, -1), columns=[*chain(*names)]
        )

    # What the model can do

    def _as_the_model(name: str) -> Any:  # noqa: N805
        return property(lambda self: getattr(self.model, name))

    extreme_lags = _as_the_model("extreme_lags")
    min_train_samples = _as_the_model("min_train_samples")
    output_chunk_length = _as_the_model("output_chunk_length")
    output_chunk_shift = _as_the_model("output_chunk_shift")
    supports_multivariate = _as_the_model("supports_multivariate")
    supports_past_covariates = _as_the_model("supports_past_covariates")
    supports_future_covariates = _as_the_model("supports_future_covariates")
    uses_past_covariates = _as_the_model("uses_past_covariates")
    uses_future_covariates = _as_the_model("uses_future_covariates")
    _target_window_lengths = _as_the_model("_target_window_lengths")
    _model_encoder_settings = _as_the_model("_model_encoder_settings")
    del _as_the_model

    @property
    def supports_likelihood_parameter_prediction(self) -> bool:
        """Whether forecasts are quantiles: they are."""
        return True

    @property
    def supports_probabilistic_prediction(self) -> bool:
        """Whether forecasts say how sure they are: they do."""
        return True


def _several(series: Any) -> list[Any]:
    return [series] if isinstance(series, TimeSeries) else list(series)


def _of_place(options: dict[str, Any], place: int) -> dict[str, Any]:
    """The options for one of several series: covariates may come in lists."""
    return {
        name: value[place] if name in _COVARIATES and isinstance(value, list | tuple) else value
        for name, value in options.items()
    }


def _stacked(parts: list[Forecasts]) -> Forecasts:
    return Forecasts(*map(np.concatenate, zip(*parts, strict=True)))


def _last_points(forecasts: list[Any], freq: Any) -> Any:
    """The last step of each forecast, as one series."""
    times = [forecast.end_time() for forecast in forecasts]
    values = np.stack([forecast.values()[-1] for forecast in forecasts])
    index = pd.Index(times) if isinstance(freq, int) else pd.DatetimeIndex(times)
    names = forecasts[0].components
    return TimeSeries.from_times_and_values(index, values, freq=freq, columns=names)
