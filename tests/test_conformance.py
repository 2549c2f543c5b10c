"""Every public part keeps its promises, and a part that breaks one is found out."""

import math
import pickle
import re
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import combine, losses, published, regions, sets, spec, steps, stretches
from setpoint.errors import SetpointError
from setpoint.sets import Interval, Scale, Widen
from setpoint.testing import ConformanceError, check

INF, NAN = math.inf, math.nan


def shortfall(shown: Any, y: Any) -> float:
    return min(max(y - shown.upper, 0.0) / 10.0, 1.0)


def size(shown: Any, y: Any) -> float:
    return min(shown.length / 10.0, 1.0)


def named(part: Any) -> str:
    """The part as it prints, the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(part))


PETS = ("cat", "dog", "owl")
INNER = (stretches.Identity(), stretches.Exponential())
LISTED: list[Any] = [
    *(kind(*line) for kind in (sets.Widen, sets.Scale, sets.Lower, sets.TwoSided)
      for line in ((), ((0.0, INF),), ((-5.0, 5.0),))),
    sets.Upper(), sets.Upper((-INF, 4.5)), sets.Upper((-5.0, 5.0)),
    sets.Multiplied(), sets.Multiplied((0.0, INF)),
    sets.QuantileScale(), sets.QuantileScale(beyond="open"),
    sets.QuantileScale(levels=(0.0, 0.5, 1.0)), sets.QuantileScale(support=(0.0, INF)),
    sets.QuantileScale(levels=(0.125, 0.5, 0.75), beyond="open", support=(-10.0, 10.0)),
    sets.ScoreWindow(), sets.ScoreWindow(size=3), sets.ScoreWindow(sets.Widen((-5.0, 5.0)), 20),
    sets.ScoreWindow(sets.Scale(), 40), sets.ScoreWindow(sets.Lower(), 10),
    sets.ScoreWindow(sets.Threshold(), 50), sets.ScoreWindow(sets.Cumulative(classes=PETS), 9),
    sets.ScoreWindow(sets.Multilabel(), 30),
    sets.ScoreWindow(sets.QuantileScale(beyond="open"), 25),
    sets.Threshold(), sets.Threshold(classes=PETS), sets.Cumulative(),
    sets.Cumulative(classes=PETS), sets.Cumulative(randomised=True, seed=5),
    sets.Cumulative(classes=3, penalty=0.25), sets.Cumulative(PETS, True, 1, 0.125, free=1),
    sets.Multilabel(), sets.Multilabel(classes=PETS),
    sets.PixelScale(), sets.PixelScale((0.0, INF)), sets.PixelScale((-5.0, 5.0), share=True),
    sets.PixelThreshold(), sets.PixelThreshold(share=True),
    sets.Paths(3), sets.Paths(3, support=(-30.0, 30.0)),
    sets.Nested(), sets.Nested(sets.Scale((-5.0, 5.0)), 3), sets.Nested(sets.Threshold(), 2),
    sets.Nested(sets.Cumulative(randomised=True), 2), sets.Nested(sets.Multilabel(), 2),
    sets.Nested(sets.QuantileScale(levels=(0.0, 0.5, 1.0)), 2), sets.Nested(sets.PixelScale(), 2),
    sets.Fan((0.5, 0.8)), sets.Fan(quantile=(0.1, 0.5, 0.9)),
    sets.Fan((0.5, 0.8), guarded=(0.8,), support=(-5.0, 5.0)),
    sets.Fan(quantile=(0.9, 0.99), guarded=(0.99,)),
    losses.FalseNegatives(), losses.FalsePositives(), losses.SetSize(), losses.F1Shortfall(),
    losses.ImageMiscoverage(), losses.ImageMiscoverage(regions.Centre(0.5, 1.0)),
    losses.CentreFailure(), losses.CentreFailure(0.0, regions.Whole()),
    losses.CentreFailure(0.5, regions.Centre(1.0, 0.25)),
    losses.Miscoverage(), losses.MiscoverageCounter(), losses.MiscoverageCounter(cap=3),
    losses.Custom(shortfall), losses.Custom(size, grows=True),
    steps.Fixed(0.05), steps.Fixed(3), steps.Fixed(1e-6), steps.Measure(),
    steps.Account(), steps.Account(3), steps.Account(floor=INF),
    steps.Account(4, 1, wall=2, share=0), steps.Account(5, two_sided=True),
    published.Decaying(1), published.Decaying(0.2, 0.5, 0.0), published.Decaying(30.0, 1, 1),
    published.SFOGD(1), published.SFOGD(1e-3), published.SFOGD(50.0),
    published.CoinBetting(1), published.CoinBetting(1e-3),
    published.PI(2), published.PI(0.0), published.PI(1e9, rate=3.0, saturation=0.1),
    published.ECI(), published.ECI(1, sharpness=1),
    published.DtACI(1), published.DtACI(1e3, interval=1),
    *INNER, stretches.Tracking(), stretches.Tracking(rate=0.01),
    *(stretches.ScoreAdaptive(0.1, low, high, inner, reading)
      for low, high in [(-1.0, 1.0), (-20, 0), (0.0, 0.0)]
      for inner in INNER for reading in ("paper", "authors")),
    *(stretches.ErrorAdaptive(0.1, loss, -1.0, 2.0, inner, reading)
      for loss in (0.0, 0.1, 100.0)
      for inner in INNER for reading in ("paper", "authors", "later")),
    combine.Max(), combine.Max(anti_windup=1), combine.Max(empty_if="some"),
    combine.Mean(), combine.Mean(anti_windup=0.5),
]  # fmt: skip
EXAMPLES: dict[type, list[Any]] = {}
"""The parts to try of each class."""
for each in LISTED:
    EXAMPLES.setdefault(type(each), []).append(each)


def parts_of(module: ModuleType) -> list[type]:
    """The parts a module exports."""
    role = module.__name__.rpartition(".")[2]
    faces = (module, published) if role == "steps" else (module,)
    exported = [vars(face)[name] for face in faces for name in face.__all__]
    return [part for part in exported if isinstance(part, type) and spec.known(role, part)]


def examples(module: ModuleType) -> list[Any]:
    return [part for cls in parts_of(module) for part in EXAMPLES[cls]]


ALL = [part for module in (sets, losses, steps, stretches, combine) for part in examples(module)]


@pytest.mark.parametrize("part", ALL, ids=named)
def test_every_part_keeps_its_promises_and_is_a_value(part: Any) -> None:
    check(part)
    for twin in (replace(part), deepcopy(part), pickle.loads(pickle.dumps(part))):
        assert twin == part
        assert hash(twin) == hash(part)
        assert repr(twin) == repr(part)
    assert part != object()
    for option in fields(part):
        with pytest.raises(AttributeError):
            setattr(part, option.name, getattr(part, option.name))
    with pytest.raises((AttributeError, TypeError)):
        part.nonsense = 1


OF_LABELS = (losses.FalseNegatives, losses.FalsePositives, losses.SetSize, losses.F1Shortfall)
OF_PIXELS = (losses.ImageMiscoverage, losses.CentreFailure)
PIXELS = [
    sets.PixelScale((-5.0, 5.0)),
    sets.PixelThreshold(share=True),
    sets.Nested(sets.PixelScale(), 2),
]
INTERVALS = [sets.Scale(), sets.TwoSided(), sets.QuantileScale()]
LABEL_SETS = [
    sets.Threshold(),
    sets.Cumulative(randomised=True),
    sets.Nested(sets.Multilabel(("cat", "dog", "owl")), 2),
]


@pytest.mark.parametrize("loss", examples(losses), ids=named)
def test_every_loss_keeps_its_promises_on_every_family_it_can_judge(loss: Any) -> None:
    if not isinstance(loss, (*OF_LABELS, *OF_PIXELS)):
        for family in INTERVALS:
            check(loss, sets=family)
    if not isinstance(loss, (*OF_LABELS, losses.Custom)):
        for family in PIXELS:
            check(loss, sets=family)
    if not isinstance(loss, (*OF_PIXELS, losses.Custom)):
        for family in LABEL_SETS:
            check(loss, sets=family)


def test_a_loss_is_checked_on_the_sets_it_asks_about() -> None:
    def in_words(act: Callable[[], None]) -> str:
        with pytest.raises(ConformanceError) as caught:
            act()
        return str(caught.value)

    assert "Interval" in in_words(lambda: check(losses.Custom(lambda shown, y: 2.0)))
    count = losses.Custom(lambda shown, y: float(shown.size))
    assert "LabelSet" in in_words(lambda: check(count))
    pixels = losses.Custom(lambda shown, y: float(shown.count(y)[1]))
    assert "PixelIntervals" in in_words(lambda: check(pixels))
    neither = losses.Custom(lambda shown, y: shown.colour)
    assert "'Interval' object has no attribute 'colour'" in in_words(lambda: check(neither))


# Users' own parts


@dataclass(frozen=True)
class Fading:
    """A user's loss with memory: misses, averaged with what came before."""

    share: float = 0.5
    low, high, full, empty = 0.0, 1.0, 1.0, 0.0

    def init(self) -> tuple[float, ...]:
        return (0.0,)

    def update(
        self, memory: tuple[float, ...], shown: Any, y: Any
    ) -> tuple[float, tuple[float, ...]]:
        value = self.share * memory[0] + (1 - self.share) * (0.0 if shown.contains(y) else 1.0)
        return value, (value,)


