"""Files of columns: CSV, Parquet and npz, read by name and written whole or not at all."""

import csv
import gzip
import json
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, BinaryIO, NamedTuple, TextIO, cast

import numpy as np
from numpy.lib import format as npy

from setpoint._files import whole
from setpoint.errors import TapeError
from setpoint.tape.columns import (
    CHUNK,
    KEYS,
    Column,
    Ragged,
    check_columns,
    extra,
    frame_columns,
    is_missing,
    number_keys,
)

__all__ = ["Plan", "read", "write"]

_Path = str | os.PathLike[str]

_VERSION = 1
_FORMAT = "setpoint tape"
_HEADER = "setpoint"
_SUFFIXES = (".csv", ".csv.gz", ".parquet", ".npz")
_MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None")
"""Cells of a CSV that stand for no number where a number is due."""
_DAMAGE = (zipfile.BadZipFile, zlib.error, csv.Error, EOFError, KeyError, TypeError, ValueError)


class Plan(NamedTuple):
    """Which column plays which part."""

    prediction: tuple[Any, ...]
    target: Any
    id: Any
    time: Any
    group: Any
    extras: tuple[Any, ...]

    @classmethod
    def laid_out(cls, found: list[str], where: str) -> "Plan":
        """The parts by place, as `write` lays them out: keys, prediction, y, extras."""
        check_columns(["y"], found, where)
        first, last = found[: found.index("y")], found[found.index("y") + 1 :]
        id, time, group = (name if name in first else None for name in KEYS)
        prediction = tuple(name for name in first if name not in KEYS)
        return cls(prediction, "y", id, time, group, tuple(last))

    def kinds(self) -> dict[Any, str]:
        """The columns needed, each with what a CSV's text is taken for."""
        made = dict.fromkeys(self.extras, "any")
        made |= {self.time: "any", self.id: "key", self.group: "key", self.target: "number"}
        made |= dict.fromkeys(self.prediction, "number")
        made.pop(None, None)
        return made

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
    """Which of the known suffixes a path has."""
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
    except (*_DAMAGE, OSError) as error:
        if getattr(error, "errno", None) is not None:  # the system's own: no such file, no right
            raise
        raise TapeError(f"{os.fspath(path)} is damaged or not a tape: {error}") from error


def read(path: _Path, plan: Plan | None) -> dict[str, Any]:
    """What `Tape.from_arrays` takes. Without a plan the file is laid out as `write` does."""
    suffix, where = _suffix_of(path), os.fspath(path)
    with _readable(path):
        if suffix == ".npz":
            # numpy leaves a file open that it cannot read, so it is not left to numpy.
            with open(path, "rb") as held, np.load(held, allow_pickle=False) as arrays:
                if _HEADER in arrays.files:
                    if plan is not None:
                        raise TapeError(f"{where} knows its own columns: read it without names")
                    return _unpack(arrays, where)
                plan = plan or Plan.laid_out(arrays.files, where)
                return plan.arguments(frame_columns(arrays, plan.kinds(), where))
        if suffix == ".parquet":
            with extra("pyarrow.parquet", "a .parquet file").ParquetFile(path) as file:
                names = file.schema_arrow.names
                plan = plan or Plan.laid_out(names, where)
                check_columns(plan.kinds(), names, where)
                table = file.read(columns=list(plan.kinds()))
            return plan.arguments(frame_columns(table, plan.kinds(), where))
        names = _header(path)
        plan = plan or Plan.laid_out(names, where)
        check_columns(plan.kinds(), names, where)
        return plan.arguments(_read_csv(path, plan.kinds()))


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
    plain: dict[str, np.ndarray] = {}
    for name, held in {**keys, **prediction, "y": y, **extras}.items():
        if isinstance(held, Ragged) or held.ndim != 1:
            raise TapeError(
                f"a {suffix} file has one value a cell, column {name!r} has several: write an .npz"
            )
        plain[name] = _plain(held, name)
    return _write_parquet(path, plain) if suffix == ".parquet" else _write_csv(path, plain)


# CSV. What Arrow reads the standard library reads alike, and it judges what Arrow refuses.


def _text(path: _Path) -> TextIO:
    if _suffix_of(path) == ".csv.gz":
        return cast(TextIO, gzip.open(path, "rt", encoding="utf-8-sig", newline=""))
    return open(path, encoding="utf-8-sig", newline="")


def _header(path: _Path) -> list[str]:
    with _text(path) as lines:
        for header in csv.reader(lines):
            if header:
                return header
    raise TapeError(f"{os.fspath(path)} is empty: its first line must name the columns")


