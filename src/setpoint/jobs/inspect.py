"""The streams of a job as they ended, and what any saved state guarantees."""

import os
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setpoint import _state_file, spec
from setpoint._check import option
from setpoint._html import named
from setpoint._rules import scalar
from setpoint.bulk.fleet import Fleet
from setpoint.bulk.states import States
from setpoint.bulk.trace import Trace
from setpoint.controller import Controller
from setpoint.errors import InputError, SetpointError, StateError
from setpoint.guarantee import Certificate
from setpoint.store import Store
from setpoint.stream import Stream

KIND = "streams"
"""What the file of several streams says it is, where they are no fleet."""
_KINDS = ("stream", "streams", "fleet", "store")
_MOST = 20


def save(trace: Trace, path: str | os.PathLike[str]) -> None:
    """Writes the states that the streams of a trace ended in, whole or not at all.

    One stream is written as `Stream.save` does, several under scalar rules as `Fleet.save` does,
    and others side by side.
    """
    controller = trace.controller
    if len(trace.states) == 1:
        Stream(controller, state=trace.state).save(path)
        return
    ids: list[Any] = [*trace.states]
    if scalar(controller):
        fleet = Fleet(controller, ())
        states = trace.states
        fleet.add(ids, states if isinstance(states, States) else [*states.values()])
        fleet.save(path)
        return
    streams = [Stream(controller, state=state).content() for state in trace.states.values()]
    content = {"ids": ids, "streams": streams}
    _state_file.write(path, KIND, {"controller": spec.to_dict(controller), **content})


def _load_streams(path: str | os.PathLike[str]) -> Mapping[Hashable, Stream]:
    """The streams that were written side by side."""
    content = _state_file.read(path, KIND)
    try:
        controller = spec.from_dict(content["controller"])
        pairs = zip(content["ids"], content["streams"], strict=True)
        return {id: Stream.restored(controller, stream) for id, stream in pairs}
    except SetpointError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise StateError(f"{os.fspath(path)} is damaged: {error!r}") from error


