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
        interop,
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
    "Alarm",
    "Certificate",
    "Columns",
    "Comparison",
    "Controller",
    "Fleet",
    "Forecast",
    "Info",
    "Ragged",
    "Receipt",
    "Recorder",
    "Risk",
    "State",
    "Store",
    "Stream",
    "Sweep",
    "Tape",
    "Trace",
    "Tuned",
    "burn_in",
    "combine",
    "compare",
    "correction",
    "decisions",
    "errors",
    "forecast",
    "gate",
    "generators",
    "guarantee",
    "images",
    "interop",
    "intervals",
    "jobs",
    "label_sets",
    "losses",
    "metrics",
    "models",
    "paths",
    "predictions",
    "presets",
    "published",
    "quantiles",
    "regions",
    "replay",
    "replay_paths",
    "report",
    "route",
    "search",
    "sets",
    "spec",
    "start_from",
    "steps",
    "stretches",
    "sweep",
    "testing",
    "tune",
]

# Everything is imported when it is first asked for: a command that was mistyped needs nothing.
_LATER = {
    "Alarm": "alarms",
    "Certificate": "guarantee",
    "Columns": "tape",
    "Comparison": "report.compare",
    "Controller": "controller",
    "Fleet": "bulk.fleet",
    "Forecast": "jobs.forecast",
    "Info": "receipts",
    "Ragged": "tape",
    "Receipt": "receipts",
    "Recorder": "tape",
    "Risk": "controller",
    "State": "state",
    "Store": "store",
    "Stream": "stream",
    "Sweep": "bulk.sweep",
    "Tape": "tape",
    "Trace": "bulk.trace",
    "Tuned": "bulk.tune",
    "burn_in": "presets",
    "compare": "report.compare",
    "forecast": "jobs.forecast",
    "gate": "decisions.live",
    "intervals": "presets",
    "label_sets": "presets",
    "paths": "presets",
    "quantiles": "presets",
    "replay": "bulk.replay",
    "replay_paths": "bulk.paths",
    "route": "decisions.live",
    "start_from": "presets",
    "sweep": "bulk.sweep",
    "tune": "bulk.tune",
}
_PACKAGES = {
    "search": "bulk.search",
    **{name: name for name in (
        "combine", "correction", "decisions", "errors", "generators", "guarantee", "images",
        "interop", "jobs", "losses", "metrics", "models", "predictions", "presets", "published",
        "regions", "report", "sets", "spec", "steps", "stretches", "testing",
    )},
}  # fmt: skip


def __getattr__(name: str) -> _typing.Any:
    if name in _LATER:
        value = getattr(_importlib.import_module(f"setpoint.{_LATER[name]}"), name)
    elif name in _PACKAGES:
        value = _importlib.import_module(f"setpoint.{_PACKAGES[name]}")
    else:
        raise AttributeError(f"module 'setpoint' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
