"""Folders of colour and depth images in the layouts that RGB-D data sets come in."""

import re
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from setpoint._check import choice, positive, whole
from setpoint.errors import AbsentFile, DataError, InputError
from setpoint_paper.datasets.augment import View
from setpoint_paper.datasets.depth_images import Coding
from setpoint_paper.datasets.files import Folder
from setpoint_paper.datasets.frames import Frames, paired

__all__ = ["rgbd_folder"]

Files = list[tuple[str, Path, Path]]
_LAYOUTS = ("auto", "tum", "7scenes", "folders")
_COLOUR_NAMES = ("color", "colour", "rgb", "image", "images")
_DEPTH_NAMES = ("depth", "depths")
_IMAGES = (".png", ".jpg", ".jpeg")
_CODINGS = {"tum": Coding(5000.0), "7scenes": Coding(1000.0, (0, 65_535))}


def rgbd_folder(
    path: str | Path,
    *,
    layout: str = "auto",
    per_metre: float | None = None,
    tolerance: float = 0.02,
    missing: str = "error",
    frames: int | None = None,
    view: View | None = None,
    fill: bool = False,
    cache: Folder = None,
    unit: str = "metres",
    fit_colours: bool = False,
    seed: int = 0,
) -> Frames:
    """The frames of a folder of colour and depth images, in the layout it has.

    - "tum": lists `rgb.txt` and `depth.txt` of times and files, each image going with the depth
      map nearest in time; 5000 counts a metre (TUM RGB-D).
    - "7scenes": `frame-000000.color.png` beside `frame-000000.depth.png`; millimetres, 65535 and 0
      being none (7-Scenes).
    - "folders": one folder of images and one of depth maps, such as `color` and `depth`, with
      files of the same stems (ScanNet, NYU as usually exported); `per_metre` must be given.

    Depth is in one channel of 16 bits, 0 being none.

    Parameters
    ----------
    path
        The folder.
    layout
        One of the above, or "auto": the first of them that the folder has.
    per_metre
        Counts a metre, where they are not those of the layout.
    tolerance
        Seconds that an image and its depth map may lie apart, in "tum"; what has no partner so
        near is left out.
    missing
        What is done with an image or a depth map without its partner in the other layouts:
        "error", or "skip".
    frames
        At most so many frames from the start; None: all.
    view, fill, cache, unit, fit_colours, seed
        As in `Frames`.

    References
    ----------
    Sturm et al., A benchmark for the evaluation of RGB-D SLAM systems, IROS 2012; Shotton et al.,
    CVPR 2013; Dai et al., ScanNet, CVPR 2017.
    """
    choice(layout, "layout", _LAYOUTS)
    choice(missing, "missing", ("error", "skip"))
    positive(tolerance, "tolerance")
    if frames is not None:
        whole(frames, "frames", 1)
    place = Path(path).expanduser()
    if not place.is_dir():
        raise AbsentFile(f"path must be a folder of colour and depth images, got {str(path)!r}")
    kind = _layout(place, layout)
    rate = None
    if kind == "tum":
        files, rate = _tum(place, tolerance)
    elif kind == "7scenes":
        rate = 30.0
        files = _matched(
            _stems(place, ".color.png"), _stems(place, ".depth.png"), place, place, missing
        )
    else:
        colours, depths = _two_folders(place)
        files = _matched(_images(colours), _images(depths), colours, depths, missing)
    if not files:
        raise DataError(f"{place} holds no image that has a depth map")
    return Frames(
        place.resolve().name, paired(files[:frames]), _coding(kind, per_metre), view, fill, cache,
        unit, fit_colours, seed, None, rate,
    )  # fmt: skip


def _layout(place: Path, asked: str) -> str:
    """The layout a folder has; an error where it has none, or not the one asked for."""
    there = []
    if (place / "rgb.txt").is_file() and (place / "depth.txt").is_file():
        there.append("tum")
    if next(place.glob("*.color.png"), None) or next(place.glob("*.depth.png"), None):
        there.append("7scenes")
    if _named(place, _COLOUR_NAMES) and _named(place, _DEPTH_NAMES):
        there.append("folders")
    if asked in there or (asked == "auto" and there):
        return there[0] if asked == "auto" else asked
    looked = "none of the layouts tum, 7scenes and folders" if asked == "auto" else repr(asked)
    raise DataError(
        f"{place} has {'' if asked == 'auto' else 'not the layout '}{looked}: it must hold rgb.txt "
        "and depth.txt (tum), files *.color.png and *.depth.png (7scenes), or a folder color and "
        "a folder depth (folders)"
    )


