"""A torch module as an online model: by hand, in its modes, on the last rows, saved and resumed."""

import io
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import setpoint as sp
from setpoint import images
from setpoint.errors import InputError, LabelError, PredictionError, StateError
from setpoint.models import OnlineModel
from setpoint.models.torch import Map, Mask, Online, Pinball, Point, Softmax


def linear(outputs: int, seed: int = 0, inputs: int = 3) -> nn.Linear:
    torch.manual_seed(seed)
    return nn.Linear(inputs, outputs, dtype=torch.float64)


def rows(count: int, seed: int = 0) -> tuple[Any, Any]:
    random = np.random.default_rng(seed)
    X = random.normal(size=(count, 3))
    return X, X @ [1.0, -2.0, 0.5] + random.normal(size=count)


def test_a_linear_point_model_takes_the_gradient_step_of_the_squared_error() -> None:
    module = linear(1)
    model = Online(module, torch.optim.SGD(module.parameters(), lr=0.1), Point())
    assert isinstance(model, OnlineModel)
    weight, bias = module.weight.detach().numpy()[0].copy(), float(module.bias.detach()[0])
    for x, y in zip(*rows(20), strict=True):
        point = weight @ x + bias
        assert model.predict(x) == pytest.approx(point)
        model.learn(x, y)
        weight -= 0.1 * 2.0 * (point - y) * x
        bias -= 0.1 * 2.0 * (point - y)
    np.testing.assert_allclose(module.weight.detach().numpy()[0], weight)


def test_the_pinball_loss_is_that_of_its_definition() -> None:
    head = Pinball(0.1, 0.8)
    outputs = torch.tensor([[1.0, 4.0], [2.0, 3.0]], dtype=torch.float64)
    targets = torch.tensor([5.0, 1.5], dtype=torch.float64)
    first = 0.1 * 4.0 + 0.8 * 1.0  # above both
    second = 0.9 * 0.5 + 0.2 * 1.5  # below both
    assert head.loss(outputs, targets).item() == pytest.approx((first + second) / 2.0)
    assert head.prediction(outputs[0]) == sp.predictions.Quantiles(1.0, 4.0)


def test_the_loss_of_scores_is_the_cross_entropy() -> None:
    outputs = torch.tensor([[1.0, 900.0, -3.0], [0.5, 0.2, 0.1]], dtype=torch.float64)
    targets = torch.tensor([0, 2])
    wanted = nn.functional.cross_entropy(outputs, targets)
    assert Softmax(3).loss(outputs, targets).item() == pytest.approx(wanted.item())


def test_scores_become_probabilities_of_named_classes() -> None:
    module = linear(3)
    optimiser = torch.optim.SGD(module.parameters(), lr=0.1)
    head = Softmax(np.array(["calm", "wind", "storm"]))
    assert head == Softmax(("calm", "wind", "storm"))
    model = Online(module, optimiser, head, rows=4)
    x = np.array([0.3, -1.0, 2.0])
    scores = module(torch.tensor(x)).detach().numpy()
    wanted = np.exp(scores) / np.exp(scores).sum()
    found = model.predict(x)
    assert found.classes == ("calm", "wind", "storm")
    np.testing.assert_allclose(found.p, wanted)

    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.05))
    stream = sp.Stream(sp.Controller(sp.sets.Threshold(), risk))
    random = np.random.default_rng(0)
    sizes = []
    for _ in range(1500):
        x = random.normal(size=3)
        y = ("calm", "wind", "storm")[int(np.digitize(x[0] + 0.5 * random.normal(), [-0.5, 0.5]))]
        sizes.append(stream.predict(model.predict(x)).size)
        stream.update(y)
        model.learn(x, y)
    assert stream.certificate().risks[0].within
    assert stream.certificate().risks[0].mean == pytest.approx(0.1, abs=0.01)
    assert np.mean(sizes[-500:]) < 2.0


def test_predicting_changes_nothing_and_leaves_the_mode_as_it_was() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))
    model = Online(module, torch.optim.SGD(module.parameters(), lr=0.01), Point(), rows=4)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    for training in (True, False):
        module.train(training)
        found = {model.predict([1.0, 2.0, 3.0]) for _ in range(5)}
        assert len(found) == 1  # no dropout
        assert module.training is training
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert all(each.grad is None for each in module.parameters())


