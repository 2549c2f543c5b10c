"""Streams of classes with real drift, and one of label sets."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from setpoint.errors import DataError
from setpoint_paper.datasets.files import Folder, Found, find
from setpoint_paper.datasets.sources import SOURCES
from setpoint_paper.datasets.tables import check_count, numbers, rows_to_read, table
from setpoint_paper.datasets.values import Dataset

_GASES = ("ethanol", "ethylene", "ammonia", "acetaldehyde", "acetone", "toluene")
_BATCHES = (1, 2, 3, 4, 5, 6, 8, 9)


def gas_drift(*, folder: Folder = None, rows: int | None = None, download: bool = True) -> Dataset:
    """Six gases told apart by 16 chemical sensors that drift over 36 months.

    Each row has 8 features of each sensor; the concentration is not among them. The batches follow
    one another in time; within a batch the rows keep the order of the file, in which a gas comes
    in long runs. `group` is the batch. Batches 7 and 10 are left out.
    """
    source, left = SOURCES["gas_drift"], rows_to_read(rows)
    parts, notes = [], [f"batches {', '.join(map(str, _BATCHES))}"]
    for batch, file in zip(_BATCHES, source.files, strict=True):
        found = find(source, file, folder, download)
        lines = found.text.splitlines()[:left]
        check_count(found, len(lines), left)
        classes, x = _sensors(found, lines)
        parts.append((classes, x, np.full(len(classes), batch, dtype=np.int64)))
        notes.append(found.note)
        left = None if left is None else left - len(lines)
        if left == 0:
            break
    y, x, group = (np.concatenate(each) for each in zip(*parts, strict=True))
    features = tuple(
        f"sensor{sensor}_{feature}" for sensor in range(1, 17) for feature in range(1, 9)
    )
    return Dataset("gas_drift", x, y, features, group=group, note=_joined(notes), classes=_GASES)


def _sensors(found: Found, lines: list[str]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Classes and features of lines `class;concentration 1:v 2:v …`."""
    held = np.empty((len(lines), 258))
    for row, line in enumerate(lines):
        try:
            held[row] = [float(each) for each in line.replace(";", " ").replace(":", " ").split()]
            places = held[row, 2::2].tolist() == list(range(1, 129))
            if not places or held[row, 0] not in range(1, 7) or not np.isfinite(held[row]).all():
                raise ValueError
        except ValueError:
            raise DataError(
                f"{found.path} is damaged: line {row + 1} must read 'class;concentration 1:v … "
                f"128:v' with a class from 1 to 6, got {line[:40]!r}"
            ) from None
    return held[:, 0].astype(np.int64) - 1, held[:, 3::2]


def outdoor(*, folder: Folder = None, rows: int | None = None, download: bool = True) -> Dataset:
    """Forty objects filmed by a robot in a garden under changing light, ten frames at a time.

    The features are a histogram of 21 colours.
    """
    source = SOURCES["outdoor"]
    count = rows_to_read(rows)
    features = tuple(f"colour{place}" for place in range(1, 22))
    (data, x), (labels, y) = (
        (found, numbers(found, table(found, names, count, header=False), names))
        for found, names in (
            (find(source, source.files[0], folder, download), features),
            (find(source, source.files[1], folder, download), ("label",)),
        )
    )
    classes = tuple(f"object{place}" for place in range(40))
    places, note = _places(labels, y[:, 0], 40), _joined([data.note, labels.note])
    return Dataset("outdoor", x, places, features, note=note, classes=classes)


def power_supply(
    *, folder: Folder = None, rows: int | None = None, download: bool = True
) -> Dataset:
    """The hour of the day, from the power an Italian company drew from two sources, 1995 to 1998.

    Rows are hours one after the other, so the class goes round: a model that sees the last class
    knows the next.
    """
    source = SOURCES["power_supply"]
    found = find(source, source.files[0], folder, download)
    names = ("attribute0", "attribute1", "class")
    held = numbers(found, table(found, names, rows_to_read(rows)), names)
    classes = tuple(f"{hour}:00" for hour in range(24))
    y = _places(found, held[:, 2], len(classes))
    features = ("from_the_main_grid", "from_other_grids")
    return Dataset("power_supply", held[:, :2], y, features, note=found.note, classes=classes)


def yeast(*, folder: Folder = None, rows: int | None = None, download: bool = True) -> Dataset:
    """Functions of 2,417 yeast genes, 14 that may hold together, from 103 measurements.

    The order of the genes means nothing: this is no stream in time. The copy in River, which is
    fetched, is that of MULAN in another form; MULAN's own `yeast.arff` is read too.
    """
    source = SOURCES["yeast"]
    found = find(source, source.files[0], folder, download)
    features = tuple(f"Att{place}" for place in range(1, 104))
    labels = tuple(f"Class{place}" for place in range(1, 15))
    columns = table(found, (*features, *labels), rows_to_read(rows))
    marks = numbers(found, columns, labels)
    if not np.isin(marks, (0.0, 1.0)).all():
        raise DataError(f"{found.path} is damaged: its labels must be 0 or 1")
    note = _joined(["rows in no order of time", found.note])
    x = numbers(found, columns, features)
    return Dataset("yeast", x, marks == 1.0, features, note=note, classes=labels)


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
