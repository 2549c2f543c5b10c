"""Making the two clips from the files their owners serve.

Both are served after an agreement, so whoever wants them gets them first; from there one command
goes on. The predictions that came with the KITTI clip are those of a stored run of another network
and cannot be made: without them the clip has the network's experiments alone.
"""

from pathlib import Path
from typing import Any

import numpy as np

from setpoint._files import whole
from setpoint.errors import AbsentFile, DataError
from setpoint_paper.datasets.augment import resized
from setpoint_paper.datasets.depth_images import opencv

_KITTI, _KITCHEN = "kitti_odom00_208x64.npz", "7scenes_kitchen_128x96.npz"
_NO_DEPTH = 65_535
"""What the Kinect's files hold where there is none."""


def build_kitti_clip(sequence: Path, to: Path, *, frames: int = 500) -> Path:
    """The clip of KITTI odometry 00: the left camera at 64 × 208, depth by stereo matching.

    Parameters
    ----------
    sequence
        The folder of a sequence of the odometry benchmark: image_2, image_3 and calib.txt.
    to
        Where the folder depth with the clip goes.
    frames
        How many first frames.
    """
    cv2 = opencv()
    focal, base = _stereo(sequence / "calib.txt")
    left = _listed(sequence / "image_2", "*.png", frames)
    matcher = cv2.StereoSGBM_create(
        minDisparity=0, numDisparities=128, blockSize=5, P1=8 * 3 * 25, P2=32 * 3 * 25,
        disp12MaxDiff=1, uniquenessRatio=10, speckleWindowSize=100, speckleRange=2,
    )  # fmt: skip
    colours, depths = [], []
    for path in left:
        pair = [_image(cv2, each) for each in (path, sequence / "image_3" / path.name)]
        apart = matcher.compute(*pair).astype(np.float32) / 16.0
        metres = np.where(apart > 0.0, focal * base / np.maximum(apart, 1e-3), np.nan)
        metres[metres > 255.0] = np.nan
        rgb = cv2.cvtColor(pair[0], cv2.COLOR_BGR2RGB)
        shown, depth = resized(rgb, metres.astype(np.float32), 64, 208)
        colours.append(shown)
        depths.append(np.nan_to_num(np.rint(256.0 * depth)).astype(np.uint16))
    arrays = {"rgb": np.stack(colours), "depth_sgm_m256": np.stack(depths)}
    return _written(to, _KITTI, arrays)


def build_kitchen_clip(sequence: Path, to: Path, *, frames: int = 1_000) -> Path:
    """The clip of 7-Scenes: colours and raw depth of a Kinect at 96 × 128.

    Parameters
    ----------
    sequence
        The folder of a sequence of the red kitchen: frame-000000.color.png, frame-000000.depth.png.
    to
        Where the folder depth with the clip goes.
    frames
        How many first frames.
    """
    cv2 = opencv()
    colours, depths = [], []
    for path in _listed(sequence, "*.color.png", frames):
        raw = _image(cv2, path.with_name(path.name.replace(".color.", ".depth.")), as_is=True)
        if raw.dtype != np.uint16:
            raise DataError(f"the depth beside {path} must be uint16, got {raw.dtype}")
        rgb = cv2.cvtColor(_image(cv2, path), cv2.COLOR_BGR2RGB)
        known = np.where(raw == _NO_DEPTH, 0, raw).astype(np.float32)
        shown, depth = resized(rgb, known, 96, 128)
        colours.append(shown)
        depths.append(depth.astype(np.uint16))
    return _written(to, _KITCHEN, {"rgb": np.stack(colours), "depth_mm": np.stack(depths)})


def _stereo(path: Path) -> tuple[float, float]:
    """The focal length in pixels and the distance of the two colour cameras in metres."""
    try:
        lines = dict(line.split(":", 1) for line in path.read_text("utf-8").splitlines() if line)
        left, right = (np.array(lines[name].split(), float).reshape(3, 4) for name in ("P2", "P3"))
    except (OSError, KeyError, ValueError) as error:
        raise DataError(f"{path} must hold the lines P2 and P3 of KITTI: {error}") from None
    return float(left[0, 0]), float((left[0, 3] - right[0, 3]) / left[0, 0])


def _listed(folder: Path, pattern: str, frames: int) -> list[Path]:
    found = sorted(folder.glob(pattern))
    if len(found) < frames:
        raise AbsentFile(f"{folder} must hold {frames:,} files {pattern}, it has {len(found):,}")
    return found[:frames]


def _image(cv2: Any, path: Path, *, as_is: bool = False) -> Any:
    found = cv2.imread(str(path), cv2.IMREAD_UNCHANGED if as_is else cv2.IMREAD_COLOR)
    if found is None:
        raise DataError(f"{path} is absent or no image")
    return found


def _written(to: Path, name: str, arrays: dict[str, Any]) -> Path:
    path = to / "depth" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole(path) as file:
        np.savez_compressed(file, **arrays)
    return path
