"""Controllers as plain dicts and TOML, and back: the only place where a string becomes a class.

A part is written as its name under `part` and its options beside it; options left at `None` are
left out. Users' own parts are known only after `register`, never by an import path.
"""

import json
import re
import tomllib
from dataclasses import fields, is_dataclass
from typing import Any, TypeVar

import numpy as np

from setpoint import combine, correction, losses, regions, sets, steps, stretches
from setpoint.controller import Controller, Risk
from setpoint.errors import SetpointError, SpecError
from setpoint.sets.pixels import PixelIntervals, PixelSet
from setpoint.sets.wrapping import SidedInterval
from setpoint.steps.control import ECI, PI
from setpoint.steps.experts import DtACI
from setpoint.steps.shrinking import SFOGD, CoinBetting, Decaying

__all__ = ["from_dict", "from_toml", "register", "to_dict", "to_toml"]

T = TypeVar("T", bound=type)

_PARTS = {
    "sets": (
        *(sets.Widen, sets.Scale, sets.Lower, sets.Upper, sets.Multiplied, sets.QuantileScale),
        *(sets.Threshold, sets.Cumulative, sets.Multilabel, sets.PixelScale, sets.PixelThreshold),
        *(sets.TwoSided, sets.Nested, sets.Fan, sets.ScoreWindow, sets.Paths),
    ),
    "losses": (
        *(losses.Miscoverage, losses.MiscoverageCounter, losses.ImageMiscoverage),
        *(losses.CentreFailure, losses.FalseNegatives, losses.FalsePositives, losses.F1Shortfall),
        *(losses.SetSize, losses.Custom),
    ),
    "steps": (steps.Fixed, steps.Account, Decaying, SFOGD, CoinBetting, DtACI, PI, ECI),
    "stretches": (
        *(stretches.Identity, stretches.Exponential, stretches.ScoreAdaptive),
        *(stretches.ErrorAdaptive, stretches.Tracking),
    ),
    "combine": (combine.Max, combine.Mean),
    "correction": (correction.Intervals, correction.Labels, correction.Paths),
    "regions": (regions.Whole, regions.Centre, regions.Mask),
}
_known: dict[str, dict[str, type]] = {
    role: {part.__name__: part for part in parts} for role, parts in _PARTS.items()
}
_known["values"] = {
    part.__name__: part
    for part in (
        *(sets.Bands, sets.LabelSet, sets.Levels, sets.Path),
        *(PixelIntervals, PixelSet, SidedInterval),
    )
}

_OPTIONS = {"sets", "risks", "stretch", "combine", "correction"}
_ROLES = {"loss": "losses", "step": "steps", "stretch": "stretches", "region": "regions"}
"""The role of an option that is a part, where it is neither its own name nor the role around it."""


def _role(option: str, around: str | None) -> str:
    return _ROLES.get(option, around or option)


def known(role: str, part: type) -> bool:
    """Whether a class is known in this role."""
    return _known[role].get(part.__name__) is part


def make(role: str, name: str, options: dict[str, Any]) -> Any:
    """A part from its name and its options."""
    if name not in _known[role]:
        raise SpecError(f"{name!r} is not known in {role}; known are {_names(_known[role])}")
    return _make(_known[role][name], options, name)


def register(role: str, part: T) -> T:
    """Makes a user's own part known by its class name.

    Parameters
    ----------
    role
        "sets", "losses", "steps", "stretches", "combine", "correction" or "regions"; "values" for
        what a user's own family reads or shows, so that predictions in waiting can be saved.
    part
        A dataclass whose fields are numbers, words, pairs of numbers or other parts.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Late:
    ...     low, high = 0.0, 1.0
    ...
    ...     def __call__(self, shown, y):
    ...         return float(y > shown.upper)
    >>> _ = register("losses", Late)
    >>> to_dict(Risk(Late(), level=0.1))["loss"]
    {'part': 'Late'}
    """
    if role not in _known:
        raise SpecError(f"role must be one of {_names(_known)}, got {role!r}")
    if not is_dataclass(part):
        raise SpecError(f"a registered part must be a dataclass, got {part!r}")
    taken = _known[role].get(part.__name__, part)
    # A class that was defined again, in a notebook, takes its own place.
    if (taken.__module__, taken.__qualname__) != (part.__module__, part.__qualname__):
        raise SpecError(f"the name {part.__name__!r} in {role} is taken by {taken!r}")
    _known[role][part.__name__] = part
    return part


def to_dict(described: Controller | Risk) -> dict[str, Any]:
    """A controller, or one risk, in plain dicts, lists, numbers and words.

    >>> from setpoint import Controller, losses, sets, steps
    >>> risk = Risk(losses.Miscoverage(), level=0.1, step=steps.Fixed(0.05))
    >>> to_dict(Controller(sets.Widen(), risk))["risks"][0]["step"]
    {'part': 'Fixed', 'gamma': 0.05}
    """
    where = "the controller" if isinstance(described, Controller) else "the risk"
    return {name: _plain(name, value, where) for name, value in _options(described)}


def _options(part: Any) -> list[tuple[str, Any]]:
    """The options of a part that are not left open."""
    options = [(field.name, getattr(part, field.name)) for field in fields(part) if field.init]
    return [(name, value) for name, value in options if value is not None]