def test_a_loss_with_memory_passes() -> None:
    check(Fading())
    with pytest.raises(ConformanceError, match="at most 0 on the full set"):
        check(losses.Custom(lambda shown, y: 0.5, empty=0.0))

    @dataclass(frozen=True)
    class Boast(Fading):
        full = 0.0

    with pytest.raises(ConformanceError, match="at most 0 on the full set"):
        check(Boast())


def test_a_loss_that_grows_passes_as_one_and_fails_as_the_other() -> None:
    check(losses.Custom(size, grows=True))
    with pytest.raises(ConformanceError, match="at least 1 on the empty set"):
        check(losses.Custom(size))
    with pytest.raises(ConformanceError, match="does not grow with the set"):
        check(losses.Custom(size, full=1.0, empty=0.0))
    with pytest.raises(ConformanceError, match="does not shrink with the set"):
        check(losses.Custom(shortfall, grows=True, full=0.0, empty=1.0))


def test_a_loss_may_have_nothing_to_judge() -> None:
    check(losses.Custom(lambda shown, y: None if y < 0 else shortfall(shown, y)))


class LabelSet(frozenset[int]):
    """The shown set of a user's label family: anything that answers `in`."""


@dataclass(frozen=True)
class Threshold:
    """A user's own family with its own predictions: {k : p_k ≥ −λ}."""

    def read(self, prediction: Any) -> tuple[float, ...]:
        if any(isinstance(p, str) for p in prediction):
            raise sp.errors.PredictionError(f"probabilities must be numbers, got {prediction!r}")
        values = tuple(float(p) for p in prediction)
        if not all(math.isfinite(p) for p in values):
            raise sp.errors.PredictionError(f"probabilities must be finite, got {prediction!r}")
        return values

    def label(self, y: Any) -> int:
        if isinstance(y, (str, float)) or y is None:
            raise sp.errors.LabelError(f"a label is a class index, got {y!r}")
        return int(y.item() if hasattr(y, "item") else y)

    def at(self, prediction: tuple[float, ...], lam: float) -> LabelSet:
        if lam == -INF:
            return LabelSet()
        return LabelSet(k for k, p in enumerate(prediction) if lam == INF or -p <= lam)

    def critical(self, prediction: tuple[float, ...], y: int) -> float:
        return -prediction[y]

    def start(self, level: float) -> float:
        return -level

    def bounds(self) -> tuple[float, float]:
        return (-1.0, 0.0)

    def unit(self, prediction: tuple[float, ...]) -> float:
        return 1.0


