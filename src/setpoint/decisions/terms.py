"""The terms of a gate, as a value: the errors allowed, the audits, and what is known of losses."""

import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from setpoint._check import choice, confidence, finite, positive, whole
from setpoint.errors import InputError, SpecError
from setpoint.spec import toml_table

_FEWEST = 1e-6


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of a gate: its error budget and its options.

    Parameters
    ----------
    errors
        How many of all requests may be acted on wrongly, as a share; for several limits a mapping
        from names to shares, such as {"wrong": 0.05, "unsafe": 0.01}.
    audits
        The share of actions whose label is drawn by the gate's coins; 1 has every action labelled.
    max_pending
        How many actions may wait for their label at once; None leaves it to the budget.
    per
        "request", or "action": then `errors` is a share of the actions, and `spare` more errors
        per request are allowed, to learn from.
    spare
        See `per`.
    sure
        With audits: a probability such as 0.95 with which the true errors, not only their
        estimate, keep to the budget. It costs actions.
    limit
        K: how many errors above what was asked there may be.
    """

    errors: Any = 0.05
    audits: float = 1.0
    max_pending: int | None = None
    per: str = "request"
    spare: float = 0.002
    sure: float | None = None
    limit: float = 10.0

    def __post_init__(self) -> None:
        put = object.__setattr__
        if isinstance(self.errors, Mapping):
            if not self.errors or not all(isinstance(name, str) for name in self.errors):
                raise InputError(
                    'errors must be a share, or shares by name such as {"wrong": 0.05}, got '
                    f"{self.errors!r}"
                )
            put(self, "errors", {n: _share(v, f"errors[{n!r}]") for n, v in self.errors.items()})
        else:
            put(self, "errors", _share(self.errors, "errors"))
        put(self, "audits", _share(self.audits, "audits", up_to_one=True))
        if self.max_pending is not None:
            put(self, "max_pending", whole(self.max_pending, "max_pending", 1))
        choice(self.per, "per", ("request", "action"))
        put(self, "spare", _share(self.spare, "spare"))
        if self.sure is not None:
            put(self, "sure", confidence(self.sure, "sure"))
            if self.audits == 1.0:
                raise InputError(
                    f"sure={self.sure:g} is about audits: with audits=1 every action has its label "
                    "and the bound needs no probability"
                )
        put(self, "limit", positive(self.limit, "limit"))
        if self.limit < 1.0:
            raise InputError(f"limit must be at least 1, one error, got {self.limit:g}")
        if self.per == "action" and any(q + self.spare >= 1.0 for q in self.shares):
            raise InputError(
                f"errors and spare together must be below 1, got {self.errors} and {self.spare:g}"
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The limits by name; ("errors",) for the only one."""
        return tuple(self.errors) if isinstance(self.errors, dict) else ("errors",)

    @property
    def shares(self) -> tuple[float, ...]:
        """The errors allowed, one share for each limit."""
        return tuple(self.errors.values()) if isinstance(self.errors, dict) else (self.errors,)

    @property
    def allowed(self) -> tuple[tuple[float, float], ...]:
        """Errors allowed per request and per action, a pair for each limit."""
        if self.per == "action":
            return tuple((self.spare, share) for share in self.shares)
        return tuple((share, 0.0) for share in self.shares)

    @property
    def numbers(self) -> tuple[float, ...]:
        """What the rule reads: see `steps.gate`."""
        cap = 1e18 if self.max_pending is None else float(self.max_pending)
        limits = [number for r, q in self.allowed for number in (r, q, self.limit)]
        doubt = 0.0 if self.sure is None else 1.0 - self.sure
        return self.audits, cap, doubt, float(len(self.names)), *limits

    def losses(self, wrong: Any, loss: Any) -> tuple[float, ...]:
        """The losses of an action, one number from 0 to 1 for each limit."""
        if (wrong is None) == (loss is None):
            raise InputError(
                f"give wrong, which is True or False, or loss, which is from 0 to 1; got {wrong=} "
                f"and {loss=}"
            )
        given = loss if wrong is None else wrong
        what = "loss" if wrong is None else "wrong"
        if not isinstance(self.errors, dict):
            return (_loss(given, what, wrong is None),)
        if not isinstance(given, Mapping) or set(given) != set(self.errors):
            raise InputError(
                f"{what} must have one value for each of {', '.join(self.errors)}, got {given!r}"
            )
        return tuple(_loss(given[n], f"{what}[{n!r}]", wrong is None) for n in self.errors)

    def as_dict(self) -> dict[str, Any]:
        """The terms as plain values; `Terms(**values)` makes them again."""
        return asdict(self)

    def to_toml(self) -> str:
        """The terms as TOML, which `from_toml` reads."""
        values = {name: value for name, value in self.as_dict().items() if value is not None}
        return "\n\n".join(toml_table("[gate]", "gate", values)) + "\n"

    @classmethod
    def from_toml(cls, text: str) -> "Terms":
        """The terms that a TOML text describes.

        >>> Terms.from_toml(Terms({"wrong": 0.05}, audits=0.1).to_toml()).errors
        {'wrong': 0.05}
        """
        try:
            return cls(**tomllib.loads(text)["gate"])
        except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
            raise SpecError(f"no terms of a gate: {error}") from error

    @property
    def asked(self) -> tuple[str, ...]:
        """The target of each limit, in words."""
        if self.per == "action":
            extra = f"{1000.0 * self.spare:g} per 1,000 requests + {self.limit:g}"
            return tuple(f"errors ≤ {100.0 * q:g} % of actions + {extra}" for q in self.shares)
        return tuple(f"errors ≤ {100.0 * r:g} % of requests" for r in self.shares)


def _share(value: Any, name: str, *, up_to_one: bool = False) -> float:
    share = finite(value, name)
    if not (_FEWEST <= share < 1.0 or (up_to_one and share == 1.0)):
        hint = f": write {share:g} % as {share / 100.0:g}" if 1.0 <= share < 100.0 else ""
        raise InputError(f"{name} must be a share from {_FEWEST:g} up to 1, got {share:g}{hint}")
    return share


def _loss(value: Any, name: str, graded: bool) -> float:
    loss = float(value) if type(value) is bool else finite(value, name)
    if not (0.0 <= loss <= 1.0 if graded else loss in (0.0, 1.0)):
        allowed = "from 0 to 1: divide a cost by the largest one" if graded else "True or False"
        raise InputError(f"{name} must be {allowed}, got {value!r}")
    return loss
