"""The file of a saved state: a zip of one JSON header and plain arrays.

Nothing in it can be executed, and only what `spec` knows becomes a class again. Numbers come back
to the bit; ±inf and NaN are words. Nothing is compressed, so a file never unpacks to more than its
own length. Every member carries a check sum; the file is written beside its place and moved there
whole. `check_state` and `check_columns` refuse numbers that no stream can have.
"""

import json
import os
import zipfile
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from io import BytesIO
from itertools import islice
from math import inf, isfinite, prod
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.lib import format as npy

from setpoint import spec
from setpoint._files import whole
from setpoint.controller import Controller, described
from setpoint.correction import Correction, Rebases, Rescores
from setpoint.errors import SetpointError, StateError
from setpoint.losses import declaration
from setpoint.plan import plan
from setpoint.recursion import RiskState
from setpoint.sets import Interval
from setpoint.sets.family import Remembers
from setpoint.state import COUNTS, Id, State, flat, risks_like

VERSION = 1
_HEADER = "header.json"
_PLAIN = frozenset((int, str, bool, type(None)))
_encode = json.JSONEncoder(allow_nan=False, check_circular=False).encode


def pack(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The value in JSON's own types; arrays are put aside under a name."""
    kind = type(value)
    if kind in _PLAIN or (kind is float and isfinite(value)):
        return value
    if kind is Interval and isfinite(value.lower) and isfinite(value.upper):
        return {"$interval": [value.lower, value.upper]}
    if isinstance(value, list):
        return _each(value, arrays)
    if kind is tuple:
        return {"$tuple": _each(value, arrays)}
    if isinstance(value, dict):
        keys, values = _each(value, arrays), _each(value.values(), arrays)
        return {"$dict": [list(pair) for pair in zip(keys, values, strict=True)]}
    if isinstance(value, str):
        return str(value)
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        real = float(value)
        return real if isfinite(real) else {"$real": str(real)}
    if isinstance(value, Interval):
        return {"$interval": [pack(value.lower, arrays), pack(value.upper, arrays)]}
    if isinstance(value, np.ndarray) and value.dtype != object:
        return {"$array": _aside(value, arrays)}
    if hasattr(value, "detach"):  # a torch tensor; it comes back on the host
        return {"$tensor": _aside(value.detach().cpu().numpy(), arrays)}
    if is_dataclass(value) and spec.known("values", type(value)):
        packed = {field.name: pack(getattr(value, field.name), arrays) for field in fields(value)}
        return {"$value": type(value).__name__, "fields": packed}
    raise StateError(
        f"a {type(value).__name__} cannot be saved; a dataclass can, once it is made known by "
        'spec.register("values", …)'
    )


def _each(values: Iterable[Any], arrays: dict[str, np.ndarray]) -> list[Any]:
    return [
        value
        if (kind := type(value)) in _PLAIN or (kind is float and -inf < value < inf)
        else pack(value, arrays)
        for value in values
    ]


def _aside(array: np.ndarray, arrays: dict[str, np.ndarray]) -> str:
    """The name of an array put aside: once, if a prediction and the set made of it share it."""

    def memory(values: np.ndarray) -> tuple[Any, ...]:
        return values.ctypes.data, values.shape, values.strides, values.dtype.str

    for name, other in islice(reversed(arrays.items()), 8):
        if other is array or (other.size > 0 and memory(other) == memory(array)):
            return name
    name = f"array{len(arrays)}"
    arrays[name] = array
    return name


def unpack(plain: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The value that `pack` was given."""
    if isinstance(plain, list):
        return [unpack(item, arrays) for item in plain]
    if not isinstance(plain, dict):
        return plain
    tag = next(iter(plain), None)
    content = plain[tag]
    match tag:
        case "$real":
            return float(content)
        case "$tuple":
            return tuple(unpack(item, arrays) for item in content)
        case "$dict":
            return {unpack(k, arrays): unpack(v, arrays) for k, v in content}
        case "$interval":
            return Interval(*(unpack(item, arrays) for item in content))
        case "$array":
            return arrays[content]
        case "$tensor":
            return _tensor(arrays[content])
        case "$value":
            options = {key: unpack(item, arrays) for key, item in plain["fields"].items()}
            return spec.make("values", content, options)
    raise StateError(f"unknown tag {tag!r} in a saved state")


def _tensor(array: np.ndarray) -> Any:
    try:
        import torch
    except ModuleNotFoundError:
        raise StateError(
            "this state holds torch tensors and needs torch: pip install 'setpoint[torch]'"
        ) from None
    return torch.from_numpy(array)


def to_text(value: Any) -> str:
    """A value as one line of JSON, its arrays in base 64.

    >>> to_text((1.5, Interval(0.0, 2.0)))
    '{"$tuple": [1.5, {"$interval": [0.0, 2.0]}]}'
    """
    arrays: dict[str, np.ndarray] = {}
    packed = pack(value, arrays)
    if not arrays:
        return _encode(packed)
    texts = {}
    for name, array in arrays.items():
        file = BytesIO()
        npy.write_array(file, array, allow_pickle=False)
        texts[name] = b64encode(file.getvalue()).decode()
    return _encode({"$arrays": texts, "value": packed})


def from_text(text: str) -> Any:
    """The value that `to_text` was given."""
    with intact("a saved value"):
        packed = json.loads(text)
        arrays: dict[str, np.ndarray] = {}
        if isinstance(packed, dict) and "$arrays" in packed:
            arrays = {name: _array(b64decode(data)) for name, data in packed["$arrays"].items()}
            packed = packed["value"]
        return unpack(packed, arrays)


@contextmanager
def intact(what: str | os.PathLike[str]) -> Iterator[None]:
    """Says of anything odd that is found in a saved state that it is damaged."""
    try:
        yield
    except SetpointError:
        raise
    except Exception as error:  # damage shows itself in many ways
        raise StateError(f"{os.fspath(what)} is damaged: {error!r}") from error


def write(
    path: str | os.PathLike[str], kind: str, content: dict[str, Any], version: int = VERSION
) -> None:
    """Writes `content` to `path`, whole or not at all."""
    arrays: dict[str, np.ndarray] = {}
    header = {"format": f"setpoint {kind}", "version": version, "content": pack(content, arrays)}
    text = json.dumps(header, allow_nan=False)
    for array in arrays.values():
        if array.dtype.hasobject:
            raise StateError(f"an array of {array.dtype} cannot be saved")
    with whole(path) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr(zipfile.ZipInfo(_HEADER), text)  # no time: equal states, equal files
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(cast(BinaryIO, member), array, allow_pickle=False)


def kind(path: str | os.PathLike[str]) -> str:
    """What a saved file says it is, such as "stream"."""
    return str(_open(path)[0].get("format")).removeprefix("setpoint ")


def read(path: str | os.PathLike[str], kind: str, version: int = VERSION) -> dict[str, Any]:
    """The content of a saved state, or an error that says what is wrong with the file."""
    header, arrays = _open(path)
    stated, written = header.get("format"), header.get("version")
    if stated != f"setpoint {kind}":
        raise StateError(f"{os.fspath(path)} must hold a setpoint {kind}, it holds {stated!r}")
    if not isinstance(written, int) or written > version:
        raise StateError(
            f"{os.fspath(path)} has format version {written!r}; this setpoint reads up to "
            f"{version}: update setpoint to read it"
        )
    with intact(path):
        return cast(dict[str, Any], unpack(header["content"], arrays))


def _open(path: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header and the arrays of a file, whatever is wrong with it told as a StateError."""
    data = Path(path).read_bytes()
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            members = archive.infolist()
            unpacked = sum(member.file_size for member in members)
            if unpacked > len(data) or any(member.compress_type for member in members):
                raise ValueError(
                    f"it would unpack to {unpacked:,} bytes from {len(data):,}, and nothing in a "
                    "saved state is compressed"
                )
            header = json.loads(archive.read(_HEADER))
            arrays = {
                member.filename.removesuffix(".npy"): _array(archive.read(member))
                for member in members
                if member.filename != _HEADER
            }
        if not isinstance(header, dict):
            raise TypeError(f"its header is {header!r}")
    except Exception as error:  # damage shows itself in many ways
        raise StateError(f"{os.fspath(path)} is damaged or not a saved state: {error}") from error
    return header, arrays


def _array(data: bytes) -> np.ndarray:
    """An array of plain numbers or text; its memory is taken once its size is known to be true."""
    file = cast(BinaryIO, BytesIO(data))
    major, _ = npy.read_magic(file)
    read_header = npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0
    shape, _, dtype = read_header(file)
    if dtype.itemsize == 0 or prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise ValueError(f"an array of {dtype} with the shape {shape} is not as long as it says")
    file.seek(0)
    return npy.read_array(file, allow_pickle=False)


# What a state can be


def _finite(value: Any) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool) and isfinite(value)


def _memory(value: Any) -> bool:
    return isinstance(value, tuple) and all(isinstance(number, float | int) for number in value)


def _whole(least: int) -> tuple[Callable[[Any], bool], str]:
    def fits(value: Any) -> bool:
        return type(value) is int and value >= least

    return fits, f"a whole number of at least {least}"


def _one_of(*names: str) -> tuple[Callable[[Any], bool], str]:
    return (lambda value: value in names), "one of " + ", ".join(map(repr, names))


def _pairs(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, tuple) and len(v) == 2 for v in value)


