# %% [markdown]
# # Several risks at once
#
# **The question.** A power company plans with intervals. 90 % of the hours must lie inside. *And* hours above the
# interval are expensive: what is missing must be bought. One interval must achieve both.
#
# We simulate a stream whose rare large errors come more often in the second half.

# %%
import matplotlib.pyplot as plt
import numpy as np

import setpoint as sp

world = np.random.default_rng(4)
rows = 12_000
storm = np.arange(rows) >= rows // 2
peak = world.random(rows) < np.where(storm, 0.06, 0.01)
demand = 100.0 + world.normal(0.0, 4.0, rows) + peak * world.exponential(25.0, rows)
forecast = [(93.0, 107.0)] * rows

# %% [markdown]
# ## Two losses
#
# The first loss is a miss: 1 outside, 0 inside. The second is what has to be bought, as a share of 50 MW and at most
# 1. A *level* is the mean loss you allow.


# %%
def bought(shown, y):
    """What is missing above the interval, as a share of 50 MW."""
    return min(max(y - shown.upper, 0.0) / 50.0, 1.0)


covered = sp.Risk(sp.losses.Miscoverage(), level=0.1, step=sp.steps.Fixed(0.5), bounds=(-100, 100))
supplied = sp.Risk(
    sp.losses.Custom(bought), level=0.005, step=sp.steps.Fixed(20.0), bounds=(-100, 100)
)


def run(risks, combine=None):
    """The losses of both kinds, and the widths, whatever is held."""
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risks, combine=combine))
    found = []
    for ends, y in zip(forecast, demand.tolist(), strict=True):
        shown = stream.predict(ends)
        stream.update(y)
        found.append((not shown.contains(y), bought(shown, y), shown.length))
    return stream, np.array(found, dtype=float)


# %% [markdown]
# ## One is not enough
#
# If only the misses are controlled, the hours that miss may miss by a lot. If both are, the interval is as wide as
# the more demanding risk needs.

# %%
_, one = run(covered)
stream, both = run([covered, supplied], sp.combine.Max(anti_windup=20.0))

print(f"{'':18}{'misses':>8}{'bought':>9}{'  in the storm':>14}{'width':>8}")
for name, found in (("coverage alone", one), ("both", both)):
    misses, cost, width = found.mean(axis=0)
    print(f"{name:18}{misses:8.1%}{cost:9.2%}{found[storm, 1].mean():14.2%}{width:8.1f}")
print(f"{'allowed':18}{0.1:8.1%}{0.005:9.2%}")

# %%
figure, axes = plt.subplots(figsize=(8, 3))
for name, found, colour in (("coverage alone", one, "grey"), ("both", both, None)):
    axes.plot(np.cumsum(found[:, 1]) / np.arange(1, rows + 1), color=colour, label=name)
axes.axhline(0.005, linestyle=":", color="grey")
axes.set(xlabel="hour", ylabel="bought, mean so far", ylim=(0, 0.02))
axes.legend()
plt.show()

# %% [markdown]
# Before the storm coverage is the harder risk, and in the storm it is the money. `anti_windup` lets the second take
# over quickly. The certificate has a section for each risk:

# %%
for risk in stream.certificate().risks:
    print(f"level {risk.level}: {risk.mean:.4f} came out, {risk.verdict}")

# %% [markdown]
# Each loss stays at most at its level. The risk that is not the harder one stays below it.
#
# Next: [several risks](../several-risks.md), and a [loss that is money](own_loss.py).
