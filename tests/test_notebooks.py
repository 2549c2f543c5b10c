"""What people guess in a notebook: many predictions at once, frames in, figures and tables out."""

from copy import deepcopy
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import jobs, report
from setpoint.errors import AnsweredReceipt, DataError, InputError, PendingFull, PredictionError

ROWS = 300


def drawn(seed: int = 0) -> tuple[list[tuple[float, float]], list[float]]:
    rng = np.random.default_rng(seed)
    y = rng.standard_normal(ROWS)
    return [(-1.0 + 0.1 * x, 1.0) for x in y.tolist()], y.tolist()


# Predictions in columns


def test_many_predictions_may_be_the_rows_of_a_frame() -> None:
    pandas = pytest.importorskip("pandas")
    predictions, labels = drawn()
    lower, upper = map(list, zip(*predictions, strict=True))
    frame = pandas.DataFrame({"lower": lower, "upper": upper})
    wanted = sp.Stream(sp.intervals()).predict_many(predictions)
    assert sp.Stream(sp.intervals()).predict_many(frame) == wanted
    assert sp.Stream(sp.intervals()).predict_many({"lower": lower, "upper": upper}) == wanted
    points = sp.Stream(sp.intervals()).predict_many(frame[["lower"]])
    assert points == sp.Stream(sp.intervals()).predict_many(lower)
    open_risk = sp.Controller(sp.sets.Widen(), sp.Risk(sp.losses.Miscoverage(), 0.1))
    ready = sp.burn_in(open_risk, predictions, labels)
    assert sp.burn_in(open_risk, frame, labels) == ready
    assert sp.burn_in(open_risk, (np.array(lower), np.array(upper)), labels) == ready
    with pytest.raises(InputError, match="got 2 predictions and 300 labels"):
        sp.burn_in(open_risk, (np.array(lower), np.array(upper[1:])), labels)


def test_a_fleet_takes_plain_numbers_as_point_forecasts() -> None:
    listed, array = (sp.Fleet(sp.intervals(), ["a", "b"]) for _ in range(2))
    for point in ([1.0, 2.0], [1.5, 2.5], [1.0, 3.0]):
        shown, wanted = listed.predict(point), array.predict(np.array(point))
        assert np.array_equal(shown.upper, wanted.upper)
        listed.update([1.0, 2.5])
        array.update([1.0, 2.5])


def test_a_stream_gives_its_last_labels_as_a_frame() -> None:
    pytest.importorskip("pandas")
    stream = sp.Stream(sp.intervals())
    assert len(stream.to_frame()) == 0
    for prediction, y in zip(*drawn(), strict=True):
        stream.predict(prediction)
        stream.update(y)
    frame = stream.to_frame()
    assert frame["y"].tolist() == drawn()[1][-250:]
    outside = (frame["y"] < frame["lower"]) | (frame["y"] > frame["upper"])
    assert (outside == (frame["loss"] == 1.0)).all()
    assert outside.any()
    labels = sp.Stream(sp.label_sets())
    labels.predict({"a": 0.9, "b": 0.1})
    labels.update("a")
    (row,) = labels.to_frame().to_dict("records")
    assert (row["y"], row["loss"], row["size"], row["full"]) == ("a", 0.0, 2.0, True)


# predict_many


@pytest.mark.parametrize("controller", [sp.intervals(), sp.intervals(period=4), sp.published.aci()])
def test_many_predictions_are_as_single_ones(controller: sp.Controller) -> None:
    predictions, labels = drawn()
    many, single = sp.Stream(controller), sp.Stream(controller)
    for start in range(0, ROWS, 10):
        ids = [(start, hour) for hour in range(10)]
        rows = slice(start, start + 10)
        shown = many.predict_many(predictions[rows], ids)
        assert shown == [
            single.predict(p, id) for p, id in zip(predictions[rows], ids, strict=True)
        ]
        pairs = list(zip(ids, labels[rows], strict=True))
        assert many.update_many(pairs) == {id: single.update(y, id) for id, y in pairs}
    before, after = single.content(), many.content()
    assert before["risks"] == after["risks"]
    assert before["counts"] == after["counts"]


