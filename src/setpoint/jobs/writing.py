"""Writing rows: CSV, Parquet and JSON Lines, whole or not at all."""

import csv
import gzip
import io
import json
import os
from base64 import b64encode
from datetime import timedelta
from decimal import Decimal
from math import isfinite
from pathlib import Path
from typing import Any, BinaryIO, cast

from setpoint._files import whole
from setpoint.jobs.cells import arrow, is_json, suffix_of, textual

__all__ = ["write"]

_BATCH = 1 << 16


def write(table: Any, path: str | os.PathLike[str], delimiter: str = ",") -> Path:
    """Writes an Arrow table as its path's suffix says, whole or not at all.

    A column that this kind of file cannot hold, such as lists in a CSV, is written as JSON text,
    and bytes in text as base64.
    """
    suffix = suffix_of(path)
    if not is_json(suffix):
        table = _held(table, suffix)
    with whole(path) as file:
        if suffix == ".parquet":
            arrow("pyarrow.parquet").write_table(table, file)
            return Path(path)
        if suffix.endswith(".gz"):
            with gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
                _write_text(table, cast(BinaryIO, packed), suffix, delimiter)
        else:
            _write_text(table, file, suffix, delimiter)
    return Path(path)


def _write_text(table: Any, file: BinaryIO, suffix: str, delimiter: str) -> None:
    if is_json(suffix):
        for batch in table.to_batches(max_chunksize=_BATCH):
            lines = [_json(row) for row in batch.to_pylist()]
            file.write(("\n".join(lines) + "\n").encode())
        return
    writer = arrow("pyarrow.csv")
    names = io.StringIO()
    csv.writer(names, delimiter=delimiter, lineterminator="\n").writerow(table.column_names)
    file.write(names.getvalue().encode())
    # Arrow quotes every text or none.
    style = "needed" if any(_needs_quotes(c, delimiter) for c in table.columns) else "none"
    options = writer.WriteOptions(
        include_header=False, delimiter=delimiter, quoting_style=style, batch_size=_BATCH
    )
    writer.write_csv(table, file, options)


def _needs_quotes(column: Any, delimiter: str) -> bool:
    """Whether some cell of a column of text cannot stand in a CSV as it is."""
    if not textual(arrow(), column.type):
        return False
    signs = ('"', delimiter, "\n", "\r")
    for chunk in column.chunks:
        text = getattr(chunk, "dictionary", chunk).buffers()[-1]
        held = b"" if text is None else text.to_pybytes()
        if any(sign.encode() in held for sign in signs):
            return True
    return False


def _held(table: Any, suffix: str) -> Any:
    """A table of columns that a CSV or a Parquet file can hold."""
    pa = arrow()
    for place, name in enumerate(table.column_names):
        held = table[name]
        if suffix != ".parquet" and _is_bytes(pa, held.type):
            texts = [_plain(value) for value in held.to_pylist()]
        elif _takes(suffix, table.select([name])[:1]):
            continue
        else:
            texts = [None if value is None else _json(value) for value in held.to_pylist()]
        table = table.set_column(place, name, pa.chunked_array([pa.array(texts, pa.string())]))
    return table


def _is_bytes(pa: Any, kind: Any) -> bool:
    own = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return any(is_kind(kind) for is_kind in own)


def _takes(suffix: str, table: Any) -> bool:
    """Whether a kind of file takes the columns of a table, tried on a file in memory."""
    pa = arrow()
    try:
        if suffix == ".parquet":
            arrow("pyarrow.parquet").write_table(table, io.BytesIO())
        else:
            arrow("pyarrow.csv").write_csv(table, io.BytesIO())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True


def _json(value: Any) -> str:
    return json.dumps(_plain(value), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    """A value in JSON's own types, however deep.

    An infinite end is null, a time is ISO 8601, a duration is its seconds, bytes are base64.
    """
    if isinstance(value, dict):
        return {str(name): _plain(held) for name, held in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(held) for held in value]
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, bytes):
        return b64encode(value).decode("ascii")
    if isinstance(value, Decimal):
        value = float(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    return value.isoformat() if hasattr(value, "isoformat") else value
