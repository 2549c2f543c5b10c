"""Step rules: how θ moves once the loss is known, and what each rule guarantees.

A step rule has `params`, a memory (`init()`, a tuple of floats) and

    rule(params, theta, memory, excess, critical) -> (theta, memory)
    claim(within, memory, T) -> Claim

`rule` is a pure function of floats. `excess` is l − r, turned for a loss that grows with the set.
`critical` is the smallest λ that would have kept the loss at its level, for a rule that asks for it
(`Scored`), else 0. `claim` says what the rule guarantees about Σ(l − r) after T labels. The
certificate, the alarms and the reports ask for the claim and know no rule by name.

`Fixed` is the paper's rule and `Account` that of the budget. The others are published rules, to
compare with: most of them guarantee nothing.
"""

from setpoint.steps.account import Account, Book
from setpoint.steps.claims import Accounts, Claim, Grouped, Premise, Scored, Step, Within
from setpoint.steps.control import PI, ErrorQuantified
from setpoint.steps.experts import Mixture
from setpoint.steps.paper import Fixed, fixed
from setpoint.steps.shrinking import Betting, Decaying, ScaleFree

__all__ = [
    "PI",
    "Account",
    "Accounts",
    "Betting",
    "Book",
    "Claim",
    "Decaying",
    "ErrorQuantified",
    "Fixed",
    "Grouped",
    "Mixture",
    "Premise",
    "ScaleFree",
    "Scored",
    "Step",
    "Within",
    "fixed",
]
