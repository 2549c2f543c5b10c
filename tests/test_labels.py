"""Label families at work: what they read, what they refuse, and the sets people handle."""

import copy
import math
import pickle
from math import inf, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import InputError, LabelError, PredictionError, TapeError
from setpoint.losses import FalseNegatives, FalsePositives, Miscoverage, SetSize
from setpoint.predictions import Probabilities
from setpoint.sets import Cumulative, LabelSet, Multilabel, Threshold

PETS = ("cat", "dog", "owl")


def stream_of(family: Any, loss: Any = None, **options: Any) -> sp.Stream:
    risk = sp.Risk(loss or Miscoverage(), 0.25, sp.steps.Fixed(0.125))
    return sp.Stream(sp.Controller(family, risk), **options)


# Sets


def test_a_label_set_is_a_collection_in_order_of_likelihood() -> None:
    shown = Threshold(PETS).at(Threshold(PETS).read([0.2, 0.5, 0.3]), -0.3)
    assert list(shown) == ["dog", "owl"]
    assert shown.labels == ("dog", "owl")
    assert len(shown) == shown.size == 2
    assert shown.classes == PETS
    assert shown.mask.tolist() == [False, True, True]
    assert "dog" in shown
    assert "cat" not in shown
    assert "emu" not in shown
    assert repr(shown) == "LabelSet('dog', 'owl')"
    assert not shown.full
    assert not shown.empty
    assert shown.hits(("cat", "dog", "emu")) == 1


def test_the_ends_know_themselves() -> None:
    reading = Threshold(PETS).read([0.2, 0.5, 0.3])
    full, empty = (Threshold(PETS).at(reading, lam) for lam in (inf, -inf))
    assert (repr(full), repr(empty)) == ("LabelSet(full)", "LabelSet(empty)")
    assert "emu" in full
    assert bool(full)
    assert not bool(empty)
    named = Cumulative(PETS).at(Cumulative(PETS).read([0.2, 0.5, 0.3]), 0.0)
    assert named.size == 3
    assert not named.full  # a class never seen is not in it


def test_label_sets_compare_by_what_is_in_them() -> None:
    reading = Threshold(PETS).read([0.2, 0.5, 0.3])
    one, same, other = (Threshold(PETS).at(reading, lam) for lam in (-0.3, -0.25, -0.2))
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert one != {"dog", "owl"}
    assert Threshold(PETS).at(reading, inf) != Cumulative(PETS).at(
        Cumulative(PETS).read([0.2, 0.5, 0.3]), 0.0
    )
    for twin in (copy.copy(one), copy.deepcopy(one), pickle.loads(pickle.dumps(one))):
        assert twin == one
        assert isinstance(twin, LabelSet)


# Predictions in every form


@pytest.mark.parametrize("family", [Threshold(PETS), Cumulative(PETS), Multilabel(PETS)], ids=repr)
def test_probabilities_come_in_many_forms(family: Any) -> None:
    wanted = family.at(family.read([0.25, 0.5, 0.25]), -0.3)
    for prediction in (
        (0.25, 0.5, 0.25),
        np.array([0.25, 0.5, 0.25]),
        np.array([0.25, 0.5, 0.25], dtype=np.float32),
        [np.float64(0.25), np.array(0.5), 0.25],
        {"owl": 0.25, "dog": 0.5, "cat": 0.25},
        {np.str_("owl"): 0.25, "dog": np.float32(0.5), "cat": 0.25},
        Probabilities([0.25, 0.5, 0.25]),
        Probabilities((0.5, 0.25, 0.25), classes=("dog", "cat", "owl")),
    ):
        shown = family.at(family.read(prediction), -0.3)
        assert set(shown) == set(wanted)
        assert shown.contains("emu") == wanted.contains("emu")


def test_single_precision_may_pass_one_by_a_rounding() -> None:
    assert Threshold().critical(Threshold().read([1.0 + 5e-7, 0.0]), 0) == -1.0
    with pytest.raises(PredictionError, match=r"must lie in \[0, 1\], got 1.00001"):
        Threshold().read([1.00001, 0.0])


# Labels in every form


