"""What users stumbled over, each with the smallest test that shows it."""

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import PredictionError


def walk(rows: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """The last value as a forecast of the next."""
    y = np.cumsum(np.random.default_rng(0).normal(size=rows))
    return np.append(0.0, y[:-1]), y


def test_a_fleet_takes_the_pairs_that_a_stream_takes() -> None:
    controller = sp.presets.around(0.9)
    fleet, stream = sp.Fleet(controller, ["a", "b"]), sp.Stream(controller)
    for shown in (
        fleet.predict(([1.0, 3.0], [2.0, 5.0])),
        fleet.peek(np.array([[1.0, 2.0], [3.0, 5.0]]), ["a", "b"]),
        fleet.peek({"lower": [1.0, 3.0], "upper": [2.0, 5.0]}, ["a", "b"]),
    ):
        assert (shown.lower[0], shown.upper[0]) == tuple(stream.predict((1.0, 2.0)))
        assert shown.upper[1] == 5.0


def test_a_point_forecast_has_no_width_that_could_count() -> None:
    stream = sp.Stream(sp.intervals())
    for point, y in zip(*walk(60), strict=True):
        stream.predict(float(point))
        stream.update(float(y))
    assert "the width that the model gave" not in str(stream.summary())
    stream.predict((0.0, 1.0))
    stream.update(0.5)
    assert "the width that the model gave" in str(stream.summary())


def test_a_summary_names_what_is_infinite_and_prints_the_rest() -> None:
    point, y = walk()
    trace = sp.replay(sp.intervals(), sp.Tape.from_arrays({"point": point}, y))
    text = str(trace.summary())
    assert "mean_finite_length" in text
    assert text.endswith("infinite, because a set has no limits: mean_length, pinball, winkler")
    assert not any(line.endswith(" inf") for line in text.splitlines())


def test_an_error_speaks_of_the_prediction_and_of_no_family() -> None:
    with pytest.raises(PredictionError, match=r"^a prediction must be a pair .* got 'x'$"):
        sp.Stream(sp.intervals()).predict("x")


@pytest.mark.parametrize("number", [np.float64(0.1), np.float32(0.5)])
def test_numbers_of_numpy_are_options(number: np.floating) -> None:
    sp.testing.check_step(sp.steps.Fixed(number))  # type: ignore[arg-type]
