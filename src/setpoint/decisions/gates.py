"""Many gates: one for each customer, product or model, by name."""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from setpoint import _state_file
from setpoint._check import one_by_one
from setpoint.decisions.certificate import GateCertificate
from setpoint.decisions.live import Decision, Gate
from setpoint.decisions.terms import Terms
from setpoint.errors import InputError
from setpoint.receipts import checked_id
from setpoint.state import Id


class Gates(Mapping[Id, Gate]):
    """A gate for each name, all of the same terms; one begins when it is first named.

    Each keeps a budget of its own, so no customer pays for the errors of another.

    Parameters
    ----------
    terms
        What each holds: `Terms`, or a gate to begin others like it.
    secret
        As for `Gate`; every gate mixes its name into it.

    Examples
    --------
    >>> import setpoint as sp
    >>> gates = sp.decisions.Gates(sp.gate(errors=0.05))
    >>> gates.decide(["acme", "zenith"], [0.9, 0.4], ids=[1, 1])[0].act
    True
    >>> _ = gates["acme"].update(wrong=True, id=1)
    >>> sorted(gates), gates.worst(1)[0][0]
    (['acme', 'zenith'], 'acme')
    """

    def __init__(self, terms: Terms | Gate, *, secret: str | bytes | None = None) -> None:
        self._terms = terms.terms if isinstance(terms, Gate) else terms
        self._secret = secret.encode() if isinstance(secret, str) else secret
        self._gates: dict[Id, Gate] = {}

    @property
    def terms(self) -> Terms:
        """What each gate holds."""
        return self._terms

    def __getitem__(self, name: Id) -> Gate:
        name = name if type(name) is str else checked_id(name, "the name of a gate")
        gate = self._gates.get(name)
        if gate is None:
            gate = self._gates[name] = Gate(self._terms, secret=self._secret_of(name))
        return gate

    def _secret_of(self, name: Id) -> bytes | None:
        return None if self._secret is None else self._secret + repr(name).encode()

    def __contains__(self, name: object) -> bool:
        return name in self._gates

    def __iter__(self) -> Iterator[Id]:
        return iter(self._gates)

    def __len__(self) -> int:
        return len(self._gates)

    def decide(
        self, names: Iterable[Id], scores: Any, ids: Iterable[Id] | None = None
    ) -> list[Decision]:
        """Decides on a request for each name, in the order given."""
        listed, rows = list(names), one_by_one(scores)
        keys: list[Id | None] = [None] * len(listed) if ids is None else list(ids)
        if not len(listed) == len(rows) == len(keys):
            raise InputError(
                f"got {len(listed):,} names, {len(rows):,} scores and {len(keys):,} ids"
            )
        each = zip(listed, rows, keys, strict=True)
        return [self[name].decide(score, id) for name, score, id in each]

    def certificates(self) -> dict[Id, GateCertificate]:
        """The certificate of each gate."""
        return {name: gate.certificate() for name, gate in self._gates.items()}

    def worst(self, most: int = 10) -> list[tuple[Id, GateCertificate]]:
        """The gates that have used most of their budget, with their certificates."""

        def used(pair: tuple[Id, GateCertificate]) -> float:
            return max(one.account / one.bound.since_start for one in pair[1].limits)

        return sorted(self.certificates().items(), key=used, reverse=True)[:most]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes every gate to one file, whole or not at all; no seed of coins is in it."""
        rows = [(name, gate.content()) for name, gate in self._gates.items()]
        _state_file.write(path, "gates", {"terms": self._terms.as_dict(), "gates": rows})

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, secret: str | bytes | None = None) -> "Gates":
        """The gates saved at `path`."""
        content = _state_file.read(path, "gates")
        with _state_file.intact(path):
            gates = cls(Terms(**content["terms"]), secret=secret)
            for name, state in content["gates"]:
                gates._gates[name] = Gate.restored(state, secret=gates._secret_of(name))
            return gates

    def __repr__(self) -> str:
        return f"<{len(self):,} gates of {self._terms!r}>"
