"""Where a row of a text file is, as an editor shows it, and where its text cannot be read."""

import csv
import gzip
import io
from pathlib import Path
from typing import BinaryIO, cast

from setpoint.errors import DataError

__all__ = ["csv_line", "line", "not_utf8", "unpacked"]


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
