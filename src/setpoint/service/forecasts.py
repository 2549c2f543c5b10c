"""Forecasts behind HTTP: rows that came are posted to a saved forecast, the next steps come back.

`setpoint serve --forecasts FOLDER` serves the folders below it that `setpoint forecast` wrote. A
process of its own takes rows in, for that takes as long as a forecast does.
"""

import asyncio
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from starlette.requests import Request

from setpoint.errors import InputError
from setpoint.jobs.forecast import Forecast
from setpoint.jobs.horizons import plain
from setpoint.service import api, wire
from setpoint.service.wire import refusal

_WAITING = 8
"""How many posts may wait for the one before."""


class Forecasts:
    """The saved forecasts below a folder; rows are taken in one post after the other."""

    def __init__(self, folder: Path, most: int) -> None:
        if not folder.is_dir():
            raise InputError(f"{folder} is no folder: name one with forecasts in it")
        self.folder, self._most, self._waiting = folder, most, 0
        self._lock = asyncio.Lock()

    def operations(self) -> list[tuple[api.Operation, Callable[[Request], Any]]]:
        """What can be asked, and what answers it."""
        place = "/v1/forecasts/{name}"
        return [
            (api.Operation("forecast", "GET", place, "read", "The future rows", None,
                           api.RowsToCome), self.show),
            (api.Operation("forecast_rows", "POST", place, "write",
                           "Takes new rows and returns the next forecast",
                           list[dict[str, Any]], api.RowsToCome), self.update),
        ]  # fmt: skip

    async def show(self, request: Request) -> api.RowsToCome:
        """The future rows."""
        folder = self._folder(request)
        return _answer(await asyncio.to_thread(Forecast.load, folder))

    async def update(self, request: Request) -> api.RowsToCome:
        """The next forecast, from new rows."""
        folder = self._folder(request)
        rows = wire.read(await wire.body_of(request, self._most), list[dict[str, Any]])
        if not rows:
            raise refusal(422, "the body must be a list of new rows, got none")
        if self._waiting == _WAITING:
            raise refusal(429, f"{_WAITING} posts of rows wait already: send this one again")
        self._waiting += 1
        try:
            async with self._lock:
                return await asyncio.to_thread(_apart, folder, rows)
        finally:
            self._waiting -= 1

    def _folder(self, request: Request) -> Path:
        name = wire.name_in(request)
        if name not in {path.name for path in self.folder.iterdir()}:
            raise refusal(404, f"there is no forecast {name!r}")
        return self.folder / name


def _apart(folder: Path, rows: list[dict[str, Any]]) -> api.RowsToCome:
    """Takes rows in, in a process of its own, which ends with its work."""
    spawned = get_context("spawn")
    receiver, sender = spawned.Pipe(duplex=False)
    process = spawned.Process(target=_work, args=(folder, rows, sender))
    process.start()
    sender.close()
    try:
        outcome: api.RowsToCome | Exception = receiver.recv()
    except EOFError:
        outcome = RuntimeError("the process that forecasts ended before its work was done")
    process.join()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _work(folder: Path, rows: list[dict[str, Any]], sender: Any) -> None:
    try:
        sender.send(_updated(folder, rows))
    except Exception as error:  # it is raised where it is received
        sender.send(error)


def _updated(folder: Path, rows: list[dict[str, Any]]) -> api.RowsToCome:
    before = Forecast.load(folder)
    if before.asked["time"] is None and len(before.rows.dates) != 1:
        raise InputError(
            "rows that are sent twice are recognised by their times: this forecast has none; make "
            "it with --time"
        )
    names = dict.fromkeys(name for row in rows for name in row)
    after = before.update({name: [row.get(name) for row in rows] for name in names})
    after.write(folder, report=(folder / "report.html").exists())
    return _answer(after)


def _answer(forecast: Forecast) -> api.RowsToCome:
    listed = forecast.table.to_pylist()
    rows = [{name: plain(cell) for name, cell in row.items()} for row in listed]
    return api.RowsToCome(forecast.target, rows, list(forecast.notes))
