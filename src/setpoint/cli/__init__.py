"""The command `setpoint`: it parses, calls the library and prints."""

import sys
import warnings
from typing import Any

__all__ = ["main"]


def main() -> None:
    """Runs the command line; the extra `cli` brings what it needs.

    It ends with 0 if all is well, with 1 and one sentence on standard error if something in the
    data or the options is wrong, and with 2 if the command itself is not understood.
    """
    try:
        from setpoint.cli.commands import app
    except ImportError as error:
        if error.name not in ("rich", "typer"):
            raise
        sys.exit(f"setpoint: the command line needs {error.name}: pip install 'setpoint[cli]'")
    from setpoint.errors import SetpointError

    try:
        with warnings.catch_warnings():
            warnings.showwarning = _note
            app(prog_name="setpoint")
    except SetpointError as error:
        sys.exit(f"setpoint: {error}")
    except OSError as error:
        sys.exit(f"setpoint: {_in_words(error)}")
    except ImportError as error:
        if (error.name or "setpoint").startswith("setpoint"):
            raise
        sys.exit(f"setpoint: this needs {error.name}: pip install 'setpoint[all]'")


def _note(message: Warning | str, *_: Any, **__: Any) -> None:
    """Says a warning as the command says all else, without the place in the source."""
    print(f"setpoint: note: {message}", file=sys.stderr)


def _in_words(error: OSError) -> str:
    """What the system refused, and of which file; unfinished files are gone already."""
    said = error.strerror or str(error)
    return f"{error.filename}: {said}" if error.filename else said