def test_many_predictions_without_ids_wait_under_numbers() -> None:
    stream = sp.Stream(sp.intervals())
    assert len(stream.predict_many([(0.0, 1.0)] * 3)) == 3
    assert list(stream.pending) == [0, 1, 2]
    assert stream.predict_many([]) == []


@pytest.mark.parametrize("overflow", ["refuse", "expire"])
def test_many_predictions_are_all_taken_or_none(overflow: str) -> None:
    stream = sp.Stream(sp.intervals(period=3), max_pending=4, overflow=overflow)
    stream.predict_many([(0.0, 1.0)] * 3, ["a", "b", "c"])
    stream.update(9.0, "a")
    before = deepcopy(stream.content())
    with pytest.raises((PredictionError, PendingFull)):
        stream.predict_many([(0.0, 1.0), (0.0, 1.0), (0.0, 1.0), "odd"])
    with pytest.raises(InputError, match="already waits under the id 'c'"):
        stream.predict_many([(0.0, 1.0), (0.0, 1.0)], ["d", "c"])
    with pytest.raises(InputError, match="got 1 predictions and 2 ids"):
        stream.predict_many([(0.0, 1.0)], ["d", "e"])
    np.testing.assert_equal(stream.content(), before)
    with pytest.raises(AnsweredReceipt):
        stream.update(0.0, "a")


# Frames


def test_a_frame_is_calibrated_as_its_file_is(tmp_path: Any) -> None:
    pandas = pytest.importorskip("pandas")
    predictions, labels = drawn()
    frame = pandas.DataFrame(predictions, columns=["low", "high"]).assign(y=labels)
    frame.to_parquet(tmp_path / "rows.parquet")
    columns = sp.Columns("y", lower="low", upper="high")
    of_frame = jobs.calibrate(frame, columns)
    of_file = jobs.calibrate(tmp_path / "rows.parquet", columns)
    np.testing.assert_array_equal(of_frame.trace.upper, of_file.trace.upper)
    assert of_frame.job.repeat is None
    assert of_frame.metrics()["job"].get("file") is None
    with pytest.raises(InputError, match="needs a folder"):
        of_frame.write()
    files = of_frame.write(tmp_path / "out", report=False)
    assert "rows.parquet" in files


def test_a_job_gives_the_rows_back_with_their_sets(tmp_path: Any) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    predictions, labels = drawn()
    lower, upper = map(list, zip(*predictions, strict=True))
    frame = pandas.DataFrame({"low": lower, "high": upper, "y": labels, "name": "a"})
    columns = sp.Columns("y", "low", "high")
    outcome = jobs.calibrate(frame, columns)
    back = outcome.to_frame()
    assert back[list(frame.columns)].equals(frame)
    assert np.array_equal(back["lower"], outcome.trace.lower)
    frame.to_csv(tmp_path / "a.csv", index=False)
    pandas.testing.assert_frame_equal(jobs.calibrate(tmp_path / "a.csv", columns).to_frame(), back)


def test_horizons_of_a_frame_are_named_in_a_replay_and_in_what_it_gives_back() -> None:
    pandas = pytest.importorskip("pandas")
    predictions, labels = drawn()
    lower, upper = map(list, zip(*predictions, strict=True))
    frame = pandas.DataFrame({"lower": lower, "upper": upper, "y": labels, "ahead": [1, 3] * 150})
    trace = sp.replay(sp.intervals(), frame, columns=sp.Columns(horizon="ahead"))
    tape = sp.Tape.from_frame(frame, sp.Columns(horizon="ahead"))
    assert np.array_equal(trace.lower, sp.replay(sp.intervals(), tape).lower)
    assert trace.to_frame()["horizon"].tolist() == [1, 3] * 150
    with pytest.raises(InputError, match="a tape has its own"):
        sp.replay(sp.intervals(), tape, columns=sp.Columns())