@dataclass(frozen=True, slots=True, eq=False)
class Inspected:
    """The certificates of a saved state.

    Parameters
    ----------
    kind
        "stream", "streams", "fleet" or "store".
    controller
        What is held, and how.
    certificates
        That of each stream by its name; of a single one by None.
    together
        What a state says of all its streams, where it does.
    """

    kind: str
    controller: Controller
    certificates: Mapping[Any, Certificate]
    together: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Everything in plain values."""
        return {
            "kind": self.kind,
            "controller": spec.to_toml(self.controller),
            "streams": {
                named(name): certificate.as_dict()
                for name, certificate in self.certificates.items()
            },
        }

    def __str__(self) -> str:
        if len(self.certificates) == 1:
            ((name, certificate),) = self.certificates.items()
            head = f"{self.kind}{'' if name in (None, '') else f', stream {named(name)!r}'}"
            return f"{head}\n{certificate}"
        what = "" if self.kind == KIND else f"{self.kind} of "
        lines = [f"{what}{len(self.certificates):,} streams", ""]
        if self.together:
            lines = [self.together, ""]
        shown = list(self.certificates.items())[:_MOST]
        width = max([len("stream"), *(len(named(name)) for name, _ in shown)])
        lines.append(f"  {'stream':<{width}}{'labels':>12}{'mean loss':>11}{'level':>8}  verdict")
        for name, certificate in shown:
            for risk in certificate.risks:
                mean = f"{risk.mean:.4f}" if risk.judged else "–"
                lines.append(
                    f"  {named(name):<{width}}{risk.judged:>12,}{mean:>11}{risk.level:>8.4g}  "
                    f"{risk.verdict}"
                )
        if len(self.certificates) > _MOST:
            lines.append(
                f"  … and {len(self.certificates) - _MOST:,} more: name one by {option('stream')}"
            )
        return "\n".join(lines)

    def only(self, name: str) -> "Inspected":
        """One stream by its name."""
        for key, certificate in self.certificates.items():
            if named(key) == name:
                return Inspected(self.kind, self.controller, {key: certificate})
        known = ", ".join(repr(named(key)) for key in list(self.certificates)[:5])
        more = ", …" if len(self.certificates) > 5 else ""
        raise InputError(f"there is no stream {name!r}; there are {known or 'none'}{more}")


def inspect(path: str | os.PathLike[str]) -> Inspected:
    """The certificates of a saved state; nothing in it is changed, even while it is in use.

    Parameters
    ----------
    path
        What `Stream.save` or `Fleet.save` wrote, the file of a `Store`, or a folder
        that one of them is in, or that `run` or `calibrate` wrote.

    Examples
    --------
    >>> import setpoint as sp
    >>> from tempfile import TemporaryDirectory
    >>> risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5), bounds=(-20, 20))
    >>> stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk))
    >>> _ = stream.predict((10.0, 14.0)), stream.update(15.0)
    >>> with TemporaryDirectory() as folder:
    ...     stream.save(f"{folder}/demand.zip")
    ...     inspected = inspect(f"{folder}/demand.zip")
    >>> inspected.kind, inspected.certificates[None].risks[0].mean
    ('stream', 1.0)
    """
    where = _named_state(path)
    if _is_store(where):
        return _stored(where)
    kind = _kind_of(where)
    if kind == "stream":
        stream = Stream.load(where)
        return Inspected(kind, stream.controller, {None: stream.certificate()})
    if kind == "fleet":
        fleet = Fleet.load(where)
        return Inspected(kind, fleet.controller, {id: fleet.certificate(id) for id in fleet.ids})
    if kind == KIND:
        by_id = _load_streams(where)
        certificates = {id: stream.certificate() for id, stream in by_id.items()}
        return Inspected(kind, next(iter(by_id.values())).controller, certificates)
    raise StateError(f"{where} holds {kind!r}; what can be inspected is {', '.join(_KINDS)}")


def streams(path: str | os.PathLike[str]) -> Mapping[Hashable, Stream]:
    """The streams that a job ended with, by the ids of its series, ready to go on.

    Parameters
    ----------
    path
        The `state.zip` that `run` or `calibrate` wrote, or its folder. The stream of a job with
        one series has the id None.
    """
    where = _named_state(path)
    kind = _kind_of(where)
    if kind == "stream":
        return {None: Stream.load(where)}
    if kind == "fleet":
        fleet = Fleet.load(where)
        return {id: Stream(fleet.controller, state=fleet.state(id)) for id in fleet.ids}
    return _load_streams(where)


def hand_over(path: str | os.PathLike[str], store: Store) -> list[str]:
    """Begins the streams of a job in a store, in the states it ended in, and gives their names.

    A stream is called as its series, north/3 for the key ("north", 3), and "" if the job had only
    one. One that the store has already goes on as it is.
    """
    names, known = [], set(store.names)
    for id, stream in streams(path).items():
        name = named(id)
        if name not in known:
            store.stream(name, stream.controller, state=stream.state)
        names.append(name)
    return names


def _named_state(path: str | os.PathLike[str]) -> Path:
    """The state that a path names: the file, or that in a folder."""
    where = Path(path)
    if not where.exists():
        raise StateError(f"{where} does not exist: name a saved stream or fleet, or a store")
    if not where.is_dir():
        return where
    for name in ("state.zip", "streams.sqlite"):
        if (where / name).exists():
            return where / name
    raise StateError(
        f"{where} holds no streams.sqlite, and no state.zip as a job leaves: name a saved stream, "
        "or fleet, a store, or a folder of these"
    )


def _kind_of(path: Path) -> str:
    """What a saved file says it is."""
    try:
        return _state_file.kind(path)
    except StateError as error:
        raise StateError(
            f"{error}; name what Stream.save or Fleet.save wrote, or a store"
        ) from error


def _stored(path: Path) -> Inspected:
    """The streams of a store, which may be in use."""
    with Store(path) as store:
        streams = {name: store.read(name) for name in store.names}
    if not streams:
        raise StateError(f"{path} holds no stream yet")
    certificates = {name: stream.certificate() for name, stream in streams.items()}
    return Inspected("store", next(iter(streams.values())).controller, certificates)


def _is_store(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"
