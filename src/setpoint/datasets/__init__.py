"""The paper's streams and others to try the library on: loaded, checked and cached, or made.

Files are looked for in the folder given as `folder`, else in the one that the environment variable
SETPOINT_DATA names, else they are fetched from their source and kept in the cache of the platform.
"""

from setpoint.datasets.catalog import load, names, table
from setpoint.datasets.generators import (
    Shift,
    drift,
    heavy_tails,
    jump,
    synthetic,
    variance_switch,
)
from setpoint.datasets.labelled import gas_drift, outdoor, power_supply, yeast
from setpoint.datasets.tabular import energy, power, prices, traffic, wind
from setpoint.datasets.values import Dataset, LabelDataset, MultiLabelDataset
from setpoint.errors import AbsentFile, DataError

__all__ = [
    "AbsentFile",
    "DataError",
    "Dataset",
    "LabelDataset",
    "MultiLabelDataset",
    "Shift",
    "drift",
    "energy",
    "gas_drift",
    "heavy_tails",
    "jump",
    "load",
    "names",
    "outdoor",
    "power",
    "power_supply",
    "prices",
    "synthetic",
    "table",
    "traffic",
    "variance_switch",
    "wind",
    "yeast",
]
