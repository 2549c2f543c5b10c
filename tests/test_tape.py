"""Tapes: what they take and refuse, what they share, and that every file gives back what it got."""

import copy
import gzip
import math
import os
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint.errors import InputError, LabelError, PredictionError, TapeError, UnknownReceipt
from setpoint.predictions import Quantiles, Spread
from setpoint.tape import Columns, Ragged, Recorder, Tape, TapeNotice

INF, NAN = math.inf, math.nan

reals = st.floats(allow_nan=False, width=64)
singles = st.floats(allow_nan=False, width=32)
labels = st.one_of(st.floats(allow_infinity=False), st.just(NAN))
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def same(left: Any, right: Any) -> bool:
    """Equal values, bit for bit where they are floats; NaN equals NaN."""
    if left is None or right is None:
        return left is right
    if isinstance(left, Ragged):
        return same(left.values, right.values) and same(left.offsets, right.offsets)
    if len(left) != len(right) or left.shape != right.shape:
        return False
    if left.dtype.kind == right.dtype.kind == "f":
        both = np.isnan(left) & np.isnan(right)
        equal = (left == right) & (np.signbit(left) == np.signbit(right))
        return bool((both | equal).all())
    return left.tolist() == right.tolist()


def assert_same(left: Tape, right: Tape) -> None:
    assert left.names == right.names
    assert list(left.extras) == list(right.extras)
    for one, other in zip(left.prediction, right.prediction, strict=True):
        assert same(one, other)
    for name in ("y", "series", "time", "group"):
        assert same(getattr(left, name), getattr(right, name)), name
    for name, held in left.extras.items():
        assert same(held, right.extras[name]), name


def simple(rows: int = 4, **options: Any) -> Tape:
    lower = np.arange(float(rows))
    return Tape.from_arrays({"lower": lower, "upper": lower + 2.0}, lower + 1.0, **options)


@st.composite
def tapes(draw: Any, ids: Any = None, groups: Any = None, extras: bool = True) -> Tape:
    """Tapes with every kind of column that fits in a table."""
    size = draw(st.integers(0, 12))

    def some(values: Any, dtype: Any = None) -> Any:
        held = draw(st.lists(values, min_size=size, max_size=size))
        return np.fromiter(held, object, size) if dtype is None else np.array(held, dtype)

    single = draw(st.booleans())
    lower = some(singles, np.float32) if single else some(reals, np.float64)
    kinds = [None, np.arange(size), np.sort(some(st.integers(-5, 5), np.float64))]
    kinds += [np.arange(size).astype(f"datetime64[{unit}]") for unit in ("D", "h", "s", "us", "ns")]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TapeNotice)
        return Tape.from_arrays(
            {"lower": lower, "upper, and more": some(reals, np.float64)},
            some(labels, np.float64),
            series=draw(st.sampled_from([None, np.arange(size) % 3])) if ids is None else some(ids),
            time=draw(st.sampled_from(kinds)) if ids is None else None,
            group=None if groups is None else some(groups),
            extras={
                "scale": some(st.floats(), np.float64),
                "count": some(st.integers(-(2**63), 2**63 - 1), np.int64),
                "flag": some(st.booleans(), np.bool_),
            }
            if extras
            else {},
        )


# What a tape is made of


@pytest.mark.parametrize(
    ("prediction", "names"),
    [
        ({"a": [1.0, 2.0], "b": [3.0, 4.0]}, ("a", "b")),
        (Quantiles(np.array([1.0, 2.0]), np.array([3.0, 4.0])), ("lower", "upper")),  # type: ignore[arg-type]
        (Spread([1.0, 2.0], [0.0, 1.0], [3.0, 4.0]), ("centre", "low", "high")),  # type: ignore[arg-type]
        (([1.0, 2.0], [3.0, 4.0]), ("lower", "upper")),
        (np.array([[1.0, 3.0], [2.0, 4.0]]), ("lower", "upper")),
        (np.array([1.0, 2.0]), ("point",)),
        (Ragged.from_rows([[1.0], [2.0, 3.0]]), ("point",)),
    ],
)
def test_a_prediction_brings_its_names_or_takes_the_usual_ones(
    prediction: Any, names: tuple[str, ...]
) -> None:
    tape = Tape.from_arrays(prediction, [0.0, 1.0])
    assert tape.names == names
    assert tape.prediction[0][0] == 1.0


def test_columns_are_shared_and_not_copied() -> None:
    lower, upper, y = np.zeros(8), np.ones(8, np.float32), np.full(8, 0.5)
    ids, time, more = np.repeat([1, 2], 4), np.arange(8), np.zeros((8, 3))
    tape = Tape.from_arrays(
        [lower, upper], y, series=ids, time=time, group=ids, extras={"more": more}
    )
    assert tape.prediction[0] is lower
    assert tape.prediction[1] is upper
    assert (tape.y is y, tape.series is ids, tape.time is time, tape.group is ids) == (True,) * 4
    assert tape.extras["more"] is more
    table = np.zeros((8, 2))
    for held in Tape.from_arrays(table, y).prediction:
        assert np.shares_memory(held, table)
    part = tape[2:6]
    assert np.shares_memory(part.prediction[1], upper)
    assert np.shares_memory(part.extras["more"], more)
    assert np.shares_memory(tape.stream(2).y, y)
    assert np.shares_memory(tape.between(3, 5).y, y)


def test_single_precision_stays_and_whole_numbers_become_floats() -> None:
    lower = np.zeros(2, np.float32)
    tape = Tape.from_arrays([lower, np.array([1, 2])], np.array([True, False]))
    assert [held.dtype for held in tape.prediction] == [np.float32, np.float64]
    assert tape.y.dtype == np.float64
    swapped = np.array([1.5, 2.5]).astype(">f4")
    assert Tape.from_arrays([swapped, lower], lower).prediction[0].dtype == np.float32


