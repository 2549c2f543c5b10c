"""The numbers of a report beside slow loops, and its files."""

import json
import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import Tape, Trace, replay, report
from setpoint.errors import InputError
from setpoint.guarantee import Status


def mean(values: list[float]) -> float:
    return math.fsum(values) / len(values)


def seen(trace: Trace, rows: list[int]) -> list[int]:
    return [row for row in rows if not math.isnan(trace.tape.y[row])]


def missed(trace: Trace, row: int) -> bool:
    y = trace.tape.y[row]
    return not trace.lower[row] <= y <= trace.upper[row]


def runs(misses: list[bool]) -> list[int]:
    return [len(run) for run in "".join("m" if m else " " for m in misses).split()]


def test_the_headline_is_what_a_loop_counts(single: Trace) -> None:
    found = report.metrics(single)
    rows = seen(single, list(range(3_000)))
    misses = [missed(single, row) for row in rows]
    assert found["level"] == 0.1
    assert found["risk"] == pytest.approx(mean(misses), abs=1e-12)
    assert found["coverage"] == pytest.approx(1.0 - mean(misses), abs=1e-12)
    assert (found["rows"], found["streams"], found["missing"]) == (3_000, 1, 3_000 - len(rows))
    assert found["longest_streak"] == max(runs(misses))
    assert found["msl"] == pytest.approx(mean(runs(misses)))
    assert found["verdict"] == "guaranteed on both sides"
    # (M + γ(l_max − r) − θ_1)/(γT) above the level, (θ_1 − m + γr)/(γT) below
    gamma, size = 0.05, len(rows)
    assert found["bound_upper"] == pytest.approx(0.1 + (10.0 + gamma * 0.9) / (gamma * size))
    assert found["bound_lower"] == pytest.approx(0.1 - (10.0 + gamma * 0.1) / (gamma * size))


def test_the_worst_windows_do_not_overlap_and_lead_with_the_worst(single: Trace) -> None:
    (own,) = report.metrics(single, window=100)["risks"]
    rows = seen(single, list(range(3_000)))
    losses = [float(missed(single, row)) for row in rows]
    every = [mean(losses[i : i + 100]) - 0.1 for i in range(len(losses) - 99)]
    worst = max(range(len(every)), key=lambda i: abs(every[i]))
    first = own["windows"][0]
    assert own["worst_window"] == pytest.approx(abs(every[worst]))
    assert first["risk"] - 0.1 == pytest.approx(every[worst])
    assert (first["start"], first["stop"]) == (rows[worst], rows[worst + 99])
    assert first["first_time"] == str(single.tape.time[rows[worst]])[:16]
    spans = sorted((each["start"], each["stop"]) for each in own["windows"])
    assert len(spans) == 5
    assert all(a[1] < b[0] for a, b in pairwise(spans))


def test_weekdays_are_grouped_by_a_loop_over_dates(single: Trace) -> None:
    found = report.metrics(single)["groups"]["weekday"]
    hits: dict[str, list[bool]] = {}
    for row in seen(single, list(range(3_000))):
        day = single.tape.time[row].astype("datetime64[s]").item().strftime("%A")
        hits.setdefault(day, []).append(not missed(single, row))
    assert [each["key"] for each in found["rows"]][:2] == ["Monday", "Tuesday"]
    for each in found["rows"]:
        assert each["coverage"] == pytest.approx(mean(hits[each["key"]]))
        assert each["risk"] == pytest.approx(1.0 - mean(hits[each["key"]]))
        assert each["labels"] == len(hits[each["key"]])


def test_streams_come_worst_first_and_their_bounds_add_up(several: Trace) -> None:
    found = report.metrics(several)
    risks = {}
    for id in ("north", "</script><b>", "south & west"):
        rows = seen(several, np.flatnonzero(several.tape.series == id).tolist())
        risks[id] = mean([float(missed(several, row)) for row in rows])
    order = [each["id"] for each in found["worst_streams"]]
    assert order == sorted(risks, key=lambda id: -risks[id])
    for each in found["worst_streams"]:
        assert each["risk"] == pytest.approx(risks[each["id"]])
    labels = len(seen(several, list(range(1_800))))
    assert found["bound_upper"] == pytest.approx(0.1 + 3 * (10.0 + 0.05 * 0.9) / 0.05 / labels)
    assert found["certificate"] is None
    rows = {each["key"]: each["labels"] for each in found["groups"]["group"]["rows"]}
    assert list(rows) == [0, 1, 2]
    assert sum(rows.values()) == labels