def test_the_index_of_a_frame_is_its_time() -> None:
    pandas = pytest.importorskip("pandas")
    predictions, labels = drawn()
    hours = pandas.date_range("2026-01-01", periods=ROWS, freq="h")
    frame = pandas.DataFrame({"p": [low for low, _ in predictions], "y": labels}, index=hours)
    backward = jobs.calibrate(frame[::-1], sp.Columns("y", point="p"))
    forward = jobs.calibrate(frame, sp.Columns("y", point="p"))
    assert backward.job.columns is not None
    assert backward.job.columns.time == "index"
    np.testing.assert_array_equal(backward.trace.upper, forward.trace.upper)


def test_a_frame_is_forecast(tmp_path: Any) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"y": drawn()[1]})
    assert len(sp.forecast(frame, "y", model="last").past_frame()) == ROWS - 1


@pytest.mark.parametrize("odd", [3, None, [1, 2]])
def test_what_is_no_frame_is_refused(odd: Any) -> None:
    with pytest.raises(DataError, match="a file or a data frame, got"):
        jobs.calibrate(odd, sp.Columns("y", point="p"))


# Figures and tables


def replayed() -> sp.Trace:
    predictions, labels = drawn()
    lower, upper = map(np.array, zip(*predictions, strict=True))
    tape = sp.Tape.from_arrays({"lower": lower, "upper": upper}, labels)
    return sp.replay(sp.intervals(), tape)


def test_a_trace_and_a_stream_draw_themselves() -> None:
    pytest.importorskip("plotly")
    trace = replayed()
    names = {part.name for part in trace.plot().data}
    assert {"90 % interval", "miss"} <= names
    stream = sp.Stream(sp.intervals())
    with pytest.raises(InputError, match="needs labels"):
        stream.plot()
    for prediction, y in zip(*drawn(), strict=True):
        stream.predict(prediction)
        stream.update(y)
    parts = {part.name: part for part in stream.plot().data}
    assert np.allclose(parts["actual value"].y, drawn()[1][-250:])
    misses = sum(label.loss for label in stream.recent)
    assert len(parts["miss"].y) == misses > 0
    said = stream.certificate().summary()
    assert said == (
        f"Miscoverage: {100 * stream.coverage:.1f} % of the actual values inside; asked 90 % "
        "(300 labels); guaranteed: not too many misses"
    )
    with pytest.raises(InputError, match="a plot is of"):
        report.plot(3)  # type: ignore[arg-type]


def test_a_stream_of_labels_draws_the_sizes_of_its_sets() -> None:
    pytest.importorskip("plotly")
    stream = sp.Stream(sp.label_sets(0.5))
    for place in range(40):
        stream.predict({"a": 0.6, "b": 0.3, "c": 0.1})
        stream.update("c" if place % 4 == 3 else "a")
    parts = {part.name: part for part in stream.plot().data}
    assert parts["size"].y.tolist() == [label.size for label in stream.recent]
    assert len(parts["miss"].y) == sum(label.loss for label in stream.recent)


def test_notebooks_show_tables_and_escape_what_is_in_them() -> None:
    trace = replayed()
    stream = sp.Stream(sp.label_sets())
    labels = stream.predict({"<b>": 0.9, "c": 0.1})
    assert "&lt;b&gt;" in labels._repr_html_()
    assert "<td" in sp.sets.Interval(1.0, 3.0)._repr_html_()
    assert f"{100 * trace.coverage:.2f} %" in trace._repr_html_()
    assert "mean_length" in trace.summary()._repr_html_()
    assert trace.certificate()._repr_html_().startswith("<pre>certificate")
    assert stream._repr_html_() == stream.summary()._repr_html_()
