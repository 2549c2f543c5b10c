"""The paper's streams and others like them: loaded, checked and cached, or made.

Files are looked for in the folder given as `folder`, else in the one that the environment variable
SETPOINT_DATA names, else they are fetched from their source and kept in the cache of the platform.
"""

from setpoint_paper.datasets.augment import Augmentation, Crop, jittered, resized
from setpoint_paper.datasets.catalog import NAMES, load
from setpoint_paper.datasets.clips import Clip, Frame, Split, kitchen_clip, kitti_clip
from setpoint_paper.datasets.colorization import fill_depth
from setpoint_paper.datasets.frames import Frames
from setpoint_paper.datasets.kitti_drives import KITTI_DRIVES, kitti
from setpoint_paper.datasets.labelled import gas_drift, outdoor, power_supply, yeast
from setpoint_paper.datasets.road import road
from setpoint_paper.datasets.tabular import energy, power, prices, synthetic, traffic, wind
from setpoint_paper.datasets.values import Dataset

__all__ = [
    "KITTI_DRIVES", "NAMES", "Augmentation", "Clip", "Crop", "Dataset", "Frame", "Frames", "Split",
    "energy", "fill_depth", "gas_drift", "jittered", "kitchen_clip", "kitti", "kitti_clip", "load",
    "outdoor", "power", "power_supply", "prices", "resized", "road", "synthetic", "traffic",
    "wind", "yeast",
]  # fmt: skip
