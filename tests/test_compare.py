"""Rules side by side on one tape, against numbers worked out here."""

import numpy as np
import pytest

import setpoint as sp


def tape(rows: int = 1200, **options: object) -> sp.Tape:
    rng = np.random.default_rng(3)
    y = rng.normal(size=rows) * np.where(np.arange(rows) < rows // 2, 1.0, 3.0)
    return sp.Tape.from_arrays(np.tile([-1.6, 1.6], (rows, 1)), y, **options)


def test_every_rule_is_judged_on_the_same_rows_after_the_warm_up() -> None:
    stream = tape()
    found = sp.compare(stream, {"ours": sp.intervals()}, skip=300)
    y = stream.y[300:]
    given = found.summaries["given"]
    assert {summary.steps for summary in found.summaries.values()} == {900}
    assert given.coverage == np.mean(np.abs(y) <= 1.6)
    assert given.winkler == pytest.approx(3.2 + 20 * np.mean(np.maximum(np.abs(y) - 1.6, 0.0)))
    trace = sp.replay(sp.intervals(), stream)
    assert found.summaries["ours"].coverage == trace.covered[300:].mean()


def test_a_rule_with_unlimited_intervals_has_a_score() -> None:
    early = sp.compare(tape(), {"ACI": sp.published.aci()}, skip=0).summaries["ACI"]
    assert early.full > 0.0
    assert np.isfinite(early.winkler)


def test_rows_without_an_actual_value_and_series_that_mix_are_left_where_they_belong() -> None:
    y = np.array([0.0, np.nan, 9.0, 0.0, 0.0, 9.0])
    ends = np.tile([-1.0, 1.0], (6, 1))
    mixed = sp.Tape.from_arrays(ends, y, series=["a", "b", "a", "b", "a", "b"])
    given = sp.compare(mixed, {"ours": sp.intervals()}, skip=1).summaries["given"]
    assert (given.steps, given.coverage) == (4, 0.5)


def test_published_rules_run_by_default_and_the_table_is_sorted_by_score() -> None:
    found = sp.compare(tape())
    assert set(sp.published.RULES) | {"setpoint", "given"} == set(found.summaries)
    frame = found.to_frame()
    assert frame["Winkler"].is_monotonic_increasing
    assert list(frame.index) == [line.split("  ")[0] for line in str(found).splitlines()[1:]]
    assert len(found.plot().data) == 2
    assert found._repr_html_().count("\n") == len(found.summaries)


def test_what_cannot_be_compared_is_refused_by_name() -> None:
    with pytest.raises(sp.errors.InputError, match=r"skip=2000.*1200 rows"):
        sp.compare(tape(), skip=2000)
    short = sp.replay(sp.intervals(), tape(700))
    with pytest.raises(sp.errors.InputError, match="'short' must show an interval for each row"):
        sp.compare(tape(), {"short": short})
