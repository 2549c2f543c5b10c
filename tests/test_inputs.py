"""What comes from outside: every odd input is defined, told in words, and harms no state."""

import math
import re
from copy import deepcopy
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import InputError, LabelError, LossError, PredictionError
from setpoint.sets import Interval

INF, NAN = math.inf, math.nan


def make(family: Any = None, stretch: Any = None, **options: Any) -> sp.Stream:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5), bounds=(-20.0, 20.0))
    controller = sp.Controller(family or sp.sets.Widen(), risk, stretch)
    return sp.Stream(controller, **options)


def used(family: Any = None, **options: Any) -> sp.Stream:
    """A stream in mid-life: labels behind it, one prediction waiting."""
    stream = make(family, sp.stretches.ErrorAdaptive(0.1, 0.1, -1.0, 1.0), **options)
    good = (10.0, 1.0, 2.0) if isinstance(family, sp.sets.Scale) else (10.0, 14.0)
    for y in (11.0, 20.0, 3.0, 12.5):
        stream.predict(good)
        stream.update(y)
    stream.predict(good)
    return stream


def snapshot(stream: sp.Stream) -> Any:
    return deepcopy(stream.content())


def named(value: Any) -> str:
    """A short name for a case, the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))[:40]


class Scalar:
    """A number in the manner of torch, without torch."""

    def __init__(self, value: float) -> None:
        self.value = value

    def item(self) -> float:
        return self.value


# Predictions

BAD_PAIRS: list[tuple[Any, str]] = [
    ((NAN, 1.0), r"must not be NaN, got \(nan, 1.0\)"),
    ((1.0, NAN), r"must not be NaN, got \(1.0, nan\)"),
    ((np.float32(NAN), 1), "must not be NaN"),
    (NAN, "a point forecast must be finite, got nan"),
    (INF, "a point forecast must be finite, got inf"),
    (np.float64(-INF), "a point forecast must be finite, got -inf"),
    ("12", "the lower quantile must be a number, got '1'"),
    ("high", r"a pair \(lower, upper\) or one number, got 'high'"),
    (("1.0", "2.0"), "the lower quantile must be a number, got '1.0'"),
    ((1.0, "2.0"), "the upper quantile must be a number, got '2.0'"),
    (b"12", r"b'12'"),
    (None, r"a pair \(lower, upper\) or one number, got None"),
    ((None, 1.0), "the lower quantile must be a number, got None"),
    ((1.0, 2.0, 3.0), r"a pair \(lower, upper\) or one number, got \(1.0, 2.0, 3.0\)"),
    ((), r"a pair \(lower, upper\) or one number, got \(\)"),
    ({}, r"a pair \(lower, upper\) or one number, got {}"),
    (object(), r"a pair \(lower, upper\) or one number, got <object"),
    ((1j, 2.0), "the lower quantile must be a number, got 1j"),
    (np.zeros((2, 2)), r"one number, got an array of shape \(2,\)"),
    (np.zeros((1, 2)), r"one number, got an array of shape \(1, 2\)"),
    (np.zeros(0), r"one number, got an array of shape \(0,\)"),
    (np.array(["1", "2"]), "the lower quantile must be a number"),
    (np.array("1.5"), "a pair|number"),
    ((np.array("1.5"), np.array("2.5")), "the lower quantile must be"),
    ((10**400, 1.0), "the lower quantile must be one number, got 1000"),
]

BAD_SPREADS: list[tuple[Any, str]] = [
    ((NAN, 1.0, 1.0), r"finite centre .* got \(nan, 1.0, 1.0\)"),
    ((INF, 1.0, 1.0), r"finite centre .* got \(inf, 1.0, 1.0\)"),
    ((0.0, NAN, 1.0), r"at least 0, got \(0.0, nan, 1.0\)"),
    ((0.0, 1.0, INF), r"at least 0, got \(0.0, 1.0, inf\)"),
    ((0.0, -1.0, 1.0), r"at least 0, got \(0.0, -1.0, 1.0\)"),
    ((0.0, 1.0), r"a triple \(centre, low, high\), got \(0.0, 1.0\)"),
    (5.0, r"a triple \(centre, low, high\), got 5.0"),
    (None, r"a triple \(centre, low, high\), got None"),
    ("abc", "the centre must be a number, got 'a'"),
    ((0.0, "1", 1.0), "the uncertainty below must be a number, got '1'"),
    ((0.0, 1.0, None), "the uncertainty above must be a number, got None"),
    (np.zeros((3, 2)), r"the centre must be one number, got an array of shape \(2,\)"),
]


@pytest.mark.parametrize(("prediction", "message"), BAD_PAIRS, ids=named)
@pytest.mark.parametrize("ask", ["predict", "issue", "peek"])
def test_a_bad_pair_is_refused_and_harms_nothing(prediction: Any, message: str, ask: str) -> None:
    stream = used()
    before = snapshot(stream)
    with pytest.raises(PredictionError, match=message):
        getattr(stream, ask)(prediction)
    assert snapshot(stream) == before


@pytest.mark.parametrize(("prediction", "message"), BAD_SPREADS, ids=named)
def test_a_bad_spread_is_refused_and_harms_nothing(prediction: Any, message: str) -> None:
    stream = used(sp.sets.Scale())
    before = snapshot(stream)
    with pytest.raises(PredictionError, match=message):
        stream.predict(prediction)
    assert snapshot(stream) == before


@pytest.mark.parametrize(
    "prediction",
    [
        (10, 14),
        [10.0, 14.0],
        sp.predictions.Quantiles(10.0, 14.0),
        (np.float64(10.0), np.float32(14.0)),
        (np.int8(10), np.uint64(14)),
        (np.array(10.0), np.array([14.0])),
        (np.array([[10.0]]), 14),
        np.array([10.0, 14.0]),
        np.array([10, 14]),
        np.array([[10.0], [14.0]]),
        (Fraction(10), Decimal(14)),
        (Scalar(10.0), Scalar(14.0)),
        iter([10.0, 14.0]),
        Interval(10.0, 14.0),
    ],
    ids=named,
)
def test_every_kind_of_number_is_read_as_a_float(prediction: Any) -> None:
    stream = make()
    shown = stream.predict(prediction)
    assert shown == Interval(10.0, 14.0)
    assert type(shown.lower) is type(shown.upper) is float
    (receipt,) = stream.pending.values()
    assert receipt.prediction == (10.0, 14.0)
    assert all(type(each) is float for each in receipt.prediction)


def test_torch_scalars_and_tensors_are_read_as_floats() -> None:
    torch = pytest.importorskip("torch")
    stream = make()
    wanted = Interval(10.0, 14.0)
    assert stream.peek(torch.tensor([10.0, 14.0])) == wanted
    assert stream.peek((torch.tensor(10.0), torch.tensor([14.0]))) == wanted
    assert stream.peek(torch.tensor([10.0, 14.0], requires_grad=True)) == wanted
    assert stream.peek(torch.tensor(3)) == Interval(3.0, 3.0)
    assert stream.peek(torch.tensor([10.0, 14.0], dtype=torch.float16)) == wanted
    assert make(sp.sets.Scale()).peek(torch.tensor([5.0, 1.0, 2.0])) == Interval(4.0, 7.0)
    stream.predict(torch.tensor([10.0, 14.0]))
    assert stream.update(torch.tensor(20.0)) == 1.0
    assert type(stream.info.y) is float  # type: ignore[union-attr]
    stream.predict(torch.tensor([10.0, 14.0]))
    before = snapshot(stream)
    for bad in (torch.tensor(NAN), torch.tensor([1.0, 2.0]), torch.tensor([])):
        with pytest.raises(LabelError):
            stream.update(bad)
    for bad in (torch.tensor([NAN, 1.0]), torch.zeros(3), torch.zeros((2, 2))):
        with pytest.raises(PredictionError):
            stream.predict(bad)
    assert snapshot(stream) == before


def test_infinite_ends_are_defined() -> None:
    stream = make()
    assert stream.predict((-INF, INF)) == Interval(-INF, INF)
    assert stream.update(1e300) == 0.0
    assert stream.predict((-INF, 5.0)).upper == 5.0 + stream.theta
    assert stream.update(1e300) == 1.0
    assert stream.predict((INF, INF)) == Interval(INF, INF)
    assert stream.update(1e300) == 1.0
    assert stream.predict((INF, -INF)).empty
    assert stream.update(0.0) == 1.0
    assert math.isfinite(stream.theta)


@pytest.mark.parametrize("reading", ["paper", "authors"])
def test_infinite_ends_leave_an_adaptive_memory_finite(reading: str) -> None:
    stretch = sp.stretches.ErrorAdaptive(0.1, 0.1, -1.0, 1.0, reading=reading)
    stream = make(stretch=stretch)
    for prediction in ((-INF, INF), (INF, -INF), (-INF, 0.0), (0.0, INF)) * 3:
        stream.predict(prediction)
        stream.update(1.0)
        (memory,) = stream._state.stretch
        assert -1.0 <= memory <= 1.0


def test_crossed_ends_are_the_empty_interval_until_they_meet() -> None:
    stream = make()
    shown = stream.predict((5.0, 3.0))
    assert shown == Interval(INF, -INF)
    assert shown.empty
    assert shown.length == 0.0
    assert stream.update(4.0) == 1.0  # θ = 0.45
    assert stream.predict((5.0, 3.0)).empty
    stream.update(4.0)
    stream.predict((5.0, 3.0))
    stream.update(4.0)
    assert stream.theta == pytest.approx(1.35)
    met = stream.predict((5.0, 3.0))
    assert (met.lower, met.upper) == pytest.approx((3.65, 4.35))
    assert stream.update(4.0) == 0.0


def test_the_users_array_may_change_after_the_prediction() -> None:
    stream = make()
    forecast = np.array([10.0, 14.0])
    stream.predict(forecast)
    forecast[:] = 99.0
    assert stream.pending[0].prediction == (10.0, 14.0)
    assert stream.update(12.0) == 0.0


# Labels

BAD_LABELS: list[tuple[Any, str]] = [
    (NAN, r"must be finite, got nan; Stream\(…, missing=\"skip\"\) skips NaN"),
    (np.float64(NAN), "must be finite, got nan"),
    (np.array(NAN), "must be finite, got nan"),
    (INF, "must be finite, got inf"),
    (-INF, "must be finite, got -inf"),
    (None, "must be a number, got None"),
    ("3.5", "must be a number, got '3.5'"),
    (b"3.5", "must be a number, got b'3.5'"),
    (np.str_("3.5"), r"must be a number, got .*3\.5"),
    (np.array("3.5"), "a label must be"),
    (np.array(["3.5"]), "a label must be"),
    (np.array([b"3.5"]), "a label must be"),
    ([1.0], r"must be one number, got \[1.0\]"),
    ((1.0, 2.0), r"must be one number, got \(1.0, 2.0\)"),
    ({}, "must be one number, got {}"),
    (1 + 0j, r"must be a number, got \(1\+0j\)"),
    (np.complex128(1), "must be"),
    (np.array([1.0, 2.0]), r"must be one number, got an array of shape \(2,\)"),
    (np.array([]), r"must be one number, got an array of shape \(0,\)"),
    (10**400, "must be one number, got 1000"),
]


@pytest.mark.parametrize(("y", "message"), BAD_LABELS, ids=named)
def test_a_bad_label_is_refused_and_its_prediction_goes_on_waiting(y: Any, message: str) -> None:
    stream = used()
    before = snapshot(stream)
    with pytest.raises(LabelError, match=message):
        stream.update(y)
    with pytest.raises(LabelError, match=message):
        stream.update(y, id=4)
    with pytest.raises(LabelError, match=message):
        stream.update_many({4: y})
    assert snapshot(stream) == before
    assert stream.update(11.0) == 0.0


SKIPPED = (NAN, None, np.float64(NAN), np.array(NAN), np.array([NAN]), np.float32(NAN))


@pytest.mark.parametrize("y", SKIPPED, ids=repr)
def test_a_missing_label_is_skipped_if_asked(y: Any) -> None:
    stream = used(missing="skip")
    theta, judged = stream.theta, stream.certificate().risks[0].judged
    assert stream.update(y) is None
    assert (stream.theta, stream.certificate().risks[0].judged) == (theta, judged)
    assert stream.certificate().missing == 1
    assert not stream.pending
    stream.predict((10.0, 14.0), id="next")
    assert stream.update_many({"next": y}) == {"next": None}
    assert stream.certificate().missing == 2


@pytest.mark.parametrize(
    "y",
    [
        20,
        20.0,
        np.float32(20),
        np.int64(20),
        np.array(20.0),
        np.array([20.0]),
        np.array([[20]]),
        Fraction(20),
        Decimal(20),
        Scalar(20.0),
    ],
    ids=named,
)
def test_every_kind_of_number_is_a_label(y: Any) -> None:
    stream = make()
    stream.predict((10.0, 14.0))
    assert stream.update(y) == 1.0
    assert stream.info is not None
    assert stream.info.y == 20.0
    assert type(stream.info.y) is float


# Options

LOSS = sp.losses.Miscoverage()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"level": -0.1}, r"range of Miscoverage, \[0, 1\], got -0.1"),
        ({"level": 1.5}, r"range of Miscoverage, \[0, 1\], got 1.5"),
        ({"level": NAN}, "level must be finite, got nan"),
        ({"level": INF}, "level must be finite, got inf"),
        ({"level": "0.1"}, "level must be a number, got '0.1'"),
        ({"level": None}, "level must be a number, got None"),
        ({"level": [0.1, 0.2]}, r"level must be one number, got \[0.1, 0.2\]"),
        ({"bounds": (1.0, 1.0)}, r"bounds must have low < high, got \(1.0, 1.0\)"),
        ({"bounds": (2.0, -2.0)}, r"bounds must have low < high, got \(2.0, -2.0\)"),
        ({"bounds": (NAN, 1.0)}, r"bounds must have low < high, got \(nan, 1.0\)"),
        ({"bounds": (0.0, NAN)}, r"bounds must have low < high, got \(0.0, nan\)"),
        ({"bounds": 5.0}, r"bounds must be a pair \(low, high\), got 5.0"),
        ({"bounds": (1.0,)}, r"bounds must be a pair \(low, high\), got \(1.0,\)"),
        ({"bounds": (0.0, "1")}, r"bounds\[1\] must be a number, got '1'"),
        ({"start": NAN}, "start must be finite, got nan"),
        ({"start": INF}, "start must be finite, got inf"),
        ({"start": "0"}, "start must be a number, got '0'"),
        (
            {"step": 0.05},
            r"a step rule, as steps.Fixed\(0.05\), with params, rule, init and claim, got 0.05",
        ),
        ({"step": "Fixed"}, "a step rule, .* got 'Fixed'"),
        ({"step": sp.steps.Fixed}, "a step rule, .* got <class"),
        ({"unjudged": "ignore"}, "one of 'skip', 'zero', got 'ignore'"),
        ({"loss": lambda shown, y: 0.0}, "declare its range as `low` and `high`"),
        ({"loss": sp.losses.Miscoverage}, "a loss must be a callable of .* got <class"),
        ({"loss": None}, "a loss must be a callable of .* got None"),
    ],
    ids=named,
)
def test_a_risk_with_a_bad_option_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        sp.Risk(**{"loss": LOSS, "level": 0.1, **options})


@pytest.mark.parametrize("gamma", [0.0, -0.1, NAN, INF, "0.1", None, [0.1, 0.2], 1j])
def test_a_step_size_that_is_not_above_zero_is_refused(gamma: Any) -> None:
    with pytest.raises(InputError, match="gamma must be") as caught:
        sp.steps.Fixed(gamma)
    assert str(gamma) in str(caught.value)


@pytest.mark.parametrize(
    ("make_part", "message"),
    [
        (lambda: sp.sets.Widen((1.0, 1.0)), r"support must have low < high, got \(1.0, 1.0\)"),
        (lambda: sp.sets.Scale(support=3), r"support must be a pair \(low, high\), got 3"),
        (lambda: sp.losses.MiscoverageCounter(0), "cap must be greater than 0, got 0.0"),
        (lambda: sp.losses.MiscoverageCounter(0.5), "cap must be at least 1, got 0.5"),
        (lambda: sp.losses.MiscoverageCounter(NAN), "cap must be finite, got nan"),
        (lambda: sp.losses.Custom(3), "function must be callable, got 3"),
        (lambda: sp.losses.Custom(max, 1.0, 0.0), r"finite low < high, got \(1.0, 0.0\)"),
        (lambda: sp.losses.Custom(max, -INF), r"finite low < high, got \(-inf, 1.0\)"),
        (lambda: sp.losses.Custom(max, full=2.0), r"within \[0.0, 1.0\], got 2.0 and 1.0"),
        (lambda: sp.losses.Custom(max, empty=-1.0), r"within \[0.0, 1.0\], got 0.0 and -1.0"),
        (lambda: sp.stretches.ScoreAdaptive(0.0), "ScoreAdaptive.score must be greater than 0"),
        (lambda: sp.stretches.ScoreAdaptive(0.1, low=-1.0), "both low and high or neither"),
        (lambda: sp.stretches.ScoreAdaptive(0.1, 1.0, 2.0), r"low ≤ 0 ≤ high, got \(1.0, 2.0\)"),
        (lambda: sp.stretches.ScoreAdaptive(0.1, -INF, 1.0), "low must be finite, got -inf"),
        (lambda: sp.stretches.ScoreAdaptive(0.1, reading="old"), "'paper', 'authors', got 'old'"),
        (
            lambda: sp.stretches.ScoreAdaptive(0.1, inner=sp.stretches.ScoreAdaptive(0.1)),
            r"Identity\(\) or Exponential\(\), got ScoreAdaptive",
        ),
        (lambda: sp.stretches.ErrorAdaptive(0.1, -0.1), "loss must be at least 0, got -0.1"),
        (lambda: sp.stretches.ErrorAdaptive(0.1, NAN), "loss must be finite, got nan"),
        (lambda: sp.combine.Max(anti_windup=-1.0), "anti_windup must be at least 0, got -1.0"),
        (lambda: sp.combine.Mean(anti_windup=NAN), "anti_windup must be finite, got nan"),
        (lambda: sp.combine.Max(empty_if="any"), "one of 'every', 'some', got 'any'"),
        (lambda: Interval(NAN, 1.0), r"must be numbers, got \(nan, 1.0\)"),
        (lambda: sp.sets.Widen().at((0.0, 1.0), NAN), "λ must be a number or ±inf, got nan"),
        (lambda: sp.sets.Scale().at((0.0, 1.0, 1.0), NAN), "λ must be a number or ±inf, got nan"),
    ],
)
def test_a_part_with_a_bad_option_is_refused(make_part: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_part()


def risk(**options: Any) -> sp.Risk:
    return sp.Risk(**{"loss": LOSS, "level": 0.1, "step": sp.steps.Fixed(0.5), **options})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"risks": risk(start=3.0, bounds=(-2.0, 2.0))}, r"its bounds \[-2, 2\], got 3"),
        ({"risks": risk(start=-3.0, bounds=(-2.0, 2.0))}, r"its bounds \[-2, 2\], got -3"),
        ({"risks": risk(bounds=(1.0, 2.0))}, r"its bounds \[1, 2\], got 0"),
        ({"risks": []}, r"a Risk or several of them, got \[\]"),
        ({"risks": [0.1]}, r"a Risk or several of them, got \[0.1\]"),
        ({"sets": sp.sets.Widen}, "sets must be a part with read, label, at, .* got <class"),
        ({"sets": "Widen"}, "sets must be a part with read, label, at, .* got 'Widen'"),
        (
            {"stretch": "Identity"},
            "stretch must be a part with params, phi, move, init and inverse, got 'Identity'",
        ),
        (
            {"combine": "Max"},
            "combine must be a part with rule, covers_each, anti_windup and empty_if, got 'Max'",
        ),
    ],
    ids=named,
)
def test_a_controller_with_a_bad_part_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        sp.Controller(**{"sets": sp.sets.Widen(), "risks": risk(), **options})


def test_risks_of_mixed_direction_are_refused_in_words() -> None:
    growing = sp.losses.Custom(lambda shown, y: min(shown.length, 1.0), grows=True)
    with pytest.raises(InputError, match=r"Custom grows with the set, .* together with other"):
        sp.Controller(sp.sets.Widen(), [risk(), risk(loss=growing)])
    sp.Controller(sp.sets.Widen(), risk(loss=growing))


def test_anti_windup_is_refused_where_it_would_saturate_a_risk() -> None:
    risks = [risk(bounds=(-5.0, 5.0)), risk(bounds=(-5.0, 10.0))]
    with pytest.raises(InputError, match="its upper bound must be at least 9, got 5"):
        sp.Controller(sp.sets.Widen(), risks, combine=sp.combine.Max(anti_windup=1.0))
    sp.Controller(sp.sets.Widen(), risks, combine=sp.combine.Max(anti_windup=5.0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_pending": 0}, "max_pending must be a whole number of at least 1, got 0"),
        ({"max_pending": 2.5}, "max_pending must be a whole number of at least 1, got 2.5"),
        ({"max_pending": True}, "max_pending must be a whole number of at least 1, got True"),
        ({"overflow": "drop"}, "overflow must be one of 'refuse', 'expire', got 'drop'"),
        ({"missing": "ignore"}, "missing must be one of 'raise', 'skip', got 'ignore'"),
        ({"on_alarm": "print"}, "on_alarm must be callable, got 'print'"),
        ({"on_alarm": print, "window": 0}, "window must be a whole number of at least 1, got 0"),
        ({"on_alarm": print, "tolerance": 0.1}, "tolerance needs a window, got tolerance=0.1"),
        (
            {"on_alarm": print, "window": 5, "tolerance": -0.1},
            "tolerance must be greater than 0, got -0.1",
        ),
    ],
    ids=named,
)
def test_a_stream_with_a_bad_option_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make(**options)


def test_a_stream_needs_a_controller_with_a_step_rule_and_clip_bounds() -> None:
    with pytest.raises(InputError, match=r"a stream runs a Controller, such as .*; got 3"):
        sp.Stream(3)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"no step rule yet: give step=steps.Fixed\(γ\)"):
        sp.Stream(sp.Controller(sp.sets.Widen(), risk(step=None)))
    with pytest.raises(InputError, match="no clip bounds yet: give low and high"):
        make(stretch=sp.stretches.ScoreAdaptive(0.1))


@pytest.mark.parametrize("id", [1.5, (1, 2.5), None, b"a", [], 2j])
def test_an_id_is_a_whole_number_or_a_string(id: Any) -> None:
    stream = used()
    before = snapshot(stream)
    if id is not None:
        with pytest.raises(InputError, match="a string or a tuple of them, got"):
            stream.predict((0.0, 1.0), id)
        with pytest.raises(InputError, match="a string or a tuple of them, got"):
            stream.update(0.0, id)
    with pytest.raises(InputError, match="a string or a tuple of them, got"):
        stream.update_many([(id if id is not None else 1.5, 0.0)])
    assert snapshot(stream) == before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs a level, a step or bounds"),
        ({"level": 1.5}, r"range of Miscoverage, \[0, 1\], got 1.5"),
        ({"level": NAN}, "level must be finite, got nan"),
        ({"level": "0.1"}, "level must be a number, got '0.1'"),
        ({"step": 0.1}, "a step rule, .* got 0.1"),
        ({"bounds": (2.0, 1.0)}, r"bounds must have low < high, got \(2.0, 1.0\)"),
        ({"bounds": (NAN, 1.0)}, r"bounds must have low < high, got \(nan, 1.0\)"),
        ({"bounds": (1.0,)}, r"bounds must be a pair \(low, high\), got \(1.0,\)"),
        ({"bounds": 5.0}, r"bounds must be a pair \(low, high\), got 5.0"),
        ({"bounds": ("a", "b")}, r"bounds\[0\] must be a number, got 'a'"),
        ({"level": 0.2, "risk": 1}, "an index from 0 to 0, got 1"),
        ({"level": 0.2, "risk": -1}, "risk must be a whole number of at least 0, got -1"),
        ({"level": 0.2, "risk": "Miscoverage"}, "risk must be a whole number"),
    ],
    ids=named,
)
def test_a_bad_change_is_refused_and_harms_nothing(options: dict[str, Any], message: str) -> None:
    stream = used()
    before, controller = snapshot(stream), stream.controller
    with pytest.raises(InputError, match=message):
        stream.change(**options)
    assert snapshot(stream) == before
    assert stream.controller is controller
    assert len(stream.certificate().earlier) == 0


# Huge θ

STRETCHES = [
    sp.stretches.Identity(),
    sp.stretches.Exponential(),
    *(
        kind(inner)
        for inner in (sp.stretches.Identity(), sp.stretches.Exponential())
        for kind in (
            lambda inner: sp.stretches.ScoreAdaptive(0.1, -1.0, 1.0, inner),
            lambda inner: sp.stretches.ErrorAdaptive(0.1, 0.1, -1.0, 1.0, inner, "authors"),
        )
    ),
]


@pytest.mark.parametrize("stretch", STRETCHES, ids=repr)
@pytest.mark.parametrize("start", [1e308, -1e308, 709.5, -709.5, 1e6])
@pytest.mark.parametrize("family", [sp.sets.Widen(), sp.sets.Scale()], ids=repr)
def test_a_huge_theta_gives_a_huge_or_an_empty_set(stretch: Any, start: float, family: Any) -> None:
    controller = sp.Controller(family, risk(start=start, bounds=(-1.5e308, 1.5e308)), stretch)
    stream = sp.Stream(controller)
    prediction = (10.0, 14.0) if isinstance(family, sp.sets.Widen) else (12.0, 2.0, 0.0)
    for _ in range(3):
        shown = stream.predict(prediction)
        assert math.isfinite(stream.lam)
        assert shown.empty == (start < 0)
        assert stream.update(12.0) == (start < 0)
        assert math.isfinite(stream.theta)
    assert stream.certificate().full == stream.certificate().empty == 0


# Losses that break their word


def lossy(function: Any, **options: Any) -> sp.Stream:
    loss = sp.losses.Custom(function, **options)
    controller = sp.Controller(sp.sets.Widen(), risk(loss=loss, bounds=(-2.0, 2.0)))
    return sp.Stream(controller)


@pytest.mark.parametrize(
    ("got", "message"),
    [
        (1.5, r"Custom promises a loss in \[0, 1\], got 1.5"),
        (-0.5, r"Custom promises a loss in \[0, 1\], got -0.5"),
        (NAN, r"Custom promises a loss in \[0, 1\], got nan"),
        (INF, r"Custom promises a loss in \[0, 1\], got inf"),
        ("0.5", "the loss Custom must be a number, got '0.5'"),
        ([0.5], r"the loss Custom must be one number, got \[0.5\]"),
        (np.zeros(2), r"the loss Custom must be one number, got an array of shape \(2,\)"),
    ],
)
def test_a_loss_outside_its_range_is_an_error_and_the_prediction_waits_on(
    got: Any, message: str
) -> None:
    stream = lossy(lambda shown, y: got)
    stream.predict((0.0, 1.0))
    before = snapshot(stream)
    with pytest.raises(LossError, match=message):
        stream.update(0.5)
    assert snapshot(stream) == before
    assert list(stream.pending) == [0]


@pytest.mark.parametrize(
    ("start", "grows", "message"),
    [
        (2.0, False, "at most 0 on the full set, got 0.5"),
        (-2.0, False, "at least 1 on the empty set, got 0.5"),
        (2.0, True, "at least 1 on the full set, got 0.5"),
        (-2.0, True, "at most 0 on the empty set, got 0.5"),
    ],
)
def test_every_saturated_step_tests_the_declaration(
    start: float, grows: bool, message: str
) -> None:
    loss = sp.losses.Custom(lambda shown, y: 0.5, grows=grows)
    first = sp.Controller(sp.sets.Widen(), risk(loss=loss, start=start, bounds=(-2.0, 2.0)))
    stream = sp.Stream(first)
    stream._state.put(0, theta=start * 1.5)
    stream.predict((0.0, 1.0))
    before = snapshot(stream)
    with pytest.raises(LossError, match=message):
        stream.update(0.5)
    assert snapshot(stream) == before


def test_what_a_loss_raises_reaches_the_caller_and_harms_nothing() -> None:
    def fails(shown: Any, y: Any) -> float:
        raise KeyError("no such thing")

    stream = lossy(fails)
    stream.predict((0.0, 1.0), id="a")
    before = snapshot(stream)
    with pytest.raises(KeyError, match="no such thing"):
        stream.update(0.5, id="a")
    assert snapshot(stream) == before
    assert list(stream.pending) == ["a"]


@pytest.mark.parametrize("got", [0.25, np.float64(0.25), np.array([0.25]), Fraction(1, 4)])
def test_a_loss_may_come_as_any_kind_of_number(got: Any) -> None:
    stream = lossy(lambda shown, y: got)
    stream.predict((0.0, 1.0))
    value = stream.update(0.5)
    assert value == 0.25
    assert type(value) is float