PROBABILITIES = [np.array([0.5, 0.25, 0.25]), np.array([1.0, 0.0, 0.0])]


def test_a_users_family_passes_with_its_own_predictions() -> None:
    check(Threshold(), predictions=PROBABILITIES, labels=[0, 1, 2], exact=True)
    check(Threshold(), predictions=[(0.1, 0.7, 0.2)], labels=[0, np.int64(2)], exact=True)
    loss = losses.Custom(lambda shown, y: float(y not in shown))
    check(loss, sets=Threshold(), predictions=PROBABILITIES, labels=[0, 1, 2])


def test_a_broken_promise_is_told_in_one_sentence_with_the_values() -> None:
    with pytest.raises(ConformanceError) as caught:
        check(losses.Custom(lambda shown, y: 2.0))
    assert str(caught.value) == (
        "Custom does not keep a promise: it lies in [0, 1], got 2.0 on Interval(empty) with y = 0.0"
    )
    assert isinstance(caught.value, AssertionError)
    assert isinstance(caught.value, SetpointError)


@dataclass(frozen=True)
class TakesNegativeScales:
    """A scalar family whose `sound` and `read` disagree."""

    support = (-INF, INF)
    columns = Scale.columns
    ends, score = staticmethod(Scale.ends), staticmethod(Scale.score)
    read, label = staticmethod(Scale().read), staticmethod(Scale().label)
    at, critical = staticmethod(Scale().at), staticmethod(Scale().critical)
    start, unit = staticmethod(Scale().start), staticmethod(Scale().unit)
    bounds = staticmethod(Scale().bounds)

    @staticmethod
    def sound(columns: Any) -> bool:
        return all(value == value for value in columns)


