"""Frames on disk: KITTI's folders, RGB-D layouts, filled maps kept, and what is refused."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

# Files are written by another library than the one that reads them.
from PIL import Image

from setpoint.errors import AbsentFile, DataError, InputError
from setpoint_paper import datasets
from setpoint_paper.datasets import Augmentation, Crop, Jitter, fill_depth
from setpoint_paper.datasets.rgbd_folders import _nearest

DRIVES = ("2011_09_26_drive_0051_sync", "2011_09_30_drive_0018_sync")


def write(path: Path, array: NDArray[np.generic]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


def colours(seed: int, height: int = 30, width: int = 100) -> NDArray[np.uint8]:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3)).astype(np.uint8)


def counts(seed: int, height: int = 30, width: int = 100) -> NDArray[np.uint16]:
    rng = np.random.default_rng(1000 + seed)
    made = rng.integers(256, 20_000, (height, width)).astype(np.uint16)
    made[rng.random(made.shape) < 0.8] = 0
    return made


@pytest.fixture
def kitti_folder(tmp_path: Path) -> Path:
    """Two drives of ten images of which four are annotated, in the folders KITTI unpacks to."""
    root = tmp_path / "kitti"
    for number, drive in enumerate(DRIVES):
        height, width = (30, 100) if number == 0 else (28, 98)
        for frame in range(10):
            name = f"{frame:010d}.png"
            write(
                root / drive[:10] / drive / "image_03" / "data" / name,
                colours(100 * number + frame, height, width),
            )
            if 3 <= frame < 7:
                write(
                    root / "train" / drive / "proj_depth/groundtruth/image_03" / name,
                    counts(100 * number + frame, height, width),
                )
    return root


# KITTI


def test_annotated_frames_come_in_order_and_in_metres(kitti_folder: Path) -> None:
    frames = datasets.kitti(kitti_folder, drives=DRIVES, view=None)
    assert len(frames) == 8
    for place, frame in enumerate(frames):
        number, seed = place // 4, 100 * (place // 4) + 3 + place % 4
        size = (30, 100) if number == 0 else (28, 98)
        assert np.array_equal(frame.rgb, colours(seed, *size))
        held = counts(seed, *size)
        for i in range(size[0]):
            for j in range(0, size[1], 9):
                want, got = int(held[i, j]), float(frame.depth[i, j])
                assert np.isnan(got) if want == 0 else got == want / 256
    assert "2011_09_26_drive_0051_sync has 4 annotated frames here, not 428" in repr(frames)
    assert "LiDAR" in repr(frames)


def test_the_drives_of_the_paper_are_known_with_their_frames() -> None:
    assert sum(datasets.KITTI_DRIVES.values()) == 10_877
    assert list(datasets.KITTI_DRIVES)[-1] == "2011_09_30_drive_0028_sync"


def test_only_so_many_frames_are_taken_and_no_further_drive_is_asked_for(
    kitti_folder: Path,
) -> None:
    frames = datasets.kitti(kitti_folder, drives=(*DRIVES, "2011_09_29_drive_0071_sync"), frames=6)
    assert len(frames) == 6
    with pytest.raises(
        AbsentFile, match="the folder of the images of 2011_09_29_drive_0071_sync is not in"
    ):
        datasets.kitti(kitti_folder, drives=(*DRIVES, "2011_09_29_drive_0071_sync"))


def test_depth_maps_may_lie_elsewhere_and_be_found_by_the_environment(
    kitti_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "maps").mkdir()
    (kitti_folder / "train").rename(tmp_path / "maps" / "val")
    with pytest.raises(AbsentFile, match=r"annotated depth of .*eval_depth\.php"):
        datasets.kitti(kitti_folder, drives=DRIVES)
    frames = datasets.kitti(kitti_folder, annotated=tmp_path / "maps", drives=DRIVES)
    assert len(frames) == 8
    monkeypatch.setenv("SETPOINT_DATA", str(tmp_path))
    assert len(datasets.kitti(annotated=tmp_path / "maps", drives=DRIVES)) == 8
    monkeypatch.delenv("SETPOINT_DATA")
    with pytest.raises(AbsentFile, match=r"SETPOINT_DATA names no folder: get them from https.*"):
        datasets.kitti(drives=DRIVES)


def test_the_view_of_the_paper_makes_drives_of_two_sizes_one_clip(kitti_folder: Path) -> None:
    frames = datasets.kitti(kitti_folder, drives=DRIVES, view=Crop(0.5, 40))
    clip = frames.clip()
    assert clip.depth.shape == (8, 40, 40)
    assert clip.rate == 10.0
    for place in (0, 7):
        size = (30, 100) if place == 0 else (28, 98)
        held = counts(3 if place == 0 else 106, *size)
        rows, columns = size[0] // 2, size[1] // 2
        for i in range(40):
            for j in range(40):
                above = i < 40 - rows
                count = (
                    0 if above else held[(i - 40 + rows) * size[0] // rows, j * size[1] // columns]
                )
                got = float(clip.depth[place, i, j])
                assert np.isnan(got) if count == 0 else got == count / 256
    with pytest.raises(InputError, match=r"must be of one size, got \(28, 98\) in .*drive_0018"):
        datasets.kitti(kitti_folder, drives=DRIVES, view=None).clip()


def test_an_annotated_frame_without_its_image_is_told(kitti_folder: Path) -> None:
    gone = kitti_folder / DRIVES[0][:10] / DRIVES[0] / "image_03/data/0000000004.png"
    gone.unlink()
    with pytest.raises(DataError, match=r"0000000004\.png has no image 0000000004\.png or \.jpg"):
        datasets.kitti(kitti_folder, drives=DRIVES)
    for path in (kitti_folder / "train" / DRIVES[0]).rglob("*.png"):
        path.unlink()
    with pytest.raises(DataError, match="holds no depth map"):
        datasets.kitti(kitti_folder, drives=DRIVES)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"camera": "image_00"}, "camera must be one of 'image_02', 'image_03', got 'image_00'"),
        ({"drives": ()}, "drives must be a sequence"),
        ({"drives": DRIVES[0]}, "drives must be a sequence"),
        ({"frames": 0}, "frames must"),
        ({"unit": "feet"}, "unit must be one of 'metres', 'paper', got 'feet'"),
        ({"seed": -1}, "seed must"),
    ],
)
def test_options_out_of_range_are_refused(
    kitti_folder: Path, options: dict[str, object], told: str
) -> None:
    with pytest.raises(InputError, match=told):
        datasets.kitti(kitti_folder, **{"drives": DRIVES, **options})  # type: ignore[arg-type]


def test_the_unit_of_the_paper_is_the_same_in_every_frame(kitti_folder: Path) -> None:
    metres = datasets.kitti(kitti_folder, drives=DRIVES, view=Crop(0.5, 40))
    paper = datasets.kitti(kitti_folder, drives=DRIVES, view=Crop(0.5, 40), unit="paper")
    for one, other in zip(metres, paper, strict=True):
        assert np.allclose(one.depth / 8, other.depth, equal_nan=True)
    assert "units of 8 m" in repr(paper)


# Seeds


def same(one: NDArray[np.generic], other: NDArray[np.generic]) -> bool:
    return np.array_equal(one, other)


def test_testing_is_the_same_on_each_reading_and_another_in_each_trial(kitti_folder: Path) -> None:
    def trial(seed: int) -> datasets.Frames:
        view = Crop(0.5, 40, Jitter())
        return datasets.kitti(kitti_folder, drives=DRIVES, view=view, seed=seed)

    one, other = trial(0), trial(1)
    assert same(one[2].rgb, one[2].rgb)
    assert same(one[2].rgb, trial(0)[2:][0].rgb)  # a slice changes nothing
    assert not same(one[2].rgb, other[2].rgb)
    assert np.array_equal(one[2].depth, other[2].depth, equal_nan=True)


def test_training_is_another_in_each_epoch_and_the_same_for_equal_seeds(
    kitti_folder: Path,
) -> None:
    frames = datasets.kitti(kitti_folder, drives=DRIVES)
    view = Augmentation(side=16)
    first, again, second = (frames.training(epoch, view) for epoch in (0, 0, 1))
    assert same(first[1].rgb, again[1].rgb)
    assert not same(first[1].rgb, second[1].rgb)
    assert not same(first[1].rgb, first[2].rgb)
    assert frames.training(0)[0].rgb.shape == (448, 448, 3)
    with pytest.raises(InputError, match="epoch must"):
        frames.training(-1)


def test_frames_are_split_as_clips_are(kitti_folder: Path) -> None:
    frames = datasets.kitti(kitti_folder, drives=DRIVES)
    parts = frames.split()
    assert parts == (range(3), range(3, 4), range(4, 8))
    assert [pair.place for pair in frames[parts.test].pairs] == [4, 5, 6, 7]


# Filled maps


def test_holes_stay_holes_unless_filling_is_asked_for(kitti_folder: Path) -> None:
    holes = datasets.kitti(kitti_folder, drives=DRIVES, view=None)[0]
    filled = datasets.kitti(kitti_folder, drives=DRIVES, view=None, fill=True)[0]
    known = np.isfinite(holes.depth)
    assert known.mean() < 0.3
    assert np.array_equal(filled.depth[known], holes.depth[known])
    want = fill_depth(holes.rgb, holes.depth)
    assert np.abs(filled.depth - want).max() <= 0.5 / 256 + 1e-6


def test_filled_maps_are_kept_and_read_again(kitti_folder: Path, tmp_path: Path) -> None:
    cache = tmp_path / "kept"
    frames = datasets.kitti(kitti_folder, drives=DRIVES, view=None, fill=True, cache=cache)
    plain = datasets.kitti(kitti_folder, drives=DRIVES, view=None, fill=True)
    first = frames[1].depth
    kept = cache / DRIVES[0] / "image_03" / "0000000004.png"
    assert [path for path in cache.rglob("*") if path.is_file()] == [kept]
    assert np.array_equal(frames[1].depth, first)
    assert np.array_equal(plain[1].depth, first)
    # What is read the second time is the file.
    write(kept, np.full((30, 100), 512, np.uint16))
    assert (frames[1].depth == 2.0).all()
    write(kept, np.full((3, 10), 512, np.uint16))
    with pytest.raises(DataError, match=r"must be 30 × 100 as .* got 3 × 10: remove it"):
        frames[1]


def test_a_frame_without_a_known_pixel_stays_unknown(kitti_folder: Path, tmp_path: Path) -> None:
    path = kitti_folder / "train" / DRIVES[0] / "proj_depth/groundtruth/image_03/0000000003.png"
    write(path, np.zeros((30, 100), np.uint16))
    for fill in (False, True):
        frames = datasets.kitti(
            kitti_folder, drives=DRIVES, view=Crop(0.5, 40), fill=fill, cache=tmp_path / "kept"
        )
        for _ in range(2):
            assert np.isnan(frames[0].depth).all()


# RGB-D folders


def tum(root: Path) -> None:
    lines = {"rgb": ["# colour images"], "depth": ["# depth maps", ""]}
    for place in range(5):
        moment = 1305031102.175 + place / 30
        for kind, late in (("rgb", 0.0), ("depth", 0.007)):
            name = f"{kind}/{moment + late:.6f}.png"
            lines[kind].append(f"{moment + late:.6f} {name}")
            made = colours(place, 6, 8) if kind == "rgb" else counts(place, 6, 8)
            write(root / name, made)
    for kind, text in lines.items():
        (root / f"{kind}.txt").write_text("\n".join(text) + "\n", encoding="utf-8")


def seven_scenes(root: Path) -> None:
    for place in range(3):
        held = counts(place, 6, 8)
        held[0, 0] = 65_535
        write(root / f"frame-{place:06d}.color.png", colours(place, 6, 8))
        write(root / f"frame-{place:06d}.depth.png", held)
        (root / f"frame-{place:06d}.pose.txt").write_text("1 0 0 0\n", encoding="utf-8")


def two_folders(root: Path) -> None:
    for place in range(12):  # 10 comes after 9, not after 1
        write(root / "color" / f"{place}.png", colours(place, 6, 8))
        write(root / "depth" / f"{place}.png", counts(place, 6, 8))


@pytest.mark.parametrize(
    ("make", "layout", "per_metre", "length"),
    [(tum, "tum", 5000, 5), (seven_scenes, "7scenes", 1000, 3), (two_folders, "folders", 1000, 12)],
)
def test_every_layout_is_found_and_read_in_metres(
    tmp_path: Path, make: Callable[[Path], None], layout: str, per_metre: int, length: int
) -> None:
    tmp_path.mkdir(exist_ok=True)
    make(tmp_path)
    given = 1000.0 if layout == "folders" else None
    for asked in ("auto", layout):
        frames = datasets.rgbd_folder(tmp_path, layout=asked, per_metre=given)
        assert len(frames) == length
        for place, frame in enumerate(frames):
            assert np.array_equal(frame.rgb, colours(place, 6, 8))
            held = counts(place, 6, 8)
            if layout == "7scenes":
                held[0, 0] = 0
            for i in range(6):
                for j in range(8):
                    want, got = int(held[i, j]), float(frame.depth[i, j])
                    assert np.isnan(got) if want == 0 else got == pytest.approx(want / per_metre)
    assert frames.rate == {"tum": 30.0, "7scenes": 30.0, "folders": None}[layout]
    other = datasets.rgbd_folder(tmp_path, per_metre=100.0, frames=1)
    assert len(other) == 1
    assert np.nanmax(other[0].depth) == pytest.approx(counts(0, 6, 8).max() / 100)


def test_a_folder_without_a_layout_is_told(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match="has none of the layouts tum, 7scenes and folders: it must"
    ):
        datasets.rgbd_folder(tmp_path)
    two_folders(tmp_path)
    with pytest.raises(DataError, match=r"has not the layout 'tum': it must hold rgb\.txt"):
        datasets.rgbd_folder(tmp_path, layout="tum")
    with pytest.raises(InputError, match="per_metre must be given for the layout 'folders'"):
        datasets.rgbd_folder(tmp_path)
    with pytest.raises(InputError, match="layout must be one of 'auto', 'tum'"):
        datasets.rgbd_folder(tmp_path, layout="scannet")
    with pytest.raises(AbsentFile, match="path must be a folder"):
        datasets.rgbd_folder(tmp_path / "nowhere")


def test_a_missing_partner_is_told_or_left_out(tmp_path: Path) -> None:
    two_folders(tmp_path)
    (tmp_path / "depth" / "9.png").unlink()
    (tmp_path / "color" / "10.png").unlink()
    with pytest.raises(DataError, match=r"9\.png has no depth map .* nor have 1 other files"):
        datasets.rgbd_folder(tmp_path, per_metre=1000.0)
    frames = datasets.rgbd_folder(tmp_path, per_metre=1000.0, missing="skip")
    assert [pair.label for pair in frames.pairs] == [*map(str, range(9)), "11"]
    for path in (tmp_path / "color").iterdir():
        path.unlink()
    with pytest.raises(DataError, match="holds no image that has a depth map"):
        datasets.rgbd_folder(tmp_path, per_metre=1000.0, missing="skip")


def test_depth_of_eight_bits_or_three_channels_is_refused(tmp_path: Path) -> None:
    two_folders(tmp_path)
    frames = datasets.rgbd_folder(tmp_path, per_metre=1000.0)
    path = tmp_path / "depth" / "0.png"
    write(path, np.ones((6, 8), np.uint8))
    with pytest.raises(
        DataError, match=r"0\.png must hold depth as one channel of 16 bits, got 1 of 8"
    ):
        frames[0]
    write(path, np.ones((6, 8, 3), np.uint8))
    with pytest.raises(DataError, match="got 3 of 8 bits"):
        frames[0]


def test_damaged_files_are_told(tmp_path: Path) -> None:
    two_folders(tmp_path)
    frames = datasets.rgbd_folder(tmp_path, per_metre=1000.0)
    (tmp_path / "depth" / "0.png").write_bytes(b"no image")
    (tmp_path / "color" / "1.png").write_bytes(b"")
    (tmp_path / "color" / "2.png").unlink()
    whole = (tmp_path / "depth" / "3.png").read_bytes()
    (tmp_path / "depth" / "3.png").write_bytes(whole[: len(whole) // 2])
    for place, told in enumerate(
        ["cannot be decoded", "is empty", "is absent", "cannot be decoded"]
    ):
        with pytest.raises(DataError, match=told):
            frames[place]


def test_images_of_another_size_are_refused_or_fitted(tmp_path: Path) -> None:
    two_folders(tmp_path)
    rgb = np.zeros((12, 16, 3), np.uint8)
    rgb[:, 8:] = 100
    write(tmp_path / "color" / "0.png", rgb)
    with pytest.raises(DataError, match=r"one size, got 12 × 16 and 6 × 8: fit_colours=True"):
        datasets.rgbd_folder(tmp_path, per_metre=1000.0)[0]
    frame = datasets.rgbd_folder(tmp_path, per_metre=1000.0, fit_colours=True)[0]
    assert np.array_equal(frame.rgb, rgb[::2, ::2])


# Times


def test_times_are_paired_as_by_trying_every_pair() -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        first, second = (np.sort(rng.uniform(0, 3, size)) for size in (40, 35))
        every = sorted(
            (abs(a - b), i, j)
            for i, a in enumerate(first)
            for j, b in enumerate(second)
            if abs(a - b) <= 0.05
        )
        want: list[tuple[int, int]] = []
        for _, i, j in every:
            if all(i != k and j != m for k, m in want):
                want.append((i, j))
        assert _nearest(first, second, 0.05) == sorted(want)


def test_times_too_far_apart_and_bad_lists_are_told(tmp_path: Path) -> None:
    tum(tmp_path)
    assert len(datasets.rgbd_folder(tmp_path, tolerance=0.0071)) == 5
    with pytest.raises(DataError, match=r"has a depth map within 0\.001 seconds"):
        datasets.rgbd_folder(tmp_path, tolerance=0.001)
    held = (tmp_path / "rgb.txt").read_text(encoding="utf-8")
    (tmp_path / "rgb.txt").write_text(held + "soon rgb/x.png\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"line 7 of .*rgb\.txt must be a time and a file"):
        datasets.rgbd_folder(tmp_path)
    (tmp_path / "rgb.txt").write_text(held + held, encoding="utf-8")
    with pytest.raises(DataError, match="must name each time once"):
        datasets.rgbd_folder(tmp_path)
