"""The quantile LSTM: equal to its straightforward form, pure, seeded, resumable, and it learns."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from benchmarks.lstm import stream, twin
from setpoint.errors import InputError, LabelError, StateError
from setpoint.models import LinearQuantiles, OnlineModel, run
from setpoint.predictions import Quantiles
from setpoint_paper import work
from setpoint_paper.models.lstm import CHOSEN, TABLE, LSTMSettings, QuantileLSTM, Scaling
from setpoint_paper.models.lstm_network import Network

SMALL = LSTMSettings(hidden=8, before=(6,), after=(5,), batch=16, learning_rate=5e-3)


@pytest.fixture(autouse=True)
def one_thread():
    with work.one_thread():
        yield


def pinball(quantiles, y, levels=(0.05, 0.95)):
    total = 0.0
    for ends, label in zip(quantiles, y, strict=True):
        for quantile, level in zip(ends, levels, strict=True):
            above = label - quantile
            total += level * above if above > 0 else (level - 1.0) * above
    return total / (len(y) * len(levels))


def power(shared_data: Path, rows: int):
    import pandas

    path = shared_data / "power" / "tetuan_power.csv.gz"
    frame = pandas.read_csv(path, nrows=rows)
    time = pandas.to_datetime(frame["DateTime"], format="%m/%d/%Y %H:%M").dt
    parts = (time.day, time.month, time.year, time.hour, time.minute, time.day_of_week)
    x = np.column_stack([frame.iloc[:, 1:6], *parts]).astype(float)
    return x, frame["Zone 1 Power Consumption"].to_numpy(float)


# The maths


@pytest.mark.parametrize(
    "settings",
    [
        LSTMSettings(batch=10),
        LSTMSettings(hidden=64, before=(32, 64, 128), after=(64, 32), batch=10),
        LSTMSettings(hidden=16, before=(8,), after=(8,), batch=16, learning_rate=5e-4),
        LSTMSettings(hidden=16, before=(), after=(8, 8, 8), batch=16, window=1),
        LSTMSettings(hidden=16, before=(8,), after=(8,), batch=1, window=2, levels=(0.2, 0.6)),
        LSTMSettings(hidden=16, before=(8,), after=(8, 6), batch=16, window=4),
    ],
    ids=["paper", "deep", "shallow", "window of 1", "batch of 1", "window of 4"],
)
def test_50_steps_equal_those_of_the_straightforward_implementation(settings) -> None:
    x, y = stream(60, features=7)
    model = QuantileLSTM(7, replace(settings, dropout=0.0, double=True, seed=3))
    other = twin(model)
    begun = model._network.values.clone()
    for row, label in zip(x[:50], y[:50], strict=True):
        model.learn(row, label)
        other.learn(row, label)
    moved = float((model._network.values - begun).abs().max())
    assert other._network.distance(model) < 1e-7 < 1e-3 < moved
    for row in x[50:]:
        mine, theirs = model.predict(row), other.predict(row)
        np.testing.assert_allclose(mine[-1], theirs[-1], rtol=0, atol=1e-9)


def test_float32_stays_near_float64() -> None:
    x, y = stream(40)
    exact, usual = (
        run(QuantileLSTM(11, LSTMSettings(dropout=0.0, batch=32, double=double)), x, y)
        for double in (True, False)
    )
    assert exact.std() > 0.01
    # The seeds draw other first parameters in float64: compare through the same ones.
    model = QuantileLSTM(11, LSTMSettings(dropout=0.0, batch=32, double=True))
    single = QuantileLSTM(11, LSTMSettings(dropout=0.0, batch=32))
    model._network.values.copy_(single._network.values)
    np.testing.assert_allclose(run(model, x, y), usual, rtol=0, atol=1e-4)


def test_dropout_leaves_out_its_share_and_scales_the_rest() -> None:
    model = QuantileLSTM(3, LSTMSettings(hidden=16, before=(64,), after=(64, 8), dropout=0.25))
    space = model._network._space(400, 2)
    seen = []
    for _ in range(3):
        space.draw(0.25, model._network.generator)
        masks = [space.masks1[0], space.masks3[0], space.mask4]
        seen.append(torch.cat([mask.flatten() for mask in masks]).clone())
    for mask in seen:
        assert mask.unique().tolist() == pytest.approx([0.0, 1.0 / 0.75])
        share, error = float((mask == 0).double().mean()), (0.25 * 0.75 / len(mask)) ** 0.5
        assert abs(share - 0.25) < 5.0 * error
    # Two draws agree no more often than independent ones: both kept or both left out.
    same = float(((seen[0] == 0) == (seen[1] == 0)).double().mean())
    assert abs(same - (0.75**2 + 0.25**2)) < 0.02


def test_dropout_touches_learning_but_not_prediction() -> None:
    x, y = stream(30)
    runs = [run(QuantileLSTM(11, replace(SMALL, dropout=p)), x, y) for p in (0.0, 0.5)]
    np.testing.assert_array_equal(runs[0][0], runs[1][0])
    assert np.abs(runs[0][-1] - runs[1][-1]).max() > 1e-4


def test_neighbouring_labels_reach_the_prediction_only_after_they_are_learned() -> None:
    x, y = stream(60)
    changed = y.copy()
    changed[30:] += 100.0
    before, after = (run(QuantileLSTM(11, SMALL), x, labels) for labels in (y, changed))
    np.testing.assert_array_equal(before[:31], after[:31])
    assert (before[31] != after[31]).all()


def test_the_window_is_all_that_an_untrained_model_sees_of_the_past() -> None:
    x, y = stream(40)
    held = replace(SMALL, learning_rate=1e-30)  # parameters stay where they are
    models = [QuantileLSTM(11, held) for _ in range(2)]
    run(models[0], x[:30], y[:30])
    run(models[1], x[27:30], y[27:30])
    assert models[0].predict(x[30]) == models[1].predict(x[30])


# Scaling


def test_scaling_takes_mean_and_deviation_of_the_first_rows_only() -> None:
    x, y = stream(50, features=2)
    x[:, 1] = 0.1
    model = QuantileLSTM(2, replace(SMALL, scale_rows=20))
    model.fit_scale(x, y)
    first = [row[0] for row in x[:20]]
    centre = sum(first) / 20
    spread = (sum((value - centre) ** 2 for value in first) / 20) ** 0.5
    found = model.scaling
    np.testing.assert_allclose([found.x_centre[0], found.x_spread[0]], [centre, spread])
    assert found.x_spread[1] == 1.0
    np.testing.assert_allclose([found.y_centre, found.y_spread], [y[:20].mean(), y[:20].std()])


def test_units_do_not_matter_once_scaled() -> None:
    x, y = stream(60)
    plain, other = (QuantileLSTM(11, replace(SMALL, double=True)) for _ in range(2))
    plain.fit_scale(x, y)
    other.fit_scale(x * 1000.0 + 7.0, y * 50.0 - 3.0)
    first, second = run(plain, x, y), run(other, x * 1000.0 + 7.0, y * 50.0 - 3.0)
    np.testing.assert_allclose(second, first * 50.0 - 3.0, rtol=0, atol=1e-6)


# Purity, seeds, state


def test_predicting_moves_nothing() -> None:
    x, y = stream(60)
    quiet, busy = QuantileLSTM(11, SMALL), QuantileLSTM(11, SMALL)
    for t in range(50):
        expected = quiet.predict(x[t])
        for other in (t, 0, t):
            found = busy.predict(x[other])
        assert found == expected
        quiet.learn(x[t], y[t])
        busy.learn(x[t], y[t])


def test_equal_seeds_give_equal_runs_whatever_else_runs() -> None:
    x, y = stream(40)
    alone = run(QuantileLSTM(11, SMALL), x, y)
    torch.manual_seed(123)
    before = torch.get_rng_state()
    first, second = QuantileLSTM(11, SMALL), QuantileLSTM(11, replace(SMALL, seed=1))
    together = []
    for row, label in zip(x, y, strict=True):
        together.append((first.predict(row), second.predict(row)))
        second.learn(row, label)
        first.learn(row, label)
        second.predict(row)
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal([pair[0] for pair in together], alone)
    np.testing.assert_array_equal(
        [pair[1] for pair in together], run(QuantileLSTM(11, replace(SMALL, seed=1)), x, y)
    )
    assert (np.array([pair[1] for pair in together]) != alone).all()


@pytest.mark.parametrize("cut", [0, 5, 16, 80, 150])  # the buffer moves every 57 rows
def test_a_saved_model_goes_on_to_the_bit(tmp_path: Path, cut: int) -> None:
    x, y = stream(200)
    whole = QuantileLSTM(11, SMALL)
    whole.fit_scale(x, y)
    expected = run(whole, x, y)
    model = QuantileLSTM(11, SMALL)
    model.fit_scale(x, y)
    first = run(model, x[:cut], y[:cut]).reshape(cut, expected.shape[1])
    model.save(tmp_path / "model")
    loaded = QuantileLSTM.load(tmp_path / "model")
    assert (loaded.steps, loaded.settings) == (cut, SMALL)
    found = np.concatenate([first, run(loaded, x[cut:], y[cut:])])
    np.testing.assert_array_equal(found, expected)
    loaded.save(tmp_path / "loaded")
    whole.save(tmp_path / "whole")
    assert (tmp_path / "loaded").read_bytes() == (tmp_path / "whole").read_bytes()


def test_a_file_that_holds_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model"
    LinearQuantiles().save(path)
    with pytest.raises(StateError, match="must hold a setpoint quantile LSTM"):
        QuantileLSTM.load(path)
    QuantileLSTM(2, SMALL).save(path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(StateError, match="damaged"):
        QuantileLSTM.load(path)


# What it learns


def test_it_beats_constant_quantiles_on_real_data(shared_data: Path) -> None:
    x, y = power(shared_data, 900)
    model = QuantileLSTM(11, replace(CHOSEN["power"], hidden=32, batch=64, learning_rate=2e-3))
    model.fit_scale(x, y)
    found = run(model, x, y)
    constant = np.tile(np.quantile(y[:600], [0.05, 0.95]), (300, 1))
    assert pinball(found[600:], y[600:]) < 0.5 * pinball(constant, y[600:])
    assert isinstance(model, OnlineModel)
    assert isinstance(model.predict(x[0]), Quantiles)


# Settings and search


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden": 0}, "hidden must be a whole number of at least 1, got 0"),
        ({"after": ()}, "after must have at least one layer"),
        ({"before": (32, 0)}, "a layer of before must be a whole number of at least 1, got 0"),
        ({"dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
        ({"levels": (0.9, 0.1)}, "levels must be a pair with 0 < lower < upper < 1"),
        ({"learning_rate": -1.0}, "learning_rate must be greater than 0, got -1.0"),
    ],
)
def test_settings_are_checked(options, message) -> None:
    with pytest.raises(InputError, match=message):
        LSTMSettings(**options)


def test_wrong_rows_are_refused_and_change_nothing() -> None:
    x, y = stream(20)
    model, other = QuantileLSTM(11, SMALL), QuantileLSTM(11, SMALL)
    for each in (model, other):
        run(each, x[:10], y[:10])
    with pytest.raises(InputError, match=r"x must have the shape \(11,\), got \(3,\)"):
        model.predict(x[0, :3])
    with pytest.raises(InputError, match="x must be finite"):
        model.learn(np.full(11, np.nan), 1.0)
    with pytest.raises(LabelError, match="y must be finite, got nan"):
        model.learn(x[0], float("nan"))
    with pytest.raises(InputError, match="before the first row is learned, 10 were"):
        model.fit_scale(x, y)
    with pytest.raises(InputError, match=r"got \(3, 2\) and \(4,\)"):
        run(model, np.zeros((3, 2)), np.zeros(4))
    with pytest.raises(InputError, match="must be finite"):
        Scaling.fit([[np.nan]], [1.0])
    np.testing.assert_array_equal(run(model, x[10:], y[10:]), run(other, x[10:], y[10:]))


# What shared dropout masks change


@pytest.mark.slow
def test_shared_masks_stay_near_independent_ones_on_paired_seeds(shared_data: Path) -> None:
    x, y = power(shared_data, 700)
    half = 350
    shared, independent = [], []
    for seed in range(8):
        held = replace(CHOSEN["power"], hidden=32, batch=128, learning_rate=2e-3, seed=seed)
        model = QuantileLSTM(11, held)
        model.fit_scale(x, y)
        other = twin(model)  # the same first parameters, masks anew for each window and level
        torch.manual_seed(seed)
        for each, into in ((model, shared), (other, independent)):
            found = run(each, x, y)[half:]
            hits = ((found[:, 0] <= y[half:]) & (y[half:] <= found[:, 1])).mean()
            into.append((hits, (found[:, 1] - found[:, 0]).mean(), pinball(found, y[half:])))
    usual = np.array(independent).mean(axis=0)
    away = (np.array(shared) - np.array(independent)) / np.array([1.0, usual[1], usual[2]])
    mean, error = away.mean(axis=0), away.std(axis=0, ddof=1) / len(away) ** 0.5
    for name, one, by in zip(("coverage", "length", "pinball"), mean, error, strict=True):
        print(f"{name}: shared − independent = {one:+.4f} ± {by:.4f}")
    # Twice the error beyond the mean is still near: not only "no difference was found".
    assert (np.abs(mean) + 2.0 * error < [0.04, 0.05, 0.10]).all()


def test_raw_zeros_stand_before_the_first_row_and_are_learned_from():
    """The authors' older code: zeros that were standardised, as inputs and as targets."""
    held = LSTMSettings(
        hidden=6, before=(5,), after=(4,), batch=7, raw_zeros=3, dropout=0.0, double=True
    )
    rng = np.random.default_rng(2)
    x, y = 2_000.0 + rng.normal(size=(12, 2)), 30.0 + rng.normal(size=12)
    model = QuantileLSTM(2, held)
    model.fit_scale(x, y)
    shown = run(model, x, y)

    both = np.column_stack([x, y])
    standard = (np.vstack([np.zeros((3, 3)), both]) - both.mean(axis=0)) / both.std(axis=0)
    rows = torch.from_numpy(np.vstack([np.zeros((held.window, 3)), standard]))
    levels = torch.tensor(held.levels, dtype=torch.float64)
    network = Network(2, held)
    for step in range(12):
        end = held.window + 3 + step
        said = network.quantiles(rows[end - held.window : end], rows[end, :2], levels).numpy()
        assert np.allclose(shown[step], said * y.std() + y.mean(), rtol=1e-9)
        batch = min(step + 1 + 3, held.batch)
        network.learn(rows[end + 1 - batch - held.window : end + 1], levels[:, None])


def test_the_chosen_settings_are_among_those_of_the_table() -> None:
    for chosen in CHOSEN.values():
        assert all(getattr(chosen, name) in options for name, options in TABLE.items())
