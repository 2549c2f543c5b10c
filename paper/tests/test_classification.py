"""The classification experiment: its methods on made streams, and the whole of it on real ones."""

import csv
from functools import cache
from math import ceil, inf, isnan, nan

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import InputError
from setpoint_paper import datasets
from setpoint_paper.classification import methods
from setpoint_paper.classification.experiment import STREAMS, reproduce
from setpoint_paper.classification.report import Result, draw, findings, report, write_csv
from setpoint_paper.classification.tapes import Recorded, recorded


@cache
def made_stream(rows=1_200, classes=5, seed=0):
    """Probabilities that turn wrong in the middle, and the classes."""
    random = np.random.default_rng(seed)
    scores = 2.0 * random.standard_normal((rows, classes))
    p = np.exp(scores)
    p /= p.sum(axis=1, keepdims=True)
    truth = np.where(np.arange(rows)[:, None] < rows // 2, p, 1.0 / classes)
    y = (truth.cumsum(axis=1) < random.random((rows, 1))).sum(axis=1).clip(max=classes - 1)
    return Recorded("made", "by formula", p, y, 100, 400, ((0, "one"), (600, "two")))


@cache
def made_labels(rows=900, classes=6, seed=0):
    """Probabilities of several labels, too small for the common ones, and the labels."""
    random = np.random.default_rng(seed)
    p = random.random((rows, classes))
    return Recorded("several", "by formula", p, random.random(p.shape) < np.sqrt(p), 100, 300)


@pytest.mark.parametrize("stream", [made_stream(), made_labels()], ids=["one", "several"])
def test_every_controlled_method_is_within_its_certificate_and_the_identity_exact(stream):
    ours = [each for each in _outcomes(stream) if each.kind == "controlled"]
    assert len(ours) == (1 if stream.several else 6)
    for each in [*ours, *(outcome for _, outcome in methods.paces(stream))]:
        assert each.certificate.within
        ours_alone = each.method.endswith("(ours)")
        assert each.certificate.verdict == ("holds from above" if ours_alone else "holds")
        assert each.gap < 1e-12
        excess = each.risk - methods.LEVEL
        assert (excess if ours_alone else abs(excess)) <= each.bound
        assert isnan(each.unbalanced) == stream.several
        assert each.certificate.judged == np.count_nonzero(~np.isnan(each.losses))
        assert each.masks.shape == (len(stream.y) - stream.begin, stream.p.shape[1])


def test_paces_are_multiples_of_the_step_size_that_the_burn_in_chose():
    stream = made_stream()
    past = slice(stream.warm, stream.begin)
    risk = sp.Risk(sp.losses.Miscoverage(), methods.LEVEL)
    wanted = sp.burn_in(
        sp.Controller(sp.sets.Threshold(), risk), stream.p[past], stream.y[past]
    ).risks[0]
    tried = [each for each in methods.paces(stream) if each[1].family == "Threshold"]
    assert [pace for pace, _ in tried] == [0.25, 1.0, 4.0]
    for pace, outcome in tried:
        assert outcome.gamma == pace * wanted.step.gamma
        assert outcome.certificate.first == wanted.start


@cache
def _outcomes(stream):
    return methods.methods(stream)


def _by_name(stream, method, family=None):
    (one,) = [
        each
        for each in _outcomes(stream)
        if each.method == method and family in (None, each.family)
    ]
    return one


def test_the_bare_sets_are_the_fewest_likeliest_classes_with_their_mass():
    stream = made_stream(rows=500)
    shown = _by_name(stream, "uncalibrated").masks
    for p, mask in zip(stream.p[stream.begin :], shown, strict=True):
        wanted, mass = set(), 0.0
        for place in sorted(range(len(p)), key=lambda k: -p[k]):
            if mass >= 0.9 * p.sum():
                break
            wanted.add(place)
            mass += p[place]
        assert set(np.flatnonzero(mask).tolist()) == wanted


def test_the_fixed_threshold_is_that_of_split_conformal_prediction():
    stream = made_stream()
    rows = range(stream.warm, stream.begin)
    chances = sorted(float(stream.p[row, stream.y[row]]) for row in rows)
    rank = ceil(0.9 * (len(chances) + 1))
    least = chances[len(chances) - rank]  # the rank-th largest probability of a true class
    shown = _by_name(stream, "fixed threshold", "Threshold").masks
    np.testing.assert_array_equal(shown, stream.p[stream.begin :] >= least)
    calibrated = np.mean([stream.p[row, stream.y[row]] >= least for row in rows])
    assert 0.9 <= calibrated <= 0.9 + 2 / len(chances)


def test_too_few_calibration_rows_leave_the_fixed_set_full():
    assert methods._split([-0.5] * 8) == inf
    assert methods._split([-0.1 * k for k in range(9)]) == 0.0


def test_the_fixed_threshold_of_several_labels_is_that_of_conformal_risk_control():
    stream = made_labels()
    past = slice(stream.warm, stream.begin)
    p, y = stream.p[past], stream.y[past]
    judged = y.any(axis=1)
    p, y = p[judged], y[judged]

    def held(least):
        missed = (y & (p < least)).sum(axis=1) / y.sum(axis=1)
        return (missed.sum() + 1.0) / (len(y) + 1) <= methods.LEVEL

    least = max(chance for chance in p[y] if held(chance))
    shown = _by_name(stream, "fixed threshold").masks
    np.testing.assert_array_equal(shown, stream.p[stream.begin :] >= least)


def test_where_the_classifier_turns_wrong_only_controlled_sets_keep_their_coverage():
    stream = made_stream(rows=3_000)
    for family in ("Threshold", "Cumulative"):
        held = _by_name(stream, "controlled", family)
        fixed = _by_name(stream, "fixed threshold", family)
        assert abs(held.risk - 0.1) < 0.02 < fixed.risk - 0.1
        assert held.worst < fixed.worst


def test_rolling_means_are_those_of_a_loop():
    values = np.random.default_rng(0).random(40)
    values[[3, 17]] = nan
    kept = values[~np.isnan(values)]
    wanted = [kept[start : start + 7].mean() for start in range(len(kept) - 6)]
    np.testing.assert_allclose(methods.rolling(values, 7), wanted, rtol=1e-12)
    np.testing.assert_allclose(methods.rolling(values, 100), [kept.mean()], rtol=1e-12)


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
    assert gain.low < gain.mean < gain.high
    turned = methods.balance(RUNS, balanced, unbalanced)
    assert turned.mean == pytest.approx(-gain.mean)
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
    assert (same.mean, same.low, same.high) == (0.0, 0.0, 0.0)


def test_blocks_see_the_noise_of_misses_that_come_in_streaks():
    first, second = (made_hits(RUNS, (0.8, 1.0, 0.8, 1.0), seed, streak=10) for seed in (0, 1))
    rows, blocks = (methods.balance(RUNS, first, second, block=size) for size in (1, 100))
    assert blocks.high - blocks.low > 1.5 * (rows.high - rows.low)


def test_a_stream_shorter_than_a_block_has_an_interval():
    gain = methods.balance(RUNS[:60], *(made_hits(RUNS[:60], (0.9,) * 4, seed) for seed in (0, 1)))
    assert gain.low < gain.mean < gain.high


def test_the_gain_in_balance_stands_in_the_row_of_the_threshold(tmp_path):
    stream = made_stream()
    result = Result(stream, _outcomes(stream), methods.paces(stream))
    write_csv([result], tmp_path / "made.csv")
    with (tmp_path / "made.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    ((threshold, gain),) = [(row, row["balance_gain"]) for row in rows if row["balance_gain"]]
    assert (threshold["method"], threshold["family"], threshold["pace"]) == (
        "controlled", "Threshold", "1",
    )  # fmt: skip
    (cumulative,) = [
        row
        for row in rows
        if (row["method"], row["family"], row["pace"]) == ("controlled", "Cumulative", "1")
    ]
    apart = float(threshold["unbalanced"]) - float(cumulative["unbalanced"])
    assert float(gain) == pytest.approx(100.0 * apart)
    assert float(threshold["balance_low"]) == result.gain.low
    assert float(threshold["balance_high"]) == result.gain.high
    (told,) = [line for line in findings(result) if "appendix G" in line]
    undecided = result.gain.low <= 0.0 <= result.gain.high
    assert ("**undecided**" in told) == undecided
    assert f"95 % interval [{result.gain.low:+.2f}".replace("-", "−") in told
    several = made_labels()
    assert Result(several, _outcomes(several), []).gain is None


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
    data = datasets.LabelDataset("five", np.zeros((5, 1)), y, ("x",), ("a", "b", "c"))
    found = recorded(data, _Counting, "counts")
    wanted = [[1 / 3, 1 / 3, 1 / 3], [0, 1, 0], [0, 1, 0], [1 / 3, 2 / 3, 0], [1 / 4, 1 / 2, 1 / 4]]
    np.testing.assert_allclose(found.p, wanted)


def test_batches_mark_the_drift_and_the_first_two_are_not_judged():
    group = np.repeat([1, 2, 3], [3, 4, 5])
    y = np.arange(12) % 2
    data = datasets.LabelDataset("twelve", np.zeros((12, 1)), y, ("x",), ("a", "b"), group)
    found = recorded(data, _Counting, "counts")
    assert (found.warm, found.begin) == (3, 7)
    assert found.marks == ((0, "batch 1"), (3, "batch 2"), (7, "batch 3"))


def test_sentences_say_what_the_numbers_are(tmp_path):
    stream = made_stream(rows=3_000)
    result = Result(stream, _outcomes(stream), methods.paces(stream))
    lines = findings(result)
    fixed = _by_name(stream, "fixed threshold", "Threshold")
    assert lines[0].startswith("Controlled (asked: 10 % of labels missed): 6 of 6 near")
    assert "6 of 6 within the bound of the certificate" in lines[0]
    (told,) = [line for line in lines if line.startswith("Fixed threshold, Threshold")]
    assert f"{100 * fixed.risk:.2f} % of labels missed, more than was asked" in told
    assert f"{100 * fixed.worst:.1f} % in the worst 250 rows" in told
    assert f"{100 * stream.accuracy:.1f} % of the rows" in lines[-1]
    page = report([result], "the command", quick=False, folder=tmp_path)
    assert "\n    the command\n" in page
    assert all(f"\n- {line}\n" in page for line in lines)


def test_the_same_figure_has_the_same_bytes(tmp_path):
    stream = made_stream()
    result = Result(stream, _outcomes(stream), [])
    first, second = (draw(result, tmp_path / name).read_bytes() for name in ("a.png", "b.png"))
    assert first == second
    assert first.startswith(b"\x89PNG")


@pytest.mark.parametrize("streams", [(), ("outdoor", "elsewhere")])
def test_streams_that_are_not_known_are_refused(streams, tmp_path):
    with pytest.raises(
        InputError, match="streams must be some of gas_drift, outdoor, power_supply"
    ):
        reproduce(streams=streams, out=tmp_path)


def test_a_real_stream_with_drift_stays_within_its_certificates(shared_data):
    from river import linear_model, optim, preprocessing

    def model():
        return preprocessing.StandardScaler() | linear_model.SoftmaxRegression(optim.SGD(0.3))

    stream = recorded(datasets.outdoor(rows=1_000), model, "softmax")
    assert stream.accuracy > 0.7
    found = methods.methods(stream)
    for each in found:
        if each.kind == "controlled":
            assert each.certificate.within
            assert each.gap < 1e-12
            assert abs(each.risk - methods.LEVEL) < 0.04
            assert each.mean_size < 10.0


def test_the_experiment_stores_what_it_prints(shared_data, tmp_path, capsys):
    (result,) = reproduce(streams=("yeast",), quick=True, out=tmp_path)
    (held,) = result.named("controlled")
    assert held.certificate.within
    assert held.gap < 1e-12
    assert (tmp_path / "classification_yeast.png").stat().st_size > 10_000
    page = (tmp_path / "classification.md").read_text(encoding="utf-8")
    assert page in capsys.readouterr().out
    command = f"setpoint-paper classification --streams yeast --quick --out {tmp_path}"
    assert f"\n    {command}\n" in page
    with (tmp_path / "classification.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 6  # four methods, and two more step sizes
    assert float(rows[0]["risk"]) == result.outcomes[0].risk
    assert "yeast" in STREAMS