def _coding(kind: str, per_metre: float | None) -> Coding:
    known = _CODINGS.get(kind)
    if per_metre is None:
        if known is None:
            raise InputError(
                "per_metre must be given for the layout 'folders': 1000 where depth is in "
                "millimetres, as ScanNet has it; got None"
            )
        return known
    return Coding(per_metre) if known is None else Coding(per_metre, known.none)


# Files of the same stem


def _named(place: Path, names: tuple[str, ...]) -> Path | None:
    return next((place / name for name in names if (place / name).is_dir()), None)


def _two_folders(place: Path) -> tuple[Path, Path]:
    colours, depths = _named(place, _COLOUR_NAMES), _named(place, _DEPTH_NAMES)
    if colours is None or depths is None:
        raise DataError(f"{place} must hold a folder color and a folder depth")
    return colours, depths


def _stems(place: Path, ending: str) -> dict[str, Path]:
    return {path.name.removesuffix(ending): path for path in place.glob(f"*{ending}")}


def _images(place: Path) -> dict[str, Path]:
    return {path.stem: path for path in place.iterdir() if path.suffix.lower() in _IMAGES}


def _matched(
    colours: dict[str, Path], depths: dict[str, Path], first: Path, second: Path, missing: str
) -> Files:
    """Pairs of the same stem, numbers in stems counted as numbers."""
    alone = sorted(colours.keys() ^ depths.keys(), key=_natural)
    if alone and missing == "error":
        stem = alone[0]
        held, place = (colours[stem], second) if stem in colours else (depths[stem], first)
        what = "depth map" if stem in colours else "image"
        raise DataError(
            f"{held} has no {what} of its name in {place}, nor have {len(alone) - 1} other files: "
            "missing='skip' leaves them out"
        )
    both = sorted(colours.keys() & depths.keys(), key=_natural)
    return [(stem, colours[stem], depths[stem]) for stem in both]


def _natural(stem: str) -> list[tuple[int, str]]:
    """A key by which 9 comes before 10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", stem)]


# Lists of times


def _tum(place: Path, tolerance: float) -> tuple[Files, float | None]:
    times, colours = _listed(place / "rgb.txt")
    depth_times, depths = _listed(place / "depth.txt")
    pairs = _nearest(times, depth_times, tolerance)
    if not pairs:
        raise DataError(
            f"no image of {place / 'rgb.txt'} has a depth map within {tolerance:g} seconds"
        )
    files = [(colours[i].stem, colours[i], depths[j]) for i, j in pairs]
    kept = times[[i for i, _ in pairs]]
    rate = round(float(1 / np.median(np.diff(kept))), 1) if len(kept) > 1 else None
    return files, rate


def _listed(path: Path) -> tuple[NDArray[np.float64], list[Path]]:
    """Times and files of a list, in order of time."""
    rows = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        try:
            time, name = line.split()[:2]
            rows.append((float(time), path.parent / name))
        except ValueError:
            raise DataError(
                f"line {number} of {path} must be a time and a file, got {line!r}"
            ) from None
    rows.sort()
    if len({time for time, _ in rows}) < len(rows):
        raise DataError(f"{path} must name each time once")
    return np.array([time for time, _ in rows]), [name for _, name in rows]


def _nearest(
    first: NDArray[np.float64], second: NDArray[np.float64], tolerance: float
) -> list[tuple[int, int]]:
    """Pairs of times, the nearest taken first, each time used once; in order of the first."""
    low = np.searchsorted(second, first - tolerance, side="left")
    high = np.searchsorted(second, first + tolerance, side="right")
    near = [
        (abs(float(first[i] - second[j])), i, j)
        for i in range(len(first))
        for j in range(int(low[i]), int(high[i]))
    ]
    taken: dict[int, int] = {}
    used: set[int] = set()
    for _, i, j in sorted(near):
        if i not in taken and j not in used:
            taken[i] = j
            used.add(j)
    return sorted(taken.items())
