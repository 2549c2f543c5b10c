"""Frames on disk: KITTI's folders, filled maps kept, and what is refused."""

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

# Files are written by another library than the one that reads them.
from PIL import Image

from setpoint.errors import AbsentFile, DataError, InputError
from setpoint_paper import datasets
from setpoint_paper.datasets import Augmentation, Crop, fill_depth
from setpoint_paper.datasets.frames import Pair

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
    for place in range(len(frames)):
        frame = frames[place]
        number, seed = place // 4, 100 * (place // 4) + 3 + place % 4
        size = (30, 100) if number == 0 else (28, 98)
        assert np.array_equal(frame.rgb, colours(seed, *size))
        held = counts(seed, *size)
        for i in range(size[0]):
            for j in range(0, size[1], 9):
                want, got = int(held[i, j]), float(frame.depth[i, j])
                assert np.isnan(got) if want == 0 else got == want / 256
    assert "2011_09_26_drive_0051_sync has 4 annotated frames here, not 428" in frames.note


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
    frames = datasets.kitti(kitti_folder, drives=DRIVES, view=Crop(40))
    depth = np.stack([frames[place].depth for place in range(len(frames))])
    assert depth.shape == (8, 40, 40)
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
                got = float(depth[place, i, j])
                assert np.isnan(got) if count == 0 else got == count / 256


def test_an_annotated_frame_without_its_image_is_told(kitti_folder: Path) -> None:
    gone = kitti_folder / DRIVES[0][:10] / DRIVES[0] / "image_03/data/0000000004.png"
    gone.unlink()
    with pytest.raises(DataError, match=r"0000000004\.png has no image 0000000004\.png or \.jpg"):
        datasets.kitti(kitti_folder, drives=DRIVES)
    for path in (kitti_folder / "train" / DRIVES[0]).rglob("*.png"):
        path.unlink()
    with pytest.raises(DataError, match="holds no depth map"):
        datasets.kitti(kitti_folder, drives=DRIVES)


# Seeds


def same(one: NDArray[np.generic], other: NDArray[np.generic]) -> bool:
    return np.array_equal(one, other)


def test_testing_is_the_same_on_each_reading_and_another_in_each_trial(kitti_folder: Path) -> None:
    def trial(seed: int) -> datasets.Frames:
        view = Crop(40, jitter=True)
        return datasets.kitti(kitti_folder, drives=DRIVES, view=view, seed=seed)

    one, other = trial(0), trial(1)
    assert same(one[2].rgb, one[2].rgb)
    assert same(one[2].rgb, trial(0)[2:][0].rgb)  # a slice changes nothing
    assert not same(one[2].rgb, other[2].rgb)
    assert np.array_equal(one[2].depth, other[2].depth, equal_nan=True)


def test_training_is_another_in_each_epoch_and_the_same_for_equal_seeds(kitti_folder: Path) -> None:
    frames = datasets.kitti(kitti_folder, drives=DRIVES)
    view = Augmentation(16)
    first, again, second = (frames.training(epoch, view) for epoch in (0, 0, 1))
    assert same(first[1].rgb, again[1].rgb)
    assert not same(first[1].rgb, second[1].rgb)
    assert not same(first[1].rgb, first[2].rgb)
    assert frames.training(0, Augmentation())[0].rgb.shape == (448, 448, 3)
    with pytest.raises(InputError, match="epoch must"):
        frames.training(-1, view)


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
            kitti_folder, drives=DRIVES, view=Crop(40), fill=fill, cache=tmp_path / "kept"
        )
        for _ in range(2):
            assert np.isnan(frames[0].depth).all()


def two_folders(root: Path) -> datasets.Frames:
    for place in range(4):
        write(root / "color" / f"{place}.png", colours(place, 6, 8))
        write(root / "depth" / f"{place}.png", counts(place, 6, 8))
    pairs = (Pair(i, "", root / f"color/{i}.png", root / f"depth/{i}.png") for i in range(4))
    return datasets.Frames("made", tuple(pairs))


def test_damaged_files_are_told(tmp_path: Path) -> None:
    frames = two_folders(tmp_path)
    one, two, three, four = (tmp_path / "depth" / f"{place}.png" for place in range(4))
    write(one, np.ones((6, 8, 3), np.uint8))
    two.write_bytes(b"no image")
    three.unlink()
    four.write_bytes(b"")
    told = ("one channel of 16 bits, got 3 of 8", "cannot be decoded", "is absent", "is empty")
    for place, words in enumerate(told):
        with pytest.raises(DataError, match=words):
            frames[place]
    one.write_bytes(b"")
    (tmp_path / "color" / "0.png").write_bytes(b"no image")
    with pytest.raises(DataError, match="cannot be decoded"):
        frames[0]
