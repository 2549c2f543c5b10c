"""Which column of a file or frame plays which part of a tape; tapes as CSV, Parquet and npz."""

import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

import numpy as np
from numpy.lib import format as npy

from setpoint._check import is_missing
from setpoint._files import whole
from setpoint.errors import DataError, TapeError
from setpoint.tape import cells, files
from setpoint.tape.columns import KEYS, Column, Ragged, check_columns, frame_columns, number_keys

__all__ = ["Plan", "read", "write"]

_Path = str | os.PathLike[str]
_VERSION = 1
_FORMAT = "setpoint tape"
_HEADER = "setpoint"
_SUFFIXES = (".csv", ".csv.gz", ".parquet", ".npz")
_DAMAGE = (zipfile.BadZipFile, zlib.error, EOFError, KeyError, TypeError, ValueError)


class Plan(NamedTuple):
    """Which column plays which part."""

    prediction: tuple[Any, ...]
    target: Any
    id: Any
    time: Any
    group: Any
    extras: tuple[Any, ...]

    @classmethod
    def laid_out(cls, names: list[str], where: str) -> "Plan":
        """The parts by place, as `write` lays them out: keys, prediction, y, extras."""
        check_columns(["y"], names, where)
        first, last = names[: names.index("y")], names[names.index("y") + 1 :]
        id, time, group = (name if name in first else None for name in KEYS)
        prediction = tuple(name for name in first if name not in KEYS)
        return cls(prediction, "y", id, time, group, tuple(last))

    def kinds(self) -> dict[Any, str]:
        """The columns needed, each with what a CSV's text is taken for."""
        kinds = dict.fromkeys(self.extras, "any")
        kinds |= {self.time: "any", self.id: "key", self.group: "key", self.target: "number"}
        kinds |= dict.fromkeys(self.prediction, "number")
        kinds.pop(None, None)
        return kinds

    def arguments(self, columns: Mapping[Any, np.ndarray]) -> dict[str, Any]:
        """What `Tape.from_arrays` takes."""
        keys = zip(KEYS, (self.id, self.time, self.group), strict=True)
        return {
            "prediction": [columns[name] for name in self.prediction],
            "names": [str(name) for name in self.prediction],
            "y": columns[self.target],
            **{key: columns[name] for key, name in keys if name is not None},
            "extras": {str(name): columns[name] for name in self.extras},
        }


def _suffix_of(path: _Path) -> str:
    for suffix in _SUFFIXES:
        if os.fspath(path).lower().endswith(suffix):
            return suffix
    raise TapeError(f"a tape's file ends in {', '.join(_SUFFIXES)}; got {os.fspath(path)!r}")


@contextmanager
def _readable(path: _Path) -> Iterator[None]:
    """Turns what a damaged file makes its reader raise into one error."""
    try:
        yield
    except TapeError:
        raise
    except DataError as error:
        raise TapeError(str(error)) from error
    except (*_DAMAGE, OSError) as error:
        if getattr(error, "errno", None) is not None:  # the system's own: no such file, no right
            raise
        raise TapeError(f"{os.fspath(path)} is damaged or not a tape: {error}") from error


def read(path: _Path, plan: Plan | None) -> dict[str, Any]:
    """What `Tape.from_arrays` takes. Without a plan the file is laid out as `write` does."""
    suffix, where = _suffix_of(path), os.fspath(path)
    with _readable(path):
        if suffix == ".npz":
            return _read_npz(path, plan)
        Path(path).stat()  # the system's own error if there is none
        if suffix == ".parquet":
            with cells.arrow("pyarrow.parquet").ParquetFile(path) as file:
                names = file.schema_arrow.names
        else:
            _, names = files.header(path)
        plan = plan or Plan.laid_out(names, where)
        kinds = plan.kinds()
        check_columns(kinds, names, where)
        file = files.read(path, list(kinds), empty=True)
        if suffix == ".parquet":
            return plan.arguments(frame_columns(file.table, kinds, where))
        return plan.arguments({name: _decoded(file, name, kind) for name, kind in kinds.items()})


def _decoded(file: files.File, name: str, kind: str) -> np.ndarray:
    """A column of a CSV: numbers, or what its words are taken for."""
    if kind == "number":
        numbers = cells.numbers(file.table[name])
        if isinstance(numbers, tuple):
            row, text = numbers
            raise TapeError(
                f"column {name!r} must hold numbers, got {text!r} in {file.place(row)}"
                f"{cells.advice(text)}"
            )
        return numbers
    encoded = file.table[name].combine_chunks().dictionary_encode()
    words: list[str] = encoded.dictionary.to_pylist()
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    values: np.ndarray = np.fromiter(words, object, len(words))
    with suppress(ValueError, OverflowError):
        integers = [int(word) for word in words]
        if [str(integer) for integer in integers] == words:  # "007" is a name
            values = np.array(integers, np.int64)
    if kind == "any" and values.dtype == object:
        numbers = cells.numbers(encoded.dictionary)
        if words and set(words) <= {"true", "false"}:
            values = np.array([word == "true" for word in words])
        elif not isinstance(numbers, tuple):
            values = numbers
    return cast(np.ndarray, values[codes])


