"""The trace behind a finished job, made again from what the job wrote."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from setpoint import spec
from setpoint.controller import Controller
from setpoint.errors import DataError
from setpoint.jobs import files
from setpoint.jobs.calibrating import Columns, read, split
from setpoint.jobs.calibrating import taped as made_tape
from setpoint.replaying import Trace, replay

__all__ = ["replayed", "retrace"]


def retrace(folder: str | os.PathLike[str]) -> tuple[Trace, dict[str, Any]]:
    """The trace of a folder that `run` or `calibrate` wrote, and what the job was.

    The rows are replayed under the controller beside them, so the trace is the one that the job
    reported, to the bit, even where someone has moved the folder.
    """
    where = Path(folder)
    try:
        job = json.loads((where / "metrics.json").read_text("utf-8"))["job"]
        controller = spec.from_toml((where / "controller.toml").read_text("utf-8"))
        (path,) = where.glob("rows.*")
    except (FileNotFoundError, KeyError, ValueError) as error:
        raise DataError(
            f"{where} must hold rows, metrics.json and controller.toml as `setpoint run` and "
            f"`setpoint calibrate` write them: {error}"
        ) from error
    rows = files.read(path)
    held = job["columns"]
    keys = {key: held.get(key) for key in ("id", "time", "group")}
    if held.get("probabilities"):
        columns = Columns(held["target"], probabilities=tuple(held["probabilities"]), **keys)
        tape, order, _ = read(rows, columns)
    else:
        prediction = {
            name: rows.numbers(column, name) for name, column in job["prediction"].items()
        }
        tape, order, _ = made_tape(rows, prediction, rows.numbers(held["target"], "target"), **keys)
    clash = "calibrated_burn_in" in rows.names
    burnt = rows.column("calibrated_burn_in" if clash else "burn_in", "burn_in")
    early = np.array([str(value).lower() == "true" for value in burnt.to_pylist()], dtype=bool)
    _, later = split(tape, early if order is None else early[order])
    return replay(controller, later), job


def replayed(
    path: str | os.PathLike[str], columns: Columns, controller: Controller
) -> tuple[Trace, dict[str, Any]]:
    """The trace of a file of predictions under a controller that leaves nothing open."""
    rows = files.read(path)
    tape, _, _ = read(rows, columns)
    name = Path(path).name
    return replay(controller, tape), {"name": name[: -len(rows.suffix)], "file": name}