def test_sound_and_read_must_agree() -> None:
    with pytest.raises(ConformanceError, match="sound and read agree, got True for"):
        check(TakesNegativeScales())


# Bad families, one for each promise


@dataclass(frozen=True)
class Sides:
    """A family that keeps every promise; each bad one below breaks one."""

    read, label = staticmethod(Widen().read), staticmethod(Widen().label)
    at, critical = staticmethod(Widen().at), staticmethod(Widen().critical)
    start, unit = staticmethod(lambda level: 0.0), staticmethod(lambda prediction: 1.0)
    bounds = staticmethod(lambda: None)


counts = {"calls": 0}


def called() -> int:
    """Another number each time."""
    counts["calls"] += 1
    return counts["calls"]


def flawed(pattern: type, **methods: Any) -> Any:
    """A part like a good one, but for these methods."""
    return type("Flawed", (pattern,), methods)()


def widened(shown: Interval) -> Interval:
    """The interval without its ends."""
    if shown.empty or not math.isfinite(shown.lower):
        return shown
    return Interval(math.nextafter(shown.lower, INF), math.nextafter(shown.upper, -INF))


def raises(*_: Any) -> Any:
    raise ZeroDivisionError("division by zero")


def numbers_of(prediction: Any) -> Any:
    """Numbers out of text and nothing, as a careless family reads them."""
    if not isinstance(prediction, tuple):
        return prediction
    return tuple(NAN if value is None else float(value) for value in prediction)


FULL, NONE, WIDEN = Interval(-1.0, 1.0), (0.0, 0.0), Widen()
FAMILIES: list[tuple[str, dict[str, Any]]] = [
    (
        "larger λ gives a larger set",
        {"at": lambda _, p, lam: WIDEN.at(p, lam if lam <= 1.0 or lam == INF else 1.0 - lam)},
    ),
    (
        r"λ = \+inf gives the full set",
        {"at": lambda _, p, lam: FULL if lam == INF else WIDEN.at(p, lam)},
    ),
    (
        "λ = −inf gives the empty set",
        {"at": lambda _, p, lam: FULL if lam == -INF else WIDEN.at(p, lam)},
    ),
    ("from its critical value", {"at": lambda _, p, lam: widened(WIDEN.at(p, lam))}),
    ("from its critical value", {"critical": lambda _, p, y: WIDEN.critical(p, y) + 1e-3}),
    ("critical value is a float, got nan", {"critical": lambda _, p, y: NAN}),
    ("critical value is a float, got 0", {"critical": lambda _, p, y: 0}),
    (
        "critical gives one answer",
        {"critical": lambda _, p, y: WIDEN.critical(p, y) + 1e-12 * called()},
    ),
    ("`at` gives one answer", {"at": lambda _, p, lam: WIDEN.at(p, lam + called() % 2)}),
    (
        "reads numpy scalars as plain numbers",
        {"read": lambda _, p: (WIDEN.read(p), tuple(p) if isinstance(p, tuple | list) else p)[1]},
    ),
    (
        "shares nothing with the prediction",
        {"read": lambda _, p: (WIDEN.read(p), p if isinstance(p, list) else WIDEN.read(p))[1]},
    ),
    (
        "nan.* is refused",
        {"read": lambda _, p: NONE if isinstance(p, tuple) and NAN in p else WIDEN.read(p)},
    ),
    (r"'3\.5'.* is refused", {"read": lambda _, p: WIDEN.read(numbers_of(p))}),
    ("prediction None is refused", {"read": lambda _, p: NONE if p is None else WIDEN.read(p)}),
    ("label nan is refused", {"label": lambda _, y: WIDEN.label(0.0 if y != y else y)}),
    (
        r"label '3\.5' is refused",
        {"label": lambda _, y: WIDEN.label(float(y) if isinstance(y, str) else y)},
    ),
    ("label None is refused", {"label": lambda _, y: WIDEN.label(0.0 if y is None else y)}),
    (
        "reads numpy scalars as labels",
        {"label": lambda _, y: (WIDEN.label(y), y)[isinstance(y, np.floating)]},
    ),
    ("starts in .* got inf", {"start": lambda _, level: INF}),
    (r"starts in \[1.0, 2.0\] .* got 0.0", {"bounds": lambda _: (1.0, 2.0)}),
    (r"low < high, got \(1.0, -1.0\)", {"bounds": lambda _: (1.0, -1.0)}),
    ("unit is finite and not negative, got -1.0", {"unit": lambda _, p: -1.0}),
    ("shows tuple, got Interval", {"shows": tuple}),
    ("works on what it reads, got ZeroDivisionError: division by zero", {"at": raises}),
    ("equals its twin", {"__eq__": lambda one, other: one is other, "__hash__": lambda _: 1}),
    ("hash is that of its twin", {"__hash__": lambda one: id(one)}),
    ("prints as the call that makes it", {"__repr__": lambda _: "<a family>"}),
    ("prints as the call that makes it", {"__repr__": lambda _: "Widen((0.0, 1.0))"}),
]


