"""Whole jobs on files, as the command line does them: run, calibrate, tune, report, inspect, demo.

A job reads a file, does its work and returns an `Outcome`, which prints itself and writes its
files. Each module is imported when it is first asked for; files of rows need the extra `data`.
"""

import importlib as _importlib
import typing as _typing

if _typing.TYPE_CHECKING:
    from setpoint.jobs.calibrating import calibrate
    from setpoint.jobs.choosing import Choice, Goal
    from setpoint.jobs.columns import Columns
    from setpoint.jobs.demonstrating import demo
    from setpoint.jobs.inspecting import Inspected, inspect
    from setpoint.jobs.outcome import Outcome
    from setpoint.jobs.reporting import Reported, report, retrace
    from setpoint.jobs.running import MODELS, run
    from setpoint.jobs.states import streams
    from setpoint.jobs.tuning import TunedFile, tune

__all__ = [
    "MODELS",
    "Choice",
    "Columns",
    "Goal",
    "Inspected",
    "Outcome",
    "Reported",
    "TunedFile",
    "calibrate",
    "demo",
    "inspect",
    "report",
    "retrace",
    "run",
    "streams",
    "tune",
]

_LATER = {
    "MODELS": "running",
    "Choice": "choosing",
    "Columns": "columns",
    "Goal": "choosing",
    "Inspected": "inspecting",
    "Outcome": "outcome",
    "Reported": "reporting",
    "TunedFile": "tuning",
    "calibrate": "calibrating",
    "demo": "demonstrating",
    "inspect": "inspecting",
    "report": "reporting",
    "retrace": "reporting",
    "run": "running",
    "streams": "states",
    "tune": "tuning",
}


def __getattr__(name: str) -> _typing.Any:
    if name not in _LATER:
        raise AttributeError(f"module 'setpoint.jobs' has no attribute {name!r}")
    value = getattr(_importlib.import_module(f"setpoint.jobs.{_LATER[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
