"""The data of every page in one folder: downloads that are checked, and clips from local files."""

from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from setpoint.errors import AbsentFile, DataError
from setpoint_paper.cli import app
from setpoint_paper.datasets import kitchen_clip, kitti_clip
from setpoint_paper.datasets.builders import build_kitchen_clip, build_kitti_clip

FOCAL, BASE = 300.0, 0.5
P2 = f"P2: {FOCAL} 0 80 0 0 {FOCAL} 40 0 0 0 1 0"
P3 = f"P3: {FOCAL} 0 80 {-FOCAL * BASE} 0 {FOCAL} 40 0 0 0 1 0"


def write(path: Path, image: NDArray[np.generic]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), image)


@pytest.fixture
def sequence(tmp_path: Path) -> Path:
    """Three stereo pairs of a wall of noise, 15 pixels apart: 10 metres away."""
    root = tmp_path / "00"
    rng = np.random.default_rng(0)
    for number in range(3):
        wall = cv2.GaussianBlur(rng.integers(0, 256, (128, 431, 3)).astype(np.uint8), (3, 3), 0)
        write(root / "image_2" / f"{number:06}.png", wall[:, :416])
        write(root / "image_3" / f"{number:06}.png", wall[:, 15:])
    (root / "calib.txt").write_text(f"{P2}\n{P3}\n", "utf-8")
    return root


def test_the_kitti_clip_is_made_from_stereo_pairs(sequence: Path, tmp_path: Path) -> None:
    path = build_kitti_clip(sequence, tmp_path, frames=3)
    assert path == tmp_path / "depth" / "kitti_odom00_208x64.npz"
    clip = kitti_clip(folder=tmp_path)
    assert clip.rgb.shape == (3, 64, 208, 3)
    assert clip.stored is None
    known = np.isfinite(clip.depth)
    assert known.mean() > 0.5
    assert np.median(clip.depth[known]) == pytest.approx(FOCAL * BASE / 15.0, rel=0.02)


def test_the_kitchen_clip_is_made_from_a_sequence_of_7_scenes(tmp_path: Path) -> None:
    colours = np.zeros((480, 640, 3), np.uint8)
    colours[..., 2] = 200  # red, for OpenCV writes blue first
    depth = np.full((480, 640), 1_500, np.uint16)
    depth[:240] = 65_535
    for number in range(2):
        write(tmp_path / "seq-01" / f"frame-{number:06}.color.png", colours)
        write(tmp_path / "seq-01" / f"frame-{number:06}.depth.png", depth)
    sequence = str(tmp_path / "seq-01")
    words = ["fetch", "--seven-scenes", sequence, "--frames", "2", "--to", str(tmp_path)]
    outcome = CliRunner().invoke(app, words)
    assert outcome.exit_code == 0, outcome.output
    clip = kitchen_clip(folder=tmp_path)
    assert clip.rgb.shape == (2, 96, 128, 3)
    assert clip.rgb[0, 0, 0].tolist() == [200, 0, 0]
    assert np.isnan(clip.depth[0, :48]).all()
    assert (clip.depth[0, 48:] == 1.5).all()
    with pytest.raises(AbsentFile, match="must hold 1,000 files"):
        build_kitchen_clip(tmp_path / "seq-01", tmp_path)


def test_files_that_are_not_there_or_not_right_are_told(sequence: Path, tmp_path: Path) -> None:
    with pytest.raises(AbsentFile, match="it has 3"):
        build_kitti_clip(sequence, tmp_path)
    (sequence / "image_3" / "000001.png").unlink()
    with pytest.raises(DataError, match="is absent or no image"):
        build_kitti_clip(sequence, tmp_path, frames=3)
    (sequence / "calib.txt").write_text("P0: 1", "utf-8")
    with pytest.raises(DataError, match="must hold the lines P2 and P3"):
        build_kitti_clip(sequence, tmp_path, frames=3)


def test_only_known_data_sets_are_fetched(tmp_path: Path) -> None:
    outcome = CliRunner().invoke(app, ["fetch", "moon", "--to", str(tmp_path)])
    assert outcome.exit_code != 0
    assert not list(tmp_path.iterdir())
