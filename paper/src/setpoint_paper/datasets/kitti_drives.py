"""The paper's drives of KITTI: colours of the right camera and annotated depth maps."""

from collections.abc import Sequence
from pathlib import Path

from setpoint._check import whole
from setpoint.errors import AbsentFile, DataError
from setpoint_paper.datasets.augment import Augmentation, Crop
from setpoint_paper.datasets.files import VARIABLE, Folder, named_folder
from setpoint_paper.datasets.frames import Frames, Pair
from setpoint_paper.datasets.sources import DEPTH_SOURCES

KITTI_DRIVES = {
    "2011_09_26_drive_0051_sync": 428,
    "2011_09_26_drive_0057_sync": 351,
    "2011_09_26_drive_0059_sync": 363,
    "2011_09_26_drive_0096_sync": 465,
    "2011_09_26_drive_0104_sync": 302,
    "2011_09_29_drive_0071_sync": 1_049,
    "2011_09_30_drive_0018_sync": 2_752,
    "2011_09_30_drive_0028_sync": 5_167,
}
"""The paper's drives in its order, with the number of annotated frames of each: 10,877 in all."""

_PAPER_VIEW, _CAMERA = Crop(), "image_03"
_RAW_PAGE = "https://www.cvlibs.net/datasets/kitti/raw_data.php"


def kitti(
    folder: Folder = None,
    *,
    annotated: Folder = None,
    drives: Sequence[str] = tuple(KITTI_DRIVES),
    frames: int | None = 10_000,
    view: Crop | Augmentation | None = _PAPER_VIEW,
    fill: bool = False,
    cache: Folder = None,
    seed: int = 0,
) -> Frames:
    """The paper's drives of KITTI: every annotated frame in order, the first 10,000 of them.

    The depth is LiDAR, gathered over eleven scans and checked against stereo; most pixels have
    none. The files come from KITTI after registration, as the raw drives (synced and
    rectified) and the annotated depth maps, and stay in the folders they unpack to:

        2011_09_26/2011_09_26_drive_0051_sync/image_03/data/0000000005.png
        train/2011_09_26_drive_0051_sync/proj_depth/groundtruth/image_03/0000000005.png

    Frames without annotation, the first and last five of a drive, are left out. The authors' code
    divides each frame by its own largest depth, which tells the model something of the truth; here
    depth is in metres.

    Parameters
    ----------
    folder
        Where the drives are; None: the folder kitti in the one that SETPOINT_DATA names.
    annotated
        Where the depth maps are, when not in `folder` too.
    drives
        Names of drives, in the order wanted.
    frames
        At most so many frames from the start; None: all.
    view
        What is done to each frame, by default the paper's `Crop`; None leaves it as it is. The
        sizes of the days differ.
    fill
        The paper filled the holes of the depth maps by colourisation and judged the filled pixels
        like the others. False, the default, leaves them invalid: what is promised is then promised
        of measured depth, not of a guess made from the colours. True does as the paper.
    cache
        Folder to keep filled depth maps in.
    seed
        Seed of the trial, for what is random in a view.
    """
    left = None if frames is None else whole(frames, "frames", 1)
    raw = _place(folder)
    maps = raw if annotated is None else named_folder(annotated) or raw
    files: list[tuple[str, Path, Path]] = []
    notes = []
    for drive in drives:
        if left is not None and len(files) >= left:
            break
        found = _drive(raw, maps, drive)
        files += found
        expected = KITTI_DRIVES.get(drive, len(found))
        if len(found) != expected:
            notes.append(f"{drive} has {len(found)} annotated frames here, not {expected}")
    pairs = tuple(Pair(place, *each) for place, each in enumerate(files[:left]))
    return Frames("kitti", pairs, view, fill, cache, seed, note="; ".join(notes))


def _place(folder: Folder) -> Path:
    named = named_folder(folder)
    if named is None:
        raise AbsentFile(
            f"the drives of KITTI cannot be looked for, because {VARIABLE} names no folder: get "
            f"them from {_RAW_PAGE} and their annotated depth maps from "
            f"{DEPTH_SOURCES['kitti'].page} (both need a registration), and give their folder"
        )
    return named / "kitti" if folder is None else named


def _drive(raw: Path, maps: Path, drive: str) -> list[tuple[str, Path, Path]]:
    """The label and the two files of every annotated frame of a drive."""
    day = drive[:10]
    colours = _first(
        [raw / day / drive, raw / drive, raw / "raw" / day / drive],
        f"{_CAMERA}/data", f"the folder of the images of {drive}", raw, _RAW_PAGE,
    )  # fmt: skip
    parts = ("train", "val", "data_depth_annotated/train", "data_depth_annotated/val", "", day)
    depths = _first(
        [maps / part / drive for part in parts],
        f"proj_depth/groundtruth/{_CAMERA}", f"the folder of the annotated depth of {drive}", maps,
        DEPTH_SOURCES["kitti"].page,
    )  # fmt: skip
    found = []
    for depth in sorted(depths.glob("*.png")):
        image = _image(colours / depth.stem)
        if image is None:
            raise DataError(f"{depth} has no image {depth.stem}.png or .jpg in {colours}")
        found.append((f"{drive}/{_CAMERA}/{depth.stem}", image, depth))
    if not found:
        raise DataError(f"{depths} holds no depth map: it must hold files such as 0000000005.png")
    return found


def _image(path: Path) -> Path | None:
    for suffix in (".png", ".jpg"):
        image = path.with_suffix(suffix)
        if image.is_file():
            return image
    return None


def _first(drives: list[Path], below: str, what: str, place: Path, page: str) -> Path:
    for drive in drives:
        if (drive / below).is_dir():
            return drive / below
    raise AbsentFile(
        f"{what} is not in {place}: get it from {page}, which needs a registration, and unpack it "
        f"there, so that {drives[0].relative_to(place) / below} is a folder in it"
    )
