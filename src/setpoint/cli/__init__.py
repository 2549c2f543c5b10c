"""The command `setpoint`: it parses, calls the library and prints."""

import sys

__all__ = ["main"]


def main() -> None:
    """Runs the command line; the extra `cli` brings what it needs."""
    try:
        from setpoint.cli.commands import app
    except ImportError as error:
        if error.name not in ("rich", "typer"):
            raise
        sys.exit(f"setpoint: the command line needs {error.name}: pip install 'setpoint[cli]'")
    from setpoint.errors import SetpointError

    try:
        app()
    except SetpointError as error:
        sys.exit(f"setpoint: {error}")
