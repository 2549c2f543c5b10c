"""The linear quantile model: its centre is a ridge regression, and it beats constant quantiles."""

from pathlib import Path

import numpy as np
import pytest

from setpoint.errors import InputError, LabelError, StateError
from setpoint.models import LinearQuantiles, LinearSettings, OnlineModel, run
from setpoint.predictions import Quantiles


def pinball(quantiles, y, levels=(0.05, 0.95)):
    total = 0.0
    for ends, label in zip(quantiles, y, strict=True):
        for quantile, level in zip(ends, levels, strict=True):
            above = label - quantile
            total += level * above if above > 0 else (level - 1.0) * above
    return total / (len(y) * len(levels))


def drifting(rows: int, seed: int = 0):
    """Slopes that turn with time, noise whose size depends on x and jumps."""
    random = np.random.default_rng(seed)
    x = random.uniform(-1.0, 1.0, (rows, 3)) * [1.0, 1000.0, 0.001]
    angle = np.arange(rows) / 2000.0
    signal = np.cos(angle) * x[:, 0] + np.sin(angle) * x[:, 1] / 1000.0
    spread = (0.2 + 0.2 * (x[:, 2] > 0.0)) * np.where(np.arange(rows) // 500 % 2, 2.0, 1.0)
    return x, 50.0 + 10.0 * signal + 10.0 * spread * random.standard_normal(rows)


def test_it_beats_constant_quantiles_on_a_drifting_stream() -> None:
    x, y = drifting(4000)
    found = run(LinearQuantiles(), x, y)[1000:]
    constant = np.tile(np.quantile(y, [0.05, 0.95]), (3000, 1))  # even with hindsight
    assert pinball(found, y[1000:]) < 0.9 * pinball(constant, y[1000:])
    known = y[1000:]
    covered = ((found[:, 0] <= known) & (known <= found[:, 1])).mean()
    assert 0.86 < covered < 0.94


def test_its_centre_is_the_weighted_ridge_regression_of_all_rows() -> None:
    random = np.random.default_rng(1)
    x = random.normal(5.0, [1.0, 100.0], (72, 2))
    y = x @ [2.0, -0.03] + random.standard_normal(72)
    held = LinearSettings(lags=0, half_life=20.0, prior=3.0)
    model = LinearQuantiles(held)
    for row, label in zip(x, y, strict=True):
        model.learn(row, label)
    # Fits come after 2, 4, 8 rows, then every 16: the last one took in all 72.
    weight = [0.5 ** ((71 - t) / 20.0) for t in range(72)]
    total = sum(weight)
    mean = sum(w * row for w, row in zip(weight, x, strict=True)) / total
    centre = sum(w * label for w, label in zip(weight, y, strict=True)) / total
    spread = (sum(w * (row - mean) ** 2 for w, row in zip(weight, x, strict=True)) / total) ** 0.5
    left, right = 3.0 * np.eye(2), np.zeros(2)
    for w, row, label in zip(weight, x, y, strict=True):
        unit = (row - mean) / spread
        left += w * np.outer(unit, unit)
        right += w * unit * (label - centre)
    slopes = np.linalg.solve(left, right)
    for row in x[:5]:
        expected = centre + slopes @ ((row - mean) / spread)
        found = model._centre(model._inputs(row)) + model._state["label"]
        assert found == pytest.approx(expected, rel=1e-9)


def test_past_labels_are_features() -> None:
    random = np.random.default_rng(2)
    y = np.zeros(1500)
    for t in range(2, 1500):
        y[t] = 1.5 * y[t - 1] - 0.9 * y[t - 2] + random.standard_normal()
    nothing = np.zeros((1500, 0))
    with_lags, without = (
        run(LinearQuantiles(LinearSettings(lags=lags)), nothing, y)[500:] for lags in (2, 0)
    )
    # The noise has a deviation of 1: its own quantiles cost about 0.103.
    assert pinball(with_lags, y[500:]) < 0.115
    assert pinball(without, y[500:]) > 0.2


def test_the_ends_follow_a_noise_that_depends_on_x() -> None:
    random = np.random.default_rng(3)
    x = random.choice([0.0, 1.0], (6000, 1))
    y = random.standard_normal(6000) * (1.0 + 3.0 * x[:, 0])
    model = LinearQuantiles(LinearSettings(levels=(0.1, 0.9), lags=0))
    run(model, x, y)
    narrow, wide = model.predict([0.0]), model.predict([1.0])
    assert narrow == pytest.approx((-1.28, 1.28), abs=0.5)
    assert wide == pytest.approx((-5.13, 5.13), abs=1.5)


def test_units_do_not_matter() -> None:
    x, y = drifting(600)
    plain = run(LinearQuantiles(), x, y)
    other = run(LinearQuantiles(), x * 64.0 + 1024.0, y * 4.0 - 8.0)
    np.testing.assert_allclose(other[1:], plain[1:] * 4.0 - 8.0, rtol=1e-5)


def test_features_that_repeat_or_never_change_do_no_harm() -> None:
    x, y = drifting(1200)
    plain = pinball(run(LinearQuantiles(), x, y)[600:], y[600:])
    more = np.column_stack([x, x, np.full(1200, 2017.1)])
    assert pinball(run(LinearQuantiles(), more, y)[600:], y[600:]) < 1.05 * plain
    more[700, -1] = 2018.0  # it changes after all
    assert pinball(run(LinearQuantiles(), more, y)[600:], y[600:]) < 1.05 * plain


def test_a_constant_label_is_predicted_exactly() -> None:
    model = LinearQuantiles()
    found = run(model, np.zeros((40, 1)), np.full(40, 7.5))
    assert tuple(found[0]) == (0.0, 0.0)
    np.testing.assert_array_equal(found[1:], 7.5)


@pytest.mark.parametrize(
    ("path", "target", "rest"),
    [
        ("energy/energydata_complete.csv.gz", "Appliances", "date"),
        ("power/tetuan_power.csv.gz", "Zone 1 Power Consumption", "DateTime"),
    ],
)
def test_it_beats_constant_quantiles_on_real_data(
    shared_data: Path, path: str, target: str, rest: str
) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_csv(shared_data / path, nrows=6000)
    y = frame[target].to_numpy(float)
    zones = [name for name in frame if "Zone" in name]
    x = frame.drop(columns=list({target, rest, *zones})).to_numpy(float)
    found = run(LinearQuantiles(), x, y)[3000:]
    constant = np.tile(np.quantile(y[:3000], [0.05, 0.95]), (3000, 1))
    assert pinball(found, y[3000:]) < 0.7 * pinball(constant, y[3000:])


# Purity and state


def test_predicting_moves_nothing_and_sees_no_label_before_its_time() -> None:
    x, y = drifting(200)
    expected = run(LinearQuantiles(), x, y)
    model = LinearQuantiles()
    assert isinstance(model, OnlineModel)
    for t in range(200):
        for other in (0, t, t):
            found = model.predict(x[other])
        assert isinstance(found, Quantiles)
        assert found == tuple(expected[t])
        model.learn(x[t], y[t])
    changed = y.copy()
    changed[100:] += 40.0
    after = run(LinearQuantiles(), x, changed)
    np.testing.assert_array_equal(after[:101], expected[:101])
    assert (after[101] != expected[101]).all()


@pytest.mark.parametrize("cut", [0, 1, 7, 100])
def test_a_saved_model_goes_on_to_the_bit(tmp_path: Path, cut: int) -> None:
    x, y = drifting(150)
    held = LinearSettings(levels=(0.2, 0.7), lags=5, half_life=30.0)
    expected = run(LinearQuantiles(held), x, y)
    model = LinearQuantiles(held)
    run(model, x[:cut], y[:cut])
    model.save(tmp_path / "model")
    loaded = LinearQuantiles.load(tmp_path / "model")
    assert (loaded.steps, loaded.settings) == (cut, held)
    np.testing.assert_array_equal(run(loaded, x[cut:], y[cut:]), expected[cut:])


def test_a_file_that_holds_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_text("nothing of the kind")
    with pytest.raises(StateError, match="damaged or not a saved state"):
        LinearQuantiles.load(path)


def test_wrong_rows_and_settings_are_refused() -> None:
    model = LinearQuantiles()
    model.learn([1.0, 2.0], 3.0)
    with pytest.raises(InputError, match="x must have 2 features, got 3"):
        model.predict([1.0, 2.0, 3.0])
    with pytest.raises(InputError, match=r"x must have the shape \(d,\), got \(\)"):
        model.predict(1.0)
    with pytest.raises(InputError, match="x must be finite"):
        model.learn([1.0, np.inf], 3.0)
    with pytest.raises(LabelError, match="y must be finite, got nan"):
        model.learn([1.0, 2.0], float("nan"))
    assert model.steps == 1
    with pytest.raises(InputError, match="levels must be a pair"):
        LinearSettings(levels=(0.5, 0.5))
    with pytest.raises(InputError, match="lags must be a whole number of at least 0, got -1"):
        LinearSettings(lags=-1)
    with pytest.raises(InputError, match="half_life must be greater than 0"):
        LinearSettings(half_life=0.0)
