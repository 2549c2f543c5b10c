"""Truths that come late, inputs of any kind, padding, and loops that are saved and go on."""

import copy
import pickle
from math import isnan, nan
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import InputError, LabelError, PendingFull, UnknownReceipt
from setpoint.images import (
    PreviousResiduals,
    RegisteredResiduals,
    ResidualMagnitude,
    SpreadModel,
    fit,
)
from setpoint.images.heuristics import Constant
from setpoint.images.model import known_pixels

torch = pytest.importorskip("torch")
pytest.importorskip("cv2")

SHAPE = (16, 20)


class Counts:
    """A model whose prediction tells how often it has learnt."""

    def __init__(self) -> None:
        self.learnt = 0
        self.told: list[Any] = []

    def predict(self, x: Any) -> Any:
        return np.asarray(x, float) * 0.5 + self.learnt

    def learn(self, x: Any, y: Any) -> None:
        self.learnt += 1
        self.told.append(y)


class Listens:
    """A heuristic that keeps what it is told."""

    floor = 0.0

    def __init__(self) -> None:
        self.told: list[Any] = []

    def predict(self, x: Any, estimate: Any) -> tuple[Any, Any]:
        return np.ones_like(estimate), np.ones_like(estimate)

    def learn(self, x: Any, estimate: Any, truth: Any) -> None:
        self.told.append(estimate.copy())


class FromPair:
    """A model of an input that is not one array."""

    def predict(self, x: Any) -> Any:
        return x["image"] if isinstance(x, dict) else x[0]

    def learn(self, x: Any, y: Any) -> None: ...


