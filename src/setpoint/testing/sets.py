"""Whether a family of sets keeps its promises."""

from collections.abc import Callable, Iterable, Mapping, Sequence
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
    if exact is None:
        exact = predictions is None
    with in_use(family):
        samples = samples_of(family, predictions, labels)
        for prediction, seen in samples:
            _check_read(family, prediction)
            for y in seen:
                _check_label(family, y)
        touched: list[bool] = []
        split = isinstance(family, Members)
        for working in _at_work(family, samples):
            for prediction, seen in samples:
                before = deepcopy(prediction)
                few = seen[:: 1 if working is family or len(seen) < 10 else 3]
                for reading in readings_of(family, prediction):
                    if split:
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
        if draws(family):
            _check_draws(family, [prediction for prediction, _ in samples])
        readings = [row for prediction, _ in samples for row in readings_of(family, prediction)]
        _check_defaults(family, readings)
        if isinstance(family, Scalar):
            _check_sound(family, [family.read(prediction) for prediction, _ in samples])
    check_value("sets", family)


def _check_read(family: Any, prediction: Any) -> None:
    """Reading: the same from every kind of number, unshared, and closed to NaN and text."""
    reading = one_answer(family, "read", family.read, prediction)
    for bad in (None, "text", nan):
        _check_refused(family, "prediction", family.read, bad)
    mutable: Any = None
    if isinstance(prediction, np.ndarray):
        mutable = prediction.copy() if prediction.size and not _takes_arrays(family) else None
        if prediction.dtype.kind == "f" and prediction.size:
            spoilt = prediction.copy()
            spoilt.flat[0] = nan
            _check_refused(family, "prediction", family.read, spoilt)
    elif _is_number(prediction):
        for name, form in _FORMS:
            _check_form(family, reading, family.read(form(prediction)), name)
    elif isinstance(prediction, tuple | list) and prediction and all(map(_is_number, prediction)):
        mutable = list(prediction)
        for name, form in _FORMS:
            _check_form(family, reading, family.read(tuple(map(form, prediction))), name)
        for place, value in enumerate(prediction):
            for bad in (nan, "3.5", str(value), None):
                spoilt_list = [bad if at == place else v for at, v in enumerate(prediction)]
                _check_refused(family, "prediction", family.read, spoilt_list)
    elif isinstance(prediction, tuple) and prediction and isinstance(prediction[0], np.ndarray):
        _check_frames(family, prediction)
    elif isinstance(prediction, Mapping):
        for name, bad in product(prediction, (nan, "3.5", None)):
            _check_refused(family, "prediction", family.read, {**prediction, name: bad})
    if mutable is not None:
        _check_unshared(family, mutable, [0])


def _check_unshared(family: Any, prediction: Any, places: Iterable[int]) -> None:
    """Whether a reading stays as it is when the prediction changes at some places."""
    reading = family.read(prediction)
    before = deepcopy(reading)
    for place in places:
        prediction[place] += 1.0
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


def _takes_arrays(family: Any) -> bool:
    """Whether a family takes arrays as they are, without a copy."""
    return isinstance(family, PixelScale | PixelThreshold) and family.share


def _check_frames(family: Any, prediction: tuple[Any, ...]) -> None:
    """Reading arrays for each pixel: closed to NaN where a pixel is valid, unshared if so told."""
    numbers = [place for place, part in enumerate(prediction) if part.dtype.kind == "f"]
    masks = [part for part in prediction if part.dtype.kind == "b"]
    if all(mask.any() for mask in masks):
        for place in numbers:
            spoilt = [part * nan if at == place else part for at, part in enumerate(prediction)]
            _check_refused(family, "prediction", family.read, tuple(spoilt))
    if not _takes_arrays(family):
        _check_unshared(family, list(map(np.copy, prediction)), numbers)


def _check_form(family: Any, wanted: Any, got: Any, name: str) -> None:
    if not same_values(wanted, got):
        raise broken(family, f"it reads {name} as plain numbers, got {got!r} for {wanted!r}")


def _check_label(family: Any, y: Any) -> None:
    """Labels: the same from every kind of number, closed to NaN and None, numbers to text."""
    label = family.label(y)
    for missing in (None, nan, np.float64(nan)):
        _check_refused(family, "label", family.label, missing)
    if not _is_number(y):
        return
    for name, form in _FORMS:
        _check_form(family, label, family.label(form(y)), f"{name} as labels")
    if isinstance(label, float):
        _check_refused(family, "label", family.label, "3.5")


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
    family: Any, reading: Any, labels: Sequence[Any], exact: bool, working: Any = None
) -> list[bool]:
    """Sets and critical values of one prediction; whether each y is in at its critical value.

    `working` is the family with a memory, if it has one.
    """
    bound = family if working is None else working
    seen = [family.label(y) for y in labels]
    criticals = [_critical(family, bound, reading, y) for y in seen]
    several = isinstance(family, Members)  # then all at the same λ
    kind = family.shows if isinstance(family, Shows) else None
    near = {s + shift for s in criticals if isfinite(s) for shift in (-1e-3, 0.0, 1e-3)}
    before: list[bool | None] = [False] * len(seen)
    touched = []
    for lam in (-inf, *sorted({*LAMS, *near}), inf):
        asked = (lam,) * family.members if several else lam
        shown = bound.at(reading, asked)
        if kind is not None and type(shown) is not kind:
            raise broken(family, f"it shows {kind.__name__}, got {shown!r}")
        inside = [contains(shown, y) for y in seen]
        again = bound.at(reading, asked)
        if inside != [contains(again, y) for y in seen]:
            raise broken(family, f"`at` gives one answer, got another at λ = {lam} for {reading}")
        for y, s, now, then in zip(seen, criticals, inside, before, strict=True):
            if now is None:
                continue
            kept = never_empty(family) and lam < (family.bounds() or (-inf,))[0]
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
    if isfinite(lam) and now is not (lam >= critical) and not _rounded(lam, critical, exact):
        return f"y is in from its critical value {critical} on"
    return None


