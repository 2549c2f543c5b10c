"""Reading and writing images of colours and of depth: 16-bit PNG files, decoded by OpenCV."""

from pathlib import Path
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from setpoint._files import make_folder, put
from setpoint.errors import AbsentFile, DataError

Colours = NDArray[np.uint8]
Depths = NDArray[np.float32]


def opencv() -> ModuleType:
    """OpenCV, imported when the first image is read."""
    import cv2

    module: ModuleType = cv2
    return module


_COUNTS = 256.0
"""Counts a metre in KITTI's files of depth, where 0 is none."""


def decoded(counts: NDArray[np.uint16], per_metre: float = _COUNTS) -> Depths:
    """Metres, NaN where there is no depth."""
    metres = counts.astype(np.float32) / np.float32(per_metre)
    metres[counts == 0] = np.nan
    return metres


def encoded(metres: Depths) -> NDArray[np.uint16]:
    """The nearest counts, at least 1 and at most 65534 where there is a depth, 0 elsewhere."""
    known = np.isfinite(metres)
    counts = np.clip(np.rint(np.where(known, metres, 0.0) * _COUNTS), 1, 65_534)
    made: NDArray[np.uint16] = np.where(known, counts, 0).astype(np.uint16)
    return made


def read_colours(path: Path) -> Colours:
    """An image as uint8 (height, width, 3), red first."""
    cv2 = opencv()
    image = cv2.imdecode(_bytes(path), cv2.IMREAD_COLOR)
    if image is None:
        raise DataError(f"{path} is damaged, or no image: it cannot be decoded")
    made: Colours = np.ascontiguousarray(image[:, :, ::-1])
    return made


def read_depth(path: Path) -> Depths:
    """A depth image in metres, NaN where there is no depth."""
    cv2 = opencv()
    image = cv2.imdecode(_bytes(path), cv2.IMREAD_UNCHANGED)
    if image is None:
        raise DataError(f"{path} is damaged, or no image: it cannot be decoded")
    if image.dtype != np.uint16 or image.ndim != 2:
        channels = 1 if image.ndim == 2 else image.shape[2]
        bits = 8 * image.dtype.itemsize
        raise DataError(
            f"{path} must hold depth as one channel of 16 bits, got {channels} of {bits} bits"
        )
    return decoded(image)


def write_depth(path: Path, metres: Depths) -> None:
    """Depth as a 16-bit PNG file, which appears whole or not at all."""
    _, packed = opencv().imencode(".png", encoded(metres))
    make_folder(path.parent)
    put(path, packed.tobytes())


def _bytes(path: Path) -> NDArray[np.uint8]:
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        raise AbsentFile(f"the image {path} is absent") from None
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    if not data:
        raise DataError(f"{path} is empty")
    return np.frombuffer(data, dtype=np.uint8)
