"""The classification experiment: its methods on made streams, and the whole of it on real ones."""

from functools import cache
from math import isnan

import numpy as np
import pytest

from setpoint.errors import InputError
from setpoint_paper import datasets
from setpoint_paper.classification import methods
from setpoint_paper.classification.experiment import draw, reproduce
from setpoint_paper.classification.f1 import Held
from setpoint_paper.classification.tapes import Recorded, recorded
from setpoint_paper.rows import parsed


@cache
def made_stream(rows=1_200, classes=5, seed=0):
    """Probabilities that turn wrong in the middle, and the classes."""
    random = np.random.default_rng(seed)
    scores = 2.0 * random.standard_normal((rows, classes))
    p = np.exp(scores)
    p /= p.sum(axis=1, keepdims=True)
    truth = np.where(np.arange(rows)[:, None] < rows // 2, p, 1.0 / classes)
    y = (truth.cumsum(axis=1) < random.random((rows, 1))).sum(axis=1).clip(max=classes - 1)
    return Recorded("made", p, y, 100, 400, (0, 600))


@cache
def made_labels(rows=900, classes=6, seed=0):
    """Probabilities of several labels, too small for the common ones, and the labels."""
    random = np.random.default_rng(seed)
    p = random.random((rows, classes))
    return Recorded("several", p, random.random(p.shape) < np.sqrt(p), 100, 300)


def made_hits(y, shares, seed, streak=1):
    """1 with the share of the class, drawn anew after every `streak` rows of a class."""
    random = np.random.default_rng(seed)
    hits = np.empty(len(y))
    for place, share in enumerate(shares):
        rows = np.flatnonzero(y == place)
        drawn = random.random(-(-len(rows) // streak)) < share
        hits[rows] = np.repeat(drawn, streak)[: len(rows)]
    return hits


RUNS = np.repeat(np.arange(400) % 4, 10)
"""Four classes that come in runs of ten rows."""


def test_a_real_gain_in_balance_has_an_interval_above_0_that_holds_it():
    unbalanced = made_hits(RUNS, (0.8, 1.0, 0.8, 1.0), seed=1)
    balanced = made_hits(RUNS, (0.9, 0.9, 0.9, 0.9), seed=2)
    gain = methods.balance(RUNS, unbalanced, balanced)
    assert 0.0 < gain.low < 10.0 < gain.high
    assert gain.low < gain.middle < gain.high
    turned = methods.balance(RUNS, balanced, unbalanced)
    assert turned.middle == pytest.approx(-gain.middle)
    assert turned.high < 0.0


def test_without_a_gain_in_balance_the_interval_holds_0(monkeypatch):
    monkeypatch.setattr(methods, "DRAWS", 300)
    shares = (0.85, 0.95, 0.9, 0.9)
    held = 0
    for seed in range(40):
        first, second = (made_hits(RUNS, shares, 2 * seed + place) for place in (0, 1))
        gain = methods.balance(RUNS, first, second)
        held += gain.low <= 0.0 <= gain.high
    assert held >= 34
    same = methods.balance(RUNS, first, first)
    assert (same.middle, same.low, same.high) == (0.0, 0.0, 0.0)


def test_blocks_see_the_noise_of_misses_that_come_in_streaks():
    first, second = (made_hits(RUNS, (0.8, 1.0, 0.8, 1.0), seed, streak=10) for seed in (0, 1))
    rows, blocks = (methods.balance(RUNS, first, second, block=size) for size in (1, 100))
    assert blocks.high - blocks.low > 1.5 * (rows.high - rows.low)


class _Counting:
    """A classifier that only counts: it knows a class once it has learnt it."""

    def __init__(self):
        self.seen = {}

    def predict_proba_one(self, x):
        total = sum(self.seen.values())
        return {label: count / total for label, count in self.seen.items()}

    def learn_one(self, x, y):
        self.seen[y] = self.seen.get(y, 0) + 1


def test_a_row_is_predicted_before_it_is_learnt():
    y = np.array([1, 1, 0, 2, 0])
    data = datasets.Dataset("five", np.zeros((5, 1)), y, ("x",), classes=("a", "b", "c"))
    found = recorded(data, _Counting)
    wanted = [[1 / 3, 1 / 3, 1 / 3], [0, 1, 0], [0, 1, 0], [1 / 3, 2 / 3, 0], [1 / 4, 1 / 2, 1 / 4]]
    np.testing.assert_allclose(found.p, wanted)


def test_batches_mark_the_drift_and_the_first_two_are_not_judged():
    group = np.repeat([1, 2, 3], [3, 4, 5])
    y = np.arange(12) % 2
    data = datasets.Dataset("twelve", np.zeros((12, 1)), y, ("x",), group=group, classes=("a", "b"))
    found = recorded(data, _Counting)
    assert (found.warm, found.begin) == (3, 7)
    assert found.marks == (0, 3, 7)


@pytest.mark.parametrize("streams", [(), ("outdoor", "elsewhere")])
def test_streams_that_are_not_known_are_refused(streams, tmp_path):
    with pytest.raises(
        InputError, match="streams must be some of gas_drift, outdoor, power_supply"
    ):
        reproduce(streams=streams, out=tmp_path)


@pytest.mark.parametrize("stream", [made_stream(), made_labels()], ids=["one", "several"])
def test_every_controlled_method_is_within_its_certificate_and_the_identity_exact(stream):
    found = methods.judged(stream)
    assert len(found) == (1 if stream.several else 2)
    for each in found:
        row = each.row
        assert row.within
        assert row.gap < 1e-12
        assert abs(row.risk - methods.LEVEL) <= row.bound
        assert row.risk == pytest.approx(np.nanmean(each.losses))
        assert isnan(row.unbalanced) == stream.several
        assert each.masks.shape == (len(stream.y) - stream.begin, stream.p.shape[1])


def test_the_gain_in_balance_stands_in_the_row_of_the_threshold(tmp_path):
    stream = made_stream()
    threshold, cumulative = (each.row for each in methods.judged(stream))
    apart = threshold.unbalanced - cumulative.unbalanced
    assert threshold.balance_gain == pytest.approx(100.0 * apart)
    assert threshold.balance_low < threshold.balance_gain < threshold.balance_high
    assert isnan(cumulative.balance_gain)
    y = stream.y[stream.begin :]
    (outcome, _) = methods.judged(stream)
    shares = [np.mean(1.0 - outcome.losses[y == each]) for each in range(5)]
    assert threshold.unbalanced == pytest.approx(np.mean(np.abs(np.array(shares) - 0.9)))
    path = draw(stream, methods.judged(stream), tmp_path / "made.png")
    assert path.stat().st_size > 10_000


def test_the_experiment_stores_its_rows_and_what_becomes_of_f1(shared_data, tmp_path):
    (row,) = reproduce(streams=("yeast",), quick=True, out=tmp_path)
    assert row.within
    (stored,) = parsed(methods.Row, (tmp_path / "classification-quick.csv").read_text("utf-8"))
    assert stored.risk == pytest.approx(row.risk, rel=1e-5)
    held = parsed(Held, (tmp_path / "f1-quick.csv").read_text("utf-8"))
    assert [each.spell for each in held] == [False, True] * 2
    assert (tmp_path / "classification-quick_yeast.png").stat().st_size > 10_000
