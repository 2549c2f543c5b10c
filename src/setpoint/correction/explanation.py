"""Why this interval? What the correction and the account made of a forecast."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import exp, inf
from typing import Any

from setpoint._html import table


@dataclass(frozen=True, slots=True)
class Part:
    """What one thing that is known does to an interval.

    `name` is "recent errors", "season", or that of a feature, whose `value` it has. It `moves` the
    centre, in units of y, and `widens` the errors that are expected by a factor.
    """

    name: str
    value: Any
    moves: float
    widens: float


@dataclass(frozen=True, slots=True, repr=False)
class Explanation:
    """Why an interval is where it is and as wide as it is. It prints itself.

    `forecast` is the middle as the model gave it, `lower` and `upper` the interval that was shown,
    `centre` its centre before past misses. `moved` is the error that is expected. `parts` say what
    each thing that is known does, with the weights of now; `since` is what later labels changed.
    `size` of errors is expected here, `usual` is the usual one. `given` is the share of the ends as
    the model gave them, `factor` what past misses do to the width, `account` the misses beyond what
    was asked, now.
    """

    id: Any
    forecast: float
    lower: float
    upper: float
    centre: float
    moved: float
    parts: tuple[Part, ...]
    since: float
    size: float
    usual: float
    given: float
    factor: float
    account: float

    def as_dict(self) -> dict[str, Any]:
        """Everything in plain values; what is not a finite number is None."""
        plain: dict[str, Any] = _plain(asdict(self))
        return plain

    def lines(self) -> list[tuple[str, str]]:
        """The lines to print, with their names."""
        moving = [part for part in self.parts if abs(part.moves) > 1e-3 * self.size]
        words = [f"{part.moves:+.4g} by {_of(part)}" for part in moving]
        if abs(self.since) > 1e-3 * self.size:
            words.append(f"{self.since:+.4g} by what was learnt since")
        told = f"{self.moved:+.4g}" + (f": {', '.join(words)}" if words else "")
        ratio = self.size / self.usual if self.usual > 0.0 else 1.0
        sizes = [part for part in self.parts if abs(part.widens - 1.0) > 0.005]
        why = ", ".join(f"×{part.widens:.3g} by {_of(part)}" for part in sizes)
        lines = [
            ("forecast", f"{self.forecast:.6g}"),
            ("moved by", told),
            ("errors", f"{self.size:.4g}, {_against(ratio)}" + (f": {why}" if why else "")),
        ]
        if self.given > 0.005:
            lines.append(("given ends", f"count for {100.0 * self.given:.0f} %"))
        account = f"{self.account:+.1f} misses beyond the allowance: "
        if self.factor == inf:
            lines.append(("account", account + "no room for a miss, so the interval has no ends"))
        else:
            lines.append(("account", f"{account}×{self.factor:.3g}"))
        lines.append(("interval", f"{self.lower:.6g} to {self.upper:.6g}"))
        return lines

    def __str__(self) -> str:
        return "\n".join(f"{name:<12}{text}" for name, text in self.lines())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return table(self.lines())


def _of(part: Part) -> str:
    if part.value is None:
        return part.name
    value = f"{part.value:.4g}" if isinstance(part.value, float) else part.value
    return f"{part.name} {value}"


def _against(ratio: float) -> str:
    if abs(ratio - 1.0) < 0.005:
        return "as usual"
    return f"{100.0 * abs(ratio - 1.0):.0f} % {'above' if ratio > 1.0 else 'below'} the usual"


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return None if isinstance(value, float) and not -inf < value < inf else value


def factor_of(lam: float) -> float:
    """By how much λ widens an interval whose ends are multiplied by e^λ."""
    return inf if lam == inf else exp(min(lam, 700.0))
