"""MAPIE's results beside setpoint's, in one call, with the library itself."""

from typing import Any

import numpy as np
import pytest

from setpoint.interop import compare

pytest.importorskip("mapie")
pytestmark = pytest.mark.neighbours

from mapie.metrics.regression import (  # noqa: E402
    regression_coverage_score,
    regression_mean_width_score,
    regression_mwi_score,
)
from mapie.regression import SplitConformalRegressor, TimeSeriesRegressor  # noqa: E402
from sklearn.linear_model import LinearRegression  # noqa: E402

LEVELS = [0.8, 0.9]


def rows() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 3))
    noise = np.repeat([1.0, 1.0, 3.0], [500, 500, 1000])  # three times as loud after the first half
    return X, X @ [1.0, -2.0, 0.5] + noise * rng.normal(size=2000)


def test_one_call_compares_a_fitted_mapie_model_level_by_level() -> None:
    X, y = rows()
    model = SplitConformalRegressor(LinearRegression(), confidence_level=LEVELS, prefit=False)
    model.fit(X[:500], y[:500]).conformalize(X[500:1000], y[500:1000])
    results = model.predict_interval(X[1000:])
    table = compare(results, y[1000:], LEVELS)
    for place, level in enumerate(LEVELS):
        given, held = table.loc[(level, "given")], table.loc[(level, "setpoint")]
        ends = results[1][:, :, [place]]
        assert given.coverage == pytest.approx(regression_coverage_score(y[1000:], ends)[0])
        width = regression_mean_width_score(ends)[0]
        assert given.mean_finite_length == pytest.approx(width)
        assert given.winkler == pytest.approx(regression_mwi_score(y[1000:], ends, level))
        assert given.coverage < level - 0.3
        assert held.coverage == pytest.approx(level, abs=0.02)
        assert held.winkler < given.winkler


def test_time_series_intervals_are_compared_too_with_late_labels() -> None:
    X, y = rows()
    model = TimeSeriesRegressor(LinearRegression(), method="aci", cv=5, random_state=0)
    model.fit(X[:500], y[:500])
    results = model.predict(X[1000:1500], confidence_level=0.9)
    at_once, late = (compare(results, y[1000:1500], 0.9, delay=d) for d in (0, 24))
    assert at_once.loc[(0.9, "given")].equals(late.loc[(0.9, "given")])
    assert not at_once.loc[(0.9, "setpoint")].equals(late.loc[(0.9, "setpoint")])
    assert late.loc[(0.9, "setpoint")].coverage > late.loc[(0.9, "given")].coverage