@pytest.mark.parametrize("family", [Threshold(), Cumulative()], ids=repr)
def test_a_label_comes_in_many_forms(family: Any) -> None:
    reading = family.read([0.25, 0.75])
    for one in (1, 1.0, np.int64(1), np.float32(1.0), np.array(1), np.array([1]), True, np.True_):
        label = family.label(one)
        assert family.critical(reading, label) == family.critical(reading, 1)
        assert family.at(reading, -0.5).contains(label) == family.at(reading, -0.5).contains(1)
    for nought in (0, False, np.False_, np.uint8(0)):
        assert family.critical(reading, family.label(nought)) == family.critical(reading, 0)


@pytest.mark.parametrize(
    ("y", "wanted"),
    [
        (("dog",), ("dog",)),
        (["owl", "cat"], ("owl", "cat")),
        ({"owl"}, ("owl",)),
        ([], ()),
        (set(), ()),
        ({"cat": True, "dog": False, "owl": 1}, ("cat", "owl")),
        (np.array([0, 1, 1]), ("dog", "owl")),
        (np.array([True, False, False]), ("cat",)),
        ([True, False, True], ("cat", "owl")),
        (np.array([0.0, 0.0, 0.0]), ()),
        (("emu",), ("emu",)),
    ],
)
def test_several_labels_come_in_many_forms(y: Any, wanted: tuple[str, ...]) -> None:
    assert Multilabel(PETS).label(y) == wanted


# Refused, and nothing has changed


