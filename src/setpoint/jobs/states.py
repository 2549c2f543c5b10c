"""The streams of a job as they ended, in one file: a stream, a fleet, or streams side by side."""

import os
from collections.abc import Hashable, Mapping
from typing import Any

from setpoint import _store, spec
from setpoint.bulk.fleet import Fleet
from setpoint.bulk.replay import Trace
from setpoint.bulk.vectors import scalar
from setpoint.errors import SetpointError, StateError
from setpoint.stream import Stream

__all__ = ["KIND", "load_streams", "save", "streams"]

KIND = "streams"
"""What the file of several streams says it is, where they are no fleet."""


def save(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Writes the states that the streams of a trace ended in, whole or not at all.

    One stream is written as `Stream.save` does, several under scalar rules as `Fleet.save` does,
    and others side by side.
    """
    controller = trace.controller
    if len(trace.states) == 1:
        Stream(controller, state=trace.state).save(path)
        return
    ids = [_plain(id) for id in trace.states]
    if scalar(controller):
        fleet = Fleet(controller, ())
        fleet.add(ids, [trace.states[id] for id in trace.states])
        fleet.save(path)
        return
    held = [Stream(controller, state=trace.states[id]) for id in trace.states]
    content = {"ids": ids, "streams": [each.content() for each in held]}
    _store.write(path, KIND, {"controller": spec.to_dict(controller), **content})


def streams(path: str | os.PathLike[str]) -> Mapping[Hashable, Stream]:
    """The streams that a job ended with, by the ids of its series, ready to go on.

    Parameters
    ----------
    path
        The `state.zip` that `run` or `calibrate` wrote, or its folder. The stream of a job with
        one series has the id None.
    """
    from setpoint.jobs.inspecting import kind_of, state_file

    where = state_file(path)
    kind = kind_of(where)
    if kind == "stream":
        return {None: Stream.load(where)}
    if kind == "fleet":
        fleet = Fleet.load(where)
        return {id: Stream(fleet.controller, state=fleet.state(id)) for id in fleet.ids}
    return load_streams(where)


def load_streams(path: str | os.PathLike[str]) -> dict[Hashable, Stream]:
    """The streams that were written side by side."""
    content = _store.read(path, KIND)
    try:
        controller = spec.from_dict(content["controller"])
        pairs = zip(content["ids"], content["streams"], strict=True)
        return {id: Stream.restored(controller, held) for id, held in pairs}
    except SetpointError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise StateError(f"{os.fspath(path)} is damaged: {error!r}") from error


def _plain(id: Any) -> Any:
    """An id as Python has it."""
    return id.item() if hasattr(id, "item") else id
