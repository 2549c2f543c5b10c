"""Writing out calls: the specialised function means what the original means."""

# Rules are written here in every way a user may write one, tidy or not.
# ruff: noqa: ARG003, RET504

import inspect
import math
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial, wraps
from math import exp, inf, nan
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint._inline import specialise

low = 100.0  # a global with a name that functions below use as a local one
NAN = nan
TABLE = ((0.0, inf), (-inf, 1.0))


class Law:
    """What a step looks up: a rule and its options."""

    def __init__(self, rule: Any, params: Any = ()) -> None:
        self.rule = rule
        self.params = params
        self.on = True
        self.off = False


class Owner:
    """Where the specialised functions belong."""

    def __init__(self, law: Any) -> None:
        self._law = law

    def call(self, x: Any) -> Any:
        value = self._law.rule(self._law.params, x)
        return value

    def call_in_a_branch(self, x: Any) -> Any:
        error = label = y = 5.0
        if self._law.on and x == x:
            value = self._law.rule(self._law.params, x)
        elif self._law.off:
            value = None
        else:
            value = x
        return value, error, label, y

    def call_twice(self, x: Any) -> Any:
        x = self._law.rule(self._law.params, x)
        x = self._law.rule(self._law.params, x)
        return x


# Rules in every way a user may write one. Each takes (params, x), params a pair of floats.


def plain(params: Any, x: float) -> float:
    return params[0] * x + params[1]


def documented(params: Any, x: float) -> float:
    """Docstrings are left out."""
    first, second = params
    return first * x + second


def power(params: Any, x: float) -> float:
    return params[0] ** 2 + x


def unary(params: Any, x: float) -> float:
    return -params[0] * abs(params[1]) - x


def reassigned(params: Any, x: float) -> float:
    gamma, decay = params
    gamma = gamma * decay
    return gamma * x


def augmented(params: Any, x: float) -> float:
    gamma, decay = params
    gamma *= decay
    x += gamma
    return x


def starred(params: Any, x: float) -> float:
    first, *rest = params
    return first * x + rest[0]


def unpacked_late(params: Any, x: float) -> float:
    a, b = 1.0, 2.0
    total = a + b
    a, b = params
    return total + a * x + b


def unpacked_in_a_branch(params: Any, x: float) -> float:
    a, b = 0.0, 0.0
    if x > 0:
        a, b = params
    return a + b + x


def looped(params: Any, x: float) -> float:
    total = 0.0
    for k in range(3):
        if k == 1:
            continue
        total = total + params[0] * k + x
    return total


def while_looped(params: Any, x: float) -> float:
    count = 0
    while x > 1.0 and count < 5:
        x = x / 2.0
        count += 1
    return x + count


def shadowing(params: Any, x: float) -> float:
    low, high = params
    return low if x < low else high if x > high else x


def shadowing_in_a_match(params: Any, x: float) -> float:
    match params:
        case (low, label):
            value = low + label + x
        case _:
            value = 0.0
    return value


def handled(params: Any, x: float) -> float:
    try:
        value = 1.0 / (x - x)
    except ZeroDivisionError as error:
        value = float(len(str(error)))
    return value


def importing(params: Any, x: float) -> float:
    from math import floor as y

    return y(x) + params[0]


def comprehending(params: Any, x: float) -> float:
    values = [p * x for p in params]
    return sum(values)


def with_a_lambda(params: Any, x: float) -> float:
    twice = lambda value: 2.0 * value  # noqa: E731
    return twice(x) + params[0]


def early(params: Any, x: float) -> float:
    if x < 0:
        return -x
    return x * params[0]


def annotated(params: Any, x: float) -> float:
    value: float = x + params[0]
    rest: float
    rest = value * 2.0
    return rest


def walrus(params: Any, x: float) -> float:
    return y + 1.0 if (y := x * params[0]) > 0 else y - 1.0


def using_globals(params: Any, x: float) -> float:
    return low + exp(-x * x) + math.copysign(params[0], x)