def _check_members(family: Any, reading: Any, labels: Sequence[Any], exact: bool) -> None:
    """Sets with a λ each: what every member is by itself, and what the others make of it."""
    count, seen = family.members, [family.label(y) for y in labels]
    for index in range(count):
        _check_nested(family.member(index), reading, labels, exact)
    few = (-inf, -0.5, 0.0, 3.0, inf)
    for lams in product(few, repeat=count):
        shown = family.at(reading, lams)
        promise = _unkept_member(family, reading, seen, lams, shown)
        if promise:
            raise broken(family, f"{promise}, got {shown} at λ = {lams} for {reading}")


def _unkept_member(
    family: Any, reading: Any, seen: Sequence[Any], lams: tuple[float, ...], shown: Any
) -> str | None:
    """What is wrong with several sets at the λ's that were asked for."""
    if len(shown.parts) != len(lams):
        return f"it shows {len(lams)} parts"
    inside, side = [False] * len(seen), None
    for index, (part, lam) in enumerate(zip(shown.parts, lams, strict=True)):
        alone = [contains(family.member(index).at(reading, lam), y) is True for y in seen]
        if family.free[index]:  # it lies where those that are judged let it
            continue
        beyond = bool(family.order) and family.order[index] in (0, side)
        inside = [a or (beyond and b) for a, b in zip(alone, inside, strict=True)]
        side = family.order[index] if family.order else None
        # Between the ends of a nested one lies more than what it and the one inside it hold.
        holds = [contains(part, y) is True for y in seen]
        if any(now < then for now, then in zip(holds, inside, strict=True)):
            return f"part {index} holds what its member holds at its λ, and the part inside it"
        alike = family.member(index) is family.member(0) and lam == min(lams[: index + 1])
        if holds != inside and (not family.order or alike):
            return f"part {index} is the set of its member at its λ"
        larger = family.at(reading, (*lams[:index], lams[index] + 1.0, *lams[index + 1 :]))
        if any(contains(shown, y) and not contains(larger, y) for y in seen):
            return f"a larger λ of part {index} gives a larger set"
    return None


def _rounded(lam: float, critical: float, exact: bool) -> bool:
    """Whether rounding may decide if y is in."""
    near = isfinite(critical) and abs(lam - critical) <= ROUNDING * max(1.0, abs(critical))
    return near and not (exact and lam >= critical)


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


def _at_work(family: Any, samples: Sequence[Sample]) -> list[Any]:
    """A family as it is and, if it remembers, with several memories."""
    remembers = isinstance(family, Remembers)
    if not remembers:
        return [family]
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

    def answers(bound: Any) -> list[float]:
        return [bound.critical(*row) for row in rows[::5]]

    memory, wanted = tuple(working.memory), answers(working)
    if not all(type(score) is float for score in memory):
        raise broken(family, f"its memory is floats, got {memory!r}")
    if not same_values(answers(family.bind(memory)), wanted):
        raise broken(family, f"bind(memory) is the family it was, got another from {memory}")
    copy = working.copy()
    if not same_values(answers(copy), wanted) or tuple(copy.memory) != memory:
        raise broken(family, f"a copy is the family it was, got another from {memory}")
    for row in rows:
        copy.observe(copy.weigh(*row))
    if tuple(working.memory) != memory or not same_values(answers(working), wanted):
        raise broken(family, f"a copy shares nothing, got {working.memory} after {memory}")


def _check_draws(family: Any, predictions: Sequence[Any]) -> None:
    """Whether the chance of a reading is that of its id, and another for another id."""
    drawn = [readings_of(family, prediction) for prediction in predictions]
    for prediction, readings in zip(predictions, drawn, strict=True):
        if not same_values(readings_of(family, prediction), readings):
            raise broken(
                family, f"an id always draws the same chance, got another for {prediction!r}"
            )
    if all(same_values(readings[0], other) for readings in drawn for other in readings[1:]):
        raise broken(family, f"ids draw chances of their own, got the same for {IDS}")


class _Scalar:
    """A number in the manner of a torch scalar."""

    shape = ()

    def __init__(self, value: float) -> None:
        self.value = value

    def item(self) -> float:
        return self.value

    __float__ = item


_FORMS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("numpy scalars", lambda value: np.asarray(value)[()]),
    ("0-d arrays", np.asarray),
    ("objects with item()", _Scalar),
)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _check_refused(family: Any, what: str, read: Callable[[Any], Any], value: Any) -> None:
    if takes(read, value):
        got = read(value)
        raise broken(family, f"the {what} {value!r} is refused with an InputError, got {got!r}")