class Spy(nn.Module):
    """A module that remembers what it was given, and in which mode."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(1, 1)
        self.seen: list[tuple[list[float], bool, bool]] = []

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        self.seen.append((rows[:, 0].tolist(), self.training, torch.is_grad_enabled()))
        return self.inner(rows)  # type: ignore[no-any-return]


def test_each_step_sees_the_last_rows_in_training_mode() -> None:
    module = Spy()
    optimiser = torch.optim.SGD(module.parameters(), lr=0.01)
    model = Online(module, optimiser, Point(), rows=3, steps=2)
    for value in (1.0, 2.0, 3.0, 4.0):
        model.learn([value], value)
    model.learn([9.0], float("nan"))  # missing: not learnt
    assert [rows for rows, _, _ in module.seen] == [
        [1.0], [1.0], [1.0, 2.0], [1.0, 2.0], [1.0, 2.0, 3.0], [1.0, 2.0, 3.0],
        [2.0, 3.0, 4.0], [2.0, 3.0, 4.0],
    ]  # fmt: skip
    assert all(training and grad for _, training, grad in module.seen)
    model.predict([1.0])
    assert module.seen[-1] == ([1.0], False, False)
    assert module.training is True


def test_each_part_stays_in_the_mode_it_was_left_in() -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))
    module[1].eval()  # frozen, as in fine-tuning
    model = Online(module, torch.optim.SGD(module.parameters(), lr=0.01), Point(), rows=4)
    modes = [each.training for each in module.modules()]
    mean = module[1].running_mean.clone()
    for x, y in zip(*rows(6), strict=True):
        model.predict(x)
        assert [each.training for each in module.modules()] == modes
        model.learn(x, y)
        assert [each.training for each in module.modules()] == modes
    assert torch.equal(module[1].running_mean, mean)


def content(model: Online) -> bytes:
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    return file.getvalue()


@pytest.mark.parametrize(
    ("x", "y", "error", "message"),
    [
        ([1.0, 2.0], 1, RuntimeError, "stack expects each tensor to be equal size"),
        ([0.0, 1.0, 2.0], 7, LabelError, r"a label must be one of \[0, 1, 2\], got 7"),
        ([0.0, 1.0, 2.0], "cat", LabelError, r"a label must be one of \[0, 1, 2\], got 'cat'"),
        ({"a": 1.0}, 1, InputError, "x must be one row of numbers, got {'a': 1.0}"),
        (["a", "b", "c"], 1, InputError, "x must be one row of numbers"),
    ],
)
def test_a_row_that_is_refused_leaves_everything_as_it_was(
    x: Any, y: Any, error: Any, message: str
) -> None:
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 3))
    optimiser = torch.optim.Adam(module.parameters(), lr=0.01)
    model = Online(module, optimiser, Softmax(3), rows=4)
    module.eval()  # of one row no mean is taken
    model.learn([1.0, 2.0, 3.0], 0)
    module.train()
    model.learn([3.0, 2.0, 1.0], 2)
    before = content(model)
    with pytest.raises(error, match=message):
        model.learn(x, y)
    assert content(model) == before
    model.learn([0.0, 1.0, 0.0], 1)
    assert content(model) != before


def test_a_head_of_ones_own_has_its_loss() -> None:
    class Absolute(Point):
        def loss(self, outputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            return (outputs[:, 0] - targets).abs().mean()

    module = linear(1)
    model = Online(module, torch.optim.SGD(module.parameters(), lr=0.1), Absolute())
    before = module.weight.detach().clone()
    model.learn([1.0, 2.0, 3.0], 1000.0)
    np.testing.assert_allclose((module.weight - before).detach(), [[0.1, 0.2, 0.3]])


def made(seed: int = 0) -> Online:
    module = linear(2, seed)
    return Online(module, torch.optim.Adam(module.parameters(), lr=0.01), Pinball(), rows=5)


def test_a_saved_model_goes_on_to_the_bit() -> None:
    X, y = rows(80)
    whole, first = made(), made()
    for row, label in zip(X[:40], y[:40], strict=True):
        whole.learn(row, label)
        first.learn(row, label)
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second = made(seed=5)
    second.load_state_dict(torch.load(file, weights_only=True))
    for row, label in zip(X[40:], y[40:], strict=True):
        assert second.predict(row) == whole.predict(row)
        whole.learn(row, label)
        second.learn(row, label)
    with pytest.raises(StateError, match="a state must hold"):
        second.load_state_dict({"module": {}})


def test_features_come_in_the_precision_and_on_the_device_of_the_module() -> None:
    module = nn.Linear(2, 1, dtype=torch.float32)
    model = Online(module, torch.optim.SGD(module.parameters(), lr=0.1), Point())
    for x in (np.array([1.0, 2.0]), [1.0, 2.0], torch.tensor([1.0, 2.0], dtype=torch.float64)):
        assert model.predict(x) == model.predict([1.0, 2.0])
        model.learn(x, np.float64(3.0))
    assert module.weight.dtype == torch.float32
    words = nn.Sequential(nn.Embedding(10, 4), nn.Flatten(), nn.Linear(8, 3))
    text = Online(words, torch.optim.SGD(words.parameters(), lr=0.1), Softmax(3))
    text.learn([1, 5], 2)
    assert len(text.predict([1, 5]).p) == 3
    with pytest.raises(IndexError, match="index out of range"):
        text.predict([1, 50])


def test_rows_of_frames_and_whole_numbers_are_features() -> None:
    module = nn.Linear(2, 1)
    model = Online(module, torch.optim.SGD(module.parameters(), lr=0.01), Point())
    frame = pd.DataFrame({"a": [1, 3], "b": [2.0, 5.0], "day": ["mo", "tu"]}, index=[7, 8])
    wanted = model.predict([1.0, 2.0])
    for x in (
        [1, 2],
        np.array([1, 2]),
        torch.tensor([1, 2]),
        frame[["a", "b"]].loc[7],
        frame.loc[7, ["a", "b"]],  # of type object
        pd.Series([1, 2], index=["a", "b"]),
    ):
        assert model.predict(x) == wanted
    for _, row in frame[["a", "b"]].iterrows():
        model.learn(row, 1)
    assert model.predict([1, 2]) != wanted
    with pytest.raises(InputError, match="x must be one row of numbers"):
        model.predict(frame.loc[7])


class Pair(nn.Linear):
    """A module that gives two things, as recurrent ones do."""

    def forward(self, rows: torch.Tensor) -> Any:
        return super().forward(rows), None


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: Online(len, None, Point()), InputError, "module must be a torch.nn.Module"),
        (lambda: Online(linear(1), "adam", Point()), InputError, "optimiser must be .* 'adam'"),
        (lambda: made_with(Point), InputError, "head must be Point"),
        (lambda: made_with(Point(), rows=0), InputError, "rows must be a whole number"),
        (lambda: Pinball(0.9, 0.1), InputError, r"rise strictly between 0 and 1, got \(0.9, 0.1\)"),
        (lambda: Softmax("abc"), InputError, "names of the classes in order, got 'abc'"),
        (lambda: Softmax(("a", "a")), InputError, "classes must differ"),
        (lambda: Softmax(("a", "b")).target("c"), LabelError, r"one of \['a', 'b'\], got 'c'"),
        (lambda: Softmax(2).target(1.5), LabelError, r"one of \[0, 1\], got 1.5"),
        (lambda: Softmax(None), InputError, "classes must be a whole number .* got None"),
        (lambda: Point().target("high"), LabelError, "a label must be a number, got 'high'"),
        (
            lambda: made_with(Point(), outputs=2).learn([0.0] * 3, 1.0),
            PredictionError,
            r"takes 1 number a row, the module gave an output of shape \(2,\)",
        ),
        (
            lambda: made_with(Softmax(["a", "b", "c"]), outputs=2).learn([0.0] * 3, "c"),
            PredictionError,
            r"takes 3 numbers a row, the module gave an output of shape \(2,\)",
        ),
        (
            lambda: Online(
                pair := Pair(3, 1), torch.optim.SGD(pair.parameters(), lr=0.1), Point()
            ).predict([0.0] * 3),
            PredictionError,
            "must give a tensor with an output for each of 1 rows, got tuple",
        ),
        (
            lambda: made_with(Pinball(), outputs=3).predict([0.0] * 3),
            PredictionError,
            r"takes 2 numbers a row, the module gave an output of shape \(3,\)",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(make: Any, error: Any, message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def made_with(head: Any, outputs: int = 1, **options: Any) -> Online:
    module = linear(outputs)
    return Online(module, torch.optim.SGD(module.parameters(), lr=0.1), head, **options)


# From image to image


def convolution(seed: int = 0, colours: int = 1, maps: int = 1) -> nn.Conv2d:
    torch.manual_seed(seed)
    return nn.Conv2d(colours, maps, 1, dtype=torch.float64)


def test_a_map_takes_the_gradient_step_of_the_absolute_error_where_it_is_known() -> None:
    module = convolution()
    model = Online(module, torch.optim.SGD(module.parameters(), lr=0.1), Map())
    weight, bias = float(module.weight.detach()), float(module.bias.detach()[0])
    rng = np.random.default_rng(0)
    for _ in range(10):
        x = rng.normal(size=(4, 5))
        y = np.where(rng.random((4, 5)) < 0.3, np.nan, 2.0 * x + 1.0)
        estimate = model.predict(x)
        assert not estimate.requires_grad
        assert not estimate.is_inference()
        np.testing.assert_allclose(estimate.numpy(), weight * x + bias)
        model.learn(x, y)
        sign = np.sign(weight * x + bias - y)
        weight -= 0.1 * float(np.nanmean(sign * x + 0.0 * y))
        bias -= 0.1 * float(np.nanmean(sign))
    assert float(module.weight.detach()) == pytest.approx(weight)


def test_the_loss_of_a_mask_is_the_cross_entropy_of_its_known_pixels() -> None:
    head = Mask(weight=3.0)
    scores = torch.tensor([[[0.5, -1.0, 2.0]]], dtype=torch.float64)
    target = head.target(([[True, False, True]], np.array([[True, True, False]])))
    assert target is not None
    inside, outside = -3.0 * np.log(1.0 / (1.0 + np.exp(-0.5))), -np.log(1.0 - 1.0 / (1.0 + np.e))
    loss = head.loss(scores, target.unsqueeze(0).double())
    assert loss.item() == pytest.approx((inside + outside) / 2.0)
    np.testing.assert_allclose(head.prediction(scores[0]), torch.sigmoid(scores[0]))


@pytest.mark.parametrize(
    ("shape", "dtype", "kept"),
    [
        ((6, 8), np.uint8, (1, 6, 8)),
        ((6, 8, 3), np.uint8, (3, 6, 8)),
        ((6, 8, 1), np.float32, (1, 6, 8)),
        ((3, 6, 8), np.float64, (3, 6, 8)),
    ],
)
def test_an_image_may_have_its_colours_first_or_last(shape: Any, dtype: Any, kept: Any) -> None:
    x = np.random.default_rng(0).integers(0, 256, shape).astype(dtype)
    row = Map().features(x)
    assert tuple(row.shape) == kept
    assert float(row.max()) == pytest.approx(x.max() / (255.0 if dtype == np.uint8 else 1.0))


def test_an_image_without_a_known_pixel_teaches_nothing_and_a_label_is_kept_as_it_was() -> None:
    module = convolution()
    model = Online(module, torch.optim.SGD(module.parameters(), lr=0.1), Map(), rows=2)
    before = module.weight.detach().clone()
    model.learn(np.ones((2, 2)), np.full((2, 2), np.nan))
    assert torch.equal(module.weight, before)
    y = np.zeros((2, 2))
    model.learn(np.ones((2, 2)), y)
    y[:] = 1e9  # the caller's array may change
    model.learn(np.ones((2, 2)), np.zeros((2, 2)))
    assert abs(float(module.weight.detach())) < 10.0
    assert float(model.state_dict()["rows"][0][1].max()) == 0.0
    mask = Online(module, torch.optim.SGD(module.parameters(), lr=0.1), Mask())
    mask.learn(np.ones((2, 2)), (np.ones((2, 2), bool), np.zeros((2, 2), bool)))


def test_a_map_of_the_wrong_shape_is_refused_and_nothing_is_learnt() -> None:
    module = convolution(maps=2)
    model = Online(module, torch.optim.SGD(module.parameters(), lr=0.1), Map())
    with pytest.raises(PredictionError, match=r"one map an image, .* \(2, 3, 3\)"):
        model.predict(np.ones((3, 3)))
    module = convolution()
    model = Online(module, torch.optim.SGD(module.parameters(), lr=0.1), Mask())
    before = module.weight.detach().clone()
    with pytest.raises(LabelError, match=r"shape of the module's map, \(3, 3\), got \(2, 3\)"):
        model.learn(np.ones((3, 3)), np.ones((2, 3), bool))
    with pytest.raises(LabelError, match="a label must be a boolean mask, or 0, 1 and NaN"):
        model.learn(np.ones((3, 3)), np.full((3, 3), 0.5))
    with pytest.raises(InputError, match=r"x must be an image, .* got \(4,\)"):
        model.predict(np.ones(4))
    assert torch.equal(module.weight, before)
    with pytest.raises(InputError, match="weight must be greater than 0"):
        Mask(weight=0.0)


def test_maps_and_masks_of_a_network_are_held_at_their_levels() -> None:
    rng = np.random.default_rng(2)
    torch.manual_seed(2)

    def network() -> nn.Sequential:
        return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 1, 1))

    module, other = network(), network()
    depth = images.SpreadModel(
        Online(module, torch.optim.Adam(module.parameters(), lr=0.01), Map()),
        images.PreviousResiduals(),
        align=False,
        rescale=None,
    )
    near = Online(other, torch.optim.Adam(other.parameters(), lr=0.02), Mask(weight=3.0), rows=4)
    maps = sp.Stream(
        sp.label_sets(sets=sp.sets.PixelScale(), risk=sp.Risk(sp.losses.ImageMiscoverage(), 0.2))
    )
    masks = sp.Stream(
        sp.label_sets(sets=sp.sets.PixelThreshold(), risk=sp.Risk(sp.losses.FalseNegatives(), 0.1))
    )
    for _ in range(200):
        x = rng.integers(0, 256, (16, 20, 3), dtype=np.uint8)
        y = x.mean(2) / 50.0 + rng.normal(0.0, 0.3, (16, 20))
        y[rng.random(y.shape) < 0.1] = np.nan
        maps.predict(depth.predict(x))
        maps.update(y)
        depth.learn(x, y)
        masks.predict(near.predict(x))
        masks.update(np.where(np.isnan(y), np.nan, y > 3.0))
        near.learn(x, np.where(np.isnan(y), np.nan, y > 3.0))
    for stream, level in ((maps, 0.2), (masks, 0.1)):
        (claim,) = stream.certificate().risks
        assert claim.status == "guaranteed: not too many misses"
        assert claim.mean == pytest.approx(level, abs=0.03)


def test_near_pixels_of_real_frames_are_missed_no_more_often_than_asked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    root = Path(__file__).resolve().parents[2]
    file = root.parent / "shared" / "data" / "depth" / "kitti_odom00_208x64.npz"
    if not file.exists():
        pytest.skip("needs the frames of KITTI in ../shared/data")
    threads = torch.get_num_threads()
    try:
        stream = runpy.run_path(str(root / "examples" / "near_pixels.py"))["main"](file)
    finally:
        torch.set_num_threads(threads)
    (claim,) = stream.certificate().risks
    assert claim.judged == 500
    assert claim.mean == pytest.approx(0.1, abs=0.005)
    assert claim.status == "guaranteed: not too many misses"
    halves = [line.split()[4] for line in capsys.readouterr().out.splitlines() if "half" in line]
    assert all(float(share.strip("%")) > 15.0 for share in halves)