def test_missing_labels_of_every_make_are_not_observed() -> None:
    pandas = pytest.importorskip("pandas")
    for y in (
        [1.0, None],
        [1.0, NAN],
        np.ma.masked_array([1.0, 2.0], [False, True]),
        np.array([1.0, pandas.NA], object),
        pandas.Series([1, None], dtype="Int64"),
    ):
        tape = Tape.from_arrays([[0.0, 0.0], [1.0, 1.0]], y)
        assert tape.y[0] == 1.0
        assert np.isnan(tape.y[1])
        assert "1 missing" in repr(tape)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": [1.0, 2.0]}, "lower has 3, upper has 3, y has 2"),
        ({"series": [1, 2]}, "y has 3, series has 2"),
        ({"extras": {"scale": [1.0]}}, "y has 3, scale has 1"),
        ({"extras": {"scale": Ragged.from_rows([[1.0]])}}, "y has 3, scale has 1"),
        ({"y": [1.0, INF, 2.0]}, "y must be finite, or NaN where not observed, got inf at row 1"),
        ({"y": ["1", "2", "3"]}, "y must hold numbers, got '1' at row 0"),
        (
            {"y": np.zeros((3, 3))},
            "several labels must be 0 or 1 in 2 columns, one for each of lower",
        ),
        ({"y": np.zeros(3, "M8[s]")}, r"y must hold numbers, got values of type datetime64\[s\]"),
        ({"y": 3.0}, "y must hold one value a row, got 3.0"),
        (
            {"series": [1.0, 2.0, 3.0]},
            "series must hold whole numbers, strings or tuples of them, got float64",
        ),
        (
            {"series": ["a", None, "b"]},
            "series must hold whole numbers, strings or tuples of them, got None at row 1",
        ),
        (
            {"series": ["a", "a", NAN]},
            "series must hold whole numbers, strings or tuples of them, got nan at row 2",
        ),
        ({"series": [["a"], ["b"], ["c"]]}, "series must hold plain keys"),
        (
            {"series": np.zeros((3, 2), int)},
            r"series must have one value a row, got shape \(3, 2\)",
        ),
        ({"time": [1, 3, 2]}, "time must not go back within a stream: row 2 has 2, row 1 before"),
        ({"time": [1.0, NAN, 2.0]}, "time must be known in every row, got nan at row 1"),
        ({"time": [1, 2, "x"]}, "time must hold numbers, got 'x' at row 2"),
        ({"time": ["2012-01-01", "now", "x"]}, "ISO text such as .* got 'now' at row 1"),
        ({"time": ["2012-01-01", "2012-13-01", "x"]}, "got 'x' at row 2"),
        ({"time": ["2012-01-01", "2012-13-01", "2013-01-01"]}, "dates that exist"),
        ({"time": ["2012-01-01T00Z", "2012-01-02", "2012-01-03"]}, "in every row or in none"),
        ({"time": [True, False, True]}, "time must hold numbers or dates, got values of type bool"),
        ({"extras": {"series": [1, 2, 3]}}, "none of y, series, .*, group; got 'series'"),
        ({"extras": {"upper": [1, 2, 3]}}, "all different .* got 'upper'"),
        ({"extras": {"mean": np.float64(1.0)}}, r"mean must have one value a row, got shape \(\)"),
    ],
)
def test_what_is_wrong_with_a_column_is_said(change: dict[str, Any], message: str) -> None:
    options: dict[str, Any] = {"y": [1.0, 2.0, 3.0], **change}
    y = options.pop("y")
    with pytest.raises(TapeError, match=message):
        Tape.from_arrays({"lower": [0.0] * 3, "upper": [1.0] * 3}, y, **options)


@pytest.mark.parametrize(
    ("prediction", "message"),
    [
        (
            {"lower": [0.0, 0.0], "upper": [1.0, NAN]},
            "'upper' must be a number or ±inf, got nan at",
        ),
        ({"lower": [0.0, "a"], "upper": [1.0, 1.0]}, "'lower' must hold numbers, got 'a' at row 1"),
        ({"lower": np.array(["0", "1"])}, "'lower' must hold numbers, got '0' at row 0"),
        ({"lower": [0.0, None]}, "column 'lower' must be a number or ±inf, got nan at row 1"),
        ({"lower": [0.0, 1.0j]}, "column 'lower' must hold numbers, got 1j at row 1"),
        ({"scores": Ragged.from_rows([[], [1.0, NAN]])}, "'scores' must be .* got nan at row 1"),
        ({1: [0.0, 1.0]}, "names must be strings"),
        ({}, "names must name the 0 columns"),
        ([], "names must name the 0 columns"),
        (0.5, "a prediction must be columns with one row a step, got 0.5"),
        ([0.5, 0.6], "column 'lower' must hold one value a row, got 0.5"),
    ],
)
def test_what_is_wrong_with_a_prediction_is_said(prediction: Any, message: str) -> None:
    with pytest.raises(TapeError, match=message):
        Tape.from_arrays(prediction, [0.0, 1.0])


def test_unsorted_time_names_the_stream_the_rows_and_both_times() -> None:
    with pytest.raises(TapeError, match="row 3 of stream 'b' has 4, row 1 before it has 5"):
        simple(series=["a", "b", "a", "b"], time=[1, 5, 2, 4])
    moments = np.array(["2012-10-02T10", "2012-10-02T09"] * 2, "datetime64[h]")
    with pytest.raises(TapeError, match="row 1 of stream 7 has 2012-10-02T09, row 0 before it has"):
        simple(series=[7, 7, 8, 8], time=moments)
    assert simple(series=["a", "b", "a", "b"], time=[5, 1, 6, 2]).streams == ["a", "b"]
    assert simple(series=["a", "a", "b", "b"], time=[5, 6, 1, 2]).streams == ["a", "b"]


