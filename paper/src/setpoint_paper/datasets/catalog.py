"""Every data set by name."""

from collections.abc import Callable
from typing import Any

from setpoint._check import choice
from setpoint_paper.datasets.files import Folder
from setpoint_paper.datasets.labelled import gas_drift, outdoor, power_supply, yeast
from setpoint_paper.datasets.tabular import energy, power, prices, synthetic, traffic, wind
from setpoint_paper.datasets.values import Dataset, LabelDataset

__all__ = ["load", "names"]


_TABULAR: dict[str, Callable[..., Dataset]] = {
    "power": power,
    "energy": energy,
    "traffic": traffic,
    "wind": wind,
    "prices": prices,
}
_LABELLED: dict[str, Callable[..., LabelDataset]] = {
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


def names(kind: str = "all") -> tuple[str, ...]:
    """The names `load` knows: "tabular" (the paper's), "labelled" (classes, label sets) or "all".

    >>> names("tabular")
    ('power', 'energy', 'traffic', 'wind', 'prices')
    """
    return _KINDS[choice(kind, "kind", tuple(_KINDS))]


def load(
    name: str, *, folder: Folder = None, rows: int | None = None, download: bool = True
) -> Dataset | LabelDataset:
    """A data set by its name, with the options that every loader has.

    >>> load("synthetic", rows=100)
    Dataset(synthetic: 100 rows × 5 features, target Y)
    """
    choice(name, "name", names())
    if name == "synthetic":
        return synthetic() if rows is None else synthetic(rows)
    made: dict[str, Callable[..., Any]] = {**_TABULAR, **_LABELLED}
    got: Dataset | LabelDataset = made[name](folder=folder, rows=rows, download=download)
    return got
