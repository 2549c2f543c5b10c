"""The streams of a job as they ended, and what any saved state guarantees."""

import os
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setpoint import _state_file, spec
from setpoint._check import option
from setpoint._html import named, percent
from setpoint._rules import scalar
from setpoint.bulk.fleet import Fleet
from setpoint.bulk.paths import PathTrace
from setpoint.bulk.states import States
from setpoint.bulk.trace import Trace
from setpoint.controller import Controller
from setpoint.decisions import Gate, Gates, Terms
from setpoint.decisions.certificate import GateCertificate
from setpoint.errors import InputError, StateError
from setpoint.guarantee import Certificate
from setpoint.store import Store
from setpoint.stream import Stream

KIND = "streams"
"""What the file of several streams says it is, where they are no fleet."""
_MOST = 20


def save(trace: Trace | PathTrace, path: str | os.PathLike[str]) -> None:
    """Writes the states that the streams of a trace ended in, whole or not at all.

    One stream is written as `Stream.save` does, several under scalar rules as `Fleet.save` does,
    and others side by side.
    """
    controller, states = trace.controller, trace.states
    if len(states) == 1:
        Stream(controller, state=next(iter(states.values()))).save(path)
    elif scalar(controller):
        fleet = Fleet(controller, ())
        ids: list[Any] = [*states]
        fleet.add(ids, states if isinstance(states, States) else [*states.values()])
        fleet.save(path)
    else:
        streams = [Stream(controller, state=state).content() for state in states.values()]
        content = {"controller": spec.to_dict(controller), "ids": [*states], "streams": streams}
        _state_file.write(path, KIND, content)


def streams(path: str | os.PathLike[str]) -> Mapping[Hashable, Stream]:
    """The streams that a job ended with, by the ids of its series, ready to go on.

    Parameters
    ----------
    path
        The `state.zip` that `calibrate` wrote, or its folder. The stream of a job with
        one series has the id None.
    """
    where = _named_state(path)
    kind = _kind_of(where)
    if kind == "stream":
        return {None: Stream.load(where)}
    if kind == "fleet":
        fleet = Fleet.load(where)
        return {id: Stream(fleet.controller, state=fleet.state(id)) for id in fleet.ids}
    content = _state_file.read(where, KIND)
    with _state_file.intact(where):
        controller = spec.from_dict(content["controller"])
        pairs = zip(content["ids"], content["streams"], strict=True)
        return {id: Stream.restored(controller, stream) for id, stream in pairs}


def hand_over(path: str | os.PathLike[str], store: Store) -> list[str]:
    """Creates a finished job's streams in a store; returns their names.

    A stream is called as its series, north/3 for the key ("north", 3), and "" if the job had only
    one. One that the store has already goes on as it is.
    """
    ended, known = {named(id): stream for id, stream in streams(path).items()}, set(store.names)
    for name, stream in ended.items():
        if name not in known:
            store.stream(name, stream.controller, state=stream.state)
    return [*ended]


@dataclass(frozen=True, slots=True, eq=False)
class Inspected:
    """The certificates of the streams of a saved state by their names, of a single one by None.

    `kind` is stream, streams, fleet, gate, gates or store; of a store `controller` is what its
    first stream holds.
    """

    kind: str
    controller: Controller | Terms
    certificates: Mapping[Any, Certificate | GateCertificate]

    def as_dict(self) -> dict[str, Any]:
        """Everything in plain values."""
        held = self.controller
        return {
            "kind": self.kind,
            "controller": held.to_toml() if isinstance(held, Terms) else spec.to_toml(held),
            "streams": {named(name): one.as_dict() for name, one in self.certificates.items()},
        }

    def __str__(self) -> str:
        if len(self.certificates) == 1:
            ((name, certificate),) = self.certificates.items()
            head = f"{self.kind}{'' if name in (None, '') else f', stream {named(name)!r}'}"
            return f"{head}\n{certificate}"
        what = "" if self.kind in (KIND, "gates") else f"{self.kind} of "
        streams = "gates" if self.kind == "gates" else "streams"
        lines = [f"{what}{len(self.certificates):,} {streams}", ""]
        shown = {named(key): self.certificates[key] for key in [*self.certificates][:_MOST]}
        width = max(6, *map(len, shown))
        for kind, what, head in _HEADS:
            some = {name: one for name, one in shown.items() if isinstance(one, kind)}
            lines += [f"  {what:<{width}}{head}"] if some else []
            lines += [f"  {name:<{width}}{line}" for name, one in some.items()
                      for line in _lines(one)]  # fmt: skip
        more = len(self.certificates) - len(shown)
        lines += [f"  … and {more:,} more: name one by {option('stream')}"] if more else []
        return "\n".join(lines)

    def only(self, name: str) -> "Inspected":
        """One stream by its name."""
        for key, certificate in self.certificates.items():
            if named(key) == name:
                held = certificate.terms if isinstance(certificate, GateCertificate) else None
                return Inspected(self.kind, held or self.controller, {key: certificate})
        known = ", ".join(repr(named(key)) for key in list(self.certificates)[:5])
        more = ", …" if len(self.certificates) > 5 else ""
        raise InputError(f"there is no stream {name!r}; there are {known or 'none'}{more}")


