"""What becomes of F1 under control: the set that adjusts 1 − F1 locks in at all labels.

1 − F1 falls as labels are added to an empty set and rises once wrong ones are added. Where θ has
passed the least of it, a loss above the level makes the set larger, which makes the loss larger
still. The rule here is Algorithm 1 by hand, with labels whose probability is at least −θ.
"""

from dataclasses import dataclass

import numpy as np

from setpoint_paper.classification.tapes import Recorded, record

LEVELS = (0.40, 0.45)
"""The levels tried; a constant threshold reaches less."""
SPELL = range(600, 900)
"""Rows, counted from the first judged one, in which the model says the opposite: 1 − p."""
_GAMMA, _LAST = 0.02, 300


@dataclass(frozen=True, slots=True)
class Held:
    """One level, with or without the bad spell.

    `constant` is the least mean of 1 − F1 that one threshold reaches on the rows without a spell;
    `before` and `after` are its means on the rows before the spell and on the last 300; `full` is
    the share of sets with every label among these.
    """

    level: float
    spell: bool
    constant: float
    before: float
    after: float
    full: float


def lock_in(quick: bool = False) -> list[Held]:
    """Every level, without and with the spell, on the stream of genes with several labels."""
    recorded = record("yeast", quick=quick)
    return [hold(recorded, level, spell) for level in LEVELS for spell in (False, True)]


def hold(recorded: Recorded, level: float, spell: bool, gamma: float = _GAMMA) -> Held:
    """1 − F1 under control at a level."""
    p, y = recorded.p[recorded.begin :].copy(), recorded.y[recorded.begin :].astype(bool)
    rows = np.arange(len(p))
    constant = min(
        float(np.mean([_loss(p[row] >= cut, y[row]) for row in rows]))
        for cut in np.linspace(0.05, 0.95, 19)
    )
    if spell:
        bad = rows[SPELL.start : SPELL.stop]
        p[bad] = 1.0 - p[bad]
    theta, losses, full = -0.5, np.empty(len(p)), np.empty(len(p))
    for row in rows:
        shown = p[row] >= -theta
        losses[row] = _loss(shown, y[row])
        full[row] = shown.all()
        theta += gamma * (losses[row] - level)
    last = slice(-_LAST, None)
    return Held(
        level, spell, constant, float(losses[: SPELL.start].mean()), float(losses[last].mean()),
        float(full[last].mean()),
    )  # fmt: skip


def _loss(shown: np.ndarray, y: np.ndarray) -> float:
    """1 − F1 of a set of labels; 0 where both are empty."""
    both = int(shown.sum()) + int(y.sum())
    return 1.0 - 2.0 * float((shown & y).sum()) / both if both else 0.0
