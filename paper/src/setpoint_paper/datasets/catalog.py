"""Every data set by name."""

from collections.abc import Callable

from setpoint._check import choice
from setpoint_paper.datasets.files import Folder
from setpoint_paper.datasets.labelled import gas_drift, outdoor, power_supply, yeast
from setpoint_paper.datasets.tabular import energy, power, prices, synthetic, traffic, wind
from setpoint_paper.datasets.values import Dataset

_LOADERS: dict[str, Callable[..., Dataset]] = {
    "power": power, "energy": energy, "traffic": traffic, "wind": wind, "prices": prices,
    "gas_drift": gas_drift, "outdoor": outdoor, "power_supply": power_supply, "yeast": yeast,
}  # fmt: skip


NAMES = (*_LOADERS, "synthetic")
"""The names `load` knows."""


def load(
    name: str, *, folder: Folder = None, rows: int | None = None, download: bool = True
) -> Dataset:
    """A data set by its name, with the options that every loader has.

    >>> load("synthetic", rows=100).x.shape
    (100, 5)
    """
    if choice(name, "name", NAMES) == "synthetic":
        return synthetic() if rows is None else synthetic(rows)
    return _LOADERS[name](folder=folder, rows=rows, download=download)
