"""Controllers as plain dicts and TOML, and back: the only place where a string becomes a class.

A part is written as its name under `part` and its options beside it; options left at `None` are
left out. Users' own parts are known only after `register`, never by an import path.
"""

import json
import re
import tomllib
from dataclasses import fields, is_dataclass
from math import isinf, isnan
from types import ModuleType
from typing import Any, TypeVar

import numpy as np

from setpoint import combine, losses, regions, sets, steps, stretches
from setpoint.controller import Controller, Risk
from setpoint.errors import SetpointError, SpecError
from setpoint.parts import is_ours

__all__ = ["from_dict", "from_toml", "known", "make", "register", "to_dict", "to_toml"]

T = TypeVar("T", bound=type)

_ROLES: dict[str, ModuleType] = {
    "sets": sets,
    "losses": losses,
    "steps": steps,
    "stretches": stretches,
    "combine": combine,
    "regions": regions,
}


_known: dict[str, dict[str, type]] = {
    role: {
        name: cls for name, cls in vars(module).items() if name in module.__all__ and is_ours(cls)
    }
    for role, module in _ROLES.items()
}
_known["values"] = {
    part.__name__: part
    for part in (sets.LabelSet, sets.Levels, sets.PixelIntervals, sets.PixelSet, sets.SidedInterval)
}


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
        "sets", "losses", "steps", "stretches", "combine" or "regions"; "values" for what a
        user's own family reads or shows, so that predictions in waiting can be saved.
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
    taken = _known[role].get(part.__name__)
    # A class that was defined again, in a notebook, takes its own place.
    if taken is not None and _place(taken) != _place(part):
        raise SpecError(f"the name {part.__name__!r} in {role} is taken by {taken!r}")
    _known[role][part.__name__] = part
    return part


def _place(part: type) -> tuple[str, str]:
    return part.__module__, part.__qualname__


def to_dict(described: Controller | Risk) -> dict[str, Any]:
    """A controller, or one risk, in plain dicts, lists, numbers and words.

    >>> from setpoint import Controller, losses, sets, steps
    >>> risk = Risk(losses.Miscoverage(), level=0.1, step=steps.Fixed(0.05))
    >>> to_dict(Controller(sets.Widen(), risk))["risks"][0]["step"]
    {'part': 'Fixed', 'gamma': 0.05}
    """
    if isinstance(described, Risk):
        return {
            "loss": _part_to_dict("losses", described.loss),
            "level": described.level,
            **({} if described.step is None else {"step": _part_to_dict("steps", described.step)}),
            **({} if described.start is None else {"start": described.start}),
            **({} if described.bounds is None else {"bounds": list(described.bounds)}),
            "unjudged": described.unjudged,
        }
    return {
        "sets": _part_to_dict("sets", described.sets),
        "stretch": _part_to_dict("stretches", described.stretch),
        "combine": _part_to_dict("combine", described.combine),
        "risks": [to_dict(risk) for risk in described.risks],
    }


def _part_to_dict(role: str, part: Any) -> dict[str, Any]:
    name = type(part).__name__
    if not known(role, type(part)):
        raise SpecError(
            f"{name} is not a known part of {role}: make it known by "
            f"spec.register({role!r}, {name}); known are {_names(_known[role])}"
        )
    options: dict[str, Any] = {}
    for field in fields(part):
        value = getattr(part, field.name)
        if field.init and value is not None:
            options[field.name] = _value_to_plain(role, name, field.name, value)
    return {"part": name, **options}


def _value_to_plain(role: str, part: str, option: str, value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return _part_to_dict(_inner_role(role, option), value)
    if isinstance(value, np.ndarray) and value.dtype == np.bool_ and value.ndim == 2:
        return ["".join(".#"[pixel] for pixel in row) for row in value.tolist()]
    return _plain(value, f"{part}.{option}")


def _inner_role(role: str, option: str) -> str:
    """The role of a part within a part: its own, but the region of a loss is a region."""
    return "regions" if option == "region" else role


def _plain(value: Any, where: str) -> Any:
    """Numbers, words, and lists of them."""
    if isinstance(value, bool | str):
        return value
    if isinstance(value, np.generic):
        return _plain(value.item(), where)
    if isinstance(value, int | float):
        return float(value) if isinstance(value, float) else int(value)
    if isinstance(value, tuple | list):
        return [_plain(each, where) for each in value]
    raise SpecError(f"{where} cannot be written down: got {value!r}")


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
    _keys(described, "the controller", {"sets", "risks", "stretch", "combine"}, {"sets", "risks"})
    risks = described["risks"]
    if not isinstance(risks, list):
        raise SpecError(f"risks must be a list of tables, got {risks!r}")
    options: dict[str, Any] = {
        "sets": _part("sets", described["sets"], "sets"),
        "risks": tuple(_risk(risk, f"risks[{index}]") for index, risk in enumerate(risks)),
    }
    if "stretch" in described:
        options["stretch"] = _part("stretches", described["stretch"], "stretch")
    if "combine" in described:
        options["combine"] = _part("combine", described["combine"], "combine")
    controller: Controller = _make(Controller, options, "the controller")
    return controller


def _risk(described: Any, where: str) -> Risk:
    allowed = {field.name for field in fields(Risk)}
    _keys(described, where, allowed, {"loss", "level"})
    options = dict(described)
    options["loss"] = _part("losses", described["loss"], f"{where}.loss")
    if "step" in described:
        options["step"] = _part("steps", described["step"], f"{where}.step")
    if isinstance(options.get("bounds"), list):
        options["bounds"] = tuple(options["bounds"])
    risk: Risk = _make(Risk, options, where)
    return risk


def _part(role: str, described: Any, where: str) -> Any:
    if not isinstance(described, dict) or "part" not in described:
        raise SpecError(f"{where} must be a table with a `part`, got {described!r}")
    name = described["part"]
    cls = _known[role].get(name) if isinstance(name, str) else None
    if cls is None:
        raise SpecError(f"{where}.part must be one of {_names(_known[role])}, got {name!r}")
    _keys(described, where, {"part", *(field.name for field in fields(cls) if field.init)}, set())
    options = {
        key: _part(_inner_role(role, key), value, f"{where}.{key}")
        if isinstance(value, dict)
        else tuple(value)
        if isinstance(value, list)
        else value
        for key, value in described.items()
        if key != "part"
    }
    return _make(cls, options, where)


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
        described = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SpecError(f"not TOML: {error}") from error
    return from_dict(described)


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
    plain = to_dict(controller)
    blocks = [
        block
        for name in ("sets", "stretch", "combine")
        for block in _table(f"[{name}]", name, plain[name])
    ]
    for risk in plain["risks"]:
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
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    if isinstance(value, float) and (isinf(value) or isnan(value)):
        return str(value)
    if isinstance(value, str):
        return _toml_string(value)
    return repr(value)


def _toml_string(text: str) -> str:
    """A string of JSON, which is one of TOML but for one control character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
