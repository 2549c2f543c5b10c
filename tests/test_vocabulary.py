"""One word for one idea on every surface: the table of the words, held against the code."""

import inspect
from dataclasses import fields
from importlib.util import find_spec
from typing import Any

import pytest

import setpoint as sp
from setpoint import jobs

typer = pytest.importorskip("typer")

from setpoint.cli import app  # noqa: E402

WORDS = {
    "series", "id", "target", "coverage", "lower", "upper", "point", "probabilities", "delay",
    "horizon", "known", "period", "time", "groups", "features", "controller", "store", "support",
}  # fmt: skip
"""The words that commands and Python share."""
OLD = {
    "config", "state", "level", "gamma", "rule", "risk", "budget", "key", "ids", "unique-id",
    "confidence-level", "prediction",
}  # fmt: skip
"""What the same ideas were called on one surface or another."""


def commands() -> dict[str, set[str]]:
    group: Any = typer.main.get_command(app)
    found = {}
    for name, command in group.commands.items():
        for word, part in getattr(command, "commands", {"": command}).items():
            opts = [opt for param in part.params for opt in param.opts]
            found[f"{name} {word}".strip()] = {o[2:] for o in opts if o.startswith("--")}
    return found


def test_commands_have_the_words_of_the_table_and_no_others() -> None:
    for name, options in commands().items():
        assert not options & OLD, name
    shared = set.union(*commands().values())
    assert {word.replace("_", "-") for word in WORDS - {"id"}} <= shared


def test_columns_and_jobs_have_the_words_of_the_commands() -> None:
    columns = {field.name for field in fields(sp.Columns)}
    assert columns <= WORDS | {"prediction", "phase", "group", "extras"}
    python = set(inspect.signature(jobs.calibrate).parameters) | columns | {"total"}
    options = {option.replace("-", "_") for option in commands()["calibrate"]}
    assert options - python <= {"out", "no_report", "json", "help"}


def test_an_option_is_declared_once_and_there_are_few() -> None:
    slots = {name: len(options - {"help"}) for name, options in commands().items()}
    assert sum(slots.values()) <= 84, slots


def test_tapes_recorders_and_spark_name_series_alike() -> None:
    from setpoint.tape import Recorder

    for call in (sp.Tape.from_arrays, Recorder.add, Recorder.predicted, Recorder.observed):
        names = set(inspect.signature(call).parameters)
        assert "series" in names
        assert "id" not in names


def test_http_store_and_metrics_have_the_words_of_the_table() -> None:
    api = pytest.importorskip("setpoint.service.api")
    watch = pytest.importorskip("setpoint.service.watch")
    assert set(api.New.__struct_fields__) == {
        "preset", "coverage", "support", "period", "features", "guarded", "controller", "gate",
        "horizon", "totals", "maximum", "minimum", "every",
    }  # fmt: skip
    row = set(api.Summary.__struct_fields__)
    assert {"pending", "accounts", "bounds", "coverage", "levels", "controller"} <= row
    assert not row & {"waiting", "limits", "budget", "toml"}
    assert {"pending", "account", "bound", "level"} <= {*watch._STREAM}
    python = set(inspect.signature(pytest.importorskip("setpoint.client").Client.create).parameters)
    assert set(api.New.__struct_fields__) <= python


def test_no_message_of_python_names_an_option_or_another_surface() -> None:
    stream = sp.Stream(sp.intervals())
    stream.predict(1.0)
    stream.predict(2.0)
    with pytest.raises(sp.errors.AmbiguousReceipt, match=r"give the id of one$"):
        stream.update(1.0)
    frame = {"y": [1.0] * 30, "p": [1.0] * 30}
    pandas = pytest.importorskip("pandas")
    outcome = jobs.calibrate(pandas.DataFrame(frame), sp.Columns("y", point="p"))
    assert "--" not in "".join(outcome.notes)


def test_coverage_that_is_asked_for_is_called_so_in_every_metric() -> None:
    calls = (
        sp.metrics.summary, sp.metrics.pinball, sp.metrics.usefulness,
        sp.metrics.label_usefulness, sp.sweep, sp.tune, sp.Trace.summary,
    )  # fmt: skip
    for call in calls:
        assert "coverage" in inspect.signature(call).parameters, call
    assert {"asked", "coverage", "level"} <= {one.name for one in fields(sp.metrics.Summary)}
    assert "trials" in inspect.signature(sp.tune).parameters


def test_an_account_and_its_bound_are_called_so_wherever_numbers_are_given() -> None:
    stream = sp.Stream(sp.intervals())
    stream.predict(1.0)
    stream.update(1.5)
    tape = sp.Tape.from_arrays({"point": [1.0] * 40}, [1.5] * 40)
    tables = [
        stream.summary().as_dict(), stream.certificate().as_dict()["risks"][0],
        {"account": 0.0, **sp.report.metrics(sp.replay(sp.intervals(), tape))["risks"][0]},
    ]  # fmt: skip
    if find_spec("pandas") is not None:
        from setpoint.spark.rows import KEY_TABLE

        tables.append(dict(column.split() for column in KEY_TABLE.split(", ")))
    for table in tables:
        assert {"account", "bound"} <= set(table)
        assert not {"budget", "most", "limits", "constant"} & set(table)
