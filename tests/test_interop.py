"""Intervals as arrays and frames: shapes, exact column names, and what is refused."""

import subprocess
import sys
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from river import conf

import setpoint as sp
from setpoint.errors import InputError
from setpoint.interop import to_array, to_frame, to_mapie, to_mask
from setpoint.sets import Interval

PAIRS = [(1.0, 3.0), (0.0, 2.5)]
WIDE = [(-1.0, 5.0), (-2.0, 4.0)]


def trace(**options: Any) -> Any:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5))
    tape = sp.Tape.from_arrays(([0.0, 1.0, 2.0], [1.0, 2.0, 3.0]), [5.0, 1.5, 2.5], **options)
    return sp.replay(sp.Controller(sp.sets.Widen(), risk), tape)


def classes_trace() -> Any:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5))
    tape = sp.Tape.from_arrays(([0.5], [0.5]), [1.0], names=["p0", "p1"])
    return sp.replay(sp.Controller(sp.sets.Threshold(), risk), tape)


def nested_trace(**options: Any) -> Any:
    """Two nested sets on four rows; labels far off move the outer λ further than the inner."""
    risks = [
        sp.Risk(sp.losses.Miscoverage(), level, sp.steps.Fixed(1.0), bounds=(-9.0, 9.0))
        for level in (0.2, 0.05)
    ]
    controller = sp.Controller(sp.sets.Nested(sp.sets.Widen()), risks)
    columns = ([0.0, 1.0, 2.0, 3.0], [1.0, 2.0, 3.0, 4.0])
    return sp.replay(controller, sp.Tape.from_arrays(columns, [9.0, 9.0, 2.5, -5.0], **options))


def nested_sets() -> list[Any]:
    """The same as a live stream shows them."""
    ends = nested_trace().levels
    pairs = [
        list(map(Interval, *columns)) for columns in zip(ends.lower.T, ends.upper.T, strict=True)
    ]
    return [sp.sets.Levels(tuple(parts)) for parts in pairs]


def nested_labels_trace() -> Any:
    risks = [sp.Risk(sp.losses.Miscoverage(), level, sp.steps.Fixed(0.5)) for level in (0.2, 0.05)]
    tape = sp.Tape.from_arrays(([0.6, 0.9], [0.3, 0.08], [0.1, 0.02]), [2.0, 0.0], names="pqr")
    return sp.replay(sp.Controller(sp.sets.Nested(sp.sets.Threshold()), risks), tape)


@pytest.mark.parametrize(
    "given",
    [
        PAIRS,
        tuple(PAIRS),
        np.array(PAIRS),
        np.array(PAIRS)[:, :, None],
        [Interval(*each) for each in PAIRS],
        [conf.Interval(*each) for each in PAIRS],
        (Interval(*each) for each in PAIRS),
        pd.DataFrame(PAIRS),
        pd.DataFrame(PAIRS, columns=["lower", "upper"]).assign(point=0.0),
        pl.DataFrame(PAIRS, schema=["lower", "upper"], orient="row"),
        [sp.sets.TwoSided().at((0.0, 2.0), (-1.0, 1.0)), sp.sets.TwoSided().at((0.0, 2.5), (0, 0))],
    ],
    ids=[
        "list",
        "tuple",
        "array",
        "mapie",
        "setpoint",
        "river",
        "generator",
        "pandas",
        "named",
        "polars",
        "sides",
    ],
)
def test_intervals_of_every_kind_become_one_array(given: Any) -> None:
    found = to_array(given)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, PAIRS)


def test_empty_and_full_intervals_keep_their_ends() -> None:
    found = to_array([Interval(3.0, 1.0), Interval(-np.inf, np.inf)])
    np.testing.assert_array_equal(found, [[np.inf, -np.inf], [-np.inf, np.inf]])
    assert to_array([]).shape == (0, 2)


def test_several_levels_are_slices_in_the_layout_of_mapie() -> None:
    found = to_mapie({0.8: PAIRS, 0.95: WIDE})
    assert found.shape == (2, 2, 2)
    np.testing.assert_array_equal(found[:, 0, 0], [1.0, 0.0])  # lower ends at 0.8
    np.testing.assert_array_equal(found[:, 1, 1], [5.0, 4.0])  # upper ends at 0.95
    assert to_mapie(PAIRS).shape == (2, 2, 1)


