"""Writing a file whole or not at all."""

import os
import secrets
from contextlib import suppress
from pathlib import Path

__all__ = ["put"]


def put(path: str | os.PathLike[str], data: bytes) -> Path:
    """Writes `data` beside `path` and moves it there: a reader sees the old file or the new one."""
    target = Path(path)
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with beside.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, target)
    except BaseException:
        with suppress(OSError):
            beside.unlink()
        raise
    return target
