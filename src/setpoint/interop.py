"""Intervals and label sets in the shapes of other libraries: arrays, and frames with named columns.

Everywhere the last axis of one interval is (lower, upper). Several confidence levels are given as
a mapping from level to intervals, `{0.8: …, 0.95: …}`, or as the nested sets of `sets.Nested`, the
smallest first.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from setpoint._check import choice, confidence
from setpoint.bulk.trace import Trace
from setpoint.errors import InputError
from setpoint.losses import Miscoverage
from setpoint.sets import LabelSet, Levels
from setpoint.tape.columns import opened

__all__ = ["to_array", "to_frame", "to_mapie", "to_mask"]

Floats = npt.NDArray[np.float64]


def to_array(intervals: Any) -> Floats:
    """Intervals as an array: (n, 2), lower and upper; (inf, −inf) is empty.

    Parameters
    ----------
    intervals
        A `Trace`, an array whose last axis is (lower, upper), MAPIE's (n, 2, 1), a frame with the
        columns lower and upper, or intervals, setpoint's or River's, in order.

    Examples
    --------
    >>> from setpoint.sets import Interval
    >>> to_array([Interval(1.0, 3.0), (0.0, 2.0)])
    array([[1., 3.],
           [0., 2.]])
    """
    if isinstance(intervals, Trace):
        intervals = _shown(intervals)
        if isinstance(intervals, tuple) and not _is_interval(intervals[0]):
            raise InputError("a trace of intervals is needed, this one shows other sets")
        if np.ndim(intervals) == 3:
            raise InputError(
                "one interval for each row is needed: to_mapie and to_frame take nested sets"
            )
    elif _is_interval(intervals) and not isinstance(intervals, Levels):
        if np.ndim(intervals.lower) != 1:
            raise InputError(f"several intervals are needed, got the one interval {intervals!r}")
        intervals = np.stack([intervals.lower, intervals.upper], axis=-1)
    if not hasattr(intervals, "__array__"):
        if not isinstance(intervals, Iterable) or isinstance(intervals, Mapping | str | bytes):
            raise InputError(f"intervals must be an array or a sequence, got {intervals!r}")
        rows = _several(intervals, "interval", "to_mapie and to_frame take")
        intervals = [(row.lower, row.upper) if _is_interval(row) else row for row in rows]
    try:
        array = np.array(intervals, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError("intervals must be numbers, two for each") from None
    if array.size == 0:
        return np.empty((0, 2))
    if array.ndim == 3 and array.shape[1:] == (2, 1):
        array = array[:, :, 0]
    if array.ndim != 2 or array.shape[1] != 2:
        raise InputError(f"intervals must have the shape (n, 2), got {array.shape}")
    return array


def to_mapie(intervals: Any) -> Any:
    """Intervals or label sets in MAPIE's layout, one slice of the last axis for each level.

    Parameters
    ----------
    intervals
        What `to_array` takes, or a mapping from level to that: (n, 2, k). Boolean masks (n, K) or
        label sets give (n, K, k). The k nested sets of `sets.Nested`, as `sets.Levels` in order
        or in a `Trace`, are the slices of one array.

    Examples
    --------
    >>> narrow, wide = [(1.0, 3.0)], [(0.0, 4.0)]
    >>> to_mapie({0.8: narrow, 0.95: wide})
    array([[[1., 0.],
            [3., 4.]]])
    >>> from setpoint.sets import Nested, Widen
    >>> to_mapie([Nested(Widen(), 2).at((1.0, 3.0), (0.0, 1.0))])
    array([[[1., 0.],
            [3., 4.]]])
    """
    if isinstance(intervals, Trace):
        intervals = _shown(intervals)
    if isinstance(intervals, Mapping):
        levels = list(intervals.values())
    else:
        levels = _by_level(intervals) or [intervals]
    if not levels:
        raise InputError("at least one level is needed, got none")
    arrays = [to_mask(level) if _is_labels(level) else to_array(level) for level in levels]
    if len({array.shape for array in arrays}) > 1:
        raise InputError(f"levels must have equal shapes, got {[array.shape for array in arrays]}")
    return np.stack(arrays, axis=-1)


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
    if isinstance(label_sets, Trace):
        if label_sets.shown is None:
            raise InputError("a trace of label sets is needed, this one shows intervals")
        label_sets = tuple(label_sets.shown)
    if isinstance(label_sets, np.ndarray):
        if label_sets.dtype != np.bool_ or label_sets.ndim != 2:
            raise InputError(
                f"masks must be booleans of shape (n, K), got {label_sets.dtype} of shape "
                f"{label_sets.shape}"
            )
        return label_sets
    if not isinstance(label_sets, Iterable):
        raise InputError(f"label sets must be in a sequence, got {label_sets!r}")
    sets = _several(label_sets, "label set", "to_mapie takes")
    if not all(isinstance(shown, LabelSet) for shown in sets):
        raise InputError("label sets must be sets.LabelSet, or a boolean array of shape (n, K)")
    order = tuple(classes) if classes is not None else (sets[0].classes if sets else ())
    rows = [
        shown.mask if shown.classes == order else [shown.contains(label) for label in order]
        for shown in sets
    ]
    return np.array(rows, dtype=np.bool_).reshape(len(sets), len(order))


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
        What `to_array` takes, a mapping from confidence level to that, or nested intervals, as
        `to_mapie` takes them.
    style
        One of the above.
    coverage
        The level of the intervals, where there is no mapping; "nixtla" and "sktime" need it. Of
        nested ones a level for each; a trace that holds their miscoverage knows its own.
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
    if isinstance(intervals, Trace):
        tape = intervals.tape
        ids, times = tape.series if ids is None else ids, tape.time if times is None else times
        if coverage is None and len(intervals.levels.lower) > 1:
            coverage = _levels_of(intervals)
        intervals = _shown(intervals)
    levels = _levels(intervals, coverage, style)
    counts = {len(ends) for ends in levels.values()}
    if len(counts) != 1:
        raise InputError(f"every level must have as many intervals, got {sorted(counts)}")
    (rows,) = counts
    points = None if point is None else np.asarray(point, dtype=np.float64)
    if points is not None and points.shape != (rows,):
        raise InputError(f"point must have the shape ({rows},), got {points.shape}")

    columns: dict[Any, Any] = {}
    if style == "sktime":
        variable = 0 if name is None else name
        for level, ends in levels.items():
            columns[variable, level, "lower"], columns[variable, level, "upper"] = ends.T
        frame = pd.DataFrame(columns, index=index)
        frame.columns = pd.MultiIndex.from_tuples(list(columns))
        return frame
    if style == "nixtla":
        model = "setpoint" if name is None else str(name)
        columns = {"unique_id": ids, "ds": times, model: points}
        columns = {key: values for key, values in columns.items() if values is not None}
        for key, values in columns.items():
            if len(values) != rows:
                raise InputError(f"{key} must have {rows} entries, got {len(values)}")
        return pd.DataFrame(columns | level_columns(model, levels), index=index)
    if style == "skforecast" and len(levels) != 1:
        raise InputError(f'the style "skforecast" has one level, got {len(levels)}')
    if points is not None:
        columns["pred" if style == "skforecast" else "point"] = points
    for level, ends in levels.items():
        tail = f"_{_percent(level)}" if len(levels) > 1 else ""
        tail = "_bound" if style == "skforecast" else tail
        columns[f"lower{tail}"], columns[f"upper{tail}"] = ends.T
    return pd.DataFrame(columns, index=index)


def level_columns(model: str, levels: Mapping[float, Floats]) -> dict[str, Floats]:
    """Intervals (n, 2) by their coverage as columns with the names and in the order of Nixtla.

    >>> list(level_columns("Naive", {0.8: np.zeros((1, 2)), 0.9: np.zeros((1, 2))}))
    ['Naive-lo-90', 'Naive-lo-80', 'Naive-hi-80', 'Naive-hi-90']
    """
    lower = {f"{model}-lo-{_percent(level)}": ends[:, 0] for level, ends in levels.items()}
    upper = {f"{model}-hi-{_percent(level)}": ends[:, 1] for level, ends in levels.items()}
    return dict(reversed(lower.items())) | upper


def add_columns(frame: Any, columns: Mapping[str, Any]) -> Any:
    """A new frame of the same kind (pandas, polars, Arrow or a dict) with more columns.

    A column that is there already is replaced.

    >>> add_columns({"y": [1.0]}, {"lower": [0.0]})
    {'y': [1.0], 'lower': [0.0]}
    """
    frame, names = opened(frame)
    if isinstance(frame, Mapping):
        return {**frame, **columns}
    if hasattr(frame, "assign"):  # pandas
        return frame.assign(**columns)
    if hasattr(frame, "set_column"):  # Arrow
        for name, values in columns.items():
            if name in names:
                frame = frame.set_column(names.index(name), name, [values])
            else:
                frame = frame.append_column(name, [values])
        return frame
    return type(frame)({name: frame[name] for name in names} | dict(columns))


def _levels(intervals: Any, named: Any, style: str) -> dict[float, Floats]:
    """The intervals by their confidence level, the smallest first; one without is NaN."""
    if isinstance(intervals, Mapping):
        if named is not None:
            raise InputError("coverage is for one level; the mapping names its own")
        levels = {
            confidence(level, "coverage"): to_array(ends) for level, ends in intervals.items()
        }
        return dict(sorted(levels.items()))
    nested = _by_level(intervals)
    if nested is None:
        if named is None and style in ("nixtla", "sktime"):
            raise InputError(f'the style "{style}" names its columns by coverage: give one')
        return {np.nan if named is None else confidence(named, "coverage"): to_array(intervals)}
    count = len(nested)
    if isinstance(named, str) or not isinstance(named, Iterable):
        raise InputError(
            f"{count} nested sets need coverage, a level for each of them, got {named!r}"
        )
    names = [confidence(level, "coverage") for level in named]
    if len(set(names)) != count or len(names) != count:
        raise InputError(f"coverage must be {count} levels that differ, got {names}")
    return dict(sorted((level, to_array(ends)) for level, ends in zip(names, nested, strict=True)))


def _levels_of(trace: Trace) -> list[float] | None:
    """The confidence levels that a trace of nested sets was asked for, if that is what it holds."""
    risks = trace.controller.risks
    if not all(isinstance(risk.loss, Miscoverage) for risk in risks):
        return None
    return [round(1.0 - risk.level, 12) for risk in risks]


def _shown(trace: Trace) -> Any:
    """The sets of a trace: an array of ends, or the sets themselves."""
    if trace.shown is not None:
        return tuple(trace.shown)
    ends = np.stack([end.T for end in trace.levels], axis=1)  # (rows, 2, levels)
    return ends if ends.shape[2] > 1 else ends[:, :, 0]


def _several(sets: Iterable[Any], kind: str, others: str) -> list[Any]:
    """Sets in a list, a row each; a set that can be gone through itself is one, not several."""
    if hasattr(sets, "contains"):
        raise InputError(f"several sets are needed, got the one set {sets!r}")
    rows = list(sets)
    if any(isinstance(row, Levels) for row in rows):
        raise InputError(
            f"one {kind} for each row is needed: {others} nested sets, got sets.Levels"
        )
    return rows


def _by_level(sets: Any) -> list[Any] | None:
    """Nested sets level by level, the smallest first; None if they are not nested."""
    if isinstance(sets, np.ndarray):
        several = sets.ndim == 3 and (sets.shape[2] > 1 or sets.dtype == np.bool_)
        return list(np.moveaxis(sets, 2, 0)) if several else None
    if not isinstance(sets, list | tuple) or not any(isinstance(row, Levels) for row in sets):
        return None
    counts = {len(row) if isinstance(row, Levels) else 1 for row in sets}
    if len(counts) > 1:
        raise InputError(f"every row must have as many nested sets, got {sorted(counts)}")
    return [[row[place] for row in sets] for place in range(*counts)]


def _is_labels(sets: Any) -> bool:
    """Whether these are label sets or masks of them."""
    if isinstance(sets, np.ndarray):
        return bool(sets.dtype == np.bool_)
    return isinstance(sets, list | tuple) and bool(sets) and isinstance(sets[0], LabelSet)


def _is_interval(value: Any) -> bool:
    """Whether it has two ends, or is nested: an interval of ours or River's, or a frame of ends."""
    if isinstance(value, Levels | str | bytes):
        return isinstance(value, Levels)
    return hasattr(value, "lower") and hasattr(value, "upper")


def _percent(level: float) -> str:
    """A level as people write it: 95, 97.5."""
    return f"{round(100.0 * level, 6):g}"