_FINITE = _finite, "a finite number"
_MEMORY = _memory, "a tuple of numbers"
_COUNT = _whole(0)
_COUNTED = (lambda value: _finite(value) and value >= 0 and value % 1 == 0), _COUNT[1]
_RISK = {
    "theta": _FINITE, "first": _FINITE, "total": _FINITE, "lifted": _FINITE,
    "judged": _COUNTED, "unjudged": _COUNTED, "lifts": _COUNTED,
    "step": _MEMORY, "loss": _MEMORY,
}  # fmt: skip
_COUNTS = {
    **dict.fromkeys(COUNTS, _COUNT),
    "peak": _whole(1),
    "fresh": (lambda value: isinstance(value, bool), "True or False"),
    "stretch": _MEMORY,
    "memory": _MEMORY,
    "terms": (lambda value: isinstance(value, tuple), "a tuple"),
}
_RECEIPTS = {
    "serial": _COUNT,
    "max_pending": _whole(1),
    "given": (lambda value: value is None or _COUNT[0](value), f"None or {_COUNT[1]}"),
    "overflow": _one_of("refuse", "expire"),
    "closed": (_pairs, "a list of pairs"),
    "older": (_pairs, "a list of pairs"),
    "former": (lambda value: isinstance(value, list), "a list of ids"),
}
_OPTIONS = {"missing": _one_of("raise", "skip")}