def using_nan_and_inf(params: Any, x: float) -> float:
    value = NAN if x > 0 else inf
    return value if x > 1 else min(x, inf)


def using_a_table(params: Any, x: float) -> float:
    rows = TABLE
    return min(max(x, rows[1][0]), rows[0][1])


def negative_attribute(params: Any, x: float) -> Any:
    return params[0].is_integer(), params[0].real + x


def default(params: Any, x: float, scale: float = 3.0) -> float:
    return x * scale


def keyword(params: Any, x: float) -> float:
    value = default(params, x=x)
    return value


def nested(params: Any, x: float) -> float:
    first = plain(params, x)
    second = documented(params, first)
    return second


def recursive(params: Any, x: float) -> float:
    if x > 1.0:
        value = recursive(params, x / 2.0) + 1.0
        value = recursive(params, x / 4.0)
    else:
        value = x
    return value


def formatted(params: Any, x: float) -> str:
    return f"{params[0]!r} of {x:.3f}: {'a' if x > 0 else 'b'}"


def positional(params: Any, x: float, /) -> float:
    return x + params[0]


def captured(factor: float) -> Callable[..., float]:
    def rule(params: Any, x: float) -> float:
        value = factor * x + params[0]
        return value

    return rule


def doubled(function: Callable[..., float]) -> Callable[..., float]:
    @wraps(function)
    def twice(params: Any, x: float) -> float:
        value = function(params, x)
        return 2.0 * value

    return twice


@doubled
def decorated(params: Any, x: float) -> float:
    return x + params[0]


@lru_cache
def cached(params: Any, x: float) -> float:
    return x + params[0]


class Called:
    def __call__(self, params: Any, x: float) -> float:
        return x + params[0]


class Methods:
    shift = 2.0

    def method(self, params: Any, x: float) -> float:
        value = x + self.shift
        return value * params[0]

    @classmethod
    def of_the_class(cls, params: Any, x: float) -> float:
        return x + cls.shift

    @staticmethod
    def static(params: Any, x: float) -> float:
        return x + params[1]


class Sub(Methods):
    def method(self, params: Any, x: float) -> float:
        value = super().method(params, x)
        return value + 1.0


RULES: list[Any] = [
    plain, documented, power, unary, reassigned, augmented, starred, unpacked_late,
    unpacked_in_a_branch, looped, while_looped, shadowing, shadowing_in_a_match, handled, importing,
    comprehending, with_a_lambda, early, annotated, walrus, using_globals, using_nan_and_inf,
    using_a_table, negative_attribute, keyword, nested, recursive, formatted, positional, decorated,
    default,
]  # fmt: skip
RULES += [
    pytest.param(captured(3.0), id="captured"),
    pytest.param(cached, id="cached"),
    pytest.param(partial(default, scale=2.0), id="partial"),
    pytest.param(Called(), id="callable"),
    pytest.param(Methods().method, id="method"),
    pytest.param(Methods.of_the_class, id="classmethod"),
    pytest.param(Methods.static, id="staticmethod"),
    pytest.param(Sub().method, id="super"),
    pytest.param(lambda params, x: x * params[0] + 1.0, id="lambda"),
    pytest.param(lambda params, x: abs(x), id="another lambda"),
]


def same(left: Any, right: Any) -> bool:
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and (left == right or (left != left and right != right))


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("way", ["call", "call_in_a_branch", "call_twice"])
def test_the_specialised_function_equals_the_original(rule: Any, way: str) -> None:
    if way == "call_twice" and rule in (negative_attribute, formatted):
        way = "call"  # they do not take what they return
    rng = np.random.default_rng(0)
    for params in ((2.0, 0.5), (-3.0, -2.0), (0.25, inf), (-0.0, 7.0)):
        law = Law(rule, params)
        made = specialise(getattr(Owner, way), {"self._law": law}).function
        for x in (0.0, 1.0, -1.0, *(4.0 * rng.normal(size=20)).tolist()):
            wanted = getattr(Owner, way)(Owner(law), x)
            assert same(made(Owner(law), x), wanted), (params, x)