@pytest.mark.parametrize(
    ("promise", "methods"), FAMILIES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_family_that_breaks_a_promise_is_found_out(promise: str, methods: dict[str, Any]) -> None:
    with pytest.raises(ConformanceError, match=promise) as caught:
        check(flawed(Sides, **methods))
    assert "Flawed" in str(caught.value)


@dataclass(frozen=True)
class Unhashable(Sides):
    options: list[int] = field(default_factory=list)


class NoDataclass:
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "shows":
            raise AttributeError(name)
        return getattr(Sides(), name)


@dataclass(frozen=True)
class Remembers(Sides):
    seen: Any = None

    def start(self, level: float) -> Any:
        object.__setattr__(self, "seen", level)
        return 0.0


@pytest.mark.parametrize(
    ("family", "promise"),
    [
        (Unhashable(), "can be hashed"),
        (NoDataclass(), "frozen dataclass"),
        (Remembers(), "stays the same in use"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_family_that_is_no_value_is_found_out(family: Any, promise: str) -> None:
    with pytest.raises(ConformanceError, match=promise):
        check(family)


SPOILT: list[list[float]] = [[0.0, 1.0]]


class SpoilsThePrediction(Sides):
    def critical(self, prediction: Any, y: Any) -> Any:
        got = WIDEN.critical(prediction, y)
        SPOILT[0][0] = 99.0
        return got


def open_inside(_: Any, prediction: Any, lam: float) -> Interval:
    return widened(WIDEN.at(prediction, lam))


def test_a_family_that_spoils_its_prediction_is_found_out() -> None:
    SPOILT[0] = [0.0, 1.0]
    with pytest.raises(ConformanceError, match="leaves a prediction as it is, got"):
        check(SpoilsThePrediction(), predictions=SPOILT)


def test_an_open_family_is_found_out_without_exact_arithmetic() -> None:
    with pytest.raises(ConformanceError, match="next float up"):
        check(flawed(Sides, at=open_inside), predictions=[(0.1, 0.7), (1 / 3, 2 / 3)], exact=False)


def test_an_open_family_with_the_next_float_up_passes() -> None:
    @dataclass(frozen=True)
    class Open(Threshold):
        def at(self, prediction: tuple[float, ...], lam: float) -> LabelSet:
            if lam == -INF:
                return LabelSet()
            return LabelSet(k for k, p in enumerate(prediction) if lam == INF or -p < lam)

        def critical(self, prediction: tuple[float, ...], y: int) -> float:
            return math.nextafter(-prediction[y], INF)

    check(Open(), predictions=PROBABILITIES, labels=[0, 1, 2], exact=True)


def test_a_family_that_reads_none_of_the_usual_predictions_asks_for_its_own() -> None:
    @dataclass(frozen=True)
    class Odd(Sides):
        def read(self, prediction: Any) -> Any:
            raise sp.errors.PredictionError("odd")

    with pytest.raises(ConformanceError, match="given its own predictions"):
        check(Odd())


# Families that draw, remember or have several sides


@dataclass(frozen=True)
class Delegated:
    """A family that does what another does, but for the flaw its subclasses have."""

    flaw: str = ""

    @property
    def inner(self) -> Any:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.inner, name)


class Drawn(Delegated):
    draws = True
    inner = sets.Cumulative(randomised=True)

    def draw(self, reading: Any, id: Any) -> Any:
        if self.flaw == "forgets":
            return self.inner.draw(reading, called())
        return self.inner.draw(reading, 0 if self.flaw == "same" else id)


class Bound:
    """A score window at work, with a flaw."""

    def __init__(self, inner: Any, flaw: str) -> None:
        self.inner, self.flaw = inner, flaw

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    @property
    def memory(self) -> Any:
        return tuple(map(str, self.inner.memory)) if self.flaw == "text" else self.inner.memory

    def copy(self) -> Any:
        if self.flaw == "shares":
            return Bound(self.inner, self.flaw)
        return Bound(
            sets.ScoreWindow().bind() if self.flaw == "empty copy" else self.inner.copy(), ""
        )

    def at(self, prediction: Any, lam: float) -> Any:
        if self.flaw == "open" and -1.0 < lam < 0.0:
            return self.inner.at(prediction, lam - 0.3)
        return self.inner.at(prediction, lam)


class Remembering(Delegated):
    inner = sets.ScoreWindow()

    def bind(self, memory: Any = ()) -> Any:
        return Bound(self.inner.bind(() if self.flaw == "starts afresh" else memory), self.flaw)


class Nests(Delegated):
    inner = sets.Nested(Widen(), 2)

    @property
    def order(self) -> tuple[int, ...]:
        return () if self.flaw == "said to be apart" else (0, 0)

    def at(self, prediction: Any, lam: Any) -> Any:
        shown = self.inner.at(prediction, lam)
        if self.flaw == "one part":
            return sets.Levels(shown.parts[:1])
        if self.flaw == "smaller":
            return sets.Levels((shown.parts[0],) * 2)
        return shown


@pytest.mark.parametrize(
    ("family", "promise"),
    [
        (Drawn("same"), "ids draw chances of their own, got the same for"),
        (Drawn("forgets"), "an id always draws the same chance, got another for"),
        (Remembering("text"), "its memory is floats, got"),
        (Remembering("starts afresh"), r"bind\(memory\) is the family it was, got another"),
        (Remembering("empty copy"), "a copy is the family it was, got another"),
        (Remembering("shares"), "a copy shares nothing, got"),
        (Remembering("open"), "from its critical value"),
        (Nests("one part"), "it shows 2 parts, got"),
        (Nests("smaller"), "part 1 holds what its member holds at its λ"),
        (Nests("said to be apart"), "part 1 is the set of its member at its λ, got"),
    ],
    ids=repr,
)
def test_a_family_of_this_kind_that_breaks_a_promise_is_found_out(
    family: Any, promise: str
) -> None:
    with pytest.raises(ConformanceError, match=promise) as caught:
        check(family)
    assert type(family).__name__ in str(caught.value)


# Bad losses


@dataclass(frozen=True)
class Zigzag:
    """A loss that goes up and down with the set, and says so or does not."""

    monotone: bool = False
    low, high, full, empty = 0.0, 1.0, 1.0, 0.0

    def __call__(self, shown: Any, y: Any) -> float:
        return 0.5 + 0.5 * math.sin(min(shown.length, 1e6))


def test_a_loss_need_not_be_monotone_if_it_says_so() -> None:
    check(Zigzag())
    with pytest.raises(ConformanceError, match="does not grow with the set"):
        check(Zigzag(monotone=True))


@dataclass(frozen=True)
class Share:
    """The share of labels left out, with a `critical` that is `off` by some ranks."""

    off: int = 0
    low, high = 0.0, 1.0

    def __call__(self, shown: Any, y: Any) -> float | None:
        return losses.FalseNegatives()(shown, y)

    def critical(self, values: Any, level: float) -> float:
        if not self.off or not values:
            return losses.FalseNegatives().critical(values, level)
        return max(values) if self.off > 0 else min(values)


def test_the_critical_value_of_a_loss_is_checked_too() -> None:
    check(Share())
    for off in (1, -1):
        with pytest.raises(ConformanceError, match="critical is the smallest λ that keeps"):
            check(Share(off))


def bad(function: Callable[[Any, Any], Any], **options: Any) -> losses.Custom:
    return losses.Custom(function, **options)


def counted(shown: Any, y: Any) -> float:
    return called() % 2 / 2


def spoiling(shown: Any, y: Any) -> float:
    shown.lower = -5.0
    return 0.5


@pytest.mark.parametrize(
    ("loss", "promise"),
    [
        (bad(lambda shown, y: -0.1), r"lies in \[0, 1\], got -0.1"),
        (bad(lambda shown, y: NAN), r"lies in \[0, 1\], got nan"),
        (bad(lambda shown, y: 1.0), "at most 0 on the full set, got 1.0"),
        (bad(lambda shown, y: 0.0), "at least 1 on the empty set, got 0.0"),
        (bad(lambda shown, y: 0.0, grows=True), "at least 1 on the full set, got 0.0"),
        (bad(lambda shown, y: 1.0, grows=True), "at most 0 on the empty set, got 1.0"),
        (bad(size, full=1.0, empty=0.0), "does not grow with the set"),
        (bad(counted, full=1.0, empty=0.0), "gives one answer"),
        (bad(spoiling, full=1.0, empty=0.0), "leaves the set as it is"),
        (bad(lambda shown, y: "0.5"), "one number or None"),
        (bad(lambda shown, y: [0.5]), "one number or None"),
        (bad(lambda shown, y: 1 / 0), "got ZeroDivisionError"),
        (object(), "callable of"),
        (shortfall, "declare its range"),
    ],
)
def test_a_loss_that_breaks_a_promise_is_found_out(loss: Any, promise: str) -> None:
    with pytest.raises(ConformanceError, match=promise):
        check(loss)


@dataclass(frozen=True)
class Memory:
    """A loss with a memory that is bad in the way that `first` and `then` say."""

    first: Any = (0.0,)
    then: Any = None
    low, high, full, empty = 0.0, 1.0, 1.0, 0.0

    def init(self) -> Any:
        return self.first

    def update(self, memory: Any, shown: Any, y: Any) -> Any:
        return 0.5, memory if self.then is None else self.then


@pytest.mark.parametrize(
    ("loss", "promise"),
    [
        (Memory([0.0]), "memory is a tuple of finite floats"),
        (Memory((0,)), "memory is a tuple of finite floats"),
        (Memory((0.0,), [0.0]), "memory is a tuple of finite floats"),
        (Memory((0.0,), (INF,)), "memory is a tuple of finite floats"),
        (Memory((0.0,), (0.0, 0.0)), "memory keeps its length"),
        (Memory((0.0,), ()), "memory keeps its length"),
    ],
)
def test_a_loss_with_a_bad_memory_is_found_out(loss: Any, promise: str) -> None:
    with pytest.raises(ConformanceError, match=promise):
        check(loss)


def test_a_memory_that_leads_out_of_the_range_is_found_out() -> None:
    @dataclass(frozen=True)
    class Growing(Memory):
        def update(self, memory: Any, shown: Any, y: Any) -> Any:
            return memory[0] / 5.0, (memory[0] + 1.0,)

    with pytest.raises(ConformanceError, match=r"lies in \[0, 1\], got 1.2"):
        check(Growing())


def test_a_loss_without_init_is_found_out() -> None:
    class Half:
        low, high = 0.0, 1.0

        def update(self, memory: Any, shown: Any, y: Any) -> Any:
            return 0.0, memory

    with pytest.raises(ConformanceError, match=r"or has init\(\) and update\(\)"):
        check(Half())


def test_a_rule_that_disagrees_with_the_call_is_found_out() -> None:
    @dataclass(frozen=True)
    class Twofold:
        low, high = 0.0, 1.0
        params = ()
        rule = staticmethod(lambda params, memory, missed: (float(not missed), memory))

        def __call__(self, shown: Any, y: Any) -> float:
            return float(not shown.contains(y))

    with pytest.raises(ConformanceError, match="rule and call agree"):
        check(Twofold())


# Bad stretches


@dataclass(frozen=True)
class Shift:
    """A stretch that keeps every promise; each bad one below breaks one."""

    low: float = -1.0
    high: float = 1.0

    @property
    def params(self) -> Any:
        return (self.low, self.high)

    def init(self) -> Any:
        return (0.0,)

    def phi(self, params: Any, memory: Any, theta: float) -> Any:
        return theta + memory[0]

    def inverse(self, lam: float, memory: Any = (0.0,)) -> Any:
        return lam - memory[0]

    def move(self, params: Any, memory: Any, excess: float, score: float, lam: float) -> Any:
        return (min(max(memory[0] + 0.1 * score, params[0]), params[1]),)


STRETCHES: list[tuple[str, dict[str, Any]]] = [
    ("φ does not fall with θ", {"phi": lambda _, params, memory, theta: abs(theta) + memory[0]}),
    (
        r"φ\(θ\) is a finite float, got -inf at θ = -1e\+300",
        {"phi": lambda _, params, memory, theta: theta * 1e300},
    ),
    ("got OverflowError", {"phi": lambda _, params, memory, theta: math.expm1(abs(theta))}),
    (r"inverse\(φ\(θ\)\) = θ", {"inverse": lambda _, lam, memory: lam}),
    (
        r"inverse\(λ\) is a finite float, got inf",
        {"inverse": lambda _, lam, memory: INF if lam > 1e100 else lam - memory[0]},
    ),
    ("φ gives one answer", {"phi": lambda _, params, memory, theta: theta + called()}),
    ("move gives one answer", {"move": lambda *_: (called() % 7 / 10,)}),
    (
        r"memory stays in \[-1.0, 1.0\]",
        {"move": lambda _, p, memory, e, score, lam: (min(max(memory[0] + score, -2.0), 1.0),)},
    ),
    (
        "memory.* is a tuple of finite floats, got .nan",
        {"move": lambda _, p, memory, e, score, lam: (score - score,)},
    ),
    ("keeps its length", {"move": lambda _, p, memory, *rest: (*memory, 0.0)}),
    ("memory is a tuple of finite floats", {"init": lambda _: [0.0]}),
    ("params is a tuple", {"params": [1.0]}),
    ("begins with one memory", {"init": lambda _: (float(called()),)}),
]


@pytest.mark.parametrize(
    ("promise", "methods"), STRETCHES, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_stretch_that_breaks_a_promise_is_found_out(
    promise: str, methods: dict[str, Any]
) -> None:
    with pytest.raises(ConformanceError, match=promise):
        check(flawed(Shift, **methods))


def test_a_stretch_that_is_flat_beyond_a_point_passes() -> None:
    @dataclass(frozen=True)
    class Capped(Shift):
        def phi(self, params: Any, memory: Any, theta: float) -> Any:
            return min(max(theta, -50.0), 50.0) + memory[0]

    check(Capped())


# Bad step rules


@dataclass(frozen=True)
class Steady:
    """A step rule that keeps every promise; each bad one below breaks one."""

    gamma: float = 0.5

    @property
    def params(self) -> Any:
        return (self.gamma,)

    def init(self) -> Any:
        return (0.0,)

    def rule(self, params: Any, theta: float, memory: Any, excess: float, critical: float) -> Any:
        return theta + params[0] * excess, memory

    def claim(self, within: steps.Within, memory: Any, T: int) -> Any:
        return steps.Fixed(self.gamma).claim(within, (), T)


def claims(**changes: Any) -> Any:
    """The claim of the good rule, with something else in it."""
    good = Steady().claim
    return lambda _, within, memory, T: good(within, memory, T)._replace(**changes)


STEPS: list[tuple[str, dict[str, Any]]] = [
    (
        "θ moves with the excess or not at all",
        {"rule": lambda _, p, theta, memory, excess, s: (theta - excess, memory)},
    ),
    (
        "θ moves with the excess or not at all, got 0.1",
        {"rule": lambda _, p, theta, memory, excess, s: (theta + (excess or 0.1), memory)},
    ),
    (r"rule returns \(θ, memory\)", {"rule": lambda _, p, theta, *rest: theta}),
    (
        "θ moves with the excess or not at all, got inf",
        {"rule": lambda _, p, theta, memory, excess, s: (theta + (excess and INF), memory)},
    ),
    (
        "rule gives one answer",
        {"rule": lambda _, p, theta, memory, excess, s: (theta + excess * called(), memory)},
    ),
    ("keeps its length", {"rule": lambda _, p, theta, memory, *rest: (theta, (*memory, 1.0))}),
    (
        r"its claim holds, got Σ\(l − r\) = .* pending=4",
        {"claim": lambda _, within, *rest: Steady().claim(within._replace(pending=1), *rest)},
    ),
    (
        "its claim holds, got θ = ",
        {
            "claim": lambda _, within, *rest: (
                Steady().claim(within, *rest)._replace(reach=(within.low, within.high))
            )
        },
    ),
    (r"its claim holds, got Σ\(l − r\) on a window", {"claim": claims(window=(-0.5, 0.5))}),
    (r"got Σ\(l − r\) = .*, not in \[0.0, 0.0\]", {"claim": claims(identity=0.0)}),
    ("claim returns a Claim", {"claim": lambda *_: (-1.0, 1.0)}),
]


@pytest.mark.parametrize(
    ("promise", "methods"), STEPS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_step_rule_that_breaks_a_promise_is_found_out(
    promise: str, methods: dict[str, Any]
) -> None:
    with pytest.raises(ConformanceError, match=promise):
        check(flawed(Steady, **methods))


@pytest.mark.parametrize("cls", [Sides, Shift, Steady, Drawn, Remembering, Nests])
def test_the_patterns_of_bad_parts_are_good(cls: Any) -> None:
    check(cls())


# Parts made known to spec are checked against it


@dataclass(frozen=True)
class Forgetful(Steady):
    """A registered step whose options do not come back from TOML."""

    name: str = "a"

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name + "a" if len(self.name) < 4 else self.name)


def test_a_known_part_that_its_spec_does_not_describe_is_found_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(spec._known, "steps", dict(spec._known["steps"]))
    spec.register("steps", Steady)
    check(Steady())
    spec.register("steps", Forgetful)
    with pytest.raises(ConformanceError, match=r"twin|makes it|spec describes it"):
        check(Forgetful())