def _plain(
    option: str, value: Any, where: str, around: str | None = None, *, inside: bool = False
) -> Any:
    """An option as a table, or as a number, a word, or a list of these; `inside` a list."""
    if isinstance(value, Risk):
        return to_dict(value)
    if is_dataclass(value) and not isinstance(value, type) and not inside:
        role, name = _role(option, around), type(value).__name__
        if not known(role, type(value)):
            raise SpecError(
                f"{name} is not a known part of {role}: make it known by "
                f"spec.register({role!r}, {name}); known are {_names(_known[role])}"
            )
        options = {key: _plain(key, inner, name, role) for key, inner in _options(value)}
        return {"part": name, **options}
    if isinstance(value, np.ndarray) and value.dtype == np.bool_ and value.ndim == 2:
        return ["".join(".#"[pixel] for pixel in row) for row in value.tolist()]
    if isinstance(value, np.generic):
        return _plain(option, value.item(), where)
    if isinstance(value, tuple | list):
        return [_plain(option, item, where, inside=True) for item in value]
    if isinstance(value, bool | str):
        return value
    if isinstance(value, int | float):
        return float(value) if isinstance(value, float) else int(value)
    raise SpecError(f"{where}.{option} cannot be written down: got {value!r}")


def from_dict(described: dict[str, Any]) -> Controller:
    """The controller that a dict describes.

    >>> from_dict(
    ...     {
    ...         "sets": {"part": "Widen"},
    ...         "risks": [
    ...             {
    ...                 "loss": {"part": "Miscoverage"},
    ...                 "level": 0.1,
    ...                 "step": {"part": "Fixed", "gama": 1},
    ...             }
    ...         ],
    ...     }
    ... )
    Traceback (most recent call last):
    setpoint.errors.SpecError: unknown key 'gama' in risks[0].step; allowed are 'gamma', 'part'
    """
    _keys(described, "the controller", _OPTIONS, {"sets", "risks"})
    risks = described["risks"]
    if not isinstance(risks, list):
        raise SpecError(f"risks must be a list of tables, got {risks!r}")
    options = {key: _part(key, value, key) for key, value in described.items() if key != "risks"}
    options["risks"] = tuple(_risk(risk, f"risks[{index}]") for index, risk in enumerate(risks))
    controller: Controller = _make(Controller, options, "the controller")
    return controller


def _risk(described: Any, where: str) -> Risk:
    _keys(described, where, {field.name for field in fields(Risk)}, {"loss", "level"})
    options = {
        key: _part(_ROLES[key], value, f"{where}.{key}") if key in _ROLES else _value(value)
        for key, value in described.items()
    }
    risk: Risk = _make(Risk, options, where)
    return risk


def _part(role: str, described: Any, where: str) -> Any:
    role = _role(role, None)
    if not isinstance(described, dict) or "part" not in described:
        raise SpecError(f"{where} must be a table with a `part`, got {described!r}")
    name = described["part"]
    cls = _known[role].get(name) if isinstance(name, str) else None
    if cls is None:
        raise SpecError(f"{where}.part must be one of {_names(_known[role])}, got {name!r}")
    _keys(described, where, {"part", *(field.name for field in fields(cls) if field.init)}, set())
    options = {
        key: _part(_role(key, role), value, f"{where}.{key}")
        if isinstance(value, dict)
        else _value(value)
        for key, value in described.items()
        if key != "part"
    }
    return _make(cls, options, where)


def _value(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _make(cls: Any, options: dict[str, Any], where: str) -> Any:
    try:
        return cls(**options)
    except SetpointError as error:
        raise SpecError(f"{where}: {error}") from error
    except TypeError as error:
        raise SpecError(f"{where} lacks an option: {error}") from error


def _keys(described: Any, where: str, allowed: set[str], needed: set[str]) -> None:
    if not isinstance(described, dict):
        raise SpecError(f"{where} must be a table, got {described!r}")
    for key in described:
        if key not in allowed:
            raise SpecError(f"unknown key {key!r} in {where}; allowed are {_names(allowed)}")
    for key in sorted(needed - set(described)):
        raise SpecError(f"{where} lacks the key {key!r}; allowed are {_names(allowed)}")


def _names(names: Any) -> str:
    return ", ".join(repr(name) for name in sorted(names))


def from_toml(text: str) -> Controller:
    """The controller that a TOML text describes."""
    try:
        return from_dict(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"not TOML: {error}") from error
    except RecursionError:
        raise SpecError("the TOML is nested too deep for a controller") from None


def to_toml(controller: Controller) -> str:
    """A controller as TOML that `from_toml` reads back.

    >>> from setpoint import Controller, losses, sets, steps
    >>> risk = Risk(losses.Miscoverage(), level=0.1, step=steps.Fixed(0.05), bounds=(-20, 20))
    >>> print(to_toml(Controller(sets.Widen(), risk)))  # doctest: +ELLIPSIS
    [sets]
    part = "Widen"
    support = [-inf, inf]
    ...
    [[risks]]
    level = 0.1
    bounds = [-20.0, 20.0]
    unjudged = "skip"
    <BLANKLINE>
    [risks.loss]
    part = "Miscoverage"
    ...
    """
    tables = to_dict(controller)
    risks = tables.pop("risks")
    blocks = [block for name in tables for block in _table(f"[{name}]", name, tables[name])]
    for risk in risks:
        blocks += _table("[[risks]]", "risks", risk)
    return "\n\n".join(blocks) + "\n"


def _table(header: str, path: str, options: dict[str, Any]) -> list[str]:
    """A table and the tables within it, each as a block of lines."""
    lines = [header]
    inner: list[str] = []
    for key, value in options.items():
        if isinstance(value, dict):
            inner += _table(f"[{path}.{key}]", f"{path}.{key}", value)
        else:
            bare = re.fullmatch(r"[A-Za-z0-9_-]+", key)
            lines.append(f"{key if bare else _toml_string(key)} = {_toml_value(value)}")
    return ["\n".join(lines), *inner]


def _toml_value(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    if isinstance(value, str):
        return _toml_string(value)
    return str(value).lower() if isinstance(value, bool) else repr(value)


def _toml_string(text: str) -> str:
    """A string of JSON, which is one of TOML but for one control character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