_HEADS = (
    (Certificate, "stream", f"{'labels':>12}{'mean loss':>11}{'level':>8}  verdict"),
    (GateCertificate, "gate", f"{'requests':>12}{'acted on':>11}{'errors':>9}  asked"),
)
"""The tables of streams and of gates."""


def _lines(certificate: Certificate | GateCertificate) -> list[str]:
    """What a table says of a stream, or of a gate: a line for each risk or limit."""
    if isinstance(certificate, GateCertificate):
        requests = certificate.requests
        share = percent(certificate.acted / requests, 1) if requests else "–"
        return [
            f"{requests:>12,}{share:>11}{percent(one.per_request):>9}  "
            f"{one.asked.removeprefix('errors ')}{'' if one.name == 'errors' else f' {one.name}'}"
            for one in certificate.limits
        ]
    means = [f"{risk.mean:.4f}" if risk.judged else "–" for risk in certificate.risks]
    return [
        f"{risk.judged:>12,}{mean:>11}{risk.level:>8.4g}  {risk.verdict}"
        for risk, mean in zip(certificate.risks, means, strict=True)
    ]


def inspect(path: str | os.PathLike[str]) -> Inspected:
    """The certificates of a saved state; nothing in it is changed, even while it is in use.

    Parameters
    ----------
    path
        What `save` of a stream, a fleet, a gate or gates wrote, the file of a `Store`, or a folder
        that one of them is in, or that `calibrate` wrote.

    Examples
    --------
    >>> import setpoint as sp
    >>> from tempfile import TemporaryDirectory
    >>> gate = sp.gate(errors=0.05)
    >>> _ = gate.decide(0.9), gate.update(wrong=False)
    >>> with TemporaryDirectory() as folder:
    ...     gate.save(f"{folder}/mail.zip")
    ...     inspected = inspect(f"{folder}/mail.zip")
    >>> inspected.kind, inspected.certificates[None].requests
    ('gate', 1)
    """
    where = _named_state(path)
    with where.open("rb") as file:
        kind = "store" if file.read(16) == b"SQLite format 3\0" else _kind_of(where)
    if kind == "store":
        with Store(where) as store:
            held: Mapping[Any, Any] = {name: store.read(name) for name in store.names}
        if not held:
            raise StateError(f"{where} holds no stream yet")
    elif kind == "gate":
        held = {None: Gate.load(where)}
    elif kind == "gates":
        gates = Gates.load(where)
        return Inspected(kind, gates.terms, gates.certificates())
    elif kind == "fleet":
        fleet = Fleet.load(where)
        return Inspected(kind, fleet.controller, {id: fleet.certificate(id) for id in fleet.ids})
    elif kind in ("stream", KIND):
        held = streams(where)
    else:
        raise StateError(
            f"{where} holds {kind!r}; what can be inspected is a stream, streams, a fleet, a gate, "
            "gates or a store"
        )
    first: Any = next(iter(held.values()))
    terms = first.terms if isinstance(first, Gate) else first.controller
    return Inspected(kind, terms, {name: one.certificate() for name, one in held.items()})


def _named_state(path: str | os.PathLike[str]) -> Path:
    """The state that a path names: the file, or that in a folder."""
    where = Path(path)
    if not where.exists():
        raise StateError(f"{where} does not exist: name a saved stream, fleet or gate, or a store")
    if not where.is_dir():
        return where
    for name in ("state.zip", "streams.sqlite"):
        if (where / name).exists():
            return where / name
    raise StateError(
        f"{where} holds no streams.sqlite, and no state.zip as a job leaves: name a saved stream, "
        "fleet or gate, a store, or a folder of these"
    )


def _kind_of(path: Path) -> str:
    """What a saved file says it is."""
    try:
        return _state_file.kind(path)
    except StateError as error:
        raise StateError(
            f"{error}; name what save of a stream, fleet or gate wrote, or a store"
        ) from error