def write(
    path: _Path,
    keys: Mapping[str, np.ndarray],
    prediction: Mapping[str, Column],
    y: np.ndarray,
    extras: Mapping[str, Column],
) -> None:
    """A file of the columns in this order: keys, prediction, y, extras."""
    suffix = _suffix_of(path)
    if suffix == ".npz":
        return _write_npz(path, keys, prediction, y, extras)
    columns = {**keys, **prediction, "y": y, **extras}
    for name, column in columns.items():
        if isinstance(column, Ragged) or column.ndim != 1:
            raise TapeError(
                f"a {suffix} file has one value a cell, column {name!r} has several: write an .npz"
            )
    try:
        exact = suffix != ".parquet"
        pa = cells.arrow()
        arrays = {name: _arrow(pa, column, name, exact) for name, column in columns.items()}
        files.write(pa.table(arrays), path)
    except DataError as error:
        raise TapeError(str(error)) from error
    return None


def _arrow(pa: Any, column: Any, name: str, exact: bool) -> Any:
    """A column in the types that tables have, or an error; `exact` makes every float a double."""
    kind = column.dtype.kind
    if kind in "OT":
        words, codes = _encoded(column, name)
        column = np.fromiter(words, object, len(words))[codes]
        if exact:
            column = np.array([None if w is None else str(w) for w in column.tolist()], object)
    elif kind not in "biufUM" or column.dtype.str[1:] == "f16":
        raise TapeError(
            f"column {name!r} holds {column.dtype}, which a table cannot: write an .npz"
        )
    elif kind == "M":
        unit = np.datetime_data(column.dtype)[0]
        plain = {"Y": "D", "M": "D", "W": "D", "h": "s", "m": "s"}.get(unit, unit)
        column = column.astype(f"datetime64[{plain}]")
        if exact:
            column = np.datetime_as_string(column)
    elif exact and kind == "f":
        column = column.astype(np.float64)
    else:
        column = column.astype(column.dtype.newbyteorder("="), copy=False)
    try:
        return pa.array(column, pa.string() if exact and column.dtype == object else None)
    except (pa.ArrowException, UnicodeEncodeError) as error:
        raise TapeError(f"a table cannot hold column {name!r}: {error}") from None


def _encoded(column: np.ndarray, name: str) -> tuple[list[Any], np.ndarray]:
    """Text and other objects as the distinct ones, None if missing, and the place of each row's."""
    seen, starts, codes = number_keys(np.fromiter(column.tolist(), object, len(column)),
                                      f"column {name!r}")  # fmt: skip
    plain = [word.item() if isinstance(word, np.generic) else word for word in seen]
    for word in plain:
        if not isinstance(word, str | int | float) and not is_missing(word):
            raise TapeError(
                f"column {name!r} must hold text or numbers to be written, got {word!r}"
            )
    words = [None if is_missing(word) else word for word in plain]
    return words, np.repeat(codes, np.diff(starts, append=len(column)))


# npz: plain arrays and a header of JSON. Nothing in the file can be executed.


def _write_npz(
    path: _Path,
    keys: Mapping[str, np.ndarray],
    prediction: Mapping[str, Column],
    y: np.ndarray,
    extras: Mapping[str, Column],
) -> None:
    header = {
        "format": _FORMAT, "version": _VERSION, "names": list(prediction), "extras": list(extras)
    }  # fmt: skip
    columns = {
        **keys,
        **{f"prediction{i}": column for i, column in enumerate(prediction.values())},
        "y": y,
        **{f"extra{i}": column for i, column in enumerate(extras.values())},
    }
    arrays = {_HEADER: _to_bytes(header)}
    for name, column in columns.items():
        if isinstance(column, Ragged):
            arrays[name], arrays[f"{name}.offsets"] = column.values, column.offsets
        elif column.dtype.kind in "OT":
            words, arrays[name] = _encoded(column, name)
            arrays[f"{name}.words"] = _to_bytes(words)
        elif column.dtype.hasobject:
            raise TapeError(f"{name} holds objects inside {column.dtype}, which no file can")
        else:
            arrays[name] = column
    with whole(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(cast(BinaryIO, member), array, allow_pickle=False)


def _read_npz(path: _Path, plan: Plan | None) -> dict[str, Any]:
    where = os.fspath(path)
    # numpy leaves a file open that it cannot read, so it is not left to numpy.
    with open(path, "rb") as file, np.load(file, allow_pickle=False) as arrays:
        if _HEADER not in arrays.files:
            plan = plan or Plan.laid_out(arrays.files, where)
            return plan.arguments(frame_columns(arrays, plan.kinds(), where))
        if plan is not None:
            raise TapeError(f"{where} knows its own columns: read it without names")
        return _unpack(arrays, where)


def _unpack(arrays: Mapping[str, np.ndarray], where: str) -> dict[str, Any]:
    """What `Tape.from_arrays` takes, from what `_write_npz` wrote."""
    header = json.loads(arrays[_HEADER].tobytes())
    if header["format"] != _FORMAT or header["version"] != _VERSION:
        raise TapeError(
            f"{where} is a {header['format']} of version {header['version']}; this setpoint reads "
            f"a {_FORMAT} of version {_VERSION}"
        )

    def column(name: str) -> Any:
        array = arrays[name]
        if f"{name}.offsets" in arrays:
            return Ragged(array, arrays[f"{name}.offsets"])
        if f"{name}.words" in arrays:
            words = json.loads(arrays[f"{name}.words"].tobytes())
            return np.fromiter(words, object, len(words))[array]
        return array

    return {
        "prediction": [column(f"prediction{i}") for i in range(len(header["names"]))],
        "names": header["names"],
        "y": column("y"),
        **{name: column(name) for name in KEYS if name in arrays},
        "extras": {name: column(f"extra{i}") for i, name in enumerate(header["extras"])},
    }


def _to_bytes(value: Any) -> np.ndarray:
    return np.frombuffer(json.dumps(value).encode(), np.uint8)