def test_label_sets_become_masks_in_the_order_of_classes() -> None:
    family = sp.sets.Threshold()
    first = family.at(family.read({"a": 0.6, "b": 0.3, "c": 0.1}), -0.2)
    second = family.at(family.read({"c": 0.9, "a": 0.1, "b": 0.0}), -0.2)
    wanted = np.array([[True, True, False], [False, False, True]])
    np.testing.assert_array_equal(to_mask([first, second]), wanted)
    np.testing.assert_array_equal(to_mask([first, second], ["c", "a", "b"]), wanted[:, [2, 0, 1]])
    assert to_mask([], ["a"]).shape == (0, 1)
    sets = to_mapie({0.8: [first, second], 0.95: wanted})
    assert sets.shape == (2, 3, 2)
    assert sets.dtype == np.bool_


def test_nested_intervals_are_the_slices_of_one_array() -> None:
    shown = nested_trace()
    wanted = np.stack([end.T for end in shown.levels], axis=1)
    assert (wanted[:, 0, 1] < wanted[:, 0, 0]).any()  # the outer set is larger somewhere
    for given in (shown, nested_sets(), tuple(nested_sets()), wanted):
        found = to_mapie(given)
        assert found.shape == (4, 2, 2)
        np.testing.assert_array_equal(found, wanted)


def test_nested_label_sets_are_the_slices_of_one_array() -> None:
    shown = nested_labels_trace()
    assert shown.shown is not None
    wanted = np.stack([[each[0].mask for each in shown.shown],
                       [each[1].mask for each in shown.shown]], axis=-1)  # fmt: skip
    for given in (shown, shown.shown, wanted):
        found = to_mapie(given)
        assert found.dtype == np.bool_
        np.testing.assert_array_equal(found, wanted)


def test_nested_intervals_are_a_frame_of_several_levels() -> None:
    shown = nested_trace(series=list("aabb"), time=[1, 2, 1, 2])
    frame = to_frame(shown, "nixtla", name="m")  # its levels and rows are known
    assert list(frame.columns) == ["unique_id", "ds", "m-lo-95", "m-lo-80", "m-hi-80", "m-hi-95"]
    np.testing.assert_array_equal(frame["m-lo-95"], shown.levels.lower[1])
    np.testing.assert_array_equal(frame["m-hi-80"], shown.levels.upper[0])
    plain = to_frame(nested_sets(), coverage=(0.5, 0.9))
    assert list(plain.columns) == ["lower_50", "upper_50", "lower_90", "upper_90"]
    pd.testing.assert_frame_equal(
        to_frame(to_mapie(shown), "sktime", coverage=(0.8, 0.95)), to_frame(shown, "sktime")
    )


def test_a_trace_of_label_sets_becomes_masks() -> None:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.2, sp.steps.Fixed(0.1))
    tape = sp.Tape.from_arrays(([0.6, 0.07], [0.3, 0.8], [0.1, 0.13]), [2.0, 0.0], names="pqr")
    shown = sp.replay(sp.Controller(sp.sets.Threshold(), risk), tape)
    # p ≥ 0.2; the label 2 was missed, so the threshold falls by 0.1 · (1 − 0.2), to 0.12.
    wanted = [[True, True, False], [False, True, True]]
    np.testing.assert_array_equal(to_mask(shown), wanted)
    np.testing.assert_array_equal(to_mapie(shown)[:, :, 0], wanted)


def test_the_columns_of_nixtla() -> None:
    frame = to_frame(
        {0.8: PAIRS, 0.95: WIDE},
        "nixtla",
        point=[2.0, 1.0],
        name="LGBM",
        ids=["a", "a"],
        times=pd.date_range("2024-01-01", periods=2),
    )
    assert list(frame.columns) == [
        "unique_id", "ds", "LGBM", "LGBM-lo-95", "LGBM-lo-80", "LGBM-hi-80", "LGBM-hi-95",
    ]  # fmt: skip
    assert frame["LGBM-lo-95"].tolist() == [-1.0, -2.0]
    assert frame["LGBM-hi-80"].tolist() == [3.0, 2.5]
    assert frame["ds"].dtype.kind == "M"
    narrow = to_frame(PAIRS, "nixtla", coverage=0.975)
    assert list(narrow.columns) == ["setpoint-lo-97.5", "setpoint-hi-97.5"]
    assert "setpoint-lo-55" in to_frame(PAIRS, "nixtla", coverage=0.55)


def test_a_trace_brings_its_ids_and_times() -> None:
    shown = trace(series=["n", "n", "s"], time=[1, 2, 1])
    frame = to_frame(shown, "nixtla", coverage=0.9, name="m")
    assert list(frame.columns) == ["unique_id", "ds", "m-lo-90", "m-hi-90"]
    assert frame["unique_id"].tolist() == ["n", "n", "s"]
    np.testing.assert_array_equal(frame["m-lo-90"], shown.lower)
    np.testing.assert_array_equal(to_array(shown)[:, 1], shown.upper)


