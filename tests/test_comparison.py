"""The comparison of rules: streams, measures, ratios against a hand computation, and the page."""

import csv
import itertools
import shutil
from dataclasses import replace
from math import inf, log

import numpy as np
import pytest

import setpoint as sp
from comparison.experiment import reproduce
from comparison.measures import best, measure, resampled
from comparison.report import draw, read_csv
from comparison.rules import RULES, expected_scores, fixed
from comparison.streams import BURN_IN, Series, read, write
from setpoint.errors import InputError

NAMES = [rule.name for rule in RULES]


@pytest.fixture(autouse=True)
def _plain(monkeypatch):
    """Short streams run faster than their loops are compiled."""
    monkeypatch.setenv("SETPOINT_PLAIN", "1")


def series(rows=450, *, name="made", split="dev", delay=0, period=0, seed=0):
    """A forecast of 0 ∓ 1 whose error drifts."""
    random = np.random.default_rng(seed)
    y = np.sin(np.arange(rows) / 60.0) + random.standard_normal(rows)
    one = np.ones(rows)
    return Series(name, split, "synthetic", -one, one, y, delay, period)


def ends_of(name, stream):
    (rule,) = [rule for rule in RULES if rule.name == name]
    return rule.ends(stream)


# Streams


def test_a_file_of_streams_is_read_as_it_was_written_in_each_layout(tmp_path):
    first, second = series(delay=3, period=24), series(seed=1, split="val", name="other")
    write([first, second], tmp_path / "both.npz")
    for before, after in zip([first, second], read(tmp_path / "both.npz"), strict=True):
        for field in ("name", "split", "kind", "delay", "period"):
            assert getattr(after, field) == getattr(before, field)
        for field in ("lower", "upper", "y"):
            assert np.array_equal(getattr(after, field), getattr(before, field))
    columns = {"0_lo": first.lower, "0_hi": first.upper, "0_y": first.y}
    np.savez(tmp_path / "kinds.npz", meta=np.array(["a|val|real|7"]), **columns)
    np.savez(tmp_path / "late.npz", meta=np.array(["a|dev|7|24"]), **columns)
    (kinds,), (late,) = read(tmp_path / "kinds.npz"), read(tmp_path / "late.npz")
    assert (kinds.kind, kinds.delay, kinds.period) == ("real", 7, 0)
    assert (late.kind, late.delay, late.period) == ("late", 7, 24)
    np.savez(tmp_path / "none.npz", y=first.y)
    with pytest.raises(InputError, match="must hold an array 'meta', got y"):
        read(tmp_path / "none.npz")


def test_a_forecast_made_ahead_knows_only_labels_that_are_known_by_then():
    """Labels changed from a row on change no forecast for the rows before they are known."""
    from comparison import streams
    from setpoint_paper.datasets import Dataset

    random = np.random.default_rng(0)
    rows, changed, ahead = 2_300, 2_210, 24  # after the burn-in, which gives the width
    time = np.datetime64("2020-01-01T00", "s") + np.arange(rows) * np.timedelta64(3600, "s")
    y = np.sin(np.arange(rows) * 2.0 * np.pi / 24.0) + 0.1 * random.standard_normal(rows)
    other = np.where(np.arange(rows) < changed, y, y + 5.0)

    def forecasts(labels):
        data = Dataset("made", random.random((rows, 0)), labels, (), "y", time=time)
        return list(streams._forecast(data, "made", "dev", 24, ahead, False))

    for before, after in zip(forecasts(y), forecasts(other), strict=True):
        same = changed - 2_000 + ahead
        assert np.array_equal(before.lower[:same], after.lower[:same])
        if before.kind != "stale":
            assert not np.array_equal(before.lower[same:], after.lower[same:])
        assert (before.delay, before.period) == (ahead - 1, 24)


# Measures


def test_measures_are_those_of_a_hand_computation():
    y = np.array([0.0, 1.0, 2.0, 4.0])
    lower = np.array([-1.0, 2.0, -inf, 5.0])
    upper = np.array([1.0, 3.0, inf, 1.0])  # hit, missed by 1, infinite, empty
    found, blocks = measure(lower, upper, y, np.array([9.0, 9.0, 9.0, 3.0]))
    widths = [2.0, 1.0, 12.0, 0.0]  # infinite ends lie one range of y, 4, beyond 0 and 4
    winkler = [2.0, 1.0 + 20.0, 12.0, 20.0]  # the empty set counts as the point 3
    assert found.coverage == 0.5
    assert found.width == np.mean(widths)
    assert found.winkler == np.mean(winkler)
    assert (found.infinite, found.empty, found.msl) == (0.25, 0.25, 1.0)
    assert found.worst == 0.5
    assert found.rms == pytest.approx(0.4)
    assert blocks.ravel() == pytest.approx([2.0, sum(widths), sum(winkler), 4.0])


