"""Where a row of a text file is, as an editor shows it, and where its text cannot be read."""

import csv
import gzip
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from setpoint.errors import DataError

__all__ = ["csv_line", "delimiter_of", "fault", "line", "not_utf8", "unpacked"]

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_KINDS = {bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list"}


def unpacked(path: Path) -> BinaryIO:
    """The bytes of a file, unpacked if it ends in .gz."""
    opened = gzip.open if path.name.lower().endswith(".gz") else open
    return cast(BinaryIO, opened(path, "rb"))


def line(path: Path, row: int) -> int:
    """The line of a row of a file without a header, both counted as usual: from 1 and from 0."""
    left = row
    with unpacked(path) as file:
        for number, text in enumerate(file, 1):
            left -= bool(text.strip())
            if left < 0:
                return number
    return row + 1


def csv_line(path: Path, row: int, delimiter: str) -> int:
    """The line that a row of a CSV begins in; blank lines and breaks within cells count."""
    left = row
    try:
        with io.TextIOWrapper(unpacked(path), "utf-8-sig", newline="") as text:
            reader, before = csv.reader(text, delimiter=delimiter), 0
            for cells in reader:
                if cells and left < 0:
                    return before + 1
                left -= bool(cells)  # the first of them is the header
                before = reader.line_num
    except csv.Error:  # a cell longer than the reader takes: then a row is taken to be a line
        pass
    return row + 2


def not_utf8(path: Path) -> DataError:
    """What to do with text of another encoding, and where it shows."""
    where = ""
    with unpacked(path) as file:
        if file.read(2) in _UTF16:
            return DataError(
                f"{path} is UTF-16 text: save it as UTF-8, as by `iconv -f utf-16 -t utf-8`"
            )
        file.seek(0)
        for number, text in enumerate(file, 1):
            try:
                text.decode("utf-8")
            except UnicodeDecodeError as error:
                where = f" (byte 0x{text[error.start]:02x} in line {number:,})"
                break
    return DataError(
        f"{path} is not UTF-8 text{where}: save it as UTF-8, as by "
        "`iconv -f latin1 -t utf-8` if it is Western European"
    )


def delimiter_of(header: str) -> str:
    """What separates the cells of a CSV, by its first line."""
    return max((",", ";", "\t"), key=header.count)


def fault(path: Path, suffix: str) -> str | None:
    """What keeps a text file from being read, and in which line; None if that is not found."""
    if suffix == ".parquet":
        return None
    try:
        return _json_fault(path) if suffix.startswith((".json", ".nd")) else _csv_fault(path)
    except (OSError, EOFError, UnicodeDecodeError, csv.Error):
        return None


def _csv_fault(path: Path) -> str | None:
    """The first row with more or fewer cells than the header."""
    with io.TextIOWrapper(unpacked(path), "utf-8-sig", newline="") as text:
        header = next(line for line in text if line.strip())
        delimiter = delimiter_of(header)
        count = len(next(csv.reader([header], delimiter=delimiter)))
        text.seek(0)
        reader, before = csv.reader(text, delimiter=delimiter), 0
        for cells in reader:
            if cells and len(cells) != count:
                return (
                    f"line {before + 1:,} has {len(cells)} cells and the header has {count}: put "
                    "cells that hold the separator in double quotes, or correct the line"
                )
            before = reader.line_num
    return None


def _json_fault(path: Path) -> str | None:
    """The first line that is no object, or that holds another kind of value than those before."""
    seen: dict[str, tuple[str, int]] = {}
    with unpacked(path) as file:
        for number, text in enumerate(file, 1):
            if not text.strip():
                continue
            try:
                row = json.loads(text)
            except ValueError as error:
                said = str(error).split(": line")[0]
                return f"line {number:,} is no JSON object ({said}): correct it or leave it out"
            if not isinstance(row, dict):
                return f"line {number:,} is no JSON object: write one in each line"
            for name, kind in _leaves(row, ""):
                first, line = seen.setdefault(name, (kind, number))
                if kind != first:
                    return (
                        f"{name!r} holds {first} in line {line:,} and {kind} in line {number:,}: "
                        "give it one kind of value, or leave it out"
                    )
    return None


def _leaves(value: Any, name: str) -> Iterator[tuple[str, str]]:
    """What a JSON value holds, at every depth."""
    if value is None:
        return
    if name:
        yield name, _KINDS.get(type(value), "an object")
    if isinstance(value, dict):
        for key, held in value.items():
            yield from _leaves(held, f"{name}.{key}" if name else key)
    elif isinstance(value, list):
        for held in value:
            yield from _leaves(held, f"{name}[]")
