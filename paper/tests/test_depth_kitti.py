"""The paper's depth protocol, on a miniature of KITTI's folders with a network like LeReS."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import nn

from setpoint.errors import InputError
from setpoint.regions import Centre
from setpoint_paper.datasets import KITTI_DRIVES
from setpoint_paper.depth import kitti as protocol
from setpoint_paper.depth.kitti import Marks, Trial, made, reproduce_kitti
from setpoint_paper.depth.runs import GEOMETRIES, METHODS, judge
from setpoint_paper.models import TorchDepth

EACH = 10
MARKS = Marks(taught=20, warm=40, tuned=55, frames=80)


class Leres(nn.Module):
    """Encoder and decoder under the names of LeReS, depth up to scale and shift."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder_modules = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU())
        self.decoder_modules = nn.Conv2d(8, 1, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decoder_modules(self.encoder_modules(x))


def small() -> nn.Module:
    """What `--model` names."""
    return Leres()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every drive of the paper with ten annotated frames of 32 × 106, in KITTI's folders."""
    root = tmp_path_factory.mktemp("kitti")
    rng = np.random.default_rng(0)
    rows = np.linspace(30.0, 5.0, 32)[:, None]
    for number, drive in enumerate(KITTI_DRIVES):
        for frame in range(EACH):
            at = number * EACH + frame
            near = 4.0 * np.sin((np.arange(106) + at) / 9.0)
            depth = rows + near + rng.normal(0.0, 0.3, (32, 106))
            bright = np.clip(255.0 - 6.0 * depth, 0, 255).astype(np.uint8)
            colours = np.stack([bright, bright // 2, 255 - bright], axis=-1)
            counts = (256.0 * depth).astype(np.uint16)
            counts[rng.random(counts.shape) < 0.7] = 0
            name = f"{frame + 5:010d}.png"
            write(root / "raw" / drive[:10] / drive / "image_03/data" / name, colours)
            write(root / "train" / drive / "proj_depth/groundtruth/image_03" / name, counts)
    return root


def write(path: Path, array: NDArray[np.generic]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(array).save(path)


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(7)
    source, path = Leres(), tmp_path_factory.mktemp("weights") / "res50.pth"
    state = {f"module.{name}": value for name, value in source.state_dict().items()}
    torch.save({"depth_model": state}, path)
    return path


def trial(folder: Path, weights: Path | None = None, **options: Any) -> Trial:
    return Trial(
        str(folder), None, f"{__name__}:small", None if weights is None else str(weights),
        "depth_model", epochs=2, side=48, marks=MARKS, **options,
    )  # fmt: skip


def test_the_marks_are_those_of_the_paper() -> None:
    parts = Marks().parts
    assert (parts.validation, parts.test) == (range(7_000, 8_000), range(8_000, 10_000))
    with pytest.raises(InputError, match="marks must rise"):
        Marks(taught=8_000)


def test_frames_are_cropped_padded_and_filled_as_in_the_paper(folder: Path, tmp_path: Path) -> None:
    video = trial(folder).video(tmp_path)
    assert len(video) == 80
    frame = video[0]
    # Half of 32 × 106, the left 48 columns, 32 rows of padding on top.
    assert frame.depth.shape == (48, 48)
    assert np.isnan(frame.depth[:32]).all()
    assert np.isfinite(frame.depth[32:]).all()  # no hole is left
    assert protocol._padding(video) == 32
    filled = list((tmp_path / "kitti-filled").rglob("*.png"))
    assert filled  # kept, for a map takes seconds
    with pytest.raises(InputError, match=r"the marks need 10,000 frames, .* has 80"):
        Trial(str(folder), None, "a:b").video(tmp_path)


def test_without_padding_the_authors_centre_is_their_window() -> None:
    padded = Centre(within=(260 / 448, 1.0, 0.0, 1.0)).index((448, 448))
    rows, columns = GEOMETRIES["authors"].index((188, 448))
    assert (slice(rows.start + 260, rows.stop + 260), columns) == padded


def test_weights_of_leres_are_found_in_their_file(folder: Path, weights: Path) -> None:
    model = trial(folder, weights).network()
    torch.manual_seed(7)
    same = Leres().state_dict()
    assert all(torch.equal(value, same[name]) for name, value in model.module.state_dict().items())
    with pytest.raises(InputError, match="must name a function that makes a network"):
        Trial(str(folder), None, "nowhere:net").network()
    with pytest.raises(InputError, match="model must be module:function"):
        Trial(str(folder), None, "net")


def test_a_network_that_was_stopped_goes_on_to_the_same_maps(
    folder: Path, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = trial(folder, weights)
    (tmp_path / "whole").mkdir()
    (tmp_path / "cut").mkdir()
    whole = protocol._maps(one, one.video(tmp_path), 32, tmp_path / "whole")
    assert whole.shape == (60, 16, 48)
    assert len(list((tmp_path / "whole").iterdir())) == 1
    monkeypatch.setattr(protocol, "STRIDE", 10)
    learn, count = TorchDepth.learn, [0]

    def stop(self: TorchDepth, x: Any, y: Any) -> None:
        count[0] += 1
        if count[0] == 2 * MARKS.taught + 24:  # after two epochs and 23 frames
            raise KeyboardInterrupt
        learn(self, x, y)

    monkeypatch.setattr(TorchDepth, "learn", stop)
    with pytest.raises(KeyboardInterrupt):
        protocol._maps(one, one.video(tmp_path), 32, tmp_path / "cut")
    again = protocol._maps(one, one.video(tmp_path), 32, tmp_path / "cut")
    assert np.array_equal(again, whole)
    assert count[0] == 2 * MARKS.taught + 24 + 40  # twenty frames were safe on disk


def test_the_whole_protocol_leaves_a_page(folder: Path, weights: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "folder": folder, "model": f"{__name__}:small", "weights": weights, "key": "depth_model",
        "heuristics": ("magnitude",), "seeds": 1, "epochs": 2, "side": 48,
        "marks": MARKS, "out": tmp_path / "out", "cache": tmp_path / "cache",
    }  # fmt: skip
    rows = reproduce_kitti(**options)
    assert len(rows) == len(METHODS) * len(GEOMETRIES)
    assert all(row.kept for row in rows)
    assert {row.frames for row in rows} == {25}
    text = (tmp_path / "out" / "depth-kitti.md").read_text("utf-8")
    assert "## kitti, " in text
    # What is finished is read, and not made again.
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").iterdir()}
    frames = made(trial(folder, weights), "magnitude", tmp_path / "cache")
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "cache").iterdir()} == before
    row, _ = judge(frames, "single", ("kitti", "LiDAR", "magnitude", 0))
    assert repr(row) == repr(rows[0])


def test_residuals_that_are_exactly_right_are_learnt() -> None:
    estimate = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    truth = np.vstack([np.full((1, 2), np.nan), 2.0 * estimate + 1.0]).astype(np.float32)
    found = protocol._residual(estimate, truth, 1)
    assert np.isnan(found[0]).all()
    assert found[1:] == pytest.approx(0.0, abs=1e-5)