def test_a_set_far_beyond_every_label_has_no_negative_width():
    y = np.array([0.0, 1.0])
    found, _ = measure(np.array([50.0, -90.0]), np.array([60.0, -80.0]), y, y)
    assert found.width == 0.0
    assert found.winkler == 20.0 * (2.0 + 2.0) / 2.0  # as if it lay one range beyond


def test_the_worst_window_is_the_least_coverage_of_250_rows():
    y = np.zeros(600)
    upper = np.where((np.arange(600) >= 300) & (np.arange(600) < 340), -1.0, 1.0)
    found, blocks = measure(np.full(600, -2.0), upper, y, y)
    assert found.worst == 1.0 - 40 / 250
    assert found.msl == 40.0
    assert blocks[3].tolist() == [250.0, 250.0, 100.0]
    assert blocks[0].tolist() == [0.0, 40.0, 0.0]


def test_the_best_rule_is_sought_among_those_near_what_was_asked():
    coverage = np.array([[0.90, 0.50], [0.895, 0.50], [0.80, 0.85]])
    width = np.array([[4.0, 1.0], [3.0, 1.0], [1.0, 1.0]])
    found = best(coverage, width)
    assert found[0] == 3.0
    assert np.isnan(found[1])
    assert best(coverage, width, largest=True)[0] == 4.0


def test_the_brackets_of_a_ratio_that_is_the_same_in_every_block_have_no_width():
    blocks = np.ones((3, 4, 6))
    blocks[:, 0], blocks[:, 3] = 25.0, 250.0  # 10 % missed
    blocks[0, 1:3], blocks[1, 1:3] = 0.8, 2.0  # ours, and a rival that is not the best
    assert resampled([blocks, 3.0 * blocks], 0, [1, 2]) == pytest.approx(0.8)
    uneven = blocks.copy()
    uneven[0, 1:3, :3] = 0.4
    low, high = resampled([uneven, blocks], 0, [1, 2])[0]
    assert 0.4 < low < high < 0.8 + 1e-12


# Rules


def test_a_rule_gives_two_ends_for_every_row_after_the_burn_in():
    for stream in (series(), series(delay=4, period=12)):
        for rule in RULES:
            lower, upper = rule.ends(stream)
            assert lower.shape == upper.shape == (len(stream.y) - BURN_IN,), rule.name
            assert not (np.isnan(lower) | np.isnan(upper)).any(), rule.name


def test_the_default_is_the_preset_from_the_first_row():
    stream = series()
    tape = sp.Tape.from_arrays({"lower": stream.lower, "upper": stream.upper}, stream.y)
    trace = sp.replay(sp.intervals(0.9), tape)
    lower, upper = ends_of("default", stream)
    assert np.array_equal(lower, trace.lower[BURN_IN:])
    assert np.array_equal(upper, trace.upper[BURN_IN:])


def test_a_fixed_step_follows_the_scores_as_a_plain_loop_does():
    stream = series(delay=2)
    scores = np.maximum(stream.lower - stream.y, stream.y - stream.upper)
    past = np.sort(scores[:BURN_IN])
    gamma, theta = 0.05 * (past[-1] - past[0]), np.quantile(past, 0.9, method="higher")
    thetas = []
    for row in range(BURN_IN, len(scores)):
        known = row - 3
        if known >= BURN_IN:
            theta += gamma * ((scores[known] > thetas[known - BURN_IN]) - 0.1)
        thetas.append(theta)
    lower, upper = ends_of("fixed γ, 5 % of range", stream)
    assert lower == pytest.approx(stream.lower[BURN_IN:] - thetas)
    assert upper == pytest.approx(stream.upper[BURN_IN:] + thetas)


def test_two_sides_are_two_rules_at_half_the_level():
    stream = series()
    scores = stream.lower - stream.y
    gamma, theta = (
        0.02 * np.ptp(scores[:BURN_IN]),
        np.quantile(scores[:BURN_IN], 0.95, method="higher"),
    )
    thetas = []
    for score in scores[BURN_IN:]:
        thetas.append(theta)
        theta += gamma * ((score > theta) - 0.05)
    from comparison.rules import _fixed, _tracked

    lower, _ = _tracked(stream, _fixed(0.02), True)
    assert lower == pytest.approx(stream.lower[BURN_IN:] - thetas)


def test_the_step_size_of_hindsight_is_no_worse_than_any_other():
    stream = series(900)
    y, point = stream.y[BURN_IN:], stream.point[BURN_IN:]

    def score(ends):
        return measure(*ends, y, point)[0].winkler

    chosen = score(fixed(stream, two_sided=False, past=False))
    assert chosen <= score(fixed(stream, two_sided=False, past=True))
    assert chosen <= score(ends_of("fixed γ, 0.5 % of range", stream))
    assert chosen <= score(ends_of("fixed γ, 5 % of range", stream))


