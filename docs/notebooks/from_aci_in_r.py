# %% [markdown]
# # From ACI in R
#
# **The question.** You use adaptive conformal inference (ACI) in R, with the package `AdaptiveConformal` or a loop of
# your own. Your model moves to Python. What are the names here, do the intervals stay the same, and what do you gain?
#
# In R you write:
#
# ```r
# fit <- aci(Y, predictions, method = "RollingRC", alpha = 0.9, parameters = list(gamma = 0.01))
# summary(fit)
# ```
#
# | in R | here |
# |---|---|
# | `alpha = 0.9`, the coverage | `coverage=0.9` |
# | `method = "RollingRC"` (ACI) | `sp.published.aci(0.9, gamma=0.01)` |
# | `interval_constructor = "conformal"` | `sets.ScoreWindow`, which `published.aci` uses |
# | `interval_constructor = "linear"` | `sets.Widen()` with `steps.Fixed(gamma)` |
# | `method = "FACI"` (DtACI) | `published.DtACI` |
# | `method = "SF-OGD"` | `published.SFOGD` |
# | `theta`, which begins at `alpha` | 1 + λ |
# | `aci(Y, predictions, ...)` on a whole series | `sp.replay(controller, tape)` |
# | `predict(fit, p)` and `update(fit, y, p)` | `stream.predict(p)` and `stream.update(y)` |
# | the summary of `fit` | `trace.summary()`, and `trace.certificate()` for what is guaranteed |
# | the plot of `fit` | `trace.plot()` |
#
# `AgACI` and `SAOCP` have no counterpart here.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import setpoint as sp

data = sp.generators.variance_switch(3_000, factor=3.0, every=500, seed=2)
forecast, y = data.centre, data.y  # a forecast whose errors are small and large by turns

# %% [markdown]
# ## The loop, as in R
#
# θ starts at the coverage. The interval reaches as far as the θ-quantile of past errors. A miss adds γ·coverage to θ,
# and a hit subtracts γ·(1 − coverage). Above 1 the interval is unlimited.


# %%
def aci_by_hand(y, forecast, coverage, gamma):
    theta, scores, ends = coverage, [], []
    for point, label in zip(forecast, y, strict=True):
        rank = int(np.ceil(theta * (len(scores) + 1)))
        reach = np.inf if rank > len(scores) else np.sort(scores)[rank - 1] if rank > 0 else -np.inf
        ends.append((point - reach, point + reach))
        missed = abs(label - point) > reach
        theta += gamma * (missed - (1.0 - coverage))
        scores.append(abs(label - point))
    return np.array(ends)


by_hand = aci_by_hand(y, forecast, 0.9, 0.01)

# %% [markdown]
# ## The same in setpoint
#
# `size` is how many past errors are kept; R keeps all of them.

# %%
tape = sp.Tape.from_arrays({"prediction": forecast}, y)
aci = sp.replay(sp.published.aci(0.9, gamma=0.01, size=3_000), tape)
print(
    "as by hand:", np.allclose(aci.lower, by_hand[:, 0]) and np.allclose(aci.upper, by_hand[:, 1])
)

# %% [markdown]
# (One detail differs from R: of n past errors R takes the ⌈θn⌉-th, and the loop above, like the paper of ACI, the
# ⌈θ(n + 1)⌉-th.)
#
# ## What you gain
#
# The default needs no γ and follows changes sooner. The *Winkler score* adds up the width and a penalty for misses;
# smaller is better. At γ = 0.01 both have the same bound on misses. With another γ the bound changes; with the
# default it is always this one.

# %%
default = sp.replay(sp.intervals(coverage=0.9), tape)


def winkler(trace):
    beyond = np.maximum(trace.lower - y, 0.0) + np.maximum(y - trace.upper, 0.0)
    score = trace.upper - trace.lower + 2.0 / 0.1 * beyond
    return float(score[np.isfinite(score)].mean())


def row(trace):
    told, risk = trace.summary(), trace.certificate().risks[0]
    return {
        "coverage": f"{told.coverage:.1%}",
        "mean width": round(told.mean_finite_length, 2),
        "Winkler score, finite rows": round(winkler(trace), 2),
        "whole lines": int(np.isinf(trace.upper).sum()),
        "worst 250 rows off by": f"{told.worst_window:.1%}",
        "misses too many, at most": round(risk.constant_upper, 1),
    }


pd.DataFrame({"ACI, γ = 0.01": row(aci), "the default": row(default)})

# %%
figure, axes = plt.subplots(figsize=(8, 3))
for name, trace, colour in (("ACI", aci, "grey"), ("the default", default, None)):
    rolling = np.convolve(trace.covered, np.ones(250) / 250, mode="valid")
    axes.plot(np.arange(249, len(y)), rolling, color=colour, label=name)
axes.axhline(0.9, linestyle=":", color="grey")
axes.set(xlabel="row", ylabel="coverage of the last 250")
axes.legend()
plt.show()

# %% [markdown]
# ## Live
#
# In R you carry `fit` along. Here the stream keeps its own state, can be saved, and takes actual values that arrive
# late.

# %%
stream = sp.Stream(sp.intervals(coverage=0.9))
interval = stream.predict(12.0, id="monday")
stream.update(12.4, id="monday")

# %% [markdown]
# Next: [how to choose](../choose.md), and [the comparison](../comparison.md) with every rule of this kind.
