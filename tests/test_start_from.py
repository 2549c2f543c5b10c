"""Streams that begin with what others have learnt: a start without units."""

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import InputError
from setpoint.spec import from_toml, to_toml

ROWS = 60


def panel(first: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Series of unlike scale whose forecasts are too low and too wide, with errors that last."""
    lowers, uppers, labels = [], [], []
    for seed in range(first, first + count):
        rng = np.random.default_rng(seed)
        scale = 10.0 ** rng.uniform(-3, 3)
        error = np.zeros(ROWS)
        for t in range(1, ROWS):
            error[t] = 0.8 * error[t - 1] + rng.normal()
        middle = np.cumsum(rng.normal(size=ROWS))
        lowers.append(scale * (middle - 6.0))
        uppers.append(scale * (middle + 6.0))
        labels.append(scale * (middle + 2.0 + error))
    ids = np.repeat(np.arange(first, first + count), ROWS)
    return np.concatenate(lowers), np.concatenate(uppers), np.concatenate(labels), ids


def tape(first: int, count: int, unit: float = 1.0) -> sp.Tape:
    lower, upper, y, ids = panel(first, count)
    return sp.Tape.from_arrays({"lower": unit * lower, "upper": unit * upper}, unit * y, series=ids)


def winkler(trace: sp.Trace) -> float:
    """The mean score of each series in units of its own width, over the series."""
    lower, upper, y = (a.reshape(-1, ROWS) for a in (trace.lower, trace.upper, trace.tape.y))
    scores = upper - lower + 20.0 * np.maximum(np.maximum(lower - y, y - upper), 0.0)
    given = (trace.tape.prediction[1] - trace.tape.prediction[0]).reshape(-1, ROWS)
    return float((scores / given).mean())


def test_short_series_score_better_with_a_start_learnt_from_others() -> None:
    past, new = tape(0, 30), tape(100, 30)
    plain = sp.intervals(coverage=0.9)
    begun = sp.start_from(plain, sp.replay(plain, past).states)
    before, after = sp.replay(plain, new), sp.replay(begun, new)
    assert winkler(after) < 0.9 * winkler(before)
    assert after.coverage > 0.87


def test_a_start_has_no_unit_and_is_the_same_live_and_replayed() -> None:
    plain = sp.intervals(coverage=0.9)
    begun = sp.start_from(plain, sp.replay(plain, tape(0, 10)).states)
    scaled = sp.start_from(plain, sp.replay(plain, tape(0, 10, 2.0**20)).states)
    assert scaled == begun
    trace = sp.replay(begun, tape(50, 1))
    stream = sp.Stream(begun)
    lower, upper, y, _ = (column.tolist() for column in panel(50, 1))
    for t in range(ROWS):
        shown = stream.predict((lower[t], upper[t]))
        assert (shown.lower, shown.upper) == (trace.lower[t], trace.upper[t])
        stream.update(y[t])


def test_a_start_goes_through_a_file_of_the_controller() -> None:
    plain = sp.intervals(coverage=0.9)
    begun = sp.start_from(plain, sp.replay(plain, tape(0, 5)).states, weight=4.0)
    assert from_toml(to_toml(begun)) == begun


def test_a_start_that_counts_nothing_more_than_the_width_is_the_usual_beginning() -> None:
    family = sp.correction.Intervals()
    prior = (*family.init()[0], *[0.0] * 15)
    assert sp.correction.Intervals(prior=prior).init() == family.init()


@pytest.mark.parametrize("many", [0, 3])
def test_states_that_saw_nothing_are_refused(many: int) -> None:
    controller = sp.intervals()
    states = [controller.init() for _ in range(many)]
    with pytest.raises(InputError, match=f"saw labels and errors, got {many} states and none"):
        sp.start_from(controller, states)


def test_point_forecasts_begin_with_the_errors_of_others_against_their_forecasts() -> None:
    rng = np.random.default_rng(3)
    id, level = np.repeat(np.arange(300), 12), np.repeat(rng.lognormal(3.0, 1.5, 300), 12)
    y = level * (1.0 + 0.2 * rng.standard_t(4, id.size))
    tape = sp.Tape.from_arrays({"prediction": level}, y, series=id)
    old, new = tape[: 12 * 150], tape[12 * 150 :]
    controller = sp.intervals()
    begun = sp.start_from(controller, sp.replay(controller, old).states)
    alone, taught = sp.replay(controller, new), sp.replay(begun, new)
    place = np.tile(np.arange(12), 150)
    assert np.isinf(alone.upper[place == 0]).all()
    assert np.isfinite(taught.upper).all()
    early = (place > 0) & (place < 10)
    assert abs(taught.covered[early].mean() - 0.9) < 0.05 < abs(alone.covered[early].mean() - 0.9)
    with pytest.raises(InputError, match=r"start needs a controller with correction\.Intervals"):
        sp.start_from(sp.label_sets(), [])
    other = sp.Stream(sp.intervals(coverage=0.5)).state
    with pytest.raises(InputError, match="under the same controller"):
        sp.start_from(controller, other)
    with pytest.raises(InputError, match="got 2 numbers"):
        sp.correction.Intervals(prior=(1.0, 2.0))