def check_state(content: Mapping[str, Any]) -> None:
    """Refuses the content of a stream with a number that no stream can have.

    >>> import setpoint as sp
    >>> risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5), bounds=(-20, 20))
    >>> content = sp.Stream(sp.Controller(sp.sets.Widen(), risk)).content()
    >>> check_state(content)
    >>> content["risks"][0]["judged"] = -5
    >>> check_state(content)
    Traceback (most recent call last):
    setpoint.errors.StateError: risks[0].judged must be a whole number of at least 0, got -5
    """
    risks = content["risks"]
    if not isinstance(risks, list):
        raise StateError(f"risks must be a list, got {risks!r}")
    for place, risk in enumerate(risks):
        _check_fields(risk, _RISK, f"risks[{place}]")
    _check_fields(content["counts"], _COUNTS, "counts")
    receipts = {name: content["receipts"][name] for name in _RECEIPTS}
    _check_fields(receipts, _RECEIPTS, "receipts")
    _check_fields({name: content[name] for name in _OPTIONS}, _OPTIONS, "a stream")


def content_of(state: State) -> dict[str, Any]:
    """A state as plain values and arrays, sharing nothing with it."""
    counts = {name: getattr(state, name) for name in (*COUNTS, "fresh", "terms", "memory")}
    table, groups = state.table, list(map(flat, state.groups.values()))
    if type(table) is list:
        table = np.array(table) if table else None
    else:
        table = table.content()
    return {
        "risks": [risk._asdict() for risk in state.risks],
        "counts": {**counts, "stretch": state.stretch},
        "table": table,
        "annex": np.array(state.annex) if state.annex else None,
        "price": state.watched or None,
        "window": None if state.sets is None else np.array(state.sets.memory),
        "groups": list(state.groups),
        "group_risks": np.array(groups) if groups else None,
    }


def state_of(controller: Controller, content: Mapping[str, Any]) -> State:
    """The state in the content of a stream; one that its controller cannot have is refused."""
    check_state(content)
    first, counts = plan(controller).first, dict(content["counts"])
    risks = tuple([tuple(RiskState(**saved)) for saved in content["risks"]])
    position = risks, counts.pop("stretch")
    stage, table = controller.correction, content["table"]
    if isinstance(stage, Rescores):
        table = stage.kept({} if table is None else table)
    elif isinstance(stage, Rebases):
        table = stage.kept(controller.sets, {} if table is None else table)
    else:
        table = None if table is None else table.tolist()
    annex = None if content["annex"] is None else content["annex"].tolist()
    window = None
    if isinstance(controller.sets, Remembers):
        window = controller.sets.bind(content["window"].tolist())
    state = State(position, counts["terms"], counts["memory"], table, annex, window)
    for name, value in counts.items():
        setattr(state, name, value)
    state.position = position
    room = stage.annex if isinstance(stage, Correction) else 0
    fits = len(state.annex) == (room if room and state.memory[0] > 0.0 else 0)
    if not fits or state.shape != first.shape or state.terms != first.terms:
        raise StateError(f"the state does not fit {controller!r}: it belongs to another one")
    price = first.watched if content["price"] is None else content["price"]
    if len(price) != len(first.watched) or not all(map(_finite, price)):
        raise StateError(f"the price in the state does not fit {controller!r}")
    state.watched = list(map(float, price))
    state.groups = groups_of(first, content["groups"], content["group_risks"])
    for risks in (position[0], *state.groups.values()):
        _check_totals(controller, risks)
    return state


def groups_of(first: State, names: Any, numbers: Any) -> dict[Id, Any]:
    """The risks of groups by name, from their numbers, one row for each."""
    like, count = first.position[0], len(names)
    own = [f"{n}{i}" for i, risk in enumerate(like) for n in _risk_columns(risk)]
    rows = np.asarray(numbers, np.float64).reshape(count, -1) if count else np.empty((0, len(own)))
    if len(set(names)) < count:
        raise StateError("groups must have different names")
    check_columns(own, rows.T, count, "group")
    return dict(zip(names, [risks_like(like, row) for row in rows.tolist()], strict=True))


def _risk_columns(risk: tuple[Any, ...]) -> list[str]:
    return [*RiskState._fields[:7], *["loss_"] * len(risk[7]), *["step_"] * len(risk[8])]


def _check_totals(controller: Controller, risks: tuple[Any, ...]) -> None:
    """Refuses sums of losses that no losses can have."""
    for held, values in zip(controller.risks, map(RiskState._make, risks), strict=True):
        promise, slack = declaration(held.loss), 1e-6 * (1.0 + abs(values.total))
        least, most = promise.low * values.judged, promise.high * values.judged
        if values.judged and not least - slack <= values.total <= most + slack:
            raise StateError(
                f"{values.judged:,} losses of {held.name} add up to at least {least:g} and at "
                f"most {most:g}, the state has {values.total:g}"
            )


def _check_fields(
    fields: Any, rules: Mapping[str, tuple[Callable[[Any], bool], str]], where: str
) -> None:
    if not isinstance(fields, dict) or set(fields) != set(rules):
        names = sorted(fields, key=str) if isinstance(fields, dict) else fields
        raise StateError(f"{where} must have the fields {', '.join(sorted(rules))}, got {names!r}")
    for name, (fits, allowed) in rules.items():
        if not fits(fields[name]):
            raise StateError(f"{where}.{name} must be {allowed}, got {fields[name]!r}")


def check_columns(
    names: Sequence[str], rows: np.ndarray, streams: int, what: str = "stream"
) -> None:
    """Refuses the states of a fleet, a row for each name, with a number that none can have.

    A name is that of `check_state`, with the number of its risk behind it: theta0, judged.

    >>> check_columns(["theta0", "judged"], np.array([[0.5, 1.5], [3.0, -5.0]]), 2)
    Traceback (most recent call last):
    setpoint.errors.StateError: judged must be a whole number of at least 0, got -5.0 in stream 1
    """
    if rows.shape != (len(names), streams) or rows.dtype.kind not in "fiu":
        raise StateError(
            f"states must be numbers of shape {(len(names), streams)}, got {rows.dtype} of shape "
            f"{rows.shape}"
        )
    for name, row in zip(names, rows, strict=True):
        rule = {**_RISK, **_COUNTS}.get(name.rstrip("0123456789"))
        if rule is _FINITE:
            wrong, allowed = ~np.isfinite(row), rule[1]
        elif rule in (_COUNT, _COUNTED, _COUNTS["peak"]):
            least, allowed = int(rule is _COUNTS["peak"]), rule[1]
            wrong = ~(np.isfinite(row) & (row >= least) & (row == np.floor(row)))
        else:
            continue
        if wrong.any():
            place = int(np.argmax(wrong))
            raise StateError(f"{name} must be {allowed}, got {row[place]} in {what} {place}")


def matching_controller(content: dict[str, Any], given: Controller | None) -> Controller:
    """The controller of a saved state: the saved one, or the one given if it is the same."""
    if given is None:
        if content["controller"] is None:
            raise StateError(
                "the controller of this state has a part that could not be written down; give it "
                f"again by load(path, controller=…): {content['repr']}"
            )
        return spec.from_dict(content["controller"])
    if described(given) != content["repr"]:
        raise StateError(
            f"the state belongs to {content['repr']}, the controller given is {described(given)}"
        )
    return given
