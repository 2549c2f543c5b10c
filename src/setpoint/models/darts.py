"""darts models with intervals that hold their coverage (extra `darts`).

`update` judges what was forecast since the last call and keeps a state: a forecast every few
minutes does not begin with the whole past again. `predict` and `historical_forecasts` change
nothing.
"""

# mypy: allow-subclassing-any, allow-untyped-calls

from collections import defaultdict
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


class IntervalModel(GlobalForecastingModel):
    """Any darts model, with quantiles whose coverage is held online, horizon by horizon.

    Each horizon of each component of each series is a stream of its own. A label h steps ahead is
    taken in h steps later. As with every model of darts, a forecast is a point, here the median;
    with `predict_likelihood_parameters=True` it is the quantiles, components such as y_q0.050.
    A model that draws samples is corrected at their quantiles, any other around its points.

    A model looks better than it is on the rows it was fitted to. So these are not calibrated on.

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
    >>> forecast = model.update(y[:290]).predict(2, predict_likelihood_parameters=True)
    >>> forecast.components.to_list()
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
        # One seed for all: asked twice, a model that draws samples says the same.
        draws = {"num_samples": _SAMPLES, "random_state": 0}
        self._draws: dict[str, Any] = draws if model.supports_probabilistic_prediction else {}
        self._series: list[Any] = []
        self._streams = Horizons(self._coverages, controller)
        self._fit_called = model._fit_called
        self._training = _several(getattr(model, "training_series", None) or [])

    def fit(self, series: Any, **options: Any) -> Self:
        """Fits the model, and changes nothing else. The past is taken in by `update`."""
        self.model.fit(series, **options)
        self._fit_called, self._training = True, _several(series)
        return self

    def update(self, series: Any, **covariates: Any) -> Self:
        """Takes in series up to their ends, from where the last call left them.

        Each step since then is forecast, judged and learnt; the first call takes in the past after
        the rows that the model was fitted to. Later calls must give the same series from their
        beginning, longer. Covariates are passed on to the model; future ones must reach the
        horizon beyond the end, as for a forecast.
        """
        several = _several(series)
        if self._series and not self._goes_on(several):
            raise InputError(
                "update must be given the same series from their beginning, not shorter; "
                "for other series make another IntervalModel"
            )
        self._walk(
            self._streams, several, [*map(len, self._series)] or [0] * len(several), covariates
        )
        self._series = several
        return self

    def predict(
        self,
        n: int,
        series: Any = None,
        *,
        num_samples: int = 1,
        predict_likelihood_parameters: bool = False,
        **options: Any,
    ) -> Any:
        """The next n steps; by default of the series last told to `update`.

        Other series, or the same at another time, are taken in from their beginning. Nothing that
        is kept changes.
        """
        if n > self.horizon:
            raise InputError(f"n must be at most the horizon, {self.horizon}, got {n}")
        _no_samples(num_samples)
        several = self._series if series is None else _several(series)
        if not several:
            raise InputError("no series was taken in yet: call `update`, or give a series")
        streams = copy(self._streams)
        if not self._goes_on(several) or [*map(len, several)] != [*map(len, self._series)]:
            covariates = {name: options[name] for name in _COVARIATES if name in options}
            streams = Horizons(self._coverages, self.controller)
            self._walk(streams, several, [0] * len(several), covariates)
        shown = []
        for place, each in enumerate(several):
            forecast = self._ahead(n, each, _of_place(options, place))
            ends = streams.predict(self._rows(place, each, forecast))
            shown.append(self._shown(forecast, ends, predict_likelihood_parameters))
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
        num_samples: int = 1,
        predict_likelihood_parameters: bool = False,
        retrain: Any = None,
        **options: Any,
    ) -> Any:
        """Past forecasts as they would have been shown, each with the labels known by then.

        They are made at every step after the rows that the model was fitted to. `start` and
        `stride` say which of them to give back; without `start` the first is the one whose ends are
        finite. `retrain` is ignored, as by the conformal models of darts.
        """
        _no_samples(num_samples)
        found = []
        for place, each in enumerate(_several(series)):
            past = self._past(each, forecast_horizon, _of_place(options, place), self._seen(each))
            rows = [self._rows(0, each, forecast) for forecast in past]
            if not rows:
                raise InputError("the model was fitted to every row that it could forecast")
            ends, _ = replayed(_stacked(rows), self._coverages, self.controller)
            shown = np.split(ends, np.cumsum([len(part.due) for part in rows])[:-1])
            due = np.array([part.made[0] + 1 for part in rows])
            if start is None:
                point = due[next((i for i, part in enumerate(shown) if np.isfinite(part).all()), 0)]
            else:
                point = start if start_format == "position" else each.get_index_at_point(start)
                point += len(each) if point < 0 else 0
            chosen = [
                self._shown(past[i], shown[i], predict_likelihood_parameters)
                for i in np.flatnonzero((due >= point) & ((due - point) % stride == 0))
            ]
            if not chosen:
                raise InputError(f"no forecast begins at start={start} or later")
            found.append(_last_points(chosen, each.freq * stride) if last_points_only else chosen)
        return found if isinstance(series, list | tuple) else found[0]

    def certificate(
        self, series: int = 0, horizon: int = 1, coverage: float | None = None, component: int = 0
    ) -> Certificate:
        """What is guaranteed of one stream, by default at the highest coverage."""
        if series >= len(self._series):
            raise InputError(f"{len(self._series)} series were taken in by `update`, got {series}")
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
        options = self._draws | options
        if self.model.supports_transferable_series_prediction:
            return self.model.predict(n, series=series, **options)
        future = {name: options[name] for name in options if name == "future_covariates"}
        return self.model.untrained_model().fit(series, **future).predict(n, **options)

    def _past(self, series: Any, horizon: int, options: dict[str, Any], first: int = 0) -> Any:
        """The model's forecasts at every step, from the one made when `first` rows were known."""
        past = self.model.historical_forecasts(
            series, forecast_horizon=horizon, start_format="position",
            start=min(first, len(series) - 1) if first else None,
            retrain=not self._transfers, last_points_only=False,
            **{"show_warnings": False} | self._draws | options,
        )  # fmt: skip
        return [each for each in past if self._made(series, each) >= first - 1]

    def _made(self, series: Any, forecast: Any) -> int:
        """The last row that was known to a forecast."""
        first = n_steps_between(forecast.start_time(), series.start_time(), series.freq)
        return int(first) - 1 - int(self.model.output_chunk_shift)

    def _seen(self, series: Any) -> int:
        """How many rows of a series lie before the end of what the model was fitted to."""
        seen = [
            n_steps_between(each.end_time(), series.start_time(), series.freq) + 1
            for each in self._training
            if self._transfers and _agree(each, series)
        ]
        return min(max(seen, default=0), len(series))

    def _walk(
        self, streams: Horizons, several: list[Any], known: list[int], covariates: dict[str, Any]
    ) -> None:
        """Forecasts of all series and then their labels, step by step, from the rows known."""
        steps = defaultdict(list)
        for place, (each, rows) in enumerate(zip(several, known, strict=True)):
            first = max(rows, self._seen(each))
            if first < len(each):
                options = _of_place(covariates, place) | {"overlap_end": True}
                for forecast in self._past(each, self.horizon, options, first):
                    steps[self._made(each, forecast)].append(self._rows(place, each, forecast))
        ends = [*map(len, several)]
        for row in range(min(known), max(ends)):
            if row - 1 in steps:
                streams.predict(_stacked([
                    part for part in steps[row - 1]
                    if row < ends[part.series[0] // several[0].n_components]
                ]))  # fmt: skip
            there = [i for i, rows in enumerate(known) if rows <= row < ends[i]]
            width = several[0].n_components
            ids = np.concatenate([i * width + np.arange(width) for i in there])
            labels = np.concatenate([several[i].values()[row] for i in there])
            streams.update(ids, np.full(len(ids), row), labels)

    def _goes_on(self, several: list[Any]) -> bool:
        """Whether these are the series last taken in, or longer ones."""
        return len(several) == len(self._series) and all(
            new.start_time() == old.start_time() and len(new) >= len(old) and _agree(new, old)
            for new, old in zip(several, self._series, strict=True)
        )

    def _rows(self, place: int, series: Any, forecast: Any) -> Forecasts:
        """One forecast, a row for each step and component; times are places in the series."""
        values = forecast.all_values()
        count, width, _ = values.shape
        first = n_steps_between(forecast.start_time(), series.start_time(), series.freq)
        made, shift = self._made(series, forecast), np.arange(count)
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

    def _shown(self, forecast: Any, ends: Floats, quantiles: bool) -> Any:
        """A forecast as quantiles, or as its median alone, which is in the narrowest interval."""
        count, width = len(forecast), forecast.n_components
        lower, upper = ends.reshape(count, width, 2, -1).transpose(2, 0, 1, 3)
        middle = np.median(forecast.all_values(), axis=2)
        middle = np.clip(middle, lower[:, :, 0], upper[:, :, 0])
        values = np.concatenate([lower[:, :, ::-1], middle[:, :, None], upper], axis=2)
        names = [quantile_names(self.quantiles, each) for each in forecast.components]
        return TimeSeries.from_times_and_values(
            forecast.time_index,
            values.reshape(count, -1) if quantiles else middle,
            columns=[*chain(*names)] if quantiles else forecast.components,
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


def _no_samples(count: int) -> None:
    if count != 1:
        raise InputError(f"there are quantiles, no samples: num_samples must be 1, got {count}")


def _agree(one: Any, two: Any) -> bool:
    """Whether two series have rows in common, and these are the same."""
    if type(one.time_index) is not type(two.time_index) or one.freq != two.freq:
        return False
    if max(one.start_time(), two.start_time()) > min(one.end_time(), two.end_time()):
        return False
    parts = one.slice_intersect_values(two), two.slice_intersect_values(one)
    return np.array_equal(*parts, equal_nan=True)


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
