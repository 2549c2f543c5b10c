"""Intervals and label sets in the shapes of other libraries: arrays, and frames with named columns.

Everywhere axis 1 of intervals is (lower, upper). Several coverages are given as a mapping from
coverage to intervals, `{0.8: …, 0.95: …}`, or as what a stream or a replay of several shows, the
smallest first.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from setpoint._check import choice, confidence
from setpoint.bulk.trace import Trace
from setpoint.errors import InputError
from setpoint.sets import Bands, LabelSet, Levels

__all__ = ["to_array", "to_frame", "to_mapie", "to_mask"]

Floats = npt.NDArray[np.float64]


def to_array(intervals: Any) -> Floats:
    """Intervals as an array: (n, 2), lower and upper, or (n, 2, k) for k coverages.

    Parameters
    ----------
    intervals
        A `Trace`; intervals, setpoint's or River's, `sets.Levels` or `sets.Bands` in order; an
        array of one of these shapes; a frame with the columns lower and upper; or a mapping from
        coverage to any of them. (inf, −inf) is the empty interval.

    Examples
    --------
    >>> from setpoint.sets import Interval
    >>> to_array([Interval(1.0, 3.0), (0.0, 2.0)])
    array([[1., 3.],
           [0., 2.]])
    """
    ends = _ends(intervals)
    return ends[:, :, 0] if ends.shape[2] == 1 else ends


def to_mapie(intervals: Any) -> Any:
    """Intervals or label sets in MAPIE's layout, one slice of the last axis for each level.

    Parameters
    ----------
    intervals
        What `to_array` takes: (n, 2, k). Label sets, a boolean array of them (n, K), a `Trace` of
        them or a mapping from level to these: (n, K, k).

    Examples
    --------
    >>> narrow, wide = [(1.0, 3.0)], [(0.0, 4.0)]
    >>> to_mapie({0.8: narrow, 0.95: wide})
    array([[[1., 0.],
            [3., 4.]]])
    """
    if isinstance(intervals, Trace) and intervals.shown is not None:
        intervals = list(intervals.shown)
    if isinstance(intervals, Mapping):
        return _joined([to_mapie(each) for each in intervals.values()])
    if isinstance(intervals, np.ndarray) and intervals.dtype == np.bool_:
        return intervals if intervals.ndim == 3 else to_mask(intervals)[:, :, None]
    if isinstance(intervals, list | tuple) and intervals:
        parts = [tuple(row) if isinstance(row, Levels) else (row,) for row in intervals]
        if isinstance(parts[0][0], LabelSet):
            return _joined([to_mask(level)[:, :, None] for level in zip(*parts, strict=True)])
    return _ends(intervals)


def to_mask(label_sets: Any, classes: Iterable[Any] | None = None) -> npt.NDArray[np.bool_]:
    """Label sets as booleans: (n, K), in the order of `classes`.

    Parameters
    ----------
    label_sets
        `sets.LabelSet`s in order, a `Trace` of them, or a boolean array, which is returned as it
        is.
    classes
        The order of the columns; by default that of the first set.

    Examples
    --------
    >>> from setpoint.sets import Threshold
    >>> family = Threshold()
    >>> shown = family.at(family.read({"cat": 0.7, "dog": 0.2, "owl": 0.1}), -0.15)
    >>> to_mask([shown], classes=["dog", "cat"])
    array([[ True,  True]])
    """
    rows = label_sets.shown if isinstance(label_sets, Trace) else label_sets
    if isinstance(rows, np.ndarray) and rows.dtype == np.bool_ and rows.ndim == 2:
        return rows
    rows = list(rows) if isinstance(rows, Iterable) else [rows]
    if not all(isinstance(shown, LabelSet) for shown in rows):
        raise InputError(
            "label sets must be sets.LabelSet in order, a trace of them or booleans of shape "
            f"(n, K), got {label_sets!r}"
        )
    order = tuple(classes) if classes is not None else (rows[0].classes if rows else ())
    masks = [
        shown.mask if shown.classes == order else [shown.contains(label) for label in order]
        for shown in rows
    ]
    return np.array(masks, dtype=np.bool_).reshape(len(rows), len(order))


def to_frame(
    intervals: Any,
    style: str = "plain",
    *,
    coverage: float | Iterable[float] | None = None,
    point: Any = None,
    name: str | int | None = None,
    index: Any = None,
    ids: Any = None,
    times: Any = None,
) -> Any:
    """Intervals as a pandas frame with the column names of another library (extra `data`).

    | style | columns |
    |---|---|
    | "plain" | point, lower, upper; with several levels lower_80, upper_80, … |
    | "nixtla" | unique_id, ds, Model, Model-lo-95, Model-lo-80, Model-hi-80, Model-hi-95 |
    | "sktime" | three levels of names: (variable, coverage, "lower" or "upper") |
    | "skforecast" | pred, lower_bound, upper_bound |

    Parameters
    ----------
    intervals
        What `to_array` takes.
    style
        One of the above.
    coverage
        That of the intervals, or of each; a mapping, a trace and bands know their own.
    point
        The point forecasts, for the styles that show them.
    name
        The model in "nixtla" (by default "setpoint"), the variable in "sktime" (by default 0).
    index
        The index of the frame.
    ids, times
        The columns unique_id and ds of "nixtla"; those of a trace are taken by default.

    Examples
    --------
    >>> frame = to_frame([(1.0, 3.0)], "nixtla", coverage=0.9, point=[2.0], name="Ridge")
    >>> list(frame.columns)
    ['Ridge', 'Ridge-lo-90', 'Ridge-hi-90']
    >>> frame = to_frame({0.8: [(1.0, 3.0)], 0.95: [(0.0, 4.0)]}, "sktime", name="sales")
    >>> frame.columns.to_list()[0]
    ('sales', 0.8, 'lower')
    """
    try:
        import pandas as pd
    except ImportError as error:
        raise ImportError("this needs pandas: pip install 'setpoint[data]'") from error

    choice(style, "style", ("plain", "nixtla", "sktime", "skforecast"))
    levels = _levels(intervals, coverage, style)
    if style == "sktime":
        variable = 0 if name is None else name
        columns: dict[Any, Any] = {
            (variable, level, side): end
            for level, ends in levels.items()
            for side, end in zip(("lower", "upper"), ends.T, strict=True)
        }
        frame = pd.DataFrame(columns, index=index)
        frame.columns = pd.MultiIndex.from_tuples(list(columns))
        return frame
    if style == "nixtla":
        if isinstance(intervals, Trace):
            tape = intervals.tape
            ids, times = (
                tape.series if ids is None else ids,
                tape.time if times is None else times,
            )
        model = "setpoint" if name is None else str(name)
        columns = {"unique_id": ids, "ds": times, model: point, **level_columns(model, levels)}
    else:
        single = "_bound" if style == "skforecast" else ""
        columns = {"pred" if style == "skforecast" else "point": point}
        for level, ends in levels.items():
            tail = f"_{_percent(level)}" if len(levels) > 1 else single
            columns[f"lower{tail}"], columns[f"upper{tail}"] = ends.T
    columns = {key: values for key, values in columns.items() if values is not None}
    counts = {key: len(values) for key, values in columns.items()}
    if len({*counts.values()}) > 1:
        raise InputError(f"every column needs an entry for each interval, got {counts}")
    return pd.DataFrame(columns, index=index)


def level_columns(model: str, levels: Mapping[float, Floats]) -> dict[str, Floats]:
    """Intervals (n, 2) by their coverage as columns with the names and in the order of Nixtla."""
    lower = {f"{model}-lo-{_percent(level)}": ends[:, 0] for level, ends in levels.items()}
    upper = {f"{model}-hi-{_percent(level)}": ends[:, 1] for level, ends in levels.items()}
    return dict(reversed(lower.items())) | upper


def _ends(intervals: Any) -> Floats:
    """The ends of intervals, (n, 2, k)."""
    if isinstance(intervals, Trace):
        if intervals.shown is not None:
            raise InputError("a trace of intervals is needed, this one shows other sets")
        return np.stack([intervals.levels.lower.T, intervals.levels.upper.T], axis=1)
    if isinstance(intervals, Mapping):
        joined: Floats = _joined([_ends(each) for each in intervals.values()])
        return joined
    if hasattr(intervals, "lower") and hasattr(intervals, "columns"):  # a frame
        intervals = np.stack([intervals.lower, intervals.upper], axis=-1)
    elif isinstance(intervals, Iterable) and not hasattr(intervals, "__array__"):
        intervals = [_pair(row) for row in intervals]
    try:
        array = np.array(intervals, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            "intervals must be numbers, two for each and level, with as many levels in each row"
        ) from None
    if array.size == 0:
        return np.empty((0, 2, 1))
    array = array[:, :, None] if array.ndim == 2 else array
    if array.ndim != 3 or array.shape[1] != 2:
        raise InputError(f"intervals must have the shape (n, 2) or (n, 2, k), got {array.shape}")
    return array


def _pair(row: Any) -> Any:
    """The lower and the upper end of a row, or those of all its levels."""
    parts: Any = row.parts if isinstance(row, Levels) else None
    if isinstance(row, Bands) and row.pairs:
        parts = [row[level] for level in row]
    if parts is not None:
        return [part.lower for part in parts], [part.upper for part in parts]
    return (row.lower, row.upper) if hasattr(row, "lower") else row


def _joined(arrays: list[Any]) -> Any:
    """Several levels as one array."""
    shapes = [array.shape for array in arrays]
    if len({shape[:2] for shape in shapes}) != 1:
        raise InputError(f"levels must have equal shapes, at least one, got {shapes}")
    return np.concatenate(arrays, axis=2)


def _levels(intervals: Any, named: Any, style: str) -> dict[float, Floats]:
    """The intervals by their coverage, the smallest first; one without is NaN."""
    if isinstance(intervals, Mapping):
        if named is not None:
            raise InputError("coverage is for one level; the mapping names its own")
        named = list(intervals)
    elif named is None and isinstance(intervals, Trace):
        names = [name for name in intervals.ends if name.startswith("lower_")]
        named = [round(float(name.removeprefix("lower_")) / 100.0, 12) for name in names] or None
    elif named is None and isinstance(intervals, list | tuple) and isinstance(intervals[0], Bands):
        named = list(intervals[0])
    ends = _ends(intervals)
    count = ends.shape[2]
    if count > 1 and style == "skforecast":
        raise InputError(f'the style "skforecast" has one level, got {count}')
    if named is None and (count > 1 or style in ("nixtla", "sktime")):
        raise InputError(f"{count} levels of the style {style!r} are named by coverage: give them")
    if named is None:
        return {np.nan: ends[:, :, 0]}
    several = [confidence(each, "coverage") for each in np.atleast_1d(named).tolist()]
    if len({*several}) != count or len(several) != count:
        raise InputError(f"coverage must be {count} levels that differ, got {several}")
    order = np.argsort(several)
    return {several[place]: ends[:, :, place] for place in order.tolist()}


def _percent(level: float) -> str:
    """A level as people write it: 95, 97.5."""
    return f"{round(100.0 * level, 6):g}"