def clip(count: int, seed: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    random = np.random.default_rng(seed)
    made = []
    for _ in range(count):
        x = random.uniform(1.0, 9.0, SHAPE)
        y = 2.0 * x + random.normal(0.0, 0.5, SHAPE)
        y[random.random(SHAPE) < 0.2] = nan
        made.append((x, y))
    return made


def test_a_late_truth_meets_what_was_predicted() -> None:
    delay, seen = 2, clip(8)
    model = SpreadModel(Counts(), Listens(), known=60, seed=5)
    heuristic: Any = model.heuristic
    shown = []
    for t, (x, y) in enumerate(seen):
        learnt = max(t - delay, 0)
        expected = fit(0.5 * x + learnt, known_pixels(y, 60, np.random.default_rng((5, t))))
        shown.append(model.predict(x, y, id=t).centre.copy())
        assert model.facts.fit == expected  # each has known pixels of its own
        if t >= delay:
            model.learn(*seen[t - delay], id=t - delay)
            assert model.facts.judged == np.isfinite(seen[t - delay][1]).sum()
    assert model.pending == (6, 7)
    assert len(heuristic.told) == 6
    for told, centre in zip(heuristic.told, shown, strict=False):
        assert np.array_equal(told, centre)
    model.learn(*seen[7], id=7)  # in any order
    assert np.array_equal(heuristic.told[-1], shown[7])
    model.drop(6)
    assert model.pending == ()
    assert model.frames == model.model.learnt == 7


def test_ids_that_cannot_be_are_told() -> None:
    (x, y), *_ = clip(1)
    model = SpreadModel(Counts(), Constant(), max_pending=2)
    model.predict(x, y, id="a")
    with pytest.raises(InputError, match="a prediction already waits under the id 'a'"):
        model.predict(x, y, id="a")
    model.predict(x, y, id="b")
    with pytest.raises(PendingFull, match="2 predictions wait for their truth, as many as max_"):
        model.predict(x, y, id="c")
    for wrong in (True, 1.5, ("a", 1.5)):
        with pytest.raises(InputError, match="an id must be a whole number, a string or a tuple"):
            model.predict(x, y, id=wrong)  # type: ignore[arg-type]
    for call in (lambda: model.learn(x, y, id="c"), lambda: model.drop("c")):
        with pytest.raises(UnknownReceipt, match="no prediction waits under the id 'c'"):
            call()
    model.drop("a")
    model.predict(x, y, id="c")
    assert (model.pending, model.frames, model.max_pending) == (("b", "c"), 0, 2)


@pytest.mark.parametrize("kind", ["dict", "tuple", "objects"])
def test_an_input_of_several_arrays_is_known_by_identity(kind: str) -> None:
    model = SpreadModel(FromPair(), Listens(), known=60)
    heuristic: Any = model.heuristic
    again: Any = {"dict": dict, "tuple": lambda each: (each[0], each[1]), "objects": np.copy}
    for t, (x, y) in enumerate(clip(4)):
        held = np.empty(2, object)
        held[:] = [x, x[:3]]
        inputs = {"dict": {"image": x, "small": x[:3]}, "tuple": (x, x[:3]), "objects": held}
        given: Any = inputs[kind]
        sparse = known_pixels(y, 30, rng=t)  # other known pixels than learn would draw
        spread = model.predict(given, sparse)
        model.learn(given, y)
        assert np.array_equal(heuristic.told[-1], spread.centre)
        assert model.facts.known == 30
        model.predict(given, sparse)
        model.learn(again[kind](given), y)  # another object: predicted anew
        assert model.facts.known == 60


def test_padding_enters_neither_the_prediction_nor_the_floor() -> None:
    random = np.random.default_rng(1)
    valid = np.zeros(SHAPE, bool)
    valid[3:13, 2:17] = True
    x, y = clip(1)[0]
    padded = np.where(valid, y, 0.0)  # padding that looks like a truth of 0

    class Network:
        def predict(self, x: Any) -> Any:
            return np.where(valid, np.where(x > 5.0, 0.0, 1.0), 1000.0)

        def learn(self, x: Any, y: Any) -> None: ...

    model = SpreadModel(Counts(), ResidualMagnitude(Network()), known=60, rescale=None)
    spread = model.predict(x, padded, valid=valid)
    assert np.array_equal(spread.valid, valid)
    cut = np.s_[3:13, 2:17]
    inside = known_pixels(np.where(valid, y, nan), 60, np.random.default_rng((0, 0)))
    assert model.facts.fit == pytest.approx(fit(0.5 * x[cut], inside[cut]))
    assert model.facts.known == 60
    assert model.facts.valid == valid.sum()
    low = np.where(x > 5.0, 0.0, 1.0)[cut]
    assert np.allclose(spread.low[cut], np.maximum(low, 0.1 * low.mean()))
    model.learn(x, padded)
    assert model.facts.judged == np.isfinite(y[valid]).sum()
    tensors = SpreadModel(FromPair(), PreviousResiduals(), known=60)
    frame = torch.tensor(random.uniform(1.0, 9.0, SHAPE))
    found = tensors.predict((frame,), torch.tensor(padded), valid=torch.tensor(valid))
    assert np.array_equal(found.valid.numpy(), valid)
    lengths = [
        sp.sets.PixelScale().at(sp.sets.PixelScale().read(each), 1.0).length
        for each in (spread, spread._replace(valid=None))
    ]
    assert lengths[1] > 100.0 * lengths[0]  # without valid, padding counts


def test_truths_are_given_in_several_ways() -> None:
    (x, y), *_ = clip(1)
    bare = np.where(np.isnan(y), 0.0, y)
    found = []
    for truth in (
        y,
        (bare, np.isfinite(y)),
        (bare.tolist(), np.isfinite(y).tolist()),
        np.ma.masked_array(bare, np.isnan(y)),
    ):
        model = SpreadModel(Counts(), PreviousResiduals(), known=60)
        model.predict(x, truth)
        first = model.facts.fit
        model.learn(x, truth)
        assert np.array_equal(model.model.told[0], y, equal_nan=True)
        found.append((first, model.facts.judged, np.stack(model.predict(x, y)[:3]).tolist()))
    assert all(each == found[0] for each in found)
    for wrong in ((bare, bare), (bare, np.isfinite(y)[:3]), (bare, bare > 0, 3)):
        with pytest.raises(LabelError):
            model.learn(x, wrong)


def stream() -> sp.Stream:
    risk = sp.Risk(sp.losses.ImageMiscoverage(), 0.2, sp.steps.Fixed(0.5), bounds=(-6.0, 6.0))
    return sp.Stream(sp.Controller(sp.sets.PixelScale(), risk, sp.stretches.Exponential()))


@pytest.mark.parametrize(
    "heuristic",
    [PreviousResiduals, RegisteredResiduals],
)
@pytest.mark.parametrize("way", ["pickle", "copy"])
def test_a_whole_loop_goes_on_where_it_was_saved(heuristic: Any, way: str, tmp_path: Any) -> None:
    seen = clip(12, seed=2)
    model, at_work = SpreadModel(Counts(), heuristic(), known=60), stream()
    ends = []
    for t, (x, y) in enumerate(seen):
        at_work.predict(model.predict(x, y, id=t), id=t)
        if t == 6:  # in the middle of everything: two predictions wait, one was asked without id
            model.predict(x, y)
            at_work.save(tmp_path / "stream")
            (tmp_path / "model").write_bytes(pickle.dumps(model))
            ends = [(model, at_work)]
            again = pickle.loads((tmp_path / "model").read_bytes())
            other = again if way == "pickle" else copy.deepcopy(model)
            ends.append((other, sp.Stream.load(tmp_path / "stream")))
            break
        if t:
            model.learn(*seen[t - 1], id=t - 1)
            at_work.update(seen[t - 1][1], id=t - 1)
    found = []
    for own, running in ends:
        made = []
        for t in range(7, len(seen)):
            own.learn(*seen[t - 1], id=t - 1)
            running.update(seen[t - 1][1], id=t - 1)
            spread = own.predict(*seen[t], id=t)
            shown = running.predict(spread, id=t)
            made.append(np.stack([*spread[:3], shown.lower, shown.upper]))
        found.append(np.stack(made))
        assert own.pending == (5, 11)
        assert not isnan(own.facts.fit.scale)
    assert np.array_equal(*found)


def test_known_pixels_are_there_whatever_the_order_in_memory() -> None:
    truth = np.arange(200.0).reshape(10, 20)
    wanted = known_pixels(truth, 50, 0)
    assert np.isfinite(wanted).sum() == 50
    np.testing.assert_array_equal(known_pixels(np.asfortranarray(truth), 50, 0), wanted)
    turned = known_pixels(np.ascontiguousarray(truth.T).T, 50, 0)
    np.testing.assert_array_equal(turned, wanted)
    tensor = torch.tensor(truth.T.copy()).T
    np.testing.assert_array_equal(known_pixels(tensor, 50, 0).numpy(), wanted)


class Refuses:
    """A model that takes no truth with a 0 in it."""

    def predict(self, x: Any) -> np.ndarray:
        return np.asarray(x) + 1.0

    def learn(self, x: Any, y: np.ndarray) -> None:
        if (y == 0.0).any():
            raise LabelError("a depth of 0")


def test_a_truth_that_the_model_refuses_teaches_the_heuristic_nothing() -> None:
    model, other = (SpreadModel(Refuses(), PreviousResiduals()) for _ in range(2))
    x = np.linspace(1.0, 5.0, 120).reshape(10, 12)
    truth = x + 2.0
    for each in (model, other):
        each.predict(x, truth, id=0)
    with pytest.raises(LabelError):
        model.learn(x, np.where(x == x[0, 0], 0.0, truth), id=0)
    for each in (model, other):
        each.learn(x, truth, id=0)
    here, there = (each.predict(x, truth, id=1) for each in (model, other))
    np.testing.assert_array_equal(here.low, there.low)
    np.testing.assert_array_equal(here.high, there.high)
