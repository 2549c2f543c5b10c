"""The published rules of others, under the names people know, to compare with.

`RULES` makes a controller of each, by its name in tables, of a coverage and a scale: how far apart
scores lie, such as the range of the scores of a burn-in. The step rules themselves go into any
`Risk`. Most of them guarantee nothing; a certificate says which.

    >>> import numpy as np
    >>> import setpoint as sp
    >>> y = np.cumsum(np.random.default_rng(0).normal(size=500))
    >>> tape = sp.Tape.from_arrays({"lower": y[:-1], "upper": y[:-1]}, y[1:])
    >>> for name in ("ACI", "DtACI"):
    ...     print(name, round(sp.replay(sp.published.RULES[name](0.9, 4.0), tape).coverage, 2))
    ACI 0.9
    DtACI 0.89
"""

from collections.abc import Callable, Mapping

from setpoint.controller import Controller, Risk
from setpoint.losses import Miscoverage
from setpoint.presets import miss_level
from setpoint.sets import ScoreWindow, Widen
from setpoint.sets.family import Family
from setpoint.steps import Fixed, Step
from setpoint.steps.control import ECI, PI
from setpoint.steps.experts import DtACI
from setpoint.steps.shrinking import SFOGD, CoinBetting, Decaying

__all__ = ["ECI", "PI", "RULES", "SFOGD", "CoinBetting", "Decaying", "DtACI", "aci"]


def aci(
    coverage: float = 0.9,
    *,
    scores: Family | None = None,
    gamma: float = 0.005,
    size: int = 500,
) -> Controller:
    """Adaptive conformal inference, with the defaults of its authors.

    Their α_t is −θ: it starts at 1 − `coverage`, moves by γ(α − miss) and is not clipped,
    so that α_t ≤ 0 shows the full set and α_t ≥ 1 the empty one. Clipping it would lose the
    guarantee.

    Parameters
    ----------
    coverage
        The share of labels to cover.
    scores
        The family whose critical values are the conformity scores, `sets.Widen()` by default.
    gamma
        The step size.
    size
        How many of the last scores are the calibration set.

    Examples
    --------
    >>> import setpoint as sp
    >>> stream = sp.Stream(sp.published.aci(0.9))
    >>> stream.predict(12.0)  # a point forecast; no scores yet
    Interval(-inf, inf)
    >>> stream.update(12.5)
    0.0

    References
    ----------
    Gibbs and Candès, "Adaptive Conformal Inference Under Distribution Shift", NeurIPS 2021.
    """
    family = ScoreWindow(Widen() if scores is None else scores, size)
    return Controller(family, Risk(Miscoverage(), miss_level(coverage), Fixed(gamma)))


def _held(step: Callable[[float], Step]) -> Callable[[float, float], Controller]:
    """The controller that widens given ends by a step rule made of a scale."""

    def controller(coverage: float, scale: float) -> Controller:
        return Controller(Widen(), Risk(Miscoverage(), miss_level(coverage), step(scale)))

    return controller


RULES: Mapping[str, Callable[[float, float], Controller]] = {
    "ACI": lambda coverage, _: aci(coverage),
    "fixed step": _held(lambda scale: Fixed(0.05 * scale)),
    "decaying step": _held(Decaying),
    "SF-OGD": _held(SFOGD),
    "coin betting": _held(CoinBetting),
    "DtACI": _held(DtACI),
    "ECI": _held(lambda _: ECI()),
    "PI": _held(lambda scale: PI(2.0 * scale)),
}
"""What makes a controller of a coverage and a scale, by the name of its rule."""