def unchanged(stream: sp.Stream, call: Any, error: type[Exception], message: str) -> None:
    """The call is refused in words, and the stream is as it was before."""
    state, waiting, last = stream.state, repr(stream.pending), repr(stream.info)
    with pytest.raises(error, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
    after = stream.state
    assert [own.theta for own in after.risks] == [own.theta for own in state.risks]
    assert [own.judged for own in after.risks] == [own.judged for own in state.risks]
    assert (repr(stream.pending), repr(stream.info)) == (waiting, last)


BAD_PROBABILITIES = [
    ([0.5, 0.6], "the probabilities of the classes must sum to 1, got 1.1"),
    ([], r"must name 2 classes, got 0 numbers"),
    ([-0.1, 1.1], r"probabilities must lie in \[0, 1\], got -0.1"),
    ([nan, 1.0], r"probabilities must lie in \[0, 1\], got nan"),
    ([[0.5, 0.5]], r"must be one row of probabilities, got an array of shape \(1, 2\)"),
    (0.5, r"must be one row of probabilities, got an array of shape \(\)"),
    (["a", "b"], r"probabilities must be numbers, got \['a', 'b'\]"),
    ([0.5, "0.5"], r"must be .*numbers?, got"),
    ([0.5, None], r"must|got"),
    (None, "probabilities must be numbers, got None"),
    ([0.2, 0.3, 0.5], "a prediction must name 2 classes, got 3 numbers"),
    (Probabilities([0.5, 0.5], classes=("a",)), "a prediction must name 1 classes, got 2 numbers"),
    (Probabilities([0.5, 0.5], classes=("a", "a")), "the names of classes must differ, got"),
    (Probabilities([0.5, 0.5], classes=("a", [])), "the names of classes must be hashable, got"),
    (
        Probabilities([0.5, 0.5], u=1.5),
        r"the chance u of a prediction must lie in \[0, 1\], got 1.5",
    ),
    (Probabilities([0.5, 0.5], u=nan), "u must be finite, got nan"),
    ({"a": 0.5, "b": 0.6}, "the probabilities of the classes must sum to 1, got 1.1"),
]


@pytest.mark.parametrize(("prediction", "message"), BAD_PROBABILITIES, ids=lambda v: repr(v)[:40])
@pytest.mark.parametrize(
    "family",
    [Threshold(("a", "b")), Cumulative(("a", "b")), Cumulative(("a", "b"), randomised=True)],
    ids=["threshold", "cumulative", "randomised"],
)
def test_wrong_probabilities_are_refused(family: Any, prediction: Any, message: str) -> None:
    stream = stream_of(family)
    stream.predict([0.5, 0.5])
    stream.update("a")
    unchanged(stream, lambda: stream.predict(prediction), InputError, message)
    assert stream.predict([0.5, 0.5], id=7) is not None


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "a label must not be missing, got None"),
        (nan, "a label must not be missing, got nan"),
        ([0, 1], r"a label must be one class, got \[0, 1\]; for several: sets.Multilabel"),
        ({0}, "a label must be one class, got"),
        (np.array([0, 1]), "a label must be one class, got"),
        (-1, "without names for the classes a label must be a number from 0, got -1"),
        (1.5, "without names for the classes a label must be a number from 0, got 1.5"),
        ("cat", "without names for the classes a label must be a number from 0, got 'cat'"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("family", [Threshold(), Cumulative(randomised=True)], ids=repr)
def test_a_wrong_label_is_refused(family: Any, y: Any, message: str) -> None:
    stream = stream_of(family)
    stream.predict([0.5, 0.5])
    unchanged(stream, lambda: stream.update(y), LabelError, message)
    assert stream.update(0) in (0.0, 1.0)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (None, "y must be a collection of labels, or an array of 0 and 1, got None"),
        ("rain", "y must be a collection of labels, or an array of 0 and 1, got 'rain'"),
        ([0, 0], r"labels must not repeat, got \[0, 0\]; 0 and 1 for each class: an array"),
        ([0, 1, 0, 1], "labels must not repeat"),
        ([0, nan], "a label must not be missing, got nan"),
        ([[0], [1]], r"a label must be one class, got \[0\]"),
        (np.array([0, 2]), "an array of labels must hold 0 and 1 for each class, got"),
        (np.array([[0, 1]]), "an array of labels must hold 0 and 1 for each class, got"),
        (["text"], "without names for the classes a label must be a number from 0, got 'text'"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("loss", [Miscoverage(), FalseNegatives()], ids=repr)
def test_wrong_labels_are_refused(loss: Any, y: Any, message: str) -> None:
    stream = stream_of(Multilabel(), loss)
    stream.predict([0.5, 0.25])
    unchanged(stream, lambda: stream.update(y), LabelError, message)
    assert stream.update([0]) in (0.0, 1.0)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Threshold(("a", "a")), r"the names of classes must differ, got \('a', 'a'\)"),
        (lambda: Threshold("abc"), "classes must be the names of the classes in order, got 'abc'"),
        (lambda: Threshold(3), "classes must be the names of the classes in order, got 3"),
        (lambda: Multilabel(([],)), "the names of classes must be hashable, got"),
        (lambda: Cumulative(0), "classes must be a whole number of at least 1, got 0"),
        (lambda: Cumulative(True), "classes must be a whole number of at least 1, got True"),
        (lambda: Cumulative(penalty=0.1), "a penalty needs classes, their names or their number"),
        (lambda: Cumulative(3, penalty=-1.0), "penalty must be at least 0, got -1.0"),
        (lambda: Cumulative(3, penalty=nan), "penalty must be finite, got nan"),
        (lambda: Cumulative(3, free=-1), "free must be a whole number of at least 0, got -1"),
        (lambda: Cumulative(seed=1.5), "seed must be a whole number of at least 0, got 1.5"),
    ],
)
def test_wrong_options_are_refused(make: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()


# Saved, loaded, replayed


@pytest.mark.parametrize(
    ("family", "prediction", "labels"),
    [
        (Threshold(), [0.5, 0.3, 0.2], [0, 2, 9]),
        (Threshold(PETS), [0.5, 0.3, 0.2], ["cat", "owl", "emu"]),
        (Threshold(), {"cat": 0.6, "dog": 0.4}, ["cat", "emu", "dog"]),
        (Threshold(), {7: 0.6, -3: 0.4}, [7, -3, 8]),
        (Threshold((False, True)), [0.6, 0.4], [True, False, True]),
        (Cumulative(randomised=True), [0.5, 0.3, 0.2], [0, 2, 9]),
        (Cumulative(3, penalty=0.1), [0.5, 0.3, 0.2], [0, 2, 9]),
        (Multilabel(PETS), [0.5, 0.3, 0.2], [("cat", "owl"), (), ("emu",)]),
        (Threshold(), {}, ["cat", "dog", "owl"]),
    ],
    ids=repr,
)
def test_a_stream_of_labels_goes_on_to_the_bit(
    family: Any, prediction: Any, labels: list[Any], tmp_path: Path
) -> None:
    stream = stream_of(family)
    for y in labels:
        stream.predict(prediction)
        stream.update(y)
    stream.predict(prediction)
    stream.save(tmp_path / "stream")
    for other in (sp.Stream.load(tmp_path / "stream"), copy.deepcopy(stream)):
        assert other.controller == stream.controller
        assert repr(other.pending) == repr(stream.pending)
        assert repr(other.info) == repr(stream.info)
        twin = copy.deepcopy(stream)
        for y in labels:
            assert other.update(y) == twin.update(y)
            assert other.theta == twin.theta
            assert other.predict(prediction) == twin.predict(prediction)


@pytest.mark.parametrize(
    ("family", "names"),
    [
        (Threshold(), None),
        (Threshold(PETS), PETS),
        (Cumulative(randomised=True, seed=8), None),
        (Cumulative(PETS, penalty=0.05), PETS),
    ],
    ids=repr,
)
@pytest.mark.parametrize("loss", [Miscoverage(), SetSize(), FalsePositives()], ids=repr)
def test_a_tape_of_probabilities_is_replayed_to_the_bit(
    family: Any, names: tuple[str, ...] | None, loss: Any
) -> None:
    rng = np.random.default_rng(2)
    p, y = rng.dirichlet([1.0] * 3, size=90), rng.integers(0, 3, size=90).astype(float)
    y[5] = nan
    stream = stream_of(family, loss, missing="skip")
    losses, sizes = [], []
    for row, place in zip(p, y, strict=True):
        sizes.append(stream.predict(row).size)
        label = place if math.isnan(place) else int(place) if names is None else names[int(place)]
        value = stream.update(label)
        losses.append(nan if value is None else value)
    tape = sp.Tape.from_arrays(p, y, names=["p0", "p1", "p2"])
    trace = sp.replay(stream.controller, tape)
    assert np.array_equal(trace.losses[0], losses, equal_nan=True)
    assert [shown.size for shown in trace.shown] == sizes
    assert trace.state.risks[0].theta == stream.theta
    assert str(trace.certificate()) == str(stream.certificate())


def test_a_tape_may_bring_its_chances() -> None:
    rng = np.random.default_rng(3)
    p, y, u = rng.dirichlet([1.0] * 3, size=60), rng.integers(0, 3, size=60), rng.random(60)
    stream = stream_of(Cumulative(randomised=True))
    live = []
    for row, label, chance in zip(p, y.tolist(), u, strict=True):
        stream.predict(Probabilities(row, u=chance))
        live.append(stream.update(label))
    tape = sp.Tape.from_arrays(p, y.astype(float), names=["a", "b", "c"], extras={"u": u})
    assert sp.replay(stream.controller, tape).losses[0].tolist() == live
    first = sp.replay(stream.controller, tape[:25])
    rest = sp.replay(stream.controller, tape[25:], first.state)
    assert rest.losses[0].tolist() == live[25:]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (1.5, "on a tape a label must be the number of its class from 0, got 1.5"),
        (-1.0, "on a tape a label must be the number of its class from 0, got -1.0"),
        (3.0, "on a tape a label must be below 3 classes, got 3.0"),
    ],
)
def test_a_tape_with_a_wrong_class_is_refused(y: float, message: str) -> None:
    tape = sp.Tape.from_arrays(np.full((2, 3), 1 / 3), np.array([0.0, y]), names=PETS)
    with pytest.raises(LabelError, match=message):
        sp.replay(stream_of(Threshold(PETS)).controller, tape)


