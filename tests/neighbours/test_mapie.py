"""MAPIE's results beside setpoint's, in one call, with the library itself."""

from typing import Any

import numpy as np
import pytest

import setpoint as sp

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


def test_one_call_compares_a_fitted_mapie_model() -> None:
    X, y = rows()
    model = SplitConformalRegressor(LinearRegression(), confidence_level=LEVELS, prefit=False)
    model.fit(X[:500], y[:500]).conformalize(X[500:1000], y[500:1000])
    intervals = model.predict_interval(X[1000:])[1]
    for place, level in enumerate(LEVELS):
        ends = intervals[:, :, [place]]
        tape = sp.Tape.from_arrays(ends[:, :, 0], y[1000:])
        both = sp.compare(tape, {"setpoint": sp.intervals(level)}, coverage=level, skip=0).summaries
        given, ours = both["given"], both["setpoint"]
        assert given.coverage == pytest.approx(regression_coverage_score(y[1000:], ends)[0])
        assert given.mean_finite_length == pytest.approx(regression_mean_width_score(ends)[0])
        assert given.winkler == pytest.approx(regression_mwi_score(y[1000:], ends, level))
        assert given.coverage < level - 0.3
        assert ours.coverage == pytest.approx(level, abs=0.02)
        assert ours.winkler < given.winkler


def test_time_series_intervals_are_compared_too_with_late_labels() -> None:
    X, y = rows()
    model = TimeSeriesRegressor(LinearRegression(), method="aci", cv=5, random_state=0)
    model.fit(X[:500], y[:500])
    ends = model.predict(X[1000:1500], confidence_level=0.9)[1][:, :, 0]
    at_once, late = (
        sp.compare(sp.Tape.from_arrays(ends, y[1000:1500], delay=d), {"setpoint": sp.intervals()})
        for d in (0, 24)
    )
    assert at_once.summaries["given"] == late.summaries["given"]
    assert at_once.summaries["setpoint"] != late.summaries["setpoint"]
    assert late.summaries["setpoint"].coverage > late.summaries["given"].coverage
