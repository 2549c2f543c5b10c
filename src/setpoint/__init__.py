"""setpoint keeps the risk of any online model at the level its user sets."""

import importlib as _importlib
import typing as _typing

if _typing.TYPE_CHECKING:
    from setpoint import (
        combine,
        correction,
        decisions,
        errors,
        generators,
        guarantee,
        images,
        jobs,
        losses,
        metrics,
        models,
        predictions,
        presets,
        published,
        regions,
        report,
        sets,
        spec,
        steps,
        stretches,
        testing,
    )
    from setpoint.alarms import Alarm
    from setpoint.bulk import search
    from setpoint.bulk.fleet import Fleet
    from setpoint.bulk.paths import replay_paths
    from setpoint.bulk.replay import replay
    from setpoint.bulk.sweep import Sweep, sweep
    from setpoint.bulk.trace import Trace
    from setpoint.bulk.tune import Tuned, tune
    from setpoint.controller import Controller, Risk
    from setpoint.decisions.live import gate, route
    from setpoint.guarantee import Certificate
    from setpoint.jobs.forecast import Forecast, forecast
    from setpoint.presets import burn_in, intervals, label_sets, paths, quantiles, start_from
    from setpoint.receipts import Info, Receipt
    from setpoint.report.compare import Comparison, compare
    from setpoint.state import State
    from setpoint.store import Store
    from setpoint.stream import Stream
    from setpoint.tape import Columns, Ragged, Recorder, Tape

__version__ = "0.1.0"

__all__ = [
    "Alarm", "Certificate", "Columns", "Comparison", "Controller", "Fleet", "Forecast", "Info",
    "Ragged", "Receipt", "Recorder", "Risk", "State", "Store", "Stream", "Sweep", "Tape", "Trace",
    "Tuned", "burn_in", "combine", "compare", "correction", "decisions", "errors", "forecast",
    "gate", "generators", "guarantee", "images", "intervals", "jobs", "label_sets",
    "losses", "metrics", "models", "paths", "predictions", "presets", "published", "quantiles",
    "regions", "replay", "replay_paths", "report", "route", "search", "sets", "spec",
    "start_from", "steps", "stretches", "sweep", "testing", "tune",
]  # fmt: skip

# Everything is imported when it is first asked for: a command that was mistyped needs nothing.
_MODULES = {
    "alarms": ("Alarm",),
    "bulk.fleet": ("Fleet",),
    "bulk.paths": ("replay_paths",),
    "bulk.replay": ("replay",),
    "bulk.sweep": ("Sweep", "sweep"),
    "bulk.trace": ("Trace",),
    "bulk.tune": ("Tuned", "tune"),
    "controller": ("Controller", "Risk"),
    "decisions.live": ("gate", "route"),
    "guarantee": ("Certificate",),
    "jobs.forecast": ("Forecast", "forecast"),
    "presets": ("burn_in", "intervals", "label_sets", "paths", "quantiles", "start_from"),
    "receipts": ("Info", "Receipt"),
    "report.compare": ("Comparison", "compare"),
    "state": ("State",),
    "store": ("Store",),
    "stream": ("Stream",),
    "tape": ("Columns", "Ragged", "Recorder", "Tape"),
}
_LATER = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> _typing.Any:
    if name in _LATER:
        value = getattr(_importlib.import_module(f"setpoint.{_LATER[name]}"), name)
    elif name in __all__:
        place = "bulk.search" if name == "search" else name
        value = _importlib.import_module(f"setpoint.{place}")
    else:
        raise AttributeError(f"module 'setpoint' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