def test_a_rule_of_a_few_calls_is_written_out() -> None:
    """Otherwise the tests above would pass by doing nothing."""
    made = specialise(Owner.call, {"self._law": Law(nested, (2.0, 0.5))}).function
    text = inspect.getsource(made)
    assert "rule" not in text
    assert "plain" not in text
    assert "documented" not in text


def test_constant_branches_are_decided() -> None:
    made = specialise(Owner.call_in_a_branch, {"self._law": Law(plain, (2.0, 0.5))}).function
    text = inspect.getsource(made)
    assert "elif" not in text
    assert "off" not in text


def test_a_name_known_to_one_function_is_not_that_of_another() -> None:
    class Wrapper:
        """It has a field of the same name as the owner's."""

        def __init__(self, law: Any) -> None:
            self._law = law

        def rule(self, params: Any, x: float) -> Any:
            value = self._law.rule(params, x)
            return value

    law = Law(Wrapper(Law(plain)).rule, (2.0, 0.5))
    made = specialise(Owner.call, {"self._law": law}).function
    assert made(Owner(law), 3.0) == Owner(law).call(3.0) == 6.5


def test_without_source_the_function_comes_back_as_it_is() -> None:
    names: dict[str, Any] = {}
    exec("def sourceless(self, x):\n    return self._law.rule(self._law.params, x)\n", names)
    made = specialise(names["sourceless"], {"self._law": Law(plain)})
    assert made.function is names["sourceless"]
    exec("def rule(params, x):\n    return x + params[0]\n", names)
    law = Law(names["rule"], (2.0,))
    assert specialise(Owner.call, {"self._law": law}).function(Owner(law), 1.0) == 3.0


def test_the_name_the_defaults_and_the_docstring_are_kept() -> None:
    def predict(self: Any, x: float = 2.0) -> Any:
        """What it does."""
        return x

    made = specialise(predict, {}).function  # type: ignore[arg-type]
    assert made.__name__ == "predict"
    assert made.__qualname__ == predict.__qualname__
    assert made.__doc__ == "What it does."
    assert made(None) == 2.0


def fails(params: Any, x: float) -> float:
    value = x / params[0]  # the line to be shown
    return value


def test_a_traceback_shows_the_line_that_failed() -> None:
    law = Law(fails, (0.0,))
    made = specialise(Owner.call, {"self._law": law}).function
    try:
        made(Owner(law), 1.0)
    except ZeroDivisionError:
        text = traceback.format_exc()
    assert "<setpoint Owner.call" in text
    assert "x / " in text


def test_one_text_serves_all_objects_of_which_the_same_facts_hold() -> None:
    one, other = Law(plain, (2.0, 0.5)), Law(plain, (-3.0, 7.0))
    made = specialise(Owner.call, {"self._law": one})
    assert made.fits({"self._law": one})
    assert made.fits({"self._law": other})
    assert made.function(Owner(other), 3.0) == Owner(other).call(3.0) == -2.0
    assert not made.fits({"self._law": Law(documented, (2.0, 0.5))})
    branched = specialise(Owner.call_in_a_branch, {"self._law": one})
    different = Law(plain, (2.0, 0.5))
    different.on = False
    assert not branched.fits({"self._law": different})


# In a stream


@dataclass(frozen=True)
class Step:
    """A user's step rule around any function of (params, x)."""

    rule: Any
    params: tuple[float, ...] = (0.5,)

    needs = "excess"

    def init(self) -> tuple[float, ...]:
        return ()


def thetas(rule: Any, params: tuple[float, ...] = (0.5,)) -> list[float]:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, Step(rule, params), bounds=(-5.0, 5.0))
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk))
    path = []
    for y in (9.0, 0.5, 9.0, 9.0, 0.5):
        stream.predict((0.0, 1.0))
        stream.update(y)
        path.append(stream.theta)
    return path


def scaled(factor: float) -> Any:
    def rule(
        params: Any, theta: float, memory: Any, excess: float, critical: float, curve: Any
    ) -> Any:
        return theta + factor * excess, memory

    return rule


