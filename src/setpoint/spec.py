"""Controllers as plain dicts and TOML, and back: the only place where a string becomes a class.

A part is written as its name under `part` and its options beside it; options left at `None` are
left out. Users' own parts are known after `register`, or where an installed package names them as
entry points of the group `setpoint.parts`, never by an import path in a file.
"""

import inspect
import json
import re
import tomllib
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from importlib.metadata import entry_points
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from setpoint import combine, correction, losses, regions, sets, steps, stretches
from setpoint.controller import Controller, Risk
from setpoint.correction.paths import Paths as PathsCorrection
from setpoint.errors import SetpointError, SpecError
from setpoint.published import ECI, PI, SFOGD, CoinBetting, Decaying, DtACI
from setpoint.sets.paths import Path
from setpoint.sets.pixels import PixelIntervals, PixelSet
from setpoint.sets.wrapping import SidedInterval

__all__ = ["from_dict", "from_toml", "register", "schema", "to_dict", "to_toml"]

T = TypeVar("T", bound=type)

_PARTS: dict[str, tuple[type, ...]] = {
    "sets": (
        sets.Widen, sets.Scale, sets.Lower, sets.Upper, sets.Multiplied, sets.QuantileScale,
        sets.Threshold, sets.Cumulative, sets.Multilabel, sets.PixelScale, sets.PixelThreshold,
        sets.TwoSided, sets.Nested, sets.Fan, sets.ScoreWindow, sets.Paths,
    ),
    "losses": (
        losses.Miscoverage, losses.MiscoverageCounter, losses.ImageMiscoverage,
        losses.CentreFailure, losses.FalseNegatives, losses.FalsePositives, losses.F1Shortfall,
        losses.SetSize, losses.Custom,
    ),
    "steps": (
        steps.Fixed, steps.Account, steps.Measure, Decaying, SFOGD, CoinBetting, DtACI, PI, ECI,
    ),
    "stretches": (
        stretches.Identity, stretches.Exponential, stretches.ScoreAdaptive,
        stretches.ErrorAdaptive, stretches.Tracking,
    ),
    "combine": (combine.Max, combine.Mean),
    "correction": (correction.Intervals, correction.Labels, PathsCorrection),
    "regions": (regions.Whole, regions.Centre, regions.Mask),
    "values": (
        sets.Bands, sets.LabelSet, sets.Levels, Path, PixelIntervals, PixelSet, SidedInterval,
    ),
}  # fmt: skip
_known = {role: {part.__name__: part for part in parts} for role, parts in _PARTS.items()}

_ROLES = {"loss": "losses", "step": "steps", "stretch": "stretches", "region": "regions"}
"""The role of an option that is a part, where it is neither its own name nor the role around it."""


def _role(option: str, around: str | None = None) -> str:
    return _ROLES.get(option, around or option)


def known(role: str, part: type) -> bool:
    """Whether a class is known in this role."""
    return _known[role].get(part.__name__) is part


def make(role: str, name: str, options: dict[str, Any]) -> Any:
    """A part from its name and its options."""
    cls = _find(role, name)
    if cls is None:
        raise SpecError(f"{name!r} is not known in {role}; known are {_names(_known[role])}")
    return _make(cls, options, name)


def _find(role: str, name: Any) -> type | None:
    """The class of a name: one that is known, or one that an installed package brings."""
    if isinstance(name, str) and name not in _known[role]:
        _take_in_packages()
    return _known[role].get(name) if isinstance(name, str) else None


@cache
def _take_in_packages() -> None:
    """Registers the parts of installed packages: entry points such as `losses.Shortfall`."""
    for point in entry_points(group="setpoint.parts"):
        role = point.name.partition(".")[0]
        try:
            register(role, point.load())
        except Exception as error:
            raise SpecError(
                f"the part {point.name!r} of {point.dist.name if point.dist else 'a package'} "
                f"cannot be taken in: {error}"
            ) from error


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
    options = [pair for pair in _options(described) if pair != ("watch", True)]
    return {name: _plain(name, value, where) for name, value in options}


