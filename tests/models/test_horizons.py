"""Series by horizons: labels count when they are known, and live is replay to the bit."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import InputError, StateError
from setpoint.models.horizons import Forecasts, Horizons, clock, replayed, steps_ahead

ROWS, STEPS = 120, 3


def walks(count: int = 2) -> Any:
    return np.cumsum(np.random.default_rng(3).normal(size=(count, ROWS + STEPS + 1)), axis=1)


def at(row: int, y: Any) -> Forecasts:
    """What is forecast at one time, by the last label: every series, every horizon."""
    series, horizon = np.repeat(np.arange(len(y)), STEPS), np.tile(np.arange(1, STEPS + 1), len(y))
    made = np.full(len(series), row)
    point = y[series, row]
    return Forecasts(series, horizon, made, row + horizon, point, point, y[series, row + horizon])


def history(y: Any, rows: Any = range(ROWS)) -> Forecasts:
    first, *others = (at(row, y) for row in rows)
    for more in others:
        first = first.joined(more)
    return first


def live(intervals: Horizons, y: Any, rows: Any = range(ROWS)) -> list[Any]:
    """Shown at each time, after the labels of that time were told."""
    shown = []
    for row in rows:
        intervals.update(np.arange(len(y)), np.full(len(y), row), y[:, row])
        shown.append(intervals.predict(at(row, y)))
    return shown


def test_live_intervals_are_those_of_a_replay_to_the_bit() -> None:
    y = walks()
    ends, trace = replayed(history(y), [0.8, 0.9])
    np.testing.assert_array_equal(np.concatenate(live(Horizons([0.8, 0.9]), y)), ends)
    assert np.isfinite(ends[-1]).all()
    assert set(trace.states) == {(series, h) for series in (0, 1) for h in (1, 2, 3)}


def test_a_label_says_nothing_about_forecasts_made_before_it_is_known() -> None:
    y = walks()
    before, _ = replayed(history(y), [0.9])
    turned = history(y)
    late = turned.due >= 60
    after, _ = replayed(turned._replace(y=np.where(late, turned.y + 100.0, turned.y)), [0.9])
    early = turned.made < 60
    np.testing.assert_array_equal(before[early], after[early])
    assert (before[~early] != after[~early]).any()


def test_horizons_far_ahead_are_wider_and_all_hold_their_coverage() -> None:
    past = history(walks(4))
    shown = Horizons([0.8]).fit(past)[:, :, 0]
    settled = past.made >= 30
    widths = [np.median(np.ptp(shown[settled & (past.horizon == h)], axis=1)) for h in (1, 2, 3)]
    assert widths == sorted(widths)
    inside = (shown[:, 0] <= past.y) & (past.y <= shown[:, 1])
    assert inside.mean() == pytest.approx(0.8, abs=0.05)


def test_a_fitted_past_goes_on_live() -> None:
    y = walks()
    intervals = Horizons([0.9])
    intervals.fit(history(y, range(80)))  # its last label is known at 82
    fitted = live(intervals, y, range(83, ROWS))
    alone = live(Horizons([0.9]), y, range(83, ROWS))
    assert np.isfinite(fitted[0]).all()
    assert np.isinf(alone[0]).all()
    assert intervals.certificate(1, 3).pending == 2


def test_asked_twice_the_last_answer_is_judged_and_nothing_else_changes() -> None:
    y = walks(1)
    once, twice = Horizons([0.9]), Horizons([0.9])
    for row in range(40):
        far = at(row, y)
        twice.predict(far._replace(lower=far.lower + 50.0, upper=far.upper + 50.0))
        for intervals in (once, twice):
            intervals.predict(far)
            intervals.update([0], [row + 1], y[:, row + 1])
    np.testing.assert_array_equal(once.predict(at(40, y)), twice.predict(at(40, y)))


def test_forecasts_that_are_not_finite_are_not_judged() -> None:
    y = walks(1)
    past = history(y)
    holes = past.made % 7 == 0
    missing = past._replace(
        lower=np.where(holes, np.nan, past.lower), upper=np.where(holes, np.nan, past.upper)
    )
    intervals = Horizons([0.9])
    shown = intervals.fit(missing)
    assert np.isinf(shown[holes]).all()
    assert intervals.certificate(0, 1).risks[0].judged == np.sum(~holes & (past.horizon == 1))
    now = at(ROWS, y)
    ends = intervals.predict(now._replace(lower=now.lower * [1, np.nan, 1]))
    assert np.isinf(ends).any(axis=(1, 2)).tolist() == [False, True, False]


def test_labels_that_never_come_are_given_up_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setpoint.models.horizons._MOST", 5)
    y = walks(1)
    intervals = Horizons([0.9])
    for row in range(20):
        intervals.predict(at(row, y))
        intervals.update([0], [-1], [0.0])  # of a time that nothing was shown for
    for horizon in (1, STEPS):  # so many labels of a stream may be late
        assert intervals.certificate(0, horizon).pending == 5 + horizon
        assert intervals.certificate(0, horizon).dropped == 15 - horizon


def test_many_series_and_far_horizons_lose_no_label(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setpoint.models.horizons._MOST", 2)
    y = walks(4)
    intervals = Horizons([0.9])
    for row in range(12):
        for series in range(4):  # a batch for each
            rows = at(row, y)
            intervals.predict(rows.taken(rows.series == series))
            intervals.update([series], [row], y[[series], row])
    for series in range(4):
        certificate = intervals.certificate(series, STEPS)
        assert (certificate.risks[0].judged, certificate.dropped) == (12 - STEPS, 0)


def test_forecasts_of_several_times_without_a_label_between_are_all_judged() -> None:
    y = walks(1)
    intervals = Horizons([0.9])
    intervals.predict(at(0, y))
    intervals.predict(at(1, y).taken([0]))  # one step; the time is that of an earlier two steps
    intervals.update(np.zeros(ROWS, int), np.arange(ROWS), y[0, :ROWS])
    certificates = [intervals.certificate(0, h) for h in (1, 2, 3)]
    assert [each.risks[0].judged for each in certificates] == [2, 1, 1]
    assert [each.pending for each in certificates] == [0, 0, 0]


def test_asked_again_after_other_labels_the_last_answer_is_judged() -> None:
    y = walks(1)
    once, twice = Horizons([0.9]), Horizons([0.9])
    now = at(0, y)
    twice.predict(now._replace(lower=now.lower + 50.0, upper=now.upper + 50.0))
    twice.update([1], [0], [0.0])  # of another series
    for intervals in (once, twice):
        intervals.predict(now)
        intervals.update(np.zeros(STEPS, int), np.arange(1, STEPS + 1), y[0, 1 : STEPS + 1])
        assert intervals.certificate(0, 1).risks[0].judged == 1
    np.testing.assert_array_equal(once.predict(at(3, y)), twice.predict(at(3, y)))
    assert twice.certificate(0, 1).dropped == 1


def test_a_label_that_is_missing_closes_its_forecasts() -> None:
    y = walks(1)
    intervals = Horizons([0.9])
    for row in range(10):
        intervals.predict(at(row, y))
        intervals.update([0], [row + 1], [np.nan])
    assert intervals.certificate(0, 1).risks[0].judged == 0
    assert intervals.certificate(0, 1).pending == 0


def test_higher_coverage_is_never_within_lower_coverage() -> None:
    shown = Horizons([0.5, 0.8, 0.9]).fit(history(walks()))
    assert (shown[:, 0, 1:] <= shown[:, 0, :-1]).all()
    assert (shown[:, 1, 1:] >= shown[:, 1, :-1]).all()


def test_levels_are_the_bands_of_one_live_stream() -> None:
    y = walks(1)
    past = history(y).taken(history(y).horizon == 1)
    ends = past._replace(lower=past.lower - 3.0, upper=past.upper + 3.0)
    intervals, stream = Horizons([0.5, 0.9]), sp.Stream(sp.intervals([0.5, 0.9]))
    shown = intervals.fit(ends)
    for wanted, low, high, label in zip(shown, ends.lower, ends.upper, past.y, strict=True):
        bands = stream.predict((low, high))
        assert [list(bands[level]) for level in (0.5, 0.9)] == wanted.T.tolist()
        stream.update(label)
    assert str(intervals.certificate(0, 1)) == str(stream.certificate())


def test_a_controller_shows_an_interval_for_each_coverage() -> None:
    with pytest.raises(InputError, match=r"each coverage of \[0.8, 0.9\].* shows 1"):
        Horizons([0.8, 0.9], lambda coverages: sp.intervals(max(coverages)))
    free = Horizons([0.5, 0.9], partial(sp.intervals, guarded=[0.9]))
    free.fit(history(walks(1)))
    assert [str(risk.status) for risk in free.certificate(0, 1).risks] == [
        "guaranteed: not too many misses",
        "measured, not guaranteed",
    ]


def test_steps_are_counted_by_time_and_not_by_rank() -> None:
    names = np.array(["a", "a", "b", "b"])
    made, due = np.array([0, 0, 10, 10]), np.array([2, 1, 12, 13])  # of b step 1 is missing
    assert steps_ahead(names, due, made).tolist() == [2, 1, 2, 3]
    assert steps_ahead(names, due).tolist() == [2, 1, 1, 2]
    months = clock(np.array(["2024-01-31", "2024-02-29", "2024-03-31"], "datetime64[D]"))
    assert steps_ahead(names[:2], months[1:], months[[0, 0]]).tolist() == [1, 2]
    with pytest.raises(InputError, match="two forecasts for the same time, row 0 and row 1"):
        steps_ahead(names[:2], np.array([3, 3]), np.array([1, 1]))
    with pytest.raises(InputError, match="row 0 of series 'a' is not after its cutoff"):
        steps_ahead(names[:1], np.array([3]), np.array([3]))


def test_one_series_of_many_is_answered_and_peeking_changes_nothing() -> None:
    count = 20_000
    names, zeros, ones = np.arange(count), np.zeros(count), np.ones(count, int)
    y = np.random.default_rng(0).normal(size=count)
    streams = Horizons()
    streams.fit(Forecasts(names, ones, zeros.astype(int), ones, zeros, zeros, y))

    def one(series: int) -> Forecasts:
        unknown = np.array([np.nan])
        at = np.array([series]), ones[:1], ones[:1], ones[:1] + 1
        return Forecasts(*at, zeros[:1], zeros[:1], unknown)

    first = streams.predict(one(3))
    for series in range(200):
        streams.predict(one(series))
    np.testing.assert_array_equal(streams.predict(one(3)), first)


def test_what_is_saved_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    y = walks()
    past = history(y, range(60))
    kept = Horizons([0.8, 0.9])
    kept.fit(past)
    kept.predict(at(60, y))
    kept.save(tmp_path / "streams")
    loaded = Horizons.load(tmp_path / "streams")
    for row in range(61, 80):
        for streams in (kept, loaded):
            streams.update([0, 1], [row, row], y[:, row])
        np.testing.assert_array_equal(kept.predict(at(row, y)), loaded.predict(at(row, y)))
    assert str(kept.certificate(1, 2)) == str(loaded.certificate(1, 2))
    with pytest.raises(StateError, match="no folder of saved intervals"):
        Horizons.load(tmp_path)


@pytest.mark.parametrize("coverages", [(), (0.9, 0.8), (0.9, 0.9), (90,)])
def test_coverages_must_rise_and_be_shares(coverages: Any) -> None:
    with pytest.raises(InputError, match="coverage"):
        Horizons(coverages)


def test_features_are_asked_for_by_the_controller_and_live_is_a_replay(tmp_path: Path) -> None:
    y = walks()
    own: Any = partial(sp.intervals, features=["storm"])
    past = history(y)
    storm = np.random.default_rng(1).integers(0, 2, len(past.y)).astype(float)
    rows = past._replace(known=storm[:, None])
    ends, _ = replayed(rows, [0.9], own)
    intervals = Horizons([0.9], own)
    for row in range(ROWS):
        intervals.update([0, 1], [row, row], y[:, row])
        now = rows.taken(rows.made == row)
        np.testing.assert_array_equal(intervals.predict(now), ends[rows.made == row])
        if row == 60:
            intervals.save(tmp_path / "state")
            intervals = Horizons.load(tmp_path / "state")
    assert intervals.features == ("storm",)
    for call in (intervals.predict, intervals.fit):
        with pytest.raises(InputError, match="forecasts need the features storm, and have none"):
            call(past)


@pytest.mark.parametrize("coverages", [[0.9], [0.5, 0.9]])
def test_paths_of_series_are_streams_of_paths(tmp_path: Path, coverages: list[float]) -> None:
    y, make = walks(), partial(sp.paths, STEPS, every=1)
    past = history(y, range(60))
    intervals = Horizons(coverages, make)
    shown = [intervals.fit(past.taken(np.random.default_rng(0).permutation(len(past.due))))]
    whole = make(coverages[0] if len(coverages) == 1 else coverages)
    streams = {name: sp.Stream(whole) for name in (0, 1)}
    for row in range(100):
        if row > 61:  # until then labels of the past come in
            intervals.update([0, 1], [row, row], y[:, row])
            now = at(row, y)
            shown.append(intervals.predict(now._replace(made=now.due)))  # no time is said
        if row == 80:
            intervals.save(tmp_path)
            intervals = Horizons.load(tmp_path)
        for name, stream in streams.items():
            for made in [int(id) for id in stream.pending]:
                stream.update(y[name, row], id=made, step=row - made)
            if row not in (60, 61):
                levels = stream.predict(np.full(STEPS, y[name, row]), id=row).levels
            if row > 61:
                own = shown[-1].reshape(2, STEPS, 2, -1)[name]
                for place, level in enumerate(levels):
                    np.testing.assert_array_equal(own[:, :, place].T, [level.lower, level.upper])
    for name, stream in streams.items():
        told = intervals.certificate(name, 1).risks[0].account
        assert told == pytest.approx(stream.certificate().risks[0].account)


def test_paths_are_whole_or_refused() -> None:
    intervals, y = Horizons([0.9], partial(sp.paths, STEPS)), walks()
    past = history(y, range(0, ROWS, STEPS))
    shown = intervals.fit(past._replace(lower=np.where(past.made == 3, np.nan, past.lower)))
    assert np.isinf(shown[past.made == 3]).all()
    assert np.isfinite(shown[past.made == 30]).all()
    now = at(ROWS, y)
    for part in (now.taken(now.horizon < STEPS), now._replace(horizon=now.horizon + 1)):
        with pytest.raises(InputError, match="forecasts 1 to 3 steps ahead"):
            intervals.predict(part)
    with pytest.raises(InputError, match="an interval for each coverage"):
        Horizons([0.5, 0.9], lambda _: sp.paths(STEPS))