def squared(
    params: Any, theta: float, memory: Any, excess: float, critical: float, curve: Any
) -> Any:
    return theta + params[0] ** 2 * excess, memory


def shrinking(
    params: Any, theta: float, memory: Any, excess: float, critical: float, curve: Any
) -> Any:
    gamma, decay = params
    gamma = gamma * decay
    return theta + gamma * excess, memory


def test_a_users_step_rule_runs_live_as_it_is_written() -> None:
    wanted = thetas(sp.steps.Fixed.rule, (0.5,))
    assert thetas(scaled(0.5)) == wanted
    assert thetas(squared, (-(0.5**0.5),)) == pytest.approx(wanted)
    assert thetas(shrinking, (1.0, 0.5)) == wanted
    assert (
        thetas(lambda p, theta, memory, excess, c, curve: (theta + 0.5 * excess, memory)) == wanted
    )


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_family_may_wrap_a_family(depth: int) -> None:
    @dataclass(frozen=True)
    class Wrapped:
        _sets: Any

        def read(self, prediction: Any) -> Any:
            return self._sets.read(prediction)

        def label(self, y: Any) -> Any:
            return self._sets.label(y)

        def at(self, prediction: Any, lam: float) -> Any:
            shown = self._sets.at(prediction, lam)
            return shown

        def critical(self, prediction: Any, y: Any) -> float:
            critical: float = self._sets.critical(prediction, y)
            return critical

        def start(self, level: float) -> float:
            return 0.0

        def bounds(self) -> None:
            return None

        def unit(self, prediction: Any) -> float:
            return 1.0

    family: Any = sp.sets.Widen()
    for _ in range(depth):
        family = Wrapped(family)
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5))
    stream = sp.Stream(sp.Controller(family, risk, sp.stretches.ScoreAdaptive(0.1, -1.0, 1.0)))
    assert stream.predict((0.0, 1.0)) == sp.sets.Interval(0.0, 1.0)
    assert stream.update(5.0) == 1.0


STRETCHES = [
    sp.stretches.Identity(),
    sp.stretches.Exponential(),
    *(
        kind(inner, reading)
        for inner in (sp.stretches.Identity(), sp.stretches.Exponential())
        for reading in ("paper", "authors")
        for kind in (
            lambda inner, reading: sp.stretches.ScoreAdaptive(0.1, -1.0, 1.0, inner, reading),
            lambda inner, reading: sp.stretches.ErrorAdaptive(0.1, 0.2, -1.0, 1.0, inner, reading),
        )
    ),
]


@pytest.mark.parametrize("stretch", STRETCHES, ids=repr)
@pytest.mark.parametrize("family", [sp.sets.Widen(), sp.sets.Scale((-50.0, 50.0))], ids=repr)
@pytest.mark.parametrize(
    "loss", [sp.losses.Miscoverage(), sp.losses.MiscoverageCounter(4)], ids=repr
)
def test_a_stream_made_to_measure_runs_as_the_plain_one(
    stretch: Any, family: Any, loss: Any
) -> None:
    risk = sp.Risk(loss, 0.2, sp.steps.Fixed(0.5), bounds=(-2.0, 2.0))
    fast = sp.Stream(sp.Controller(family, risk, stretch))
    slow = sp.Stream(sp.Controller(family, risk, stretch))
    slow.__class__ = sp.Stream  # the readable methods, as they are written
    assert type(fast).update is not type(slow).update
    rng = np.random.default_rng(0)
    for centre, y in rng.normal(scale=3.0, size=(200, 2)).tolist():
        prediction = (centre - 0.5, centre + 0.5)
        if isinstance(family, sp.sets.Scale):
            prediction = (centre, abs(y) % 1.0, 0.5)  # type: ignore[assignment]
        assert fast.predict(prediction) == slow.predict(prediction)
        assert fast.update(y) == slow.update(y)
        assert fast.theta == slow.theta
    assert fast._content() == slow._content()
