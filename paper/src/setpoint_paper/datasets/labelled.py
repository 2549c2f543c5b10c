"""Streams of classes with real drift, and one of label sets."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from setpoint.errors import DataError, InputError
from setpoint_paper.datasets.columns import (
    arff_columns,
    check_count,
    csv_columns,
    numbers,
    rows_to_read,
)
from setpoint_paper.datasets.files import Folder, Found, find
from setpoint_paper.datasets.sources import BATCH_ROWS, SOURCES
from setpoint_paper.datasets.values import LabelDataset

__all__ = ["gas_drift", "outdoor", "power_supply", "yeast"]

_GASES = ("ethanol", "ethylene", "ammonia", "acetaldehyde", "acetone", "toluene")
_BATCHES = (1, 2, 3, 4, 5, 6, 8, 9)


def gas_drift(
    *,
    batches: Iterable[int] = _BATCHES,
    folder: Folder = None,
    rows: int | None = None,
    download: bool = True,
) -> LabelDataset:
    """Six gases told apart by 16 chemical sensors that drift over 36 months.

    Each row has 8 features of each sensor; the concentration is not among them. The batches follow
    one another in time; within a batch the rows keep the order of the file, in which a gas comes
    in long runs. `group` is the batch. Batches 7 and 10 are left out unless asked for.

    References
    ----------
    Vergara et al., Chemical gas sensor drift compensation using classifier ensembles, Sensors and
    Actuators B 2012; UCI 270, doi:10.24432/C5MK6M.
    """
    asked = tuple(batches)
    if not asked or not set(asked) <= set(BATCH_ROWS):
        raise InputError(f"batches must be some of {', '.join(map(str, BATCH_ROWS))}, got {asked}")
    source = SOURCES["gas_drift"]
    left = rows_to_read(rows)
    parts = []
    notes = [f"batches {', '.join(map(str, asked))}"]
    for batch in asked:
        if left == 0:
            break
        found = find(source, source.files[batch - 1], folder, download)
        lines = found.text.splitlines()[:left]
        check_count(found, len(lines), left)
        classes, x = _sensors(found, lines)
        parts.append((classes, x, np.full(len(classes), batch, dtype=np.int64)))
        notes.append(found.note)
        left = None if left is None else left - len(lines)
    y, x, group = (np.concatenate(each) for each in zip(*parts, strict=True))
    features = tuple(
        f"sensor{sensor}_{feature}" for sensor in range(1, 17) for feature in range(1, 9)
    )
    return LabelDataset("gas_drift", x, y, features, _GASES, group, _joined(notes))


def _sensors(found: Found, lines: list[str]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Classes and features of lines `class;concentration 1:v 2:v …`."""
    y = np.empty(len(lines), dtype=np.int64)
    x = np.empty((len(lines), 128))
    for row, line in enumerate(lines):
        try:
            head, *pairs = line.split()
            gas, _, concentration = head.partition(";")
            float(concentration)
            y[row] = int(gas) - 1
            places = [pair.partition(":") for pair in pairs]
            if [int(place) for place, _, _ in places] != list(range(1, 129)):
                raise ValueError
            x[row] = [float(value) for _, _, value in places]
            if not 0 <= y[row] < len(_GASES) or not np.isfinite(x[row]).all():
                raise ValueError
        except ValueError:
            raise DataError(
                f"{found.path} is damaged: line {row + 1} must read 'class;concentration 1:v … "
                f"128:v' with a class from 1 to 6, got {line[:40]!r}"
            ) from None
    return y, x


def outdoor(
    *, folder: Folder = None, rows: int | None = None, download: bool = True
) -> LabelDataset:
    """Forty objects filmed by a robot in a garden under changing light, ten frames at a time.

    The features are a histogram of 21 colours.

    References
    ----------
    Losing, Hammer and Wersing, Interactive online learning for obstacle classification on a mobile
    robot, IJCNN 2015.
    """
    source = SOURCES["outdoor"]
    count = rows_to_read(rows)
    data, labels = (find(source, file, folder, download) for file in source.files)
    x = _table(data, count, wide=21)
    y = _table(labels, count, wide=1)[:, 0]
    features = tuple(f"colour{place}" for place in range(1, 22))
    classes = tuple(f"object{place}" for place in range(40))
    places = _places(labels, y, len(classes))
    return LabelDataset(
        "outdoor", x, places, features, classes, note=_joined([data.note, labels.note])
    )


