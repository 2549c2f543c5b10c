"""Controllers that people know by a name of their own."""

from setpoint._check import confidence
from setpoint.controller import Controller, Risk
from setpoint.losses import Miscoverage
from setpoint.sets import Family, ScoreWindow, Widen
from setpoint.steps import Fixed

__all__ = ["aci"]


def aci(
    confidence_level: float = 0.9,
    *,
    scores: Family | None = None,
    gamma: float = 0.005,
    size: int = 500,
) -> Controller:
    """Adaptive conformal inference, with the defaults of its authors.

    Their α_t is −θ: it starts at 1 − `confidence_level`, moves by γ(α − miss) and is not clipped,
    so that α_t ≤ 0 shows the full set and α_t ≥ 1 the empty one. Clipping it would lose the
    guarantee.

    Parameters
    ----------
    confidence_level
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
    >>> stream = sp.Stream(sp.presets.aci(0.9))
    >>> stream.predict(12.0)  # a point forecast; no scores yet
    Interval(-inf, inf)
    >>> stream.update(12.5)
    0.0

    References
    ----------
    Gibbs and Candès, "Adaptive Conformal Inference Under Distribution Shift", NeurIPS 2021.
    """
    family = ScoreWindow(Widen() if scores is None else scores, size)
    level = round(1.0 - confidence(confidence_level), 12)  # 1 − 0.9 is not quite 0.1
    return Controller(family, Risk(Miscoverage(), level, Fixed(gamma)))