def test_expected_scores_are_smoothed_by_the_best_rate_and_half_the_trend():
    scores = np.random.default_rng(3).standard_normal(60).cumsum()
    for delay in (0, 4):
        rates = np.array([0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 0.99])
        levels, squares = np.full(9, scores[0]), np.zeros(9)
        told = expected_scores(scores, delay)
        assert (told[: delay + 1] == scores[0]).all()
        for row in range(60 - delay - 1):
            squares += (scores[row] - levels) ** 2
            levels += rates * (scores[row] - levels)
            slope = np.polyfit(np.arange(row + 1), scores[: row + 1], 1)[0] if row >= 10 else 0.0
            place = squares.argmin()
            wanted = levels[place] + 0.5 * slope * (1.0 / rates[place] + delay)
            assert told[row + delay + 1] == pytest.approx(wanted)


def test_the_budget_keeps_the_misses_of_any_rule_below_its_limit():
    stream = series(2_000)
    lower, upper = np.full((2, 2_000), 0.0)  # a rule whose sets are points
    columns = {"centre": lower, "low": upper + 1e-3, "high": upper + 1e-3}
    trace = sp.replay(sp.presets.around(0.9), sp.Tape.from_arrays(columns, stream.y))
    account = np.cumsum(trace.losses[0] - 0.1)
    assert account.max() <= 20.9
    assert trace.certificate().risks[0].within
    family = sp.sets.Multiplied()
    two, one = family.read((0.0, 2.0, 1.0)), family.read((0.0, 0.0, 1.0))
    assert family.critical(two, -4.0) == pytest.approx(log(2.0))
    assert family.critical(one, -4.0) == inf
    assert family.at(one, inf) == sp.sets.Interval(-inf, inf)


# The page


