"""The paper's streams and others to try the library on: loaded, checked and cached, or made.

Files are looked for in the folder given as `folder`, else in the one that the environment variable
SETPOINT_DATA names, else they are fetched from their source and kept in the cache of the platform.
"""

from setpoint.datasets._colorization import fill_depth
from setpoint.datasets._depth_folders import rgbd_folder
from setpoint.datasets._depth_frames import Frames
from setpoint.datasets._depth_kitti import KITTI_DRIVES, kitti
from setpoint.datasets._depth_road import road
from setpoint.datasets.augment import Augmentation, Crop, Jitter, View, resized
from setpoint.datasets.catalog import load, names, table
from setpoint.datasets.depth import Clip, Frame, Split, kitchen_clip, kitti_clip, split
from setpoint.datasets.labelled import gas_drift, outdoor, power_supply, yeast
from setpoint.datasets.tabular import energy, power, prices, traffic, wind
from setpoint.datasets.values import Dataset, LabelDataset, MultiLabelDataset
from setpoint.errors import AbsentFile, DataError
from setpoint.generators import (
    Shift,
    drift,
    heavy_tails,
    jump,
    synthetic,
    variance_switch,
)

__all__ = [
    "KITTI_DRIVES",
    "AbsentFile",
    "Augmentation",
    "Clip",
    "Crop",
    "DataError",
    "Dataset",
    "Frame",
    "Frames",
    "Jitter",
    "LabelDataset",
    "MultiLabelDataset",
    "Shift",
    "Split",
    "View",
    "drift",
    "energy",
    "fill_depth",
    "gas_drift",
    "heavy_tails",
    "jump",
    "kitchen_clip",
    "kitti",
    "kitti_clip",
    "load",
    "names",
    "outdoor",
    "power",
    "power_supply",
    "prices",
    "resized",
    "rgbd_folder",
    "road",
    "split",
    "synthetic",
    "table",
    "traffic",
    "variance_switch",
    "wind",
    "yeast",
]