def test_repeated_times_keep_their_order_with_one_notice() -> None:
    with pytest.warns(TapeNotice, match="2 of 4 rows repeat the time of the row before") as caught:
        tape = simple(time=[1, 1, 1, 2])
    assert len(caught) == 1
    assert "test_tape" in caught[0].filename
    assert tape.y.tolist() == [1.0, 2.0, 3.0, 4.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        simple(time=[1, 1, 2, 2], series=["a", "b", "a", "b"])  # of different streams: fine
        assert len(tape[:2]) == 2  # said once, not at every slice


@pytest.mark.parametrize(
    "make",
    [
        lambda d: d,
        lambda d: d.tolist(),
        lambda d: np.array([str(each) for each in d]),
        lambda d: [str(each).replace("T", " ") for each in d],
        lambda d: [f"{each}Z" for each in d],
        lambda d: [f"{each + np.timedelta64(90, 'm')}+01:30" for each in d],
        lambda d: [f"{each - np.timedelta64(90, 'm')}-0130" for each in d],
        lambda d: [each.replace(tzinfo=UTC) for each in d.tolist()],
        lambda d: [
            (each + timedelta(hours=2)).replace(tzinfo=timezone(timedelta(hours=2)))
            for each in d.tolist()
        ],
    ],
)
def test_times_are_read_from_dates_and_iso_text(make: Callable[[Any], Any]) -> None:
    moments = np.array(["2012-10-02T09:00:00", "2012-10-02T10:30:00"], "datetime64[s]")
    tape = simple(2, time=make(moments))
    assert tape.time is not None
    assert tape.time.dtype.kind == "M"
    assert (tape.time == moments).all()


def test_an_empty_tape_and_a_single_row_are_fine() -> None:
    for rows in (0, 1):
        for options in ({}, {"series": ["a"][:rows], "time": [3][:rows], "group": ["g"][:rows]}):
            tape = simple(rows, **options)
            assert len(tape) == rows
            assert tape.streams == ([None] if not options else ["a"][:rows])
            assert tape.segments.order is None
            assert len(tape[:]) == rows


def test_a_tape_cannot_be_assigned_to_but_can_be_copied_and_pickled() -> None:
    tape = simple(4, series=["a", "b", "a", "b"], extras={"s": Ragged.from_rows([[1.0]] * 4)})
    with pytest.raises(AttributeError):
        tape.y = np.zeros(4)  # type: ignore[misc]
    assert_same(copy.deepcopy(tape), tape)
    assert_same(pickle.loads(pickle.dumps(tape)), tape)


# Streams


@given(st.lists(st.sampled_from([3, 1, 2, "a", "b", ""]), max_size=40), st.booleans())
def test_segments_gather_each_stream_in_its_order(ids: list[Any], sort: bool) -> None:
    if sort:
        ids = sorted(ids, key=str)
    tape = simple(len(ids), series=np.fromiter(ids, object, len(ids)))
    order, offsets = tape.segments
    assert tape.streams == list(dict.fromkeys(ids))
    assert offsets.dtype == np.int64
    assert len(offsets) == len(tape.streams) + 1
    assert (order is None) == (ids == [key for key in tape.streams for each in ids if each == key])
    rows = np.arange(len(ids)) if order is None else order
    assert sorted(rows.tolist()) == list(range(len(ids)))
    for number, stream in enumerate(tape.streams):
        own = [row for row, key in enumerate(ids) if key == stream and type(key) is type(stream)]
        assert rows[offsets[number] : offsets[number + 1]].tolist() == own
        assert tape.rows(stream).tolist() == own
        assert tape.stream(stream).y.tolist() == [row + 1.0 for row in own]
        assert tape.stream(stream).streams == [stream]


def test_more_streams_than_short_numbers_can_count_stay_apart() -> None:
    count = (1 << 16) + 5
    tape = simple(2 * count, series=np.tile(np.arange(count), 2))
    assert tape.rows(count - 1).tolist() == [count - 1, 2 * count - 1]
    assert len(tape.streams) == count


def test_one_stream_without_an_id_is_called_none() -> None:
    tape = simple(3)
    assert tape.streams == [None]
    assert tape.rows().tolist() == [0, 1, 2]
    assert_same(tape.stream(), tape)
    assert tape.segments.offsets.tolist() == [0, 3]


@given(tapes(), st.slices(12))
def test_a_slice_takes_the_same_rows_of_every_column(tape: Tape, rows: slice) -> None:
    if rows.step is not None and rows.step < 1:
        with pytest.raises(TapeError, match="a slice that goes forward"):
            tape[rows]
        return
    part = tape[rows]
    assert same(part.y, tape.y[rows])
    assert same(part.prediction[1], tape.prediction[1][rows])
    assert same(part.extras["count"], tape.extras["count"][rows])
    assert len(part) == len(part.y)


def test_between_takes_a_span_of_time_of_every_stream() -> None:
    tape = simple(6, series=list("ababab"), time=[1, 1, 2, 2, 3, 3])
    assert tape.between(2, 3).y.tolist() == [3.0, 4.0]
    assert tape.between(stop=2).y.tolist() == [1.0, 2.0]
    assert tape.between(4).y.tolist() == []
    apart = simple(4, series=list("aabb"), time=[1, 2, 1, 2])
    assert apart.between(2).y.tolist() == [2.0, 4.0]
    days = simple(3, time=np.array(["2016-01-01", "2016-01-02", "2016-01-03"], "datetime64[D]"))
    for start in ("2016-01-02", date(2016, 1, 2), datetime(2016, 1, 1, 12)):
        assert days.between(start).y.tolist() == [2.0, 3.0]
    with pytest.raises(TapeError, match=r"times are datetime64\[D\] in this tape, got 3"):
        days.between(3)
    with pytest.raises(TapeError, match="needs a tape with times"):
        simple().between(1)


# Ragged columns

rows_of_numbers = st.lists(st.lists(reals, max_size=4), max_size=8)


@given(rows_of_numbers, st.slices(8), st.data())
def test_a_ragged_column_behaves_as_a_list_of_rows(
    rows: list[list[float]], part: slice, data: st.DataObject
) -> None:
    ragged = Ragged.from_rows(rows)
    assert len(ragged) == len(rows)
    assert [row.tolist() for row in ragged] == rows
    assert ragged.lengths.tolist() == list(map(len, rows))
    assert [row.tolist() for row in ragged[part]] == rows[part]
    if rows:
        index = data.draw(st.integers(-len(rows), len(rows) - 1))
        assert ragged[index].tolist() == rows[index]
        taken = data.draw(hnp.arrays(np.int64, st.integers(0, 9), elements=st.just(index)))
        assert [row.tolist() for row in ragged[taken]] == [rows[index]] * len(taken)
    with pytest.raises(IndexError):
        ragged[len(rows)]


@pytest.mark.parametrize(
    ("values", "offsets", "message"),
    [
        ([1.0, 2.0], [0, 1], "offsets must go from 0 to 2 and never fall, got 0 to 1"),
        ([1.0, 2.0], [0, 2, 1, 2], "never fall"),
        ([1.0, 2.0], [1, 2], "got 1 to 2"),
        ([1.0, 2.0], [], "offsets must be whole numbers"),
        ([1.0, 2.0], [0.0, 2.0], "offsets must be whole numbers .* got float64"),
        (["a"], [0, 1], "values must be numbers in one dimension, got object"),
        (np.zeros((2, 2)), [0, 2], r"values must be numbers in one dimension, got float64 in \(2,"),
    ],
)
def test_a_ragged_column_that_does_not_fit_is_refused(
    values: Any, offsets: Any, message: str
) -> None:
    with pytest.raises(TapeError, match=message):
        Ragged(values, offsets)


def test_a_ragged_prediction_goes_with_its_rows() -> None:
    ragged = Ragged.from_rows([[1], [2, 3], [], [4, 5, 6]])
    tape = Tape.from_arrays(ragged, [NAN] * 4, series=["a", "b", "a", "b"], extras={"same": ragged})
    assert [row.tolist() for row in tape.stream("b").prediction[0]] == [[2.0, 3.0], [4.0, 5.0, 6.0]]
    assert [row.tolist() for row in tape[2:].extras["same"]] == [[], [4, 5, 6]]


# Frames


def frames() -> list[Any]:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    arrow = pytest.importorskip("pyarrow")
    table = {
        "low": [0.0, 1.0, 2.0],
        "high": [2.0, 3.0, 4.0],
        "actual": [1.0, None, 2.0],
        "station": ["n", "s", "n"],
        "when": [datetime(2012, 1, 1, hour) for hour in range(3)],
        "weekday": [1, 2, 3],
    }

    class Stream:
        def __init__(self, held: Any) -> None:
            self.held = held

        def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
            return self.held.__arrow_c_stream__(requested_schema)

    tables = arrow.table(table)
    words = tables.set_column(3, "station", tables["station"].dictionary_encode())
    return [
        table,
        pandas.DataFrame(table),
        pandas.DataFrame(table).astype({"station": "category", "actual": "Float64"}),
        pandas.DataFrame(table).assign(when=lambda f: f["when"].dt.tz_localize("UTC")),
        polars.DataFrame(table),
        polars.DataFrame(table).with_columns(polars.col("station").cast(polars.Categorical)),
        polars.DataFrame(table).with_columns(polars.col("when").dt.replace_time_zone("UTC")),
        tables,
        words,
        tables.to_batches()[0],
        Stream(tables),
    ]


def test_every_make_of_frame_gives_the_same_tape() -> None:
    for frame in frames():
        tape = Tape.from_frame(
            frame,
            Columns(
                "actual", "low", "high", series="station", time="when", group="weekday",
                extras=("weekday",),
            ),
        )  # fmt: skip
        assert tape.names == ("lower", "upper")
        assert tape.prediction[1].tolist() == [2.0, 3.0, 4.0]
        assert np.isnan(tape.y).tolist() == [False, True, False]
        assert tape.streams == ["n", "s"]
        assert tape.time is not None
        assert tape.time.dtype.kind == "M"
        assert tape.time[2] == np.datetime64("2012-01-01T02")
        assert tape.group is not None
        assert tape.group.tolist() == tape.extras["weekday"].tolist() == [1, 2, 3]


def test_a_missing_column_is_named_with_those_there_are() -> None:
    for frame in frames():
        with pytest.raises(TapeError, match="no column 'upper'; its columns are 'low', 'high', "):
            Tape.from_frame(frame, Columns("actual", "low", "upper"))


def test_what_is_no_frame_is_refused() -> None:
    for wrong in (3, None, "lower", [1, 2]):
        with pytest.raises(TapeError, match="a frame must be a data frame"):
            Tape.from_frame(wrong)
    polars = pytest.importorskip("polars")
    lazy = polars.LazyFrame({"lower": [1.0], "upper": [2.0], "y": [3.0]})
    with pytest.raises(TapeError, match="got a LazyFrame"):
        Tape.from_frame(lazy)


def test_a_column_that_is_there_twice_is_refused() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.zeros((2, 3)), columns=["lower", "y", "y"])
    with pytest.raises(TapeError, match="more than one column 'y'"):
        Tape.from_frame(frame, Columns(lower="lower"))