def test_several_streams_have_the_weakest_status_and_a_verdict_that_counts() -> None:
    rows = [2_000, 30]  # the guarantee of the short stream says nothing yet
    y = np.random.default_rng(3).normal(size=sum(rows))
    ends = {"lower": np.full(len(y), -1.0), "upper": np.full(len(y), 1.0)}
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.05), bounds=(-10, 10))
    controller = sp.Controller(sp.sets.Widen(), risk)
    numbers = report.metrics(
        replay(controller, Tape.from_arrays(ends, y, series=np.repeat(["long", "short"], rows)))
    )
    assert numbers["status"] == Status.SAYS_NOTHING_YET
    assert numbers["verdict"] == (
        "says nothing yet for 1 of 2 series; guaranteed on both sides for 1 of 2 series"
    )
    assert {each["id"]: each["status"] for each in numbers["worst_streams"]} == {
        "long": Status.HOLDS, "short": Status.SAYS_NOTHING_YET
    }  # fmt: skip


def test_a_longest_streak_never_spans_two_streams() -> None:
    y = [0.5, 9.0, 9.0, 0.5]  # one stream ends in a miss, the next begins with one
    tape = Tape.from_arrays(
        {"lower": [0.0] * 4, "upper": [1.0] * 4}, y, series=["a", "a", "b", "b"]
    )
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.01), bounds=(-1, 1))
    trace = replay(sp.Controller(sp.sets.Widen(), risk), tape)
    assert report.metrics(trace)["longest_streak"] == 1
    joined = Tape.from_arrays({"lower": [0.0] * 4, "upper": [1.0] * 4}, y)
    assert report.metrics(replay(trace.controller, joined))["longest_streak"] == 2


def test_label_sets_are_told_by_their_sizes(labelled: Trace) -> None:
    found = report.metrics(labelled)
    sizes = [len(each) for each in labelled.shown or ()]
    assert found["sets"] == "sets"
    assert found["mean_length"] == pytest.approx(mean([float(size) for size in sizes]))
    assert list(found["groups"]) == ["size"]
    assert sizes.count(4) > labelled.full.sum()  # the safeguard did not choose all of them
    assert found["full"] == pytest.approx(sizes.count(4) / len(sizes))
    caption = report.intervals(labelled).layout.meta["caption"]
    assert f"Of the 500 sets, {sizes.count(4)} are full and {sizes.count(0)} are empty" in caption


def test_a_trace_that_goes_on_counts_the_earlier_labels(single: Trace) -> None:
    first, rest = single.tape[:2_000], single.tape[2_000:]
    earlier = replay(single.controller, first)
    found = report.metrics(replay(single.controller, rest, earlier.state))
    whole = report.metrics(single)
    (own,) = found["risks"]
    assert own["earlier_labels"] == int(earlier.observed.sum())
    assert own["certified_risk"] == pytest.approx(whole["risk"])
    assert found["bound_upper"] == pytest.approx(whole["bound_upper"])
    assert found["risk"] != pytest.approx(whole["risk"])


def finite(value: Any) -> bool:
    if isinstance(value, dict):
        return all(map(finite, value.values()))
    if isinstance(value, list):
        return all(map(finite, value))
    return value is None or isinstance(value, str) or math.isfinite(value)


@pytest.mark.parametrize("name", ["single", "several", "labelled"])
def test_numbers_come_back_from_json(name: str, request: pytest.FixtureRequest) -> None:
    found = report.metrics(request.getfixturevalue(name))
    assert finite(found)
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_a_trace_without_labels_or_rows() -> None:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.01), bounds=(-1, 1))
    controller = sp.Controller(sp.sets.Widen(), risk)
    blind = Tape.from_arrays({"lower": [0.0] * 3, "upper": [1.0] * 3}, [math.nan] * 3)
    found = report.metrics(replay(controller, blind))
    assert (found["risk"], found["bound_upper"], found["missing"]) == (None, None, 3)
    with pytest.raises(InputError, match="a report needs rows, the trace has none"):
        report.metrics(replay(controller, blind[:0]))
    with pytest.raises(InputError, match="window must be a whole number"):
        report.metrics(replay(controller, blind), window=0)
