"""Whether a family of sets keeps its promises."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import product
from math import inf, isfinite, isnan, nan
from typing import Any

import numpy as np

from setpoint.sets import PixelScale, PixelThreshold
from setpoint.sets.family import Members, Remembers, Scalar, Shows, never_empty
from setpoint.testing.parts import (
    IDS,
    LAMS,
    LEVELS,
    ROUNDING,
    Sample,
    broken,
    check_value,
    draws,
    in_use,
    one_answer,
    readings_of,
    same_values,
    samples_of,
    takes,
)


def check_set(
    family: Any,
    predictions: Iterable[Any] | None = None,
    labels: Iterable[Any] | None = None,
    *,
    exact: bool | None = None,
) -> None:
    """A family of nested sets."""
    exact = predictions is None if exact is None else exact
    with in_use(family):
        samples = samples_of(family, predictions, labels)
        for prediction, seen in samples:
            _check_read(family, prediction)
            for y in seen:
                _check_label(family, y)
        touched: list[bool] = []
        for working in _at_work(family, samples):
            for prediction, seen in samples:
                before = deepcopy(prediction)
                few = seen[:: 1 if working is family or len(seen) < 10 else 3]
                for reading in readings_of(family, prediction):
                    if isinstance(family, Members):
                        _check_members(family, reading, few, exact)
                    touched += _check_nested(family, reading, few, exact, working)
                if not same_values(before, prediction):
                    raise broken(family, f"it leaves a prediction as it is, got {prediction!r}")
        if touched and not any(touched):
            raise broken(
                family,
                "y is in its set at the critical value of y, and never is; where the set is open "
                "there, `critical` returns the next float up",
            )
        drawn = [readings_of(family, prediction) for prediction, _ in samples]
        if draws(family):
            _check_draws(family, [prediction for prediction, _ in samples], drawn)
        _check_defaults(family, [reading for readings in drawn for reading in readings])
        if isinstance(family, Scalar):
            _check_sound(family, [family.read(prediction) for prediction, _ in samples])
    check_value("sets", family)


# Reading: the same from every kind of number, unshared, and closed to NaN and text


class _Item:
    """A number in the manner of a torch scalar."""

    shape = ()

    def __init__(self, value: float) -> None:
        self.value = value

    def item(self) -> float:
        return self.value

    __float__ = item


_FORMS: tuple[tuple[str, Callable[[float], Any]], ...] = (
    ("numpy scalars", lambda value: np.asarray(value)[()]),
    ("0-d arrays", np.asarray),
    ("objects with item()", _Item),
)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_read(family: Any, prediction: Any) -> None:
    reading = one_answer(family, "read", family.read, prediction)
    for bad in (None, "text", nan, *_spoilt(prediction)):
        _check_refused(family, "prediction", family.read, bad)
    numbers = prediction if type(prediction) in (tuple, list) else (prediction,)
    if numbers and all(map(_is_number, numbers)):
        for name, form in _FORMS:
            several = tuple(map(form, numbers))
            got = family.read(several if numbers is prediction else several[0])
            _check_form(family, reading, got, name)
    if not (isinstance(family, PixelScale | PixelThreshold) and family.share):
        _check_unshared(family, prediction)


def _spoilt(prediction: Any) -> Iterator[Any]:
    """The prediction with a NaN, text or nothing in each of its places."""
    if _is_number(prediction):
        yield from (nan, "3.5", str(prediction), None)
    elif isinstance(prediction, np.ndarray) and prediction.dtype.kind == "f" and prediction.size:
        yield np.full_like(prediction, nan)
    elif isinstance(prediction, Mapping):
        for name, value in prediction.items():
            yield from ({**prediction, name: bad} for bad in _spoilt(value))
    elif type(prediction) in (tuple, list):
        masks = [part for part in prediction if getattr(part, "dtype", None) == np.bool_]
        for place, value in enumerate(prediction if all(m.any() for m in masks) else ()):
            before, after = prediction[:place], prediction[place + 1 :]
            yield from ((*before, bad, *after) for bad in _spoilt(value))


def _check_unshared(family: Any, prediction: Any) -> None:
    """Whether a reading stays as it is when the arrays or the list it was made of change."""
    mutable: Any = deepcopy(list(prediction) if type(prediction) is tuple else prediction)
    if not isinstance(mutable, list | np.ndarray):
        return
    reading = family.read(mutable)
    before = deepcopy(reading)
    for part in mutable if isinstance(mutable, list) else [mutable]:
        if getattr(part, "dtype", None) in (np.float32, np.float64):
            part += 1.0
    if isinstance(mutable, list):
        mutable[:] = [part + 1.0 if _is_number(part) else part for part in mutable]
    if not same_values(reading, before):
        raise broken(
            family, f"a reading shares nothing with the prediction, got {reading} after {before}"
        )


def _check_sound(family: Scalar, readings: Sequence[Any]) -> None:
    """Whether `sound`, which bulk work asks, and `read`, which a stream asks, agree."""
    count = len(family.columns)
    rows = [tuple(reading) for reading in readings if len(reading) == count]
    for row, place, value in product(rows, range(count), (None, nan, inf, -inf, -1.0, 0.0)):
        columns = row if value is None else (*row[:place], value, *row[place + 1 :])
        sound, read = family.sound(columns), takes(family.read, columns)
        if sound is not read:
            verb = "takes" if read else "refuses"
            raise broken(
                family, f"sound and read agree, got {sound} for {columns}, which read {verb}"
            )


def _check_form(family: Any, wanted: Any, got: Any, name: str) -> None:
    if not same_values(wanted, got):
        raise broken(family, f"it reads {name} as plain numbers, got {got!r} for {wanted!r}")


def _check_label(family: Any, y: Any) -> None:
    """Labels: the same from every kind of number, closed to NaN and None, numbers to text."""
    label = family.label(y)
    for bad in (None, nan, np.float64(nan), *(("3.5",) if isinstance(label, float) else ())):
        _check_refused(family, "label", family.label, bad)
    for name, form in _FORMS if _is_number(y) else ():
        _check_form(family, label, family.label(form(y)), f"{name} as labels")


def _check_refused(family: Any, what: str, read: Callable[[Any], Any], value: Any) -> None:
    if takes(read, value):
        got = read(value)
        raise broken(family, f"the {what} {value!r} is refused with an InputError, got {got!r}")


# Sets and critical values


def contains(shown: Any, y: Any) -> bool | None:
    """Whether a set holds y; None for what is no set, a decision or a threshold."""
    if hasattr(shown, "contains"):
        return bool(shown.contains(y))
    return bool(y in shown) if hasattr(shown, "__contains__") else None


def _critical(family: Any, bound: Any, reading: Any, y: Any) -> float:
    critical = one_answer(family, "critical", bound.critical, reading, y)
    if not isinstance(critical, float) or isnan(critical):
        got = f"{critical!r} for {reading}, y = {y}"
        raise broken(family, f"a critical value is a float, got {got}")
    return float(critical)


def _check_nested(
    family: Any, reading: Any, labels: Sequence[Any], exact: bool, bound: Any
) -> list[bool]:
    """Sets and critical values of one prediction; whether each y is in at its critical value.

    `bound` is the family with a memory, if it has one.
    """
    seen = [family.label(y) for y in labels]
    criticals = [_critical(family, bound, reading, y) for y in seen]
    several = isinstance(family, Members)  # then all at the same λ
    kind = family.shows if isinstance(family, Shows) else None
    near = {s + shift for s in criticals if isfinite(s) for shift in (-1e-3, 0.0, 1e-3)}
    before: list[bool | None] = [False] * len(seen)
    touched = []
    for lam in (-inf, *sorted({*LAMS, *near}), inf):
        asked = (lam,) * family.members if several else lam
        shown, again = bound.at(reading, asked), bound.at(reading, asked)
        if kind is not None and type(shown) is not kind:
            raise broken(family, f"it shows {kind.__name__}, got {shown!r}")
        inside = [contains(shown, y) for y in seen]
        if inside != [contains(again, y) for y in seen]:
            raise broken(family, f"`at` gives one answer, got another at λ = {lam} for {reading}")
        kept = never_empty(family) and lam < (family.bounds() or (-inf,))[0]
        for y, s, now, then in zip(seen, criticals, inside, before, strict=True):
            if now is None:
                continue
            promise = None if kept else _unkept(lam, s, now, bool(then), exact)
            if promise:
                where = f"got {shown} at λ = {lam} for {reading} and y = {y}"
                raise broken(family, f"{promise}, {where}")
            if lam == s and isfinite(s):
                touched.append(now)
        before = inside
    return touched


def _unkept(lam: float, critical: float, now: bool, then: bool, exact: bool) -> str | None:
    """What is wrong if y is in the set at λ or is not, `then` for a smaller λ."""
    if lam == inf and not now:
        return "λ = +inf gives the full set"
    if lam == -inf and now:
        return "λ = −inf gives the empty set"
    if then and not now:
        return "a larger λ gives a larger set"
    near = isfinite(critical) and abs(lam - critical) <= ROUNDING * max(1.0, abs(critical))
    rounded = near and not (exact and lam >= critical)
    if isfinite(lam) and now is not (lam >= critical) and not rounded:
        return f"y is in from its critical value {critical} on"
    return None


def _check_members(family: Any, reading: Any, labels: Sequence[Any], exact: bool) -> None:
    """Sets with a λ each: every member by itself, and that none is smaller beside the others."""
    seen, members = [family.label(y) for y in labels], range(family.members)
    for index in members:
        _check_nested(family.member(index), reading, labels, exact, family.member(index))
    for lams in product((-inf, -0.5, 0.0, 3.0, inf), repeat=len(members)):
        shown = family.at(reading, lams)
        where = f"got {shown} at λ = {lams} for {reading}"
        if len(shown.parts) != len(members):
            raise broken(family, f"it shows {len(members)} parts, {where}")
        for index in members:
            if family.free[index]:  # it lies where those that are judged let it
                continue
            alone = family.member(index).at(reading, lams[index])
            own = [contains(alone, y) is True for y in seen]
            holds = [contains(shown.parts[index], y) is True for y in seen]
            if any(a and not h for a, h in zip(own, holds, strict=True)):
                raise broken(family, f"part {index} holds what its member holds at its λ, {where}")
            if own != holds and not family.order:
                raise broken(family, f"part {index} is the set of its member at its λ, {where}")


def _check_defaults(family: Any, readings: Sequence[Any]) -> None:
    bounds = family.bounds()
    if bounds is not None and not (len(bounds) == 2 and bounds[0] < bounds[1]):
        raise broken(family, f"bounds are None or a pair with low < high, got {bounds}")
    low, high = (-inf, inf) if bounds is None else bounds
    for level in LEVELS:
        start = family.start(level)
        if not (isinstance(start, float) and isfinite(start) and low <= start <= high):
            raise broken(family, f"it starts in [{low}, {high}] at level {level}, got {start!r}")
    for reading in readings:
        unit = family.unit(reading)
        if not 0.0 <= unit < inf:
            raise broken(family, f"a unit is finite and not negative, got {unit} for {reading}")


# Families that remember or draw


def _at_work(part: Any, samples: Sequence[Sample]) -> list[Any]:
    """A family as it is and, if it remembers, with several memories."""
    if not isinstance(part, Remembers):
        return [part]
    family: Any = part
    rows = [
        (reading, family.label(y))
        for prediction, labels in samples
        for reading in readings_of(family, prediction)
        for y in labels
    ]
    bound = [family.bind()]
    for past in (rows[:1], [*rows[:3], *rows[:3]], (rows * 40)[::7][:500]):
        working = family.bind()
        for row in past:
            working.observe(working.weigh(*row))
        _check_memory(family, working, rows)
        bound.append(working)
    return [family, *bound]


def _check_memory(family: Any, working: Any, rows: Sequence[tuple[Any, Any]]) -> None:
    """Whether a family at work is its memory, and a copy has one of its own."""

    def state(bound: Any) -> tuple[Any, ...]:
        return tuple(bound.memory), [bound.critical(*row) for row in rows[::5]]

    memory, answers = wanted = state(working)
    if not all(type(score) is float for score in memory):
        raise broken(family, f"its memory is floats, got {memory!r}")
    if not same_values(state(family.bind(memory))[1], answers):
        raise broken(family, f"bind(memory) is the family it was, got another from {memory}")
    copy = working.copy()
    if not same_values(state(copy), wanted):
        raise broken(family, f"a copy is the family it was, got another from {memory}")
    for row in rows:
        copy.observe(copy.weigh(*row))
    if not same_values(state(working), wanted):
        raise broken(family, f"a copy shares nothing, got {working.memory} after {memory}")


def _check_draws(family: Any, predictions: Sequence[Any], drawn: Sequence[list[Any]]) -> None:
    """Whether the chance of a reading is that of its id, and another for another id."""
    for prediction, readings in zip(predictions, drawn, strict=True):
        if not same_values(readings_of(family, prediction), readings):
            raise broken(
                family, f"an id always draws the same chance, got another for {prediction!r}"
            )
    if all(same_values(readings[0], other) for readings in drawn for other in readings[1:]):
        raise broken(family, f"ids draw chances of their own, got the same for {IDS}")