def test_a_frame_of_predictions_brings_its_names() -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for make in (pandas.DataFrame, polars.DataFrame):
        tape = Tape.from_arrays(make({"upper": [2.0], "lower": [1.0]}), [0.0])
        assert tape.names == ("upper", "lower")
        assert tape.prediction[0].tolist() == [2.0]


# Files


@given(tapes())
@pytest.mark.filterwarnings("ignore::setpoint.tape.TapeNotice")
def test_every_file_gives_back_the_tape_to_the_bit(
    tmp_path_factory: pytest.TempPathFactory, tape: Tape
) -> None:
    folder = tmp_path_factory.getbasetemp()
    for suffix in (".csv", ".csv.gz", ".parquet", ".npz"):
        path = folder / f"tape{suffix}"
        tape.write(path)
        got = Tape.read(path)
        assert_same(got, tape)
        if suffix in (".parquet", ".npz"):
            assert [c.dtype for c in got.prediction] == [c.dtype for c in tape.prediction]


@given(tapes(ids=texts, groups=texts, extras=False))
def test_text_comes_back_from_every_file(
    tmp_path_factory: pytest.TempPathFactory, tape: Tape
) -> None:
    folder = tmp_path_factory.getbasetemp()
    for suffix in (".csv", ".parquet", ".npz"):
        path = folder / f"text{suffix}"
        tape.write(path)
        got = Tape.read(path)
        assert got.series is not None
        assert tape.series is not None
        if (
            suffix == ".csv" and got.series.dtype == np.int64
        ):  # all of them written as whole numbers
            assert got.series.astype(str).tolist() == tape.series.tolist()
        else:
            assert got.series.tolist() == tape.series.tolist()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty: its first line must name the columns"),
        ("lower,upper,z\n", "no column 'y'; its columns are 'lower', 'upper', 'z'"),
        ("lower,upper,y,y\n1,2,3,4\n", "more than one column 'y'"),
        ("lower,upper,y\n1,2,3\n1,2\n", "line 3 has 2 cells and the header has 3"),
        ("lower,upper,y\n1,2,3\n1,two,3\n", "'upper' of .* holds 'two' in line 3"),
        ("lower,upper,y\n1,2,3\n1,,3\n", "'upper' must be a number or ±inf, got nan at row 1"),
        ("lower,upper,y\n1,2,3\n1,2,inf\n", "y must be finite, .* got inf at row 1"),
        ("date,lower,upper,y\n2012-01-01,1,2,3\n", "'date' of .* holds '2012-01-01'"),
        ("time,lower,upper,y\nsoon,1,2,3\n", "got 'soon' at row 0"),
        ("lower,upper,y\n1,2,\xff\n", "holds 'ÿ' in line 2"),
    ],
)
def test_what_is_wrong_with_a_csv_is_said(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "wrong.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(TapeError, match=message):
        Tape.read(path)


def test_blocks_of_a_file_give_the_sets_of_the_whole(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    point = random.normal(size=3_000)
    y, series = point + random.normal(size=3_000), np.tile(["a", "b", "c"], 1_000)
    tape = Tape.from_arrays({"point": point}, y, series=series)
    path = tmp_path / "tape.parquet"
    tape.write(path)
    whole, states, upper = sp.replay(sp.intervals(), tape), {}, []
    for block in Tape.blocks(path, rows=700):
        trace = sp.replay(sp.intervals(), block, states or None)
        states |= trace.states
        upper.append(trace.upper)
    assert list(map(len, upper)) == [700, 700, 700, 700, 200]
    assert np.array_equal(np.concatenate(upper), whole.upper)
    assert {id: state.position for id, state in states.items()} == {
        id: state.position for id, state in whole.states.items()
    }
    tape.late(2).write(path)
    with pytest.raises(TapeError, match="late labels cannot be cut into blocks"):
        next(Tape.blocks(path))
    with pytest.raises(TapeError, match=r"read in blocks ends in \.parquet"):
        next(Tape.blocks(tmp_path / "a.csv"))


def test_a_csv_of_another_origin_is_read_by_the_names_of_its_columns(tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_text(
        "\ufeffwhen,site,hi,lo,actual,note\n"
        '2012-10-02 09:00:00,007,2,1,,"a, b"\n\n'
        "2012-10-02 10:00:00,7,3.5,2,2.5,None\n",
        encoding="utf-8",
    )
    tape = Tape.read(
        path, Columns("actual", "lo", "hi", series="site", time="when", extras=("note",))
    )
    assert tape.names == ("lower", "upper")
    assert tape.streams == ["007", "7"]  # two sites, not one
    assert tape.time is not None
    assert tape.time.dtype == np.dtype("datetime64[us]")
    assert tape.extras["note"].tolist() == ["a, b", "None"]
    assert np.isnan(tape.y[0])


def test_an_npz_keeps_everything(tmp_path: Path) -> None:
    ragged = Ragged.from_rows([[0.1, 0.2], [], [NAN]])
    tape = Tape.from_arrays(
        {"scores": Ragged(ragged.values[:2], ragged.offsets.clip(0, 2)), "upper": [1.0, 2.0, INF]},
        np.array([1.0, NAN, 2.0], np.float32),
        series=["a", 7, "a\x00"],
        time=np.array(["2012-01", "2012-02", "2012-03"], "datetime64[M]"),
        group=[None, "g", True],
        extras={
            "all classes": np.arange(6.0).reshape(3, 2),
            "window": ragged,
            "name": np.array(["x", "y", "z"]),
            "/\0 odd": np.array([1 + 2j, 0, 1]),
        },
    )
    path = tmp_path / "tape.npz"
    tape.write(path)
    got = Tape.read(path)
    assert_same(got, tape)
    assert got.y.dtype == np.float32
    assert got.time is not None
    assert got.time.dtype == np.dtype("datetime64[M]")
    with np.load(path, allow_pickle=False) as arrays:
        assert same(arrays["y"], tape.y)
    with pytest.raises(TapeError, match="knows its own columns"):
        Tape.read(path, Columns())
    for suffix in (".csv", ".parquet"):
        with pytest.raises(TapeError, match="a table has one value a cell, column 'scores'"):
            tape.write(tmp_path / f"tape{suffix}")
    assert os.listdir(tmp_path) == ["tape.npz"]


def test_an_npz_of_another_origin_is_read_by_the_names_of_its_arrays(tmp_path: Path) -> None:
    path = tmp_path / "other.npz"
    np.savez(path, lower=[1.0], upper=[2.0], y=[1.5], more=np.zeros((1, 3)))
    assert list(Tape.read(path).extras) == ["more"]
    assert Tape.read(path, Columns(upper="upper")).names == ("upper",)
    with pytest.raises(TapeError, match="no column 'low'; its columns are 'lower', 'upper'"):
        Tape.read(path, Columns(lower="low"))
    np.savez(path, lower=np.array([None, 1.0]), y=[1.0, 2.0])  # would need pickle
    with pytest.raises(TapeError, match="damaged or not a tape: Object arrays cannot be loaded"):
        Tape.read(path, Columns(lower="lower"))


@pytest.mark.parametrize("suffix", [".csv.gz", ".parquet", ".npz"])
def test_a_damaged_file_is_called_damaged(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"tape{suffix}"
    simple(500).write(path)
    whole = path.read_bytes()
    damages = [b"", b"not a tape at all", whole[: len(whole) // 2]]
    if suffix == ".npz":
        damages.append(whole[:2000] + bytes([whole[2000] ^ 1]) + whole[2001:])
    for damage in damages:
        path.write_bytes(damage)
        with pytest.raises(TapeError, match=r"damaged or not a tape|is empty"):
            Tape.read(path)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        Tape.read(path)


def test_a_tape_of_a_later_version_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("setpoint.tape.files._VERSION", 2)
    simple().write(tmp_path / "tape.npz")
    monkeypatch.undo()
    with pytest.raises(TapeError, match=r"of version 2; this setpoint reads .* of version 1"):
        Tape.read(tmp_path / "tape.npz")


def test_another_suffix_is_refused_with_those_allowed(tmp_path: Path) -> None:
    for act in (simple().write, Tape.read):
        with pytest.raises(
            TapeError, match=r"ends in .csv, .csv.gz, .parquet, .npz; got '.*\.txt'"
        ):
            act(tmp_path / "tape.txt")


def test_objects_that_no_file_can_hold_are_refused_when_written(tmp_path: Path) -> None:
    tape = simple(2, group=[("a", 1), ("b", 2)])
    for suffix in (".csv", ".parquet", ".npz"):
        with pytest.raises(TapeError, match=r"'group' must hold text or numbers .* got \('a', 1\)"):
            tape.write(tmp_path / f"tape{suffix}")
    for suffix in (".csv", ".parquet"):
        with pytest.raises(TapeError, match="column 'z' holds complex128, which a table cannot"):
            simple(2, extras={"z": np.zeros(2, complex)}).write(tmp_path / f"tape{suffix}")
    with pytest.raises(TapeError, match="a table cannot hold column 'group'"):
        simple(2, group=["\ud800", "a"]).write(tmp_path / "tape.csv")
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_files_of_rows_without_pyarrow_name_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    path = tmp_path / f"tape{suffix}"
    path.write_text("lower,upper,y\n1,2,3\n")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    for act in (simple().write, Tape.read):
        with pytest.raises(
            TapeError, match=r"need pyarrow and pandas: pip install 'setpoint\[data\]'"
        ):
            act(path)


def test_no_data_library_is_imported_with_the_module() -> None:
    code = (
        "import sys, setpoint.tape as t\n"
        "t.Tape.from_arrays([[1.0], [2.0]], [1.5])\n"
        "print([m for m in ('pandas', 'polars', 'pyarrow', 'numba') if m in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


# The order of rows


@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abc")), min_size=1, max_size=20))
@pytest.mark.filterwarnings("ignore::setpoint.tape.TapeNotice")
def test_a_tape_remembers_the_order_of_its_rows(rows: list[tuple[int, str]]) -> None:
    numbers = np.arange(len(rows), dtype=float)
    time, id = np.array([t for t, _ in rows]), [name for _, name in rows]
    places = np.argsort(time, kind="stable")
    y, keys = numbers[places], {"series": np.array(id)[places], "time": time[places]}
    tape = Tape.from_arrays([y, y], y, **keys, places=places)
    assert tape.by_row(tape.by_stream(tape.y)).tolist() == tape.y.tolist()
    early, late = tape.split(1)
    assert sorted(early.streams) == sorted(set(id))
    assert len(early) == len(set(id))
    for part in (early, late):
        assert part.places is not None
        assert part.y.tolist() == numbers[part.places].tolist()


# Recorded


@given(st.lists(st.tuples(reals, reals, labels, st.sampled_from("ab")), max_size=20))
def test_a_recorder_gives_the_tape_of_its_rows(rows: list[Any]) -> None:
    recorder = Recorder()
    for number, (lower, upper, y, id) in enumerate(rows):
        recorder.add(Quantiles(lower, upper), y, series=id, time=number)
        assert len(recorder) == number + 1
    tape = recorder.tape()
    assert tape.names == ("lower", "upper")
    columns = [np.array([row[i] for row in rows], np.float64) for i in range(3)]
    keys = {"series": [row[3] for row in rows], "time": np.arange(len(rows))} if rows else {}
    assert_same(tape, Tape.from_arrays(columns[:2], columns[2], **keys))


def test_a_recorder_refuses_a_bad_row_and_stays_as_it_was() -> None:
    recorder = Recorder()
    recorder.add((1.0, 2.0), 1.5, series="a", time=3)
    for wrong, error, message in [
        (lambda: recorder.add((1.0, NAN), 1.5, series="a", time=4), PredictionError, "not be NaN"),
        (lambda: recorder.add((1.0, "2"), 1.5, series="a", time=4), PredictionError, "got '2'"),
        (lambda: recorder.add((1.0, 2.0), INF, series="a", time=4), LabelError, "finite, or NaN"),
        (lambda: recorder.add((1.0, 2.0, 3.0), 1.5, series="a", time=4), TapeError, "got 3 and"),
        (
            lambda: recorder.add((1.0, 2.0), 1.5, series="a"),
            TapeError,
            r"\['series', 'time'\]; got 2 and",
        ),
        (lambda: recorder.add((1.0, 2.0), 1.5, series=1.5, time=4), TapeError, "a string or a tup"),
        (
            lambda: recorder.add((1.0, 2.0), 1.5, series="a", time=2),
            TapeError,
            "go back .* 2 after 3",
        ),
    ]:
        with pytest.raises(error, match=message):
            wrong()
    recorder.add((1.0, 2.0), 1.5, series="b", time=2)
    assert recorder.tape().streams == ["a", "b"]
    with pytest.raises(TapeError, match="names must name the 4 numbers"):
        Recorder().add((1.0, 2.0, 3.0, 4.0), 1.0)
    with pytest.raises(TapeError, match="names must name the 2 numbers"):
        Recorder(("p",)).add((1.0, 2.0), 1.0)


def test_a_recorder_takes_labels_when_they_come() -> None:
    recorder = Recorder()
    for step in range(4):
        recorder.predicted(step, (0.0, step), series="a", time=step)
    recorder.predicted(0, (0.0, 9.0), series="b", time=0)
    recorder.add((0.0, 10.0), 3.0, series="b", time=1)
    before = recorder.tape()
    recorder.observed(2, 0.5, series="a")
    recorder.observed(0, 0.1, series="a")
    recorder.observed(0, 7.0, series="b")
    recorder.observed(1, None, series="a")
    tape = recorder.tape()
    assert np.array_equal(tape.y, [0.1, NAN, 0.5, NAN, 7.0, 3.0], equal_nan=True)
    assert tape.prediction[1].tolist() == [0.0, 1.0, 2.0, 3.0, 9.0, 10.0]
    assert np.isnan(before.y).tolist() == [True] * 5 + [False]
    with pytest.raises(TapeError, match="already waits for its label under 3"):
        recorder.predicted(3, (0.0, 1.0), series="a", time=9)
    for receipt, id in ((2, "a"), (7, "a"), (3, "b")):
        with pytest.raises(UnknownReceipt, match="no prediction waits"):
            recorder.observed(receipt, 0.5, series=id)
    with pytest.raises(LabelError, match="finite"):
        recorder.observed(3, INF, series="a")
    recorder.observed(3, 0.25, series="a")
    assert recorder.tape().y[3] == 0.25
    assert len(recorder) == 6


# Real data


def test_real_traffic_has_thousands_of_repeated_times(shared_data: Path, tmp_path: Path) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    source = shared_data / "traffic" / "Metro_Interstate_Traffic_Volume.csv.gz"
    with gzip.open(source, "rt") as lines:
        frame = pandas.read_csv(lines, keep_default_na=False)
    before = frame["traffic_volume"].shift(1, fill_value=0)
    frame = frame.assign(lower=before - 500.0, upper=before + 500.0)
    parts = Columns(
        "traffic_volume", time="date_time", group="weather_main", extras=("temp", "holiday")
    )
    with pytest.warns(TapeNotice, match=r"7,629 of 48,204 rows repeat the time"):
        tape = Tape.from_frame(frame, parts)
    assert tape.prediction[0][1:].tolist() == (tape.y[:-1] - 500.0).tolist()
    with pytest.warns(TapeNotice):
        assert_same(Tape.from_frame(polars.from_pandas(frame), parts), tape)
    for suffix in (".csv.gz", ".parquet", ".npz"):
        path = tmp_path / f"traffic{suffix}"
        tape.write(path)
        with pytest.warns(TapeNotice):
            assert_same(Tape.read(path), tape)
    year = tape.between("2016-01-01", "2017-01-01")
    assert year.time is not None
    assert {str(moment)[:4] for moment in year.time} == {"2016"}
    with pytest.warns(TapeNotice):  # the source itself, its target as a point forecast
        raw = Tape.read(
            source, Columns("temp", point="traffic_volume", time="date_time", extras=("holiday",))
        )
    assert same(raw.prediction[0], tape.y)
    assert raw.extras["holiday"].tolist() == frame["holiday"].tolist()


# When labels become known


def late(**timing: Any) -> Tape:
    return Tape.from_arrays(
        {"lower": [0.0] * 4, "upper": [1.0] * 4}, [0.1, 0.2, NAN, 0.4], **timing
    )


def test_a_schedule_says_in_which_order_labels_come_and_how_many_before_each_row() -> None:
    assert late().schedule is late(delay=0).schedule is late(delay=[0] * 4).schedule is None
    steady = late(delay=2).schedule
    assert steady is not None
    assert (steady.delays.tolist(), len(steady.order), steady.slots) == ([2], 0, 4)
    assert late(delay=100).schedule.slots == 4  # no more than there are rows
    mixed = late(delay=[3, 0, 1, 0]).schedule
    assert mixed.order.tolist() == [1, 0, 2, 3]
    assert mixed.upto.tolist() == [0, 0, 1, 1]
    assert [mixed.due(0, np.array([0, 4]), t) for t in range(5)] == [0, 0, 1, 1, 4]


def test_times_say_when_labels_became_known() -> None:
    days = np.array(["2024-01-01", "2024-01-03", "2024-01-04", "2024-01-08"], "datetime64[D]")
    known = ["2024-01-04", "2024-01-03", None, "2025-01-01"]
    tape = late(time=days, known=known)
    # The label of row 1 is known at once, before row 2; that of row 0 at the very time of row 2.
    assert tape.schedule.order.tolist() == [1, 0, 3, 2]
    assert tape.schedule.upto.tolist() == [0, 0, 2, 2]
    rows = late(known=[2, 2, 3, NAN])
    assert rows.time.tolist() == [0, 1, 2, 3]
    assert rows.schedule.upto.tolist() == [0, 0, 2, 3]
    part = rows[1:]
    assert part.schedule.upto.tolist() == [0, 1, 2]


def test_every_horizon_is_a_stream_of_its_own() -> None:
    tape = late(horizon=[1, 3, 1, 3])
    assert tape.streams == [1, 3]
    assert tape.schedule.delays.tolist() == [0, 2]
    named = late(horizon=[1, 3, 1, 3], series=["n", "n", "n", "s"])
    assert named.streams == [("n", 1), ("n", 3), ("s", 3)]
    assert named.stream(("n", 1)).horizon.tolist() == [1, 1]
    assert late(horizon=[1, 3, 1, 3], delay=0).schedule is None
    assert late(horizon=[1, 3, 1, 3], known=[1, 2, 3, 4]).delay == 0


def test_another_delay_takes_the_place_of_what_a_tape_says() -> None:
    assert late(known=[4, 4, 4, 4]).late(1).schedule.delays.tolist() == [1]
    assert late(horizon=[5, 5, 5, 5]).late(0).schedule is None


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
@pytest.mark.parametrize(
    "timing",
    [
        {"delay": 3},
        {"delay": [3, 0, 1, 0]},
        {"known": [2.0, 2.0, NAN, 9.0]},
        {"horizon": [1, 3, 1, 3], "series": ["n", "n", "n", "s"]},
        {
            "time": np.array(["2024-01-01", "2024-01-03", "2024-01-04", "2024-01-08"], "M8[D]"),
            "known": np.array(["2024-01-04", "2024-01-03", "NaT", "2025-01-01"], "M8[D]"),
        },
    ],
)
def test_a_file_keeps_when_labels_became_known(
    tmp_path: Path, timing: dict[str, Any], suffix: str
) -> None:
    tape = late(**timing)
    tape.write(tmp_path / f"tape{suffix}")
    back = Tape.read(tmp_path / f"tape{suffix}")
    assert back.streams == tape.streams
    for left, right in zip(tape.schedule, back.schedule, strict=True):
        assert np.array_equal(left, right)


def test_frames_and_files_name_the_columns_of_times(tmp_path: Path) -> None:
    frame = {"lower": [0.0, 0.0], "upper": [1.0, 1.0], "y": [0.5, 0.5], "h": [2, 2], "k": [1, 3]}
    assert Tape.from_frame(frame, Columns(horizon="h")).schedule.delays.tolist() == [1]
    assert Tape.from_frame(frame, Columns(known="k")).schedule.upto.tolist() == [0, 1]
    assert Tape.from_frame(frame, Columns(delay="h")).schedule.delays.tolist() == [2]
    assert Tape.from_frame(frame, Columns(delay=5)).delay == 5
    (tmp_path / "rows.csv").write_text("lower,upper,y,h\n0,1,.5,2\n0,1,.5,2\n")
    read = Tape.read(tmp_path / "rows.csv", Columns(lower="lower", upper="upper", horizon="h"))
    assert read.schedule.delays.tolist() == [1]
    (tmp_path / "plain.csv").write_text("lower,upper,y\n0,1,.5\n")
    assert (
        Tape.read(tmp_path / "plain.csv", Columns(lower="lower", upper="upper", delay=4)).delay == 4
    )


@pytest.mark.parametrize(
    ("timing", "words"),
    [
        ({"delay": -1}, "delay must be a whole number of at least 0"),
        ({"delay": 1.5}, "delay must be"),
        ({"delay": [0, 0, -1, 0]}, "delay must hold whole numbers from 0, got -1 at row 2"),
        ({"delay": [0, 0]}, "columns must be of equal length"),
        ({"horizon": [1, 0, 1, 1]}, "horizon must hold whole numbers from 1, got 0 at row 1"),
        ({"horizon": [1, NAN, 1, 1]}, "horizon must hold whole numbers from 1, got nan at row 1"),
        (
            {"known": [1, 0, 9, 9]},
            "known before its set is made: known is 0 and time is 1 at row 1",
        ),
        ({"known": ["2024-01-01"] * 4}, "known must be in units of time"),
        ({"known": [9] * 4, "delay": 2}, "a delay or times at which labels became known, not both"),
    ],
)
def test_wrong_times_are_refused_in_words(timing: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        late(**timing)


def test_a_recorder_keeps_how_late_labels_were() -> None:
    recorder = Recorder()
    for name in ("a", "b"):
        recorder.predicted(1, (0.0, 1.0), series=name)
        recorder.predicted(2, (0.0, 1.0), series=name)
    recorder.observed(2, 0.5, series="a")
    recorder.observed(1, 0.5, series="a")
    recorder.add((0.0, 1.0), 0.5, series="b")
    tape = recorder.tape()
    assert np.floor(tape.delay).tolist() == [1.0, 0.0, 2.0, 1.0, 0.0]
    assert tape.delay[0] - 1.0 > tape.delay[1]  # the label of row 1 came first
    assert Recorder().tape().delay == 0
