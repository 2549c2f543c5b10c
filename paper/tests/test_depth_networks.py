"""Depth models: any size, unknown pixels, real learning, equal seeds, files that go on."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from setpoint.errors import InputError, LabelError, PredictionError, StateError
from setpoint.models import OnlineModel
from setpoint_paper import work
from setpoint_paper.models import DepthSettings, Preprocess, TorchDepth, small_network

OnlineDepth, ResidualNetwork = small_network, partial(small_network, residuals=True)
SMALL = DepthSettings(channels=(8, 16), learning_rate=3e-3)


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    with work.one_thread():
        yield


def scene(frames: int, height: int = 24, width: int = 32, seed: int = 0) -> Any:
    """A bright box before a dark wall, at a place of its own in each frame; nearer is brighter."""
    rng = np.random.default_rng(seed)
    rgb = np.full((frames, height, width, 3), 40, dtype=np.uint8)
    depth = np.full((frames, height, width), 12.0, dtype=np.float32)
    for number in range(frames):
        top, left = rng.integers(0, height - 10), rng.integers(0, width - 10)
        near = rng.uniform(2.0, 8.0)
        box = (number, slice(top, top + 10), slice(left, left + 10))
        rgb[box] = int(260 - 25 * near)
        depth[box] = near
    return rgb, depth


def error(model: Any, rgb: np.ndarray, depth: np.ndarray) -> float:
    return float(
        np.mean([np.abs(model.predict(x) - y).mean() for x, y in zip(rgb, depth, strict=True)])
    )


# The online network


@pytest.mark.parametrize("shape", [(24, 32), (23, 37), (5, 3), (1, 1)])
@pytest.mark.parametrize("make", [OnlineDepth, ResidualNetwork])
def test_a_map_has_the_size_of_its_frame(make: Any, shape: tuple[int, int]) -> None:
    model = make(DepthSettings(channels=(4, 8, 8)))
    assert isinstance(model, OnlineModel)
    x = np.random.default_rng(0).integers(0, 256, (*shape, 3), dtype=np.uint8)
    model.learn(x, np.full(shape, 3.0))
    found = model.predict(x)
    assert found.shape == shape
    assert found.dtype == np.float32
    assert (found > 0.0).all()


def test_fitting_beforehand_lowers_the_error_on_frames_not_seen() -> None:
    rgb, depth = scene(24)
    fresh, truth = scene(8, seed=1)
    model = OnlineDepth(SMALL)
    told = model.fit(rgb, depth, epochs=25)
    assert len(told) == 25
    assert told[-1] < 0.5 * told[0]
    wall = float(np.abs(12.0 - truth).mean())
    assert error(model, fresh, truth) < 0.6 * wall


def test_pixels_that_are_not_known_teach_nothing() -> None:
    rgb, depth = scene(30)
    half = depth.copy()
    half[:, :, 16:] = np.nan
    wrong = depth.copy()
    wrong[:, :, 16:] = 1000.0
    pairs = {"half": half, "wrong": wrong}
    found = {}
    for name, labels in pairs.items():
        model = OnlineDepth(SMALL)
        for x, y in zip(rgb, labels, strict=True):
            model.learn(x, y)
        found[name] = model.predict(rgb[0])[:, 20:].mean()
    assert found["half"] < 20.0 < found["wrong"]


@pytest.mark.parametrize("make", [OnlineDepth, ResidualNetwork])
def test_a_frame_without_a_known_pixel_moves_nothing(make: Any, tmp_path: Path) -> None:
    rgb, depth = scene(4)
    model, other = make(SMALL), make(SMALL)
    for number in range(3):
        model.learn(rgb[number], depth[number])
        other.learn(rgb[number], depth[number])
        other.learn(rgb[3], np.full(depth[0].shape, np.nan))
    assert np.array_equal(model.predict(rgb[3]), other.predict(rgb[3]))
    assert make(SMALL).fit(rgb, np.full_like(depth, np.nan)) == []


def test_equal_seeds_give_equal_maps_whatever_else_is_drawn() -> None:
    rgb, depth = scene(6)
    torch.manual_seed(7)
    expected = torch.rand(3)

    def made(seed: int) -> np.ndarray:
        torch.manual_seed(7)
        model = OnlineDepth(DepthSettings(channels=(8, 16), seed=seed))
        model.fit(rgb, depth, epochs=2)
        assert torch.equal(torch.rand(3), expected)  # and the model draws from no global state
        model.learn(rgb[0], depth[0])
        return model.predict(rgb[1])

    assert np.array_equal(made(3), made(3))
    assert not np.array_equal(made(3), made(4))


def scheduled(settings: DepthSettings) -> TorchDepth:
    """A network of others with an optimiser and a scheduler of its own."""
    module = network(settings.seed)
    adam = torch.optim.Adam(module.parameters(), lr=0.1)
    return TorchDepth(module, adam, scheduler=torch.optim.lr_scheduler.ExponentialLR(adam, 0.5))


@pytest.mark.parametrize("make", [OnlineDepth, ResidualNetwork, scheduled])
def test_a_saved_model_goes_on_as_if_nothing_had_been(make: Any, tmp_path: Path) -> None:
    rgb, depth = scene(9, 32, 32)
    models = [make(DepthSettings((8, 16), memory=4, replay=2, steps=2, seed=i)) for i in (0, 9)]
    models[0].fit(rgb[:4], depth[:4], epochs=1)
    for number in range(4, 6):
        models[0].learn(rgb[number], depth[number])
    models[0].save(tmp_path / "model")
    models[1].load(tmp_path / "model")
    for each in models:
        for number in range(6, 9):
            each.learn(rgb[number], depth[number])
        # A scheduler takes a step with every frame.
        rate = each.optimiser.param_groups[0]["lr"]
        assert rate == pytest.approx(0.1 * 0.5**5 if make is scheduled else 1e-3)
    assert np.array_equal(models[1].predict(rgb[0]), models[0].predict(rgb[0]))


def test_wrong_frames_and_labels_are_refused_and_leave_the_model_as_it_was() -> None:
    rgb, depth = scene(2)
    model = OnlineDepth(SMALL)
    model.learn(rgb[0], depth[0])
    before = model.predict(rgb[1])
    for bad in (rgb[0].astype(float), rgb[0, ..., :2], rgb[0, 0]):
        with pytest.raises(InputError, match=r"\(H, W, 3\) and of type uint8, got the shape"):
            model.learn(bad, depth[0])
    with pytest.raises(LabelError, match=r"the frame's shape \(24, 32\), got the shape \(5, 32\)"):
        model.learn(rgb[0], depth[0, :5])
    for value in (0.0, -1.0, np.inf):
        bad = depth[0].copy()
        bad[3, 3] = value
        with pytest.raises(LabelError, match=f"greater than 0, or NaN, got {value:g}$"):
            model.learn(rgb[0], bad)
    assert np.array_equal(model.predict(rgb[1]), before)


# The residual network


def test_the_size_of_residuals_is_learnt_as_their_median() -> None:
    # Of residuals 1, 1, 1, 7 at every pixel the median is 1 and the mean 2.5.
    x = np.full((8, 8, 3), 90, np.uint8)
    network = ResidualNetwork(DepthSettings(channels=(4,), learning_rate=5e-3))
    signs = (1.0, -1.0, 1.0, -7.0)
    residuals = [np.full((8, 8), each) for each in signs]
    network.fit([x] * 4, residuals, epochs=250)
    assert network.predict(x).mean() == pytest.approx(1.0, rel=0.15)


# Networks of others


class Small(nn.Module):
    """An encoder and a decoder named as those of LeReS."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder_modules = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4))
        self.decoder_modules = nn.Conv2d(4, 1, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.decoder_modules(self.encoder_modules(x))  # type: ignore[no-any-return]


def network(seed: int = 0) -> Small:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Small()


def test_a_frozen_network_sees_normalised_colours_at_its_size_and_learns_nothing() -> None:
    module = network()
    model = TorchDepth(module, preprocess=Preprocess(size=(64, 32)))
    x = np.random.default_rng(0).integers(0, 256, (48, 40, 3), dtype=np.uint8)
    # By hand: colours, their normalisation, the size, the network in evaluation mode, and back.
    mean, std = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
    shown = torch.tensor(((x / 255.0 - mean) / std).transpose(2, 0, 1)[None], dtype=torch.float32)
    shown = nn.functional.interpolate(shown, size=(64, 32), mode="bilinear")
    module.eval()
    with torch.no_grad():
        expected = nn.functional.interpolate(module(shown), size=(48, 40), mode="bilinear")[0, 0]
    module.train()
    assert model.predict(x) == pytest.approx(expected.numpy(), abs=1e-5)
    assert all(each.training for each in module.modules())
    model.learn(x, np.ones((48, 40)))
    assert model.predict(x) == pytest.approx(expected.numpy(), abs=1e-5)


class Shaped(nn.Module):
    """Gives the mean colour in the way it is told."""

    def __init__(self, way: Any) -> None:
        super().__init__()
        self.way = way

    def forward(self, x: torch.Tensor) -> Any:
        return self.way(x.mean(1, keepdim=True))


@pytest.mark.parametrize(
    ("way", "got"),
    [
        (lambda z: z, None),
        (lambda z: z[:, 0], None),
        (lambda z: {"a": z}, "got dict"),
        (lambda z: torch.cat([z, z], 1), r"got \(1, 2, 6, 9\)"),
    ],
)
def test_depth_has_a_channel_or_none(way: Any, got: str | None) -> None:
    plain = Preprocess(mean=(0.0, 0.0, 0.0), std=(1.0, 1.0, 1.0), multiple=1)
    x = np.random.default_rng(0).integers(0, 256, (6, 9, 3), dtype=np.uint8)
    model = TorchDepth(Shaped(way), preprocess=plain)
    if got is None:
        assert model.predict(x) == pytest.approx(x.mean(axis=2) / 255.0, abs=1e-6)
        return
    with pytest.raises(PredictionError, match=f"must give depth of shape .*{got}"):
        model.predict(x)


@pytest.mark.parametrize("loss", ["absolute", "aligned"])
def test_a_network_with_an_optimiser_learns_frame_by_frame(loss: Any) -> None:
    rgb, depth = scene(2, 32, 32)
    module = network()
    optimiser = torch.optim.Adam(module.parameters(), lr=0.02)
    model = TorchDepth(module, optimiser, loss=loss, steps=2)
    y = depth[0].copy()
    y[:5] = np.nan

    def gap() -> float:
        found, valid = model.predict(rgb[0]), ~np.isnan(y)
        if loss == "aligned":
            slope, shift = np.polyfit(found[valid], y[valid], 1)
            found = slope * found + shift
        return float(np.abs(found - y)[valid].mean())

    before = gap()
    for _ in range(60):
        model.learn(rgb[0], y)
    assert gap() < 0.6 * before


@pytest.mark.parametrize(
    "wrap",
    [
        lambda state: state,
        lambda state: {"state_dict": state, "epoch": 3},
        # The layout of LeReS: the depth network of a parallel run, beside others.
        lambda state: {
            "depth_model": {f"module.depth_model.{name}": each for name, each in state.items()},
            "shift_model": {"module.weight": torch.zeros(2)},
        },
        lambda state: {f"module.{name}": each for name, each in state.items()},
        lambda state: {
            name: each for name, each in state.items() if "num_batches_tracked" not in name
        },
    ],
)
def test_weights_come_from_a_file_whatever_prefix_they_have(wrap: Any, tmp_path: Path) -> None:
    source, model = network(1), TorchDepth(network(2))
    path = tmp_path / "weights.pth"
    held = wrap(source.state_dict())
    torch.save(held, path)
    x = np.random.default_rng(0).integers(0, 256, (32, 64, 3), dtype=np.uint8)
    expected = TorchDepth(source).predict(x)
    assert not np.array_equal(model.predict(x), expected)
    model.load_weights(path, "depth_model" if "depth_model" in held else None)
    assert np.array_equal(model.predict(x), expected)


class Trap:
    """An object whose unpickling would run code."""

    def __reduce__(self) -> Any:
        return (print, ("this must never be said",))


def test_files_that_do_not_fit_are_told(tmp_path: Path, capsys: Any) -> None:
    model, path = TorchDepth(network()), tmp_path / "weights.pth"
    with pytest.raises(InputError, match="it is absent"):
        model.load_weights(path)
    torch.save({"other": torch.zeros(3)}, path)
    with pytest.raises(StateError, match="does not fit the module, which has 9 tensors"):
        model.load_weights(path)
    with pytest.raises(StateError, match="at 'depth_model' it holds none"):
        model.load_weights(path, key="depth_model")
    torch.save({"state_dict": Trap()}, path)
    with pytest.raises(StateError, match="could run code"):
        model.load_weights(path)
    path.write_bytes(b"not a file of weights")
    with pytest.raises(StateError, match="damaged"):
        model.load_weights(path)
    assert "never" not in capsys.readouterr().out


def test_a_file_of_another_network_is_refused(tmp_path: Path) -> None:
    path, module = tmp_path / "model", network(seed=5)
    model = TorchDepth(module, torch.optim.SGD(module.parameters(), lr=1e-3))
    for other in (TorchDepth(network()), TorchDepth(nn.Conv2d(3, 1, 3))):
        other.save(path)
        with pytest.raises(StateError, match="is damaged, or of another network"):
            model.load(path)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(StateError, match="is damaged, or of another network"):
        model.load(path)


def test_wrong_parts_are_refused() -> None:
    with pytest.raises(InputError, match=r"module must be a torch.nn.Module"):
        TorchDepth("resnet")
    with pytest.raises(InputError, match="loss must be one of 'absolute', 'aligned', got 'huber'"):
        TorchDepth(network(), loss="huber")


def test_large_gradients_are_cut_to_the_norm_asked_for() -> None:
    rgb, depth = scene(1, 32, 32)
    moved = {}
    for clip in (None, 1e-3):
        module = network()
        before = torch.cat([each.detach().flatten().clone() for each in module.parameters()])
        sgd = torch.optim.SGD(module.parameters(), lr=1.0)
        TorchDepth(module, sgd, clip=clip).learn(rgb[0], depth[0])
        after = torch.cat([each.detach().flatten() for each in module.parameters()])
        moved[clip] = float((after - before).norm())
    assert moved[None] > 0.1
    assert moved[1e-3] == pytest.approx(1e-3, rel=0.01)
    with pytest.raises(InputError, match="clip must be greater than 0"):
        TorchDepth(network(), clip=0.0)


def test_the_aligned_loss_knows_no_unit() -> None:
    rgb, depth = scene(1, 32, 32)
    shown = []
    for unit in (1.0, 100.0):
        module = network()
        model = TorchDepth(module, torch.optim.SGD(module.parameters(), lr=0.1), loss="aligned")
        model.learn(rgb[0], unit * depth[0])
        shown.append(model.predict(rgb[0]))
    assert shown[0] == pytest.approx(shown[1], rel=1e-4)
    model.learn(rgb[0], np.full((32, 32), 7.0))  # labels that are all the same have no spread
    assert np.isfinite(model.predict(rgb[0])).all()


def test_weights_that_are_named_are_drawn_again() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4), nn.Conv2d(4, 1, 1))
            self.scale = nn.Parameter(torch.ones(()))

    module = Own()
    model = TorchDepth(module)
    before = {name: each.clone() for name, each in module.state_dict().items()}
    module.layers[1].running_mean += 1.0

    def changed() -> set[str]:
        now = module.state_dict()
        return {name for name in before if not torch.equal(before[name], now[name])}

    model.redraw([])
    assert changed() == {"layers.1.running_mean"}
    torch.manual_seed(3)
    model.redraw(["layers.2", "layers.1"])
    assert changed() == {"layers.2.weight", "layers.2.bias"}
    drawn = module.layers[2].weight.clone()
    torch.manual_seed(3)
    model.redraw(["layers.2"])
    assert torch.equal(module.layers[2].weight, drawn)
    for wrong in ("layers.3", "layer", "", "layers.2.weights"):
        with pytest.raises(InputError, match=f"begin with '{wrong}'; the last of its 7 are "):
            model.redraw([wrong])
    with pytest.raises(InputError, match="of 'Own' cannot be drawn again: it has no reset_param"):
        model.redraw(["scale"])