def _read_csv(path: _Path, wanted: Mapping[str, str]) -> dict[str, np.ndarray]:
    """Columns by name; "number", "key" or "any" says what the text of each is taken for."""
    cells = _cells_by_arrow(path, wanted) or _cells(path, wanted)
    return {
        name: cells[name] if kind == "number" else _decode(*cells[name], floats=kind == "any")
        for name, kind in wanted.items()
    }


def _cells_by_arrow(path: _Path, wanted: Mapping[str, str]) -> dict[str, Any] | None:
    """As `_cells` but faster; None where Arrow is absent, or does not understand the file."""
    try:
        arrow, reader = import_module("pyarrow"), import_module("pyarrow.csv")
    except ImportError:
        return None
    words = arrow.dictionary(arrow.int32(), arrow.string())
    types = {name: arrow.float64() if kind == "number" else words for name, kind in wanted.items()}
    convert = reader.ConvertOptions(
        column_types=types, include_columns=list(wanted), null_values=_MISSING
    )
    parse = reader.ParseOptions(newlines_in_values=True)
    try:
        table = reader.read_csv(os.fspath(path), parse_options=parse, convert_options=convert)
    except (arrow.ArrowException, OSError):
        return None
    cells: dict[str, Any] = {}
    for name, kind in wanted.items():
        if kind == "number":
            cells[name] = table[name].to_numpy()
        else:
            chunks = table[name].unify_dictionaries().chunks
            codes = [np.empty(0, np.int64), *(chunk.indices.to_numpy() for chunk in chunks)]
            cells[name] = (
                chunks[0].dictionary.to_pylist() if chunks else [],
                np.concatenate(codes),
            )
    return cells


def _cells(path: _Path, wanted: Mapping[str, str]) -> dict[str, Any]:
    """Numbers as floats; any other column as its distinct words and the place of each row's."""
    with _text(path) as lines:
        reader = csv.reader(lines)
        header = next(row for row in reader if row)
        held: dict[str, list[str]] = {name: [] for name in wanted}
        places = [(header.index(name), held[name].append) for name in wanted]
        for row in reader:
            if not row:
                continue
            if len(row) != len(header):
                raise TapeError(
                    f"{os.fspath(path)} must have {len(header)} values in each line, got "
                    f"{len(row)} in line {reader.line_num}"
                )
            for place, append in places:
                append(row[place])
    return {
        name: _reals(texts, name) if wanted[name] == "number" else _words(texts, name)
        for name, texts in held.items()
    }


def _reals(texts: list[str], name: str) -> np.ndarray:
    made = np.empty(len(texts))
    for row, text in enumerate(texts):
        try:
            made[row] = _real(text)
        except ValueError:
            raise TapeError(
                f"column {name!r} must hold numbers, got {text!r} at row {row}"
            ) from None
    return made


def _real(text: str) -> float:
    """A number as people write one, which Python's underscores are not."""
    bare = text.strip()
    if "_" in bare:
        raise ValueError(text)
    return np.nan if bare in _MISSING else float(bare)


def _words(texts: Sequence[Any], name: str) -> tuple[list[Any], np.ndarray]:
    """The distinct words, and for each row the place of its own."""
    seen, starts, codes = number_keys(np.fromiter(texts, object, len(texts)), f"column {name!r}")
    return list(seen), np.repeat(codes, np.diff(starts, append=len(texts)))


def _decode(words: list[str], codes: np.ndarray, *, floats: bool) -> np.ndarray:
    """Whole numbers where every word is one in plain form; else floats, if wanted; else text."""
    made: np.ndarray = np.fromiter(words, object, len(words))
    with suppress(ValueError, OverflowError):
        integers = [int(word) for word in words]
        if [str(integer) for integer in integers] == words:  # "007" is a name
            made = np.array(integers, np.int64)
    if made.dtype == object and floats and set(words) <= {"True", "False"}:
        made = np.array([word == "True" for word in words])
    elif made.dtype == object and floats:
        with suppress(ValueError):
            made = np.array([_real(word) for word in words])
    return cast(np.ndarray, made[codes])


def _write_csv(path: _Path, columns: Mapping[str, np.ndarray]) -> None:
    """A CSV with a header line, in which every float is written to the bit."""
    held = list(columns.values())
    with whole(path) as file:
        packed = _suffix_of(path) == ".csv.gz"
        raw = gzip.GzipFile("", "wb", 6, file, mtime=0) if packed else file
        try:
            lines = _Lines(cast(BinaryIO, raw))
            writer = csv.writer(lines)
            writer.writerow(columns)
            for start in range(0, len(held[0]), CHUNK):
                pieces = [each[start : start + CHUNK] for each in held]
                writer.writerows(zip(*map(_listed, pieces), strict=True))
        except UnicodeEncodeError as error:
            raise TapeError(f"a CSV cannot hold this text: {error}") from None
        finally:
            if packed:
                raw.close()


