"""What a running stream looks like: numbers by hand, in a terminal and in a notebook."""

import json
import sys
import threading
from math import inf
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint._recent import Recent
from setpoint.metrics import Use
from setpoint.sets import Interval, Threshold


def run(stream: sp.Stream, outcomes: str) -> list[float]:
    """Answers predictions of width 4: "h" inside the set, "m" above it; the widths shown."""
    widths = []
    for outcome in outcomes:
        shown = stream.predict((10.0, 14.0))
        widths.append(shown.width)
        stream.update(shown.upper + 1.0 if outcome == "m" else shown.lower)
    return widths


def test_a_summary_counts_what_came_out_and_what_is_left_of_the_budget() -> None:
    stream = sp.Stream(sp.intervals(coverage=0.8))
    widths = run(stream, "mhhh")
    stream.predict((10.0, 14.0))
    now = stream.summary()
    assert (now.labels, now.pending, now.coverage, now.recent) == (4, 1, 0.75, 4)
    assert now.recent_coverage == 0.75 == stream.coverage
    assert now.width == pytest.approx(np.mean(widths))
    assert now.as_dict()["account"] == pytest.approx(1.0 - 4 * 0.2)
    assert now.as_dict()["bound"] == 10.8
    assert json.loads(json.dumps(now.as_dict()))["asked"] == 0.8
    lines = str(now).splitlines()
    assert lines[:3] == [
        "labels      4 seen, 1 awaited",
        "coverage    75.0 %, 75.0 % of the last 4; asked 80 %",
        "budget      +0.2 misses above what you allow; never more than +10.8: says nothing yet",
    ]
    assert lines[3] == f"mean width  {np.mean(widths):.4g} over the last 4"
    assert repr(now) == str(now)


def test_full_sets_have_no_width_and_are_counted() -> None:
    stream = sp.Stream(sp.intervals())
    for point, y in ((1.0, 2.0), (1.0, 3.0)):  # nothing is known before the first label
        shown = stream.predict(point)
        stream.update(y)
    now = stream.summary()
    assert (now.full, now.width) == (0.5, shown.width)
    assert "50.0 % of them full" in str(now)


def test_label_sets_have_a_size_and_other_losses_a_mean() -> None:
    stream = sp.Stream(sp.label_sets(coverage=0.9))
    for label in (0, 1):
        shown = stream.predict([0.7, 0.2, 0.1])
        stream.update(label)
    assert stream.summary().width == pytest.approx((3 + shown.size) / 2)
    loss = sp.losses.Custom(lambda shown, y: 0.5 if y > 3.0 else 0.0)
    stream = sp.Stream(sp.intervals(risk=sp.Risk(loss, 0.1)))
    for y in (2.0, 4.0):
        stream.predict((1.0, 2.0))
        stream.update(y)
    assert stream.coverage is None
    assert "mean loss   0.25, 0.25 of the last 2; asked 0.1" in str(stream.summary())


def test_a_summary_is_a_table_in_a_notebook_and_escapes_names() -> None:
    stream = sp.Stream(sp.intervals(coverage=0.9))
    for y in (12.0, 30.0):
        stream.predict((10.0, 14.0), groups=("<b>north</b>",))
        stream.update(y)
    html = stream.summary()._repr_html_()
    assert html.startswith("<table>")
    assert "&lt;b&gt;north&lt;/b&gt;: at most 10.9 misses above 10 %" in html
    assert "<b>" not in html


def test_a_summary_names_the_group_that_is_nearest_to_its_limit() -> None:
    stream = sp.Stream(sp.intervals(coverage=0.9))
    for name, y in (("a", 12.0), ("b", 30.0), ("b", 12.0), ("c", 12.0)):
        stream.predict((10.0, 14.0), groups=(name,))
        stream.update(y)
    now = stream.summary()
    assert now.as_dict()["groups"] == 3
    line = "b: at most 10.9 misses above 10 %, which says nothing yet of 2 labels, now +0.8"
    assert now.as_dict()["worst_group"] == line
    assert f"worst group {line}" in str(now)


def test_labels_that_are_refused_leave_the_summary_as_it_was() -> None:
    def loss(shown: sp.sets.Interval, y: float) -> float:
        return 2.0 if y > 100.0 else 0.0  # beyond its range

    stream = sp.Stream(sp.intervals(risk=sp.Risk(sp.losses.Custom(loss), 0.1)))
    run(stream, "h")
    before = stream.summary().as_dict()
    for id in "ab":
        stream.predict((1.0, 2.0), id=id)
    with pytest.raises(sp.errors.LossError):
        stream.update_many({"a": 1.5, "b": 200.0})
    assert stream.summary().as_dict() == before | {"pending": 2, "bound": 14 + 2 * 0.9}