def test_the_columns_of_sktime() -> None:
    index = pd.period_range("2024-01", periods=2, freq="M")
    frame = to_frame({0.95: WIDE, 0.8: PAIRS}, "sktime", name="sales", index=index)
    assert frame.columns.to_list() == [
        ("sales", 0.8, "lower"), ("sales", 0.8, "upper"),
        ("sales", 0.95, "lower"), ("sales", 0.95, "upper"),
    ]  # fmt: skip
    assert frame.columns.nlevels == 3
    assert frame["sales"][0.95]["upper"].tolist() == [5.0, 4.0]
    assert frame.index.equals(index)
    assert to_frame(PAIRS, "sktime", coverage=0.9).columns.to_list()[0][0] == 0


def test_the_columns_of_skforecast_and_plain_ones() -> None:
    frame = to_frame(PAIRS, "skforecast", point=[2.0, 1.0], index=[10, 11])
    assert list(frame.columns) == ["pred", "lower_bound", "upper_bound"]
    assert frame.loc[11].tolist() == [1.0, 0.0, 2.5]
    assert list(to_frame(PAIRS).columns) == ["lower", "upper"]
    assert list(to_frame(PAIRS, point=[2.0, 1.0]).columns) == ["point", "lower", "upper"]
    several = to_frame({0.9: PAIRS, 0.99: WIDE})
    assert list(several.columns) == ["lower_90", "upper_90", "lower_99", "upper_99"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: to_array(Interval(0.0, 1.0)), r"the shape \(n, 2\)"),
        (lambda: to_array("ab"), "intervals must be numbers"),
        (lambda: to_array(classes_trace()), "this one shows other sets"),
        (lambda: to_array([1.0, 2.0]), r"the shape \(n, 2\) .* got \(2,\)"),
        (lambda: to_mapie({}), "at least one"),
        (lambda: to_mapie({0.8: PAIRS, 0.9: PAIRS[:1]}), "equal shapes"),
        (lambda: to_frame(nested_sets()), "2 levels of the style 'plain' are named by coverage"),
        (lambda: to_frame(nested_trace(), coverage=0.9), "2 levels that differ"),
        (lambda: to_frame(nested_trace(), coverage=[0.9] * 2), "2 levels that differ"),
        (lambda: to_frame(nested_trace(), "skforecast"), "has one level, got 2"),
        (lambda: to_mapie([*nested_sets(), Interval(0.0, 1.0)]), "as many levels in each row"),
        (lambda: to_mask(trace()), "label sets must be sets.LabelSet"),
        (lambda: to_mask(nested_labels_trace()), "label sets must be sets.LabelSet"),
        (lambda: to_mask(np.array([[0.0, 1.0]])), "label sets must be sets.LabelSet"),
        (lambda: to_frame(PAIRS, "darts"), "style must be one of 'plain'.* got 'darts'"),
        (lambda: to_frame(PAIRS, "nixtla"), "named by coverage"),
        (lambda: to_frame(PAIRS, coverage=95), "between 0 and 1, got 95"),
        (lambda: to_frame({0.9: PAIRS}, coverage=0.9), "the mapping names its own"),
        (lambda: to_frame({0.8: PAIRS, 0.9: WIDE[:1]}), "equal shapes"),
        (lambda: to_frame(PAIRS, point=[1.0]), "every column needs an entry for each interval"),
        (lambda: to_frame(PAIRS, "nixtla", coverage=0.9, ids=["a"]), "every column needs an entry"),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


def test_bands_know_their_coverages() -> None:
    stream = sp.Stream(sp.intervals([0.5, 0.9]))
    shown = []
    for place in range(30):
        shown.append(stream.predict((float(place), place + 1.0)))
        stream.update(place + 0.3)
    assert to_array(shown).shape == (30, 2, 2)
    assert to_frame(shown).columns.to_list() == ["lower_50", "upper_50", "lower_90", "upper_90"]
    assert to_frame(shown)["lower_90"].iloc[-1] == shown[-1][0.9].lower


@pytest.mark.parametrize(
    ("library", "extra", "call"),
    [
        *((name, name, f"import setpoint.models.{name}") for name in ("sklearn", "river", "torch")),
        ("pandas", "data", "from setpoint.interop import to_frame; to_frame([(0.0, 1.0)])"),
    ],
)
def test_a_missing_library_is_named_with_its_extra(library: str, extra: str, call: str) -> None:
    script = f"import sys; sys.modules[{library!r}] = None; {call}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert f"pip install 'setpoint[{extra}]'" in done.stderr
