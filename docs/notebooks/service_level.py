# %% [markdown]
# # A service level
#
# **The question.** A shop may run out on one day in twenty. How much should it order, and what does the rest of the
# distribution look like?
#
# The forecast is one number per day. Demand is skewed: high days are further from the forecast than low days.

# %%
import matplotlib.pyplot as plt
import numpy as np

import setpoint as sp

DAYS = 1500
world, day = np.random.default_rng(1), np.arange(DAYS)
forecast = 100 + 30 * np.sin(2 * np.pi * day / 7)
demand = forecast * world.gamma(20, 1 / 20, DAYS)

# %% [markdown]
# ## Quantiles, one of them guarded
#
# The order is the 95 % quantile. It is *guarded*: setpoint limits how often demand exceeds it. The others are
# estimated and measured.

# %%
levels = [0.05, 0.25, 0.5, 0.75, 0.95]
tape = sp.Tape.from_arrays({"point": forecast}, demand)
trace = sp.replay(sp.quantiles(levels, guarded=[0.95], period=7), tape)
order = trace.ends["q95"]
short = float(np.mean(demand > order))
print(f"short on {100 * short:.1f} % of the days")
print(trace.certificate().summary())

# %%
recent = slice(-60, None)
figure, axes = plt.subplots(figsize=(8, 3))
for low, high in (("q05", "q95"), ("q25", "q75")):
    axes.fill_between(
        day[recent], trace.ends[low][recent], trace.ends[high][recent], color="C0", alpha=0.25
    )
axes.plot(day[recent], trace.ends["q50"][recent], color="C0")
axes.plot(day[recent], demand[recent], "k.")
axes.set(xlabel="day", ylabel="demand")
plt.show()

# %% [markdown]
# ## Is the distribution right?
#
# `calibration` has the share of days at or below each quantile. They are within three points of the target, and
# quantiles never cross.

# %%
scores = trace.calibration()
for level, share in zip(scores.levels, scores.shares, strict=True):
    print(f"{100 * level:3.0f} %  {100 * share:5.1f} %")
ends = np.stack([trace.ends[name] for name in ("q05", "q25", "q50", "q75", "q95")])
crossed = int((ends[:-1] > ends[1:]).sum())
