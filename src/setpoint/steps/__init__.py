"""Step rules: how θ moves once the loss is known, and what each rule guarantees.

A step rule has `params`, a memory (`init()`, a tuple of floats) and

    rule(params, theta, memory, excess, critical) -> (theta, memory)
    claim(within, memory, T) -> Claim

`rule` is a pure function of floats. `excess` is l − r, turned for a loss that grows with the set.
`critical` is the smallest λ that would have kept the loss at its level, for a rule that asks for it
(`Scored`), else 0. `claim` says what the rule guarantees about Σ(l − r) after T labels. The
certificate, the alarms and the reports ask for the claim and know no rule by name.

`Fixed` is the paper's rule, `Account` that of the budget, and `Measure` holds nothing. The rules of
others are in `setpoint.published`.
"""

from setpoint.steps.account import Account
from setpoint.steps.claims import Claim, Fixed, Measure, Premise, Step, Within

__all__ = ["Account", "Claim", "Fixed", "Measure", "Premise", "Step", "Within"]