# Labels told by their places


def finder(family: Any) -> sp.Stream:
    risk = sp.Risk(sp.losses.FalseNegatives(), 0.1, sp.steps.Fixed(0.05))
    return sp.Stream(sp.Controller(family, risk))


def test_a_row_of_a_frame_tells_labels_by_name_in_any_order() -> None:
    pandas = pytest.importorskip("pandas")
    stream = finder(Multilabel(classes=("fog", "rain", "wind")))
    stream.predict(pandas.Series({"wind": 0.9, "rain": 0.05, "fog": 0.01}))
    assert stream.update(pandas.Series({"wind": 1, "fog": 0, "rain": 0})) == 0.0
    stream.predict([0.01, 0.05, 0.9])
    assert stream.update(pandas.Series([0, 0, 1])) == 0.0  # by place: these are no names


def test_an_array_is_read_by_the_places_of_the_prediction_it_answers() -> None:
    stream = finder(Multilabel())
    stream.predict({"wind": 0.9, "rain": 0.05, "fog": 0.9})
    assert stream.update(np.array([1, 0, 1])) == 0.0
    stream.predict({"wind": 0.9, "rain": 0.05, "fog": 0.9})
    unchanged(
        stream, lambda: stream.update(np.array([1, 0])), LabelError, "each of 3 classes, got 2"
    )
    wrong = sp.losses.FalsePositives()
    shown = Multilabel().at(Multilabel().read({"wind": 0.9, "rain": 0.5, "fog": 0.1}), -0.5)
    assert wrong(shown, Multilabel().label(np.array([1, 0, 0]))) == 0.5
    assert sp.losses.F1Shortfall()(shown, Multilabel().label(np.array([1, 1, 0]))) == 0.0


