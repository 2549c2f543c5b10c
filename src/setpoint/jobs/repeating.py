"""The command that does a job again, and the controllers that jobs are given."""

import csv
import io
import os
import shlex
from collections.abc import Mapping, Sequence
from math import isinf
from pathlib import Path
from typing import Any

from setpoint import spec
from setpoint.controller import Controller
from setpoint.errors import SetpointError, SpecError

__all__ = ["Given", "again", "beside", "listed", "read_controller", "unlisted"]

Given = Controller | str | os.PathLike[str] | None
"""A controller, or the TOML file that holds one."""


def read_controller(given: Given) -> Controller | None:
    """A controller as it is, or from its file; what is wrong with a file is told with its name."""
    if given is None or isinstance(given, Controller):
        return given
    try:
        text = Path(given).read_text("utf-8")
    except FileNotFoundError:
        raise SpecError(
            f"{os.fspath(given)} does not exist: name a controller as TOML, such as `setpoint "
            "tune --out` writes"
        ) from None
    except (UnicodeDecodeError, IsADirectoryError) as error:
        raise SpecError(f"{os.fspath(given)} is no file of TOML: {error}") from error
    try:
        return spec.from_toml(text)
    except SetpointError as error:
        raise type(error)(f"{os.fspath(given)}: {error}") from error


def beside(given: Given) -> str | None:
    """What `--config` is to say: the file as it was named, else the one that the job writes."""
    if given is None:
        return None
    return "controller.toml" if isinstance(given, Controller) else os.fspath(given)


def again(command: str, file: str | os.PathLike[str], options: Mapping[str, Any]) -> str:
    """The command line with these options; those that are None or nothing are left out.

    >>> again("run", "my data.csv", {"target": "y", "level": 0.1, "without": ("a", "b,c")})
    'setpoint run \\'my data.csv\\' --target y --level 0.1 --without \\'a,"b,c"\\''
    """
    words = ["setpoint", command, os.fspath(file)]
    for name, value in options.items():
        if value is None or value == ():
            continue
        text = listed(value) if isinstance(value, tuple) else _shown(value)
        words += [f"--{name.replace('_', '-')}", text]
    return shlex.join(words)


def listed(values: Sequence[Any]) -> str:
    """Values with commas between them, quoted where they hold commas themselves."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow([_shown(value) for value in values])
    return text.getvalue()


def unlisted(text: str | None) -> tuple[str, ...]:
    """The values that `listed` joined.

    >>> unlisted('cat, dog,"sea, lion"')
    ('cat', 'dog', 'sea, lion')
    """
    if text is None:
        return ()
    cells = next(csv.reader([text], skipinitialspace=True), [])
    return tuple(cell.strip() for cell in cells if cell.strip())


def _shown(value: Any) -> str:
    """A value so that it is read back to the bit."""
    if isinstance(value, float):
        return str(value) if isinf(value) or value != int(value) else str(int(value))
    return str(value)
