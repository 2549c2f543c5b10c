"""Every data set by name, and the paper's table of them."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from setpoint._check import choice
from setpoint.errors import AbsentFile
from setpoint_paper.datasets.files import Folder
from setpoint_paper.datasets.labelled import gas_drift, outdoor, power_supply, yeast
from setpoint_paper.datasets.tabular import energy, power, prices, synthetic, traffic, wind
from setpoint_paper.datasets.values import Dataset, LabelDataset, MultiLabelDataset

__all__ = ["load", "names", "table"]


_TABULAR: dict[str, Callable[..., Dataset]] = {
    "power": power,
    "energy": energy,
    "traffic": traffic,
    "wind": wind,
    "prices": prices,
}
_LABELLED: dict[str, Callable[..., LabelDataset | MultiLabelDataset]] = {
    "gas_drift": gas_drift,
    "outdoor": outdoor,
    "power_supply": power_supply,
    "yeast": yeast,
}
_KINDS = {
    "tabular": tuple(_TABULAR),
    "labelled": tuple(_LABELLED),
    "all": (*_TABULAR, "synthetic", *_LABELLED),
}


class _Printed(NamedTuple):
    """A row of the paper's table, and why ours may differ."""

    samples: int
    used: int
    dimension: int
    why: str = ""


_PAPER = {
    "power": _Printed(52_416, 20_000, 11),
    "energy": _Printed(
        19_735, 20_000, 33, "fewer rows than the paper says it used: all 19,735 are used"
    ),
    "traffic": _Printed(48_204, 20_000, 12, "no minute: always 0"),
    "wind": _Printed(385_565, 20_000, 6, "one row less than the file: y is of the next row"),
    "prices": _Printed(
        34_895, 20_000, 61, "one row less than the file: y is of the next row; no minute"
    ),
}


def names(kind: str = "all") -> tuple[str, ...]:
    """The names `load` knows: "tabular" (the paper's), "labelled" (classes, label sets) or "all".

    >>> names("tabular")
    ('power', 'energy', 'traffic', 'wind', 'prices')
    """
    return _KINDS[choice(kind, "kind", tuple(_KINDS))]


def load(
    name: str, *, folder: Folder = None, rows: int | None = None, download: bool = True
) -> Dataset | LabelDataset | MultiLabelDataset:
    """A data set by its name, with the options that every loader has.

    >>> load("synthetic", rows=100)
    Dataset(synthetic: 100 rows × 5 features, target Y)
    """
    choice(name, "name", names())
    if name == "synthetic":
        return synthetic() if rows is None else synthetic(rows)
    made: dict[str, Callable[..., Any]] = {**_TABULAR, **_LABELLED}
    got: Dataset | LabelDataset | MultiLabelDataset = made[name](
        folder=folder, rows=rows, download=download
    )
    return got


def table(*, folder: Folder = None, download: bool = False) -> str:
    """The paper's table of data sets beside what the loaders give, and the labelled sets below.

    A set whose file is not at hand is listed as absent, unless `download` lets it be fetched.
    """
    lines = [("data set", "samples", "paper", "used in paper", "dimension", "paper", "remarks")]
    for name in _TABULAR:
        paper = _PAPER[name]
        data = _at_hand(name, folder, download)
        remarks = "not at hand" if data is None else "; ".join(filter(None, (data.note, paper.why)))
        lines.append((
            name, _size(data, 0), f"{paper.samples:,}", f"{paper.used:,}",
            _size(data, 1), f"{paper.dimension}", remarks,
        ))  # fmt: skip
    below = [("data set", "samples", "dimension", "classes", "remarks")]
    for name in _LABELLED:
        data = _at_hand(name, folder, download)
        remarks = "not at hand" if data is None else data.note
        below.append((name, _size(data, 0), _size(data, 1), _choices(data), remarks))
    return f"{_aligned(lines)}\n\n{_aligned(below)}"


def _at_hand(
    name: str, folder: Folder, download: bool
) -> Dataset | LabelDataset | MultiLabelDataset | None:
    try:
        return load(name, folder=folder, download=download)
    except AbsentFile:
        return None


def _size(data: Dataset | LabelDataset | MultiLabelDataset | None, axis: int) -> str:
    return "–" if data is None else f"{data.x.shape[axis]:,}"


def _choices(data: Dataset | LabelDataset | MultiLabelDataset | None) -> str:
    if isinstance(data, LabelDataset):
        return str(len(data.classes))
    if isinstance(data, MultiLabelDataset):
        return f"{len(data.labels)} labels"
    return "–"


def _aligned(lines: Sequence[tuple[str, ...]]) -> str:
    """Columns of equal width: the first and last to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if place in (0, len(widths) - 1) else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )
