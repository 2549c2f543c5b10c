"""The file of a saved state: a zip of one JSON header and plain arrays.

Nothing in it can be executed. Numbers are written so that they come back to the bit, ±inf and NaN
as words; every member carries a check sum; the file is written beside its place and moved there
whole. Only what `spec` knows becomes a class again.
"""

import json
import os
import zipfile
from dataclasses import fields, is_dataclass
from io import BytesIO
from itertools import islice
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.lib import format as npy

from setpoint import spec
from setpoint._files import whole
from setpoint.errors import SetpointError, StateError
from setpoint.sets import Interval

__all__ = ["VERSION", "pack", "read", "unpack", "write"]

VERSION = 1
_HEADER = "header.json"


def pack(value: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The value in JSON's own types; arrays are put aside under a name."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        real = float(value)
        return real if isfinite(real) else {"$real": str(real)}
    if isinstance(value, list):
        return [pack(each, arrays) for each in value]
    if type(value) is tuple:
        return {"$tuple": [pack(each, arrays) for each in value]}
    if isinstance(value, dict):
        return {"$dict": [[pack(k, arrays), pack(v, arrays)] for k, v in value.items()]}
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


def _aside(array: np.ndarray, arrays: dict[str, np.ndarray]) -> str:
    """The name of an array put aside: once, if a prediction and the set made of it share it."""

    def memory(held: np.ndarray) -> tuple[Any, ...]:
        return held.ctypes.data, held.shape, held.strides, held.dtype.str

    for name, held in islice(reversed(arrays.items()), 8):
        if held is array or (held.size > 0 and memory(held) == memory(array)):
            return name
    name = f"array{len(arrays)}"
    arrays[name] = array
    return name


def unpack(plain: Any, arrays: dict[str, np.ndarray]) -> Any:
    """The value that `pack` was given."""
    if isinstance(plain, list):
        return [unpack(each, arrays) for each in plain]
    if not isinstance(plain, dict):
        return plain
    tag = next(iter(plain))
    held = plain[tag]
    match tag:
        case "$real":
            return float(held)
        case "$tuple":
            return tuple(unpack(each, arrays) for each in held)
        case "$dict":
            return {unpack(k, arrays): unpack(v, arrays) for k, v in held}
        case "$interval":
            return Interval(*(unpack(each, arrays) for each in held))
        case "$array":
            return arrays[held]
        case "$tensor":
            return _tensor(arrays[held])
        case "$value":
            options = {key: unpack(each, arrays) for key, each in plain["fields"].items()}
            return spec.make("values", held, options)
    raise StateError(f"unknown tag {tag!r} in a saved state")


def _tensor(array: np.ndarray) -> Any:
    try:
        import torch
    except ModuleNotFoundError:
        raise StateError(
            "this state holds torch tensors and needs torch: pip install 'setpoint[torch]'"
        ) from None
    return torch.from_numpy(array)


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
        archive.writestr(_HEADER, text, zipfile.ZIP_DEFLATED)
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(cast(BinaryIO, member), array, allow_pickle=False)


def read(path: str | os.PathLike[str], kind: str, version: int = VERSION) -> dict[str, Any]:
    """The content of a saved state, or an error that says what is wrong with the file."""
    data = Path(path).read_bytes()
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            header = json.loads(archive.read(_HEADER))
            arrays = {
                name.removesuffix(".npy"): npy.read_array(
                    cast(BinaryIO, BytesIO(archive.read(name))), allow_pickle=False
                )
                for name in archive.namelist()
                if name != _HEADER
            }
            if not isinstance(header, dict):
                raise TypeError(f"its header is {header!r}")
    except Exception as error:  # damage shows itself in many ways
        raise StateError(f"{os.fspath(path)} is damaged or not a saved state: {error}") from error
    found, written = header.get("format"), header.get("version")
    if found != f"setpoint {kind}":
        raise StateError(f"{os.fspath(path)} must hold a setpoint {kind}, it holds {found!r}")
    if not isinstance(written, int) or written > version:
        raise StateError(
            f"{os.fspath(path)} has format version {written!r}; this setpoint reads up to "
            f"{version}: update setpoint to read it"
        )
    try:
        content = unpack(header["content"], arrays)
    except SetpointError:
        raise
    except Exception as error:
        raise StateError(f"{os.fspath(path)} is damaged: {error!r}") from error
    return cast(dict[str, Any], content)