def described(role: str, part: Any) -> dict[str, Any]:
    """A part as a table."""
    name = type(part).__name__
    if not known(role, type(part)):
        raise SpecError(
            f"{name} is not a known part of {role}: make it known by "
            f"spec.register({role!r}, {name}); known are {_names(_known[role])}"
        )
    return {"part": name, **{key: _plain(key, value, name, role) for key, value in _options(part)}}


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
        return described(_role(option, around), value)
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

    >>> step = {"part": "Fixed", "gama": 1}
    >>> risk = {"loss": {"part": "Miscoverage"}, "level": 0.1, "step": step}
    >>> from_dict({"sets": {"part": "Widen"}, "risks": [risk]})
    Traceback (most recent call last):
    setpoint.errors.SpecError: unknown key 'gama' in risks[0].step; allowed are 'gamma', 'part'
    """
    controller: Controller = _from_table(Controller, described, "the controller")
    return controller


def part_of(role: str, table: Any, where: str = "the part") -> Any:
    """The part that a table describes."""
    if not isinstance(table, dict) or "part" not in table:
        raise SpecError(f"{where} must be a table with a `part`, got {table!r}")
    cls = _find(role, table["part"])
    if cls is None:
        allowed = _names(_known[role])
        raise SpecError(f"{where}.part must be one of {allowed}, got {table['part']!r}")
    return _from_table(cls, table, where, role)


_NEEDED = {Controller: ("risks", "sets"), Risk: ("level", "loss")}
_PARTS_OF = {Controller: ("sets", "stretch", "combine", "correction"), Risk: ("loss", "step")}
"""The options that are always parts."""


def _from_table(cls: Any, table: Any, where: str, around: str | None = None) -> Any:
    """A part, a risk or a controller from the table of its options."""
    if not isinstance(table, dict):
        raise SpecError(f"{where} must be a table, got {table!r}")
    allowed = {field.name for field in fields(cls) if field.init} | ({"part"} if around else set())
    for key in table:
        if key not in allowed:
            raise SpecError(f"unknown key {key!r} in {where}; allowed are {_names(allowed)}")
    for key in _NEEDED.get(cls, ()):
        if key not in table:
            raise SpecError(f"{where} lacks the key {key!r}; allowed are {_names(allowed)}")
    options = {}
    for key, value in table.items():
        inside = key if cls is Controller else f"{where}.{key}"
        if key == "risks":
            options[key] = _risks(value)
        elif key in _PARTS_OF.get(cls, ()) or isinstance(value, dict):
            options[key] = part_of(_role(key, around), value, inside)
        elif key != "part":
            options[key] = tuple(value) if isinstance(value, list) else value
    return _make(cls, options, where)


def _risks(tables: Any) -> tuple[Risk, ...]:
    if not isinstance(tables, list):
        raise SpecError(f"risks must be a list of tables, got {tables!r}")
    return tuple(_from_table(Risk, table, f"risks[{i}]") for i, table in enumerate(tables))


def _make(cls: Any, options: dict[str, Any], where: str) -> Any:
    try:
        return cls(**options)
    except SetpointError as error:
        raise SpecError(f"{where}: {error}") from error
    except TypeError as error:
        raise SpecError(f"{where} lacks an option: {error}") from error


def _names(names: Any) -> str:
    return ", ".join(map(repr, sorted(names)))


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
    [risks.loss]
    part = "Miscoverage"
    ...
    """
    tables = to_dict(controller)
    risks = tables.pop("risks")
    blocks = [] if tables.pop("watch", True) else ["watch = false"]
    blocks += [block for name in tables for block in toml_table(f"[{name}]", name, tables[name])]
    for risk in risks:
        blocks += toml_table("[[risks]]", "risks", risk)
    return "\n\n".join(blocks) + "\n"


def toml_table(header: str, path: str, options: dict[str, Any]) -> list[str]:
    """A table and the tables within it, each as a block of lines."""
    lines = [header]
    inner: list[str] = []
    for key, value in options.items():
        if isinstance(value, dict):
            inner += toml_table(f"[{path}.{key}]", f"{path}.{key}", value)
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


# The schema


def schema() -> dict[str, Any]:
    """The JSON schema of a controller's TOML, for editors and checks in other languages.

    It knows names, kinds and required options; what values an option takes is said by
    `from_toml`. Parts that were registered or brought by packages are in it.

    >>> sorted(schema()["properties"])
    ['combine', 'correction', 'risks', 'sets', 'stretch', 'watch']
    """
    _take_in_packages()
    definitions = {
        role: {
            "type": "object",
            "required": ["part"],
            "oneOf": [_part_schema(role, cls) for _, cls in sorted(known_parts.items())],
        }
        for role, known_parts in _known.items()
        if role != "values"
    }
    parts = {key: {"$ref": f"#/$defs/{_role(key)}"} for key in sorted(_PARTS_OF[Controller])}
    risks = {"type": "array", "minItems": 1, "items": _options_schema(Risk, "losses")}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A setpoint controller",
        "type": "object",
        "properties": {**parts, "watch": {"type": "boolean"}, "risks": risks},
        "required": ["sets", "risks"],
        "additionalProperties": False,
        "$defs": definitions,
    }


def _part_schema(role: str, cls: type) -> dict[str, Any]:
    described = _options_schema(cls, role)
    described["properties"] = {"part": {"const": cls.__name__}, **described["properties"]}
    described["required"] = ["part", *described["required"]]
    return described


def _options_schema(cls: Any, around: str) -> dict[str, Any]:
    """The options of a class as a schema, with what its docstring says of each."""
    hints, text = get_type_hints(cls), inspect.getdoc(cls) or ""
    said = dict(re.findall(r"^([\w, ]+)\n((?:    .*\n?)+)", text, re.MULTILINE))
    notes = {name: note for names, note in said.items() for name in names.split(", ")}
    options: dict[str, Any] = {}
    needed = []
    for field in fields(cls):
        if field.init:
            options[field.name] = _value_schema(hints[field.name], _role(field.name, around))
            if field.name in notes:
                options[field.name]["description"] = " ".join(notes[field.name].split())
            if field.default is MISSING and field.default_factory is MISSING:
                needed.append(field.name)
    return {
        "type": "object",
        "description": text.partition("\n")[0],
        "properties": options,
        "required": needed,
        "additionalProperties": False,
    }


_PLAIN = {float: "number", int: "integer", bool: "boolean", str: "string"}


def _value_schema(hint: Any, role: str) -> dict[str, Any]:
    """What an option may be: numbers, words, lists of these, or a part of a role."""
    if hint in _PLAIN:
        return {"type": _PLAIN[hint]}
    inner = [kind for kind in get_args(hint) if kind is not NoneType]
    if get_origin(hint) in (Union, UnionType):
        kinds = [_value_schema(kind, role) for kind in inner]
        return kinds[0] if all(kind == kinds[0] for kind in kinds) else {"anyOf": kinds}
    if get_origin(hint) is tuple:
        items = _value_schema(inner[0], role)
        size = {} if ... in inner else {"minItems": len(inner), "maxItems": len(inner)}
        return {"type": "array", "items": items, **size}
    other = getattr(hint, "__module__", "") in ("numpy", "builtins")
    if role not in _known or other or (hint is Any and role not in ("losses", "regions")):
        return {}
    return {"$ref": f"#/$defs/{role}"}