class _Lines:
    """What `csv` writes lines of text to, over a file of bytes that stays open."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file

    def write(self, line: str) -> int:
        return self.file.write(line.encode())


def _listed(held: np.ndarray) -> list[Any]:
    if held.dtype.kind == "M":
        return cast(list[Any], np.datetime_as_string(held).tolist())
    return cast(list[Any], held.tolist())


def _plain(held: np.ndarray, name: str) -> np.ndarray:
    """A column in the types that tables have, or an error."""
    if held.dtype.kind in "OT":
        words, codes = _encode(held, name)
        return cast(np.ndarray, np.fromiter(words, object, len(words))[codes])
    if held.dtype.kind == "M" and np.datetime_data(held.dtype)[0] in "YMW":
        return held.astype("datetime64[D]")
    if held.dtype.kind not in "biufUM" or held.dtype.str[1:] == "f16":
        raise TapeError(f"column {name!r} holds {held.dtype}, which a table cannot: write an .npz")
    return held.astype(held.dtype.newbyteorder("="), copy=False)


def _encode(held: np.ndarray, name: str) -> tuple[list[Any], np.ndarray]:
    """Text and other objects as the distinct ones, None if missing, and the place of each row's."""
    words, codes = _words(held.tolist(), name)
    plain = [word.item() if isinstance(word, np.generic) else word for word in words]
    for word in plain:
        if not isinstance(word, str | int | float) and not is_missing(word):
            raise TapeError(
                f"column {name!r} must hold text or numbers to be written, got {word!r}"
            )
    return [None if is_missing(word) else word for word in plain], codes


# Parquet and npz


def _write_parquet(path: _Path, columns: Mapping[str, np.ndarray]) -> None:
    """A Parquet file of the columns as they are."""
    arrow = extra("pyarrow", "a .parquet file")
    parquet = extra("pyarrow.parquet", "a .parquet file")
    made = {}
    for name, held in columns.items():
        hours = held.dtype.kind == "M" and np.datetime_data(held.dtype)[0] in "hm"
        try:
            made[name] = arrow.array(held.astype("datetime64[s]") if hours else held)
        except arrow.ArrowException as error:
            raise TapeError(f"column {name!r} does not fit in a .parquet file: {error}") from None
    with whole(path) as file:
        parquet.write_table(arrow.table(made), file)


def _write_npz(
    path: _Path,
    keys: Mapping[str, np.ndarray],
    prediction: Mapping[str, Column],
    y: np.ndarray,
    extras: Mapping[str, Column],
) -> None:
    """Plain arrays and a header of JSON: nothing in the file can be executed."""
    header = {
        "format": _FORMAT, "version": _VERSION, "names": list(prediction), "extras": list(extras)
    }  # fmt: skip
    columns = {
        **keys,
        **{f"prediction{i}": held for i, held in enumerate(prediction.values())},
        "y": y,
        **{f"extra{i}": held for i, held in enumerate(extras.values())},
    }
    arrays = {_HEADER: _to_bytes(header)}
    for name, held in columns.items():
        if isinstance(held, Ragged):
            arrays[name], arrays[f"{name}.offsets"] = held.values, held.offsets
        elif held.dtype.kind in "OT":
            words, arrays[name] = _encode(held, name)
            arrays[f"{name}.words"] = _to_bytes(words)
        elif held.dtype.hasobject:
            raise TapeError(f"{name} holds objects inside {held.dtype}, which no file can")
        else:
            arrays[name] = held
    with whole(path) as file, zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                npy.write_array(cast(BinaryIO, member), array, allow_pickle=False)


def _unpack(arrays: Mapping[str, np.ndarray], where: str) -> dict[str, Any]:
    """What `Tape.from_arrays` takes, from what `_write_npz` wrote."""
    header = json.loads(arrays[_HEADER].tobytes())
    if header["format"] != _FORMAT or header["version"] != _VERSION:
        raise TapeError(
            f"{where} is a {header['format']} of version {header['version']}; this setpoint reads "
            f"a {_FORMAT} of version {_VERSION}"
        )

    def held(name: str) -> Any:
        array = arrays[name]
        if f"{name}.offsets" in arrays:
            return Ragged(array, arrays[f"{name}.offsets"])
        if f"{name}.words" in arrays:
            words = json.loads(arrays[f"{name}.words"].tobytes())
            return np.fromiter(words, object, len(words))[array]
        return array

    return {
        "prediction": [held(f"prediction{i}") for i in range(len(header["names"]))],
        "names": header["names"],
        "y": held("y"),
        **{name: held(name) for name in KEYS if name in arrays},
        "extras": {name: held(f"extra{i}") for i, name in enumerate(header["extras"])},
    }


def _to_bytes(value: Any) -> np.ndarray:
    return np.frombuffer(json.dumps(value).encode(), np.uint8)