def test_images_are_not_kept_for_it() -> None:
    risk = sp.Risk(sp.losses.ImageMiscoverage(), 0.1, sp.steps.Fixed(0.1), bounds=(-5, 5))
    stream = sp.Stream(sp.Controller(sp.sets.PixelScale(), risk))
    frame = np.zeros((4, 4))
    stream.predict((frame, frame + 1.0, frame + 1.0))
    stream.update(frame + 3.0)
    now = stream.summary()
    assert (now.width, now.recent, now.recent_risks) == (None, 1, (1.0,))


def test_a_loaded_stream_begins_to_look_back_anew(tmp_path: object) -> None:
    stream = sp.Stream(sp.intervals())
    run(stream, "hhm")
    stream.save(f"{tmp_path}/state.zip")
    now = sp.Stream.load(f"{tmp_path}/state.zip").summary()
    assert (now.labels, now.recent) == (3, 0)
    assert str(now).splitlines()[1] == "coverage    66.7 %; asked 90 %"


def test_a_shared_stream_is_summed_up_while_others_use_it() -> None:
    stream = sp.Stream(sp.intervals(), shared=True)
    seen = []
    reader = threading.Thread(target=lambda: [seen.append(stream.summary()) for _ in range(50)])
    reader.start()
    run(stream, "h" * 500)
    reader.join()
    assert all(now.recent <= max(now.labels, 250) for now in seen)
    assert len(seen) == 50


def test_what_was_learnt_is_told_once_there_is_a_label() -> None:
    stream = sp.Stream(sp.intervals(period=2))
    assert "learnt" not in str(stream.summary())
    for row in range(40):  # the forecast is 3 too low, and 1 more in every other row
        stream.predict((10.0, 14.0))
        stream.update(15.0 + row % 2)
    learnt = stream.summary().learnt
    assert learnt["labels"] == 40
    assert learnt["bias"] == pytest.approx(3.5, abs=0.6)
    text = str(stream.summary())
    assert f"actual values lie {learnt['bias']:+.4g} from the forecast" in text
    assert "the season has 2 rows" in text
    assert "season" not in str(run_and_sum_up(sp.Stream(sp.intervals())))


def run_and_sum_up(stream: sp.Stream) -> object:
    run(stream, "hhh")
    return stream.summary()


def test_a_summary_says_whether_the_last_intervals_were_of_use() -> None:
    rng = np.random.default_rng(0)
    stream = sp.Stream(sp.intervals(coverage=0.9))
    assert stream.summary().usefulness is None
    for y in np.cumsum(rng.normal(size=400)).tolist():
        stream.predict(0.0)
        stream.update(y)
    verdict = stream.summary().usefulness
    assert verdict is not None
    assert verdict.use.value in str(stream.summary())
    assert stream.summary().as_dict()["usefulness"]["rows"] == verdict.rows > 100
    assert verdict.use in (Use.USEFUL, Use.POOR)
    assert sp.Stream(sp.label_sets()).summary().usefulness is None


FIXED = sp.Controller(
    sp.sets.Widen(), sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.05), bounds=(-9.0, 9.0))
)


@pytest.mark.parametrize("controller", [sp.intervals(), FIXED])
@pytest.mark.parametrize("delay", [0, 24])
def test_a_live_verdict_is_that_of_a_replay(controller: sp.Controller, delay: int) -> None:
    rng = np.random.default_rng(3)
    rows = np.arange(250)
    middle = 5.0 * np.sin(rows / 4.0)
    y = middle + rng.normal(size=len(rows))
    tape = sp.Tape.from_arrays({"lower": middle - 1.0, "upper": middle + 1.0}, y, delay=delay)
    trace = sp.replay(controller, tape)
    stream = sp.Stream(controller)
    for row in rows:
        stream.predict((middle[row] - 1.0, middle[row] + 1.0), int(row))
        if row >= delay:
            stream.update(y[row - delay], int(row - delay))
    for row in rows[len(rows) - delay :]:
        stream.update(y[row], int(row))
    live, replayed = stream.summary().usefulness, trace.usefulness()
    assert live is not None
    assert replayed is not None
    assert live.as_dict() == replayed.as_dict()
    assert live.use in (Use.USEFUL, Use.EVEN)


@pytest.mark.parametrize(("classes", "most"), [(0, 20_000), (1000, 20_000)])
def test_a_stream_keeps_numbers_of_its_last_labels_and_no_sets(classes: int, most: int) -> None:
    recent = Recent(1)
    shown: Any = Interval(0.0, 1.0)
    if classes:
        shown = Threshold().at(Threshold().read([1.0 / classes] * classes), inf)
    for row in range(2_000):
        recent.add(shown, (0.0,), row % 7 if classes else 0.5, 0.25, row)
    held = recent.copy()
    assert sum(sys.getsizeof(part) for part in (held._numbers, held._labels)) < most
    assert len(recent) == len(list(recent)) == 250
    assert [label.y for label in recent][-1] == (1_999 % 7 if classes else 0.5)
    assert recent.table()[-1, 5] == 1_999.0