def test_the_page_holds_the_ratios_that_follow_from_its_numbers(tmp_path):
    streams = [
        series(401), series(401, seed=1), series(401, seed=2, split="val"),
        series(401, seed=3, delay=5),
    ]  # fmt: skip
    write(streams, tmp_path / "few.npz")
    results = reproduce(streams=tmp_path / "few.npz", out=tmp_path, kept=tmp_path)
    text = (tmp_path / "comparison-few.md").read_text()
    picture = tmp_path / "comparison-few.png"
    assert picture.stat().st_size > 10_000
    assert picture.with_suffix(".svg").is_file()
    # The file of numbers is enough to draw it anew.
    draw(read_csv(tmp_path / "comparison-few.csv"), tmp_path / "again.png")
    assert (tmp_path / "again.png").read_bytes() == picture.read_bytes()
    with (tmp_path / "comparison-few.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(streams) * len(RULES)
    # The first line of the headline, worked out from the file of numbers.
    ratios = []
    for place in (0, 1):
        some = rows[place * len(RULES) : (place + 1) * len(RULES)]
        rivals = [
            float(row["winkler"])
            for row in some
            if row["rule_kind"] == "published" and abs(float(row["coverage"]) - 0.9) <= 0.01
        ]
        ratios.append(float(some[0]["winkler"]) / min(rivals))
    headline = next(
        line for line in text.splitlines() if line.startswith("| development, labels at")
    )
    cells = [cell.strip() for cell in headline.split("|")]
    assert cells[7] == f"{np.exp(np.mean(np.log(ratios))):.3f}"
    for words in ("## Where it loses", "Winkler score above", "## Each stream", "few.npz"):
        assert words in text
    assert results.ratios("winkler")[0, :2] == pytest.approx(ratios)


def test_what_was_found_before_is_not_worked_out_again(tmp_path, monkeypatch):
    write([series(401)], tmp_path / "one.npz")
    first = reproduce(streams=tmp_path / "one.npz", out=tmp_path, kept=tmp_path)
    monkeypatch.setattr("comparison.experiment.RULES", ())
    from comparison import experiment

    values, _ = experiment._stored(first.series[0], tmp_path / "comparison")
    assert np.array_equal(values[:, 0], first.measures["coverage"][:, 0])


def test_a_stream_that_is_too_short_is_refused(tmp_path):
    write([series(399, name="short")], tmp_path / "short.npz")
    with pytest.raises(InputError, match="a stream needs 400 rows, short has fewer"):
        reproduce(streams=tmp_path / "short.npz", out=tmp_path, kept=tmp_path)


def test_synthetic_streams_of_the_two_halves_differ():
    from comparison.streams import _synthetic

    halves = {
        split: list(_synthetic(split, seed, 600, False)) for split, seed in (("dev", 1), ("val", 9))
    }
    for one, other in zip(halves["dev"], halves["val"], strict=True):
        assert one.name == other.name
        assert not np.array_equal(one.y, other.y)
        assert np.isfinite(one.y).all()
        assert (one.lower <= one.upper).all()


def test_gates_are_compared_with_what_people_use(monkeypatch: pytest.MonkeyPatch) -> None:
    from comparison import gates

    monkeypatch.setattr(gates, "_COINS", 2)
    listed = list(gates.made(rows=2400))[:2]
    text = gates.page(listed, "")
    for name in gates.RULES:
        assert text.count(f"| {name} |") >= len(gates.SHARES)
    assert all(one.wrong.mean() < 0.5 for one in listed)
    act = gates.gate(listed[0].score, listed[0].wrong, 0.05)
    assert (np.cumsum(act * listed[0].wrong - 0.05) <= 10.0).all()
    fixed = gates.fixed(listed[0].score, listed[0].wrong, 0.05)
    assert (fixed * listed[0].wrong)[: gates.tuning(2400)].mean() <= 0.05


def test_labels_that_are_late_unevenly_are_known_when_they_come():
    from comparison.account import SHAPES

    world = np.random.default_rng(0)
    for name in ("steady", "jitter", "geometric", "batches"):
        late = SHAPES[name](6000, 3, world)
        assert late.min() >= 0
        assert 2.4 < late.mean() < 3.6
    assert SHAPES["batches"](12, 3, world).tolist() == [5, 4, 3, 2, 1, 0] * 2
    known = np.arange(800) + SHAPES["outage"](800, 3, world)
    assert (known[200:327] == 330).all()  # nothing comes for 130 rows, then all at once
    assert (np.diff(known[327:]) == 1).all()
    steady = series(delay=4)
    column = replace(steady, delays=np.full(len(steady.y), 4))
    for name in ("default", "fixed γ, 5 % of range", "last 300 scores"):
        assert np.array_equal(ends_of(name, column), ends_of(name, steady))


def test_label_sets_are_compared_by_size_beside_the_rule_for_other_sets(monkeypatch):
    from comparison import classes

    monkeypatch.setattr(classes, "GAMMAS", (0.01, 0.05))
    stream = classes.made_up("sure", 1, 5, rows=700)
    found = classes.compared(stream, delay=3)
    assert set(found) == {*classes.RULES, classes.HINDSIGHT}
    assert all(0.8 < each["coverage"] < 1.0 for each in found.values())
    assert found["the same, never empty"]["empty"] == 0.0
    size = found["sp.label_sets"]["size"] / found["stretches.Tracking"]["size"]
    line = next(line for line in classes._summed([found]).splitlines() if "sp.label_sets" in line)
    assert f"| {size:.3f} |" in " ".join(line.split())


# Forecasts


def test_forecasts_go_on_where_they_were(tmp_path, monkeypatch):
    from comparison import forecasts

    if forecasts.place_of("traffic") is None:
        pytest.skip("needs the traffic data in SETPOINT_DATA")
    monkeypatch.setattr(forecasts, "FIRST", 60)
    asked = {"out": tmp_path, "sets": ("traffic",)}
    forecasts.forecasts(rows=300, **asked)
    forecasts.rivals(origins=1, names=("setpoint",), **asked)
    first = [(tmp_path / name).read_text() for name in ("forecasts.csv", "rivals.csv")]
    page = forecasts.rivals(origins=2, names=("setpoint",), **asked)
    again = forecasts.forecasts(rows=300, **asked)
    after = [(tmp_path / name).read_text() for name in ("forecasts.csv", "rivals.csv")]
    assert after[0] == first[0]
    assert after[1].startswith(first[1])
    assert len(after[1].splitlines()) == 2 * len(first[1].splitlines()) - 1
    assert page == again == (tmp_path / "forecasts.md").read_text()
    assert "### Traffic, 2 of 12 origins" in page
    assert "where another has the smaller winkler score: nowhere" in page.lower()


def test_the_page_of_forecasts_comes_from_the_stored_numbers_to_the_byte(tmp_path):
    from comparison import RESULTS, forecasts

    for name in ("forecasts.csv", "rivals.csv"):
        shutil.copy(RESULTS / name, tmp_path)
    forecasts.forecasts(out=tmp_path, sets=())
    stored = (RESULTS / "forecasts.md").read_text("utf-8")
    assert (tmp_path / "forecasts.md").read_text("utf-8") == stored
    first = next(part for part in stored.split("\n\n") if part.startswith("|"))
    assert first in (RESULTS.parents[1] / "docs" / "forecast.md").read_text("utf-8")


def test_a_forecast_that_takes_too_long_is_given_up():
    from comparison.forecasts import _at_most

    with pytest.raises(TimeoutError), _at_most(0.05):
        all(one == one for one in itertools.count())
