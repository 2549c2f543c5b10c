"""Clips of video with depth: what they hold, how they are cut, and the two real ones."""

from pathlib import Path

import numpy as np
import pytest

from setpoint.errors import AbsentFile, DataError
from setpoint_paper import datasets
from setpoint_paper.datasets import Clip
from setpoint_paper.datasets.clips import wrapped


def small(frames: int = 10, **changes: object) -> Clip:
    rng = np.random.default_rng(0)
    held: dict[str, object] = {
        "name": "small",
        "rgb": rng.integers(0, 256, (frames, 4, 6, 3)).astype(np.uint8),
        "depth": rng.uniform(1, 9, (frames, 4, 6)).astype(np.float32),
        "stored": rng.uniform(1, 9, (frames, 4, 6)).astype(np.float32),
    }
    return Clip(**{**held, **changes})  # type: ignore[arg-type]


# The value


@pytest.mark.parametrize("frames", [0, 1, 2, 4, 5, 10, 499, 500, 1000])
def test_a_split_covers_every_frame_once_in_order(frames: int) -> None:
    parts = small(frames).split()
    assert [place for part in parts for place in part] == list(range(frames))
    # Counted in whole numbers, so that no rounding of 0.4 can matter.
    assert [len(part) for part in parts[:2]] == [2 * frames // 5, 3 * frames // 5 - 2 * frames // 5]


def test_a_slice_is_a_clip_that_shares_memory_and_a_loop_gives_its_frames() -> None:
    clip = small()
    part = clip[3:7]
    assert np.shares_memory(part.rgb, clip.rgb)
    assert len(part) == len(list(part)) == 4
    for place, frame in enumerate(part, 3):
        assert frame.rgb.tolist() == clip.rgb[place].tolist()
        assert frame.depth.tolist() == clip.depth[place].tolist()
        assert frame.stored is not None
        assert frame.stored.tolist() == clip.stored[place].tolist()  # type: ignore[index]
    assert small(stored=None)[0].stored is None
    with pytest.raises(IndexError):
        clip[10]


def test_the_kitti_clip_is_in_metres(shared_data: Path) -> None:
    clip = datasets.kitti_clip()
    raw = np.load(shared_data / "depth" / "kitti_odom00_208x64.npz")
    assert (len(clip), clip.shape) == (500, (64, 208))
    assert np.array_equal(clip.rgb, raw["rgb"])
    for frame, row, column in [(0, 50, 100), (250, 40, 7), (499, 63, 207), (3, 0, 0)]:
        count = int(raw["depth_sgm_m256"][frame, row, column])
        got = float(clip.depth[frame, row, column])
        assert np.isnan(got) if count == 0 else got == count / 256
    assert np.array_equal(np.isnan(clip.depth), raw["depth_sgm_m256"] == 0)
    assert round(float(np.isnan(clip.depth).mean()), 2) == 0.30
    assert float(np.nanmin(clip.depth)) > 1
    assert float(np.nanmax(clip.depth)) < 80


def test_the_kitchen_clip_is_in_metres(shared_data: Path) -> None:
    clip = datasets.kitchen_clip(frames=40)
    raw = np.load(shared_data / "depth" / "7scenes_kitchen_128x96.npz")
    assert (len(clip), clip.shape, clip.stored) == (40, (96, 128), None)
    known = raw["depth_mm"][:40] > 0
    assert np.allclose(clip.depth[known], raw["depth_mm"][:40][known] / 1000, atol=1e-6)
    assert np.isnan(clip.depth[~known]).all()
    assert round(float((raw["depth_mm"] == 0).mean()), 2) == 0.11


def test_an_absent_clip_is_told_with_where_its_frames_come_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(AbsentFile) as caught:
        datasets.kitti_clip(folder=tmp_path)
    assert str(caught.value) == (
        f"the file 'kitti_odom00_208x64.npz' of kitti_clip is not in {tmp_path}: it is a reduced "
        "copy that is not served anywhere, made from the frames at "
        "https://www.cvlibs.net/datasets/kitti/eval_odometry.php by setpoint-paper fetch "
        "--kitti-odometry FOLDER; put it in "
        f"{tmp_path / 'depth'}"
    )
    monkeypatch.delenv("SETPOINT_DATA", raising=False)
    with pytest.raises(AbsentFile, match=r"'7scenes_kitchen_128x96\.npz' .* SETPOINT_DATA names"):
        datasets.kitchen_clip()
    with pytest.raises(DataError, match="folder must name a folder"):
        datasets.kitti_clip(folder=tmp_path / "nowhere")


def test_a_clip_is_found_at_the_top_of_a_folder_too(tmp_path: Path) -> None:
    rgb = np.zeros((3, 2, 2, 3), np.uint8)
    depth = np.array([[[0, 1000], [2500, 1]]] * 3, np.uint16)
    np.savez(tmp_path / "7scenes_kitchen_128x96.npz", rgb=rgb, depth_mm=depth)
    clip = datasets.kitchen_clip(folder=tmp_path, frames=2)
    assert np.isnan(clip.depth[1, 0, 0])
    assert clip.depth[1].ravel()[1:].tolist() == pytest.approx([1.0, 2.5, 0.001])
    assert len(clip) == 2


def test_a_damaged_clip_is_told(tmp_path: Path) -> None:
    path = tmp_path / "7scenes_kitchen_128x96.npz"
    rgb = np.zeros((3, 2, 2, 3), np.uint8)
    np.savez(path, rgb=rgb)
    with pytest.raises(DataError, match=r"must hold the arrays rgb, depth_mm, got rgb$"):
        datasets.kitchen_clip(folder=tmp_path)
    np.savez(path, rgb=rgb, depth_mm=np.zeros((3, 2, 2)))
    with pytest.raises(DataError, match=r"depth_mm of .* must be uint16 .*, got float64"):
        datasets.kitchen_clip(folder=tmp_path)
    np.savez(path, rgb=rgb, depth_mm=np.zeros((3, 2, 9), np.uint16))
    with pytest.raises(
        DataError, match=r"must be uint16 of shape \(3, 2, 2\), got uint16 of shape \(3, 2, 9\)"
    ):
        datasets.kitchen_clip(folder=tmp_path)
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(DataError, match="is damaged"):
        datasets.kitchen_clip(folder=tmp_path)
    path.write_bytes(b"no archive at all")
    with pytest.raises(DataError, match="is damaged"):
        datasets.kitchen_clip(folder=tmp_path)


def looped_wrapped(raw: np.ndarray) -> np.ndarray:
    """The stated rule, pixel by pixel."""
    height, width = raw.shape
    value = raw.astype(int)

    def around(r: int, c: int, corners: bool = False) -> list[tuple[int, int]]:
        steps = [(-1, 0), (1, 0), (0, -1), (0, 1)]
        steps += [(-1, -1), (-1, 1), (1, -1), (1, 1)] if corners else []
        places = [(r + i, c + j) for i, j in steps]
        return [(i, j) for i, j in places if 0 <= i < height and 0 <= j < width]

    every = [(r, c) for r in range(height) for c in range(width)]
    near = {place for place in every if 16_944 <= value[place] <= 16_960}
    plateau = {place for place in near if any(other in near for other in around(*place))}
    marked = plateau | {p for p in every if any(o in plateau for o in around(*p, corners=True))}
    for place in every:
        if any(abs(value[place] - value[other]) > 16_384 for other in around(*place)):
            marked.add(place)
    closed = {place for place in every if sum(o in marked for o in around(*place)) >= 3}
    return np.array([[(r, c) in marked | closed for c in range(width)] for r in range(height)])


def test_wrapped_pixels_are_those_of_the_stated_rule_and_unusable(shared_data: Path) -> None:
    with np.load(shared_data / "depth" / "kitti_odom00_208x64.npz") as file:
        raw = file["pred_struct2depth_raw"]
    for number in (0, 50, 352):
        part = raw[number, :40, 60:160]
        assert np.array_equal(wrapped(part), looped_wrapped(part))
    found, clip = wrapped(raw[:30]), datasets.kitti_clip(frames=30)
    assert np.array_equal(found[7], wrapped(raw[7]))
    assert 0.001 < found.mean() < 0.1
    assert clip.stored is not None
    assert np.array_equal(np.isnan(clip.stored), found)
    assert np.array_equal(clip.stored[~found], raw[:30][~found].astype(np.float32))