def _table(found: Found, rows: int | None, wide: int) -> NDArray[np.float64]:
    """Lines of `wide` numbers with blanks between."""
    lines = found.text.splitlines()[:rows]
    check_count(found, len(lines), rows)
    held = np.empty((len(lines), wide))
    for row, line in enumerate(lines):
        try:
            held[row] = [float(value) for value in line.split()] if wide > 1 else float(line)
            if not np.isfinite(held[row]).all():
                raise ValueError
        except ValueError:
            raise DataError(
                f"{found.path} is damaged: line {row + 1} must hold {wide} number(s), "
                f"got {line[:40]!r}"
            ) from None
    return held


def power_supply(
    *, folder: Folder = None, rows: int | None = None, download: bool = True
) -> LabelDataset:
    """The hour of the day, from the power an Italian company drew from two sources, 1995 to 1998.

    Rows are hours one after the other, so the class goes round: a model that sees the last class
    knows the next.

    References
    ----------
    Zhu, Stream data mining repository, 2010; Dau et al., The UCR time series archive.
    """
    source = SOURCES["power_supply"]
    found = find(source, source.files[0], folder, download)
    columns = arff_columns(found, rows_to_read(rows))
    names = ("attribute0", "attribute1", "class")
    if tuple(columns) != names:
        raise DataError(
            f"{found.path} must have the attributes {', '.join(names)}, got {', '.join(columns)}"
        )
    held = numbers(found, columns, names)
    classes = tuple(f"{hour}:00" for hour in range(24))
    y = _places(found, held[:, 2], len(classes))
    features = ("from_the_main_grid", "from_other_grids")
    return LabelDataset("power_supply", held[:, :2], y, features, classes, note=found.note)


def yeast(*, folder: Folder = None, rows: int | None = None, download: bool = True) -> LabelDataset:
    """Functions of 2,417 yeast genes, 14 that may hold together, from 103 measurements.

    The order of the genes means nothing: this is no stream in time. The copy in River, which is
    fetched, is that of MULAN in another form; MULAN's own `yeast.arff` is read too.

    References
    ----------
    Elisseeff and Weston, A kernel method for multi-labelled classification, NeurIPS 2001.
    """
    source = SOURCES["yeast"]
    found = find(source, source.files[0], folder, download)
    features = tuple(f"Att{place}" for place in range(1, 104))
    labels = tuple(f"Class{place}" for place in range(1, 15))
    names = (*features, *labels)
    if "@attribute" in found.text[:2000].lower():
        columns = arff_columns(found, rows_to_read(rows))
        if tuple(columns) != names:
            raise DataError(
                f"{found.path} must have the attributes Att1 … Att103, Class1 … Class14, "
                f"got {len(columns)} others"
            )
    else:
        columns = csv_columns(found, names, rows_to_read(rows))
    marks = numbers(found, columns, labels)
    if not np.isin(marks, (0.0, 1.0)).all():
        raise DataError(f"{found.path} is damaged: its labels must be 0 or 1")
    x = numbers(found, columns, features)
    note = _joined(["rows in no order of time", found.note])
    return LabelDataset("yeast", x, marks == 1.0, features, labels, note=note)


def _places(found: Found, values: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """Classes as whole numbers below `count`."""
    wrong = (values < 0) | (values >= count) | (values != np.floor(values))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"{found.path} is damaged: a class must be a whole number from 0 to {count - 1}, "
            f"got {values[row]} in row {row + 1}"
        )
    return values.astype(np.int64)


def _joined(notes: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(filter(None, notes)))