# What a recorder keeps of them


def test_a_recorded_stream_of_randomised_sets_is_replayed_to_the_bit() -> None:
    rng, classes = np.random.default_rng(3), ("a", "b", "c")
    family = Cumulative(classes=classes, randomised=True, seed=5)
    risk = sp.Risk(sp.losses.Miscoverage(), 0.2, sp.steps.Fixed(0.05))
    stream = sp.Stream(sp.Controller(family, risk))
    recorder, losses = sp.Recorder(classes=classes), []
    for number in range(60):
        p, id = dict(zip(classes, rng.dirichlet(np.ones(3)), strict=True)), f"row {number}"
        said = Probabilities(list(p.values()), tuple(p), u=family.chance(id))
        receipt = stream.issue(p, id=id)
        assert receipt.prediction[3] == said.u
        recorder.predicted(id, said)
        y = classes[rng.integers(3)]
        losses.append(stream.update(y, id=id))
        recorder.observed(id, y)
    tape = recorder.tape()
    assert tape.names == classes
    assert sp.replay(stream.controller, tape).losses[0].tolist() == losses


def test_a_recorder_of_labels_refuses_what_it_cannot_keep() -> None:
    recorder = sp.Recorder(classes=("no", "yes"))
    recorder.add({"yes": 1.0}, "yes")
    recorder.add([0.5, 0.5], None)
    with pytest.raises(InputError, match=r"a prediction may name .* got 'maybe'"):
        recorder.add({"maybe": 1.0}, "yes")
    with pytest.raises(LabelError, match=r"a label must be one of .*'no', 'yes'.* got 'maybe'"):
        recorder.add([0.5, 0.5], "maybe")
    with pytest.raises(InputError, match="must differ"):
        sp.Recorder(classes=("a", "a"))
    tape = recorder.tape()
    assert tape.prediction[1].tolist() == [1.0, 0.5]
    assert tape.y[0] == 1.0


# What was chosen for a family


@pytest.mark.parametrize("end", ["csv", "npz", "parquet"])
@pytest.mark.parametrize("names", [PETS, None])
@pytest.mark.parametrize("loss", [FalseNegatives(), FalsePositives(), Miscoverage()], ids=repr)
def test_a_tape_of_several_labels_is_written_and_replayed_as_it_was_live(
    loss: Any, names: Any, end: str, tmp_path: Path
) -> None:
    rng, step = np.random.default_rng(0), sp.steps.Fixed(0.05)
    p = rng.random((60, 3))
    y = (rng.random(p.shape) < p).astype(float)
    y[::7] = nan
    controller = sp.Controller(Multilabel(names), sp.Risk(loss, 0.1, step))
    sp.Tape.from_arrays(p, y, names=PETS).write(tmp_path / f"tape.{end}")
    tape = sp.Tape.read(tmp_path / f"tape.{end}")
    assert np.array_equal(tape.y, y.sum(axis=1), equal_nan=True)
    trace, stream = sp.replay(controller, tape), sp.Stream(controller, missing="skip")
    for row, (given, true) in enumerate(zip(p, y, strict=True)):
        assert stream.predict(given) == (trace.shown or ())[row]
        loss_now = stream.update(None if np.isnan(true).any() else true)
        assert np.array_equal(trace.losses[0, row], nan if loss_now is None else loss_now, True)
    assert trace.state.position == stream.state.position
    assert trace.usefulness() is None
    assert len(trace.to_frame()) == 60


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (np.ones(4), LabelError, r"needs a tape that says of each label whether it is true"),
        (np.full((4, 3), 2.0), LabelError, "row 0: several labels must be 0 or 1"),
        (np.ones((4, 2)), TapeError, "one for each of cat, dog, owl; got .* shape \\(4, 2\\)"),
    ],
)
def test_a_tape_of_several_labels_refuses_what_is_not_true_or_false(
    y: Any, error: type[Exception], message: str
) -> None:
    risk = sp.Risk(FalseNegatives(), 0.1)
    with pytest.raises(error, match=message):
        sp.replay(
            sp.label_sets(risk=risk), sp.Tape.from_arrays(np.full((4, 3), 0.5), y, names=PETS)
        )
