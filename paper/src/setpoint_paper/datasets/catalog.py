"""Every data set by name."""

from collections.abc import Callable

from setpoint._check import choice
from setpoint_paper.datasets.files import Folder
from setpoint_paper.datasets.labelled import gas_drift, outdoor, power_supply, yeast
from setpoint_paper.datasets.tabular import energy, power, prices, synthetic, traffic, wind
from setpoint_paper.datasets.values import Dataset

_LOADERS: dict[str, dict[str, Callable[..., Dataset]]] = {
    "tabular": {
        "power": power, "energy": energy, "traffic": traffic, "wind": wind, "prices": prices,
    },
    "labelled": {
        "gas_drift": gas_drift, "outdoor": outdoor, "power_supply": power_supply, "yeast": yeast,
    },
}  # fmt: skip


def names(kind: str = "all") -> tuple[str, ...]:
    """The names `load` knows: "tabular" (the paper's), "labelled" (classes, label sets) or "all".

    >>> names("tabular")
    ('power', 'energy', 'traffic', 'wind', 'prices')
    """
    if choice(kind, "kind", (*_LOADERS, "all")) == "all":
        return (*_LOADERS["tabular"], "synthetic", *_LOADERS["labelled"])
    return tuple(_LOADERS[kind])


def load(
    name: str, *, folder: Folder = None, rows: int | None = None, download: bool = True
) -> Dataset:
    """A data set by its name, with the options that every loader has.

    >>> load("synthetic", rows=100)
    Dataset(synthetic: 100 rows × 5 features, target Y)
    """
    if choice(name, "name", names()) == "synthetic":
        return synthetic() if rows is None else synthetic(rows)
    loader = (_LOADERS["tabular"] | _LOADERS["labelled"])[name]
    return loader(folder=folder, rows=rows, download=download)
