# %% [markdown]
# # A whole day within limits
#
# **The question.** A substation must stay below its limit all day. I have a 90 % interval for every hour of tomorrow.
# Is the chance of a bad day then one in ten?
#
# No. Each interval covers one hour. The whole day lies inside all twenty-four far less often.

# %%
import matplotlib.pyplot as plt
import numpy as np

import setpoint as sp

DAYS, HOURS = 400, 24
world, hour = np.random.default_rng(8), np.arange(HOURS)
forecast = np.tile(30 + 8 * np.sin(2 * np.pi * (hour - 9) / HOURS), (DAYS, 1))
away = np.cumsum(world.normal(0.0, 0.5, (DAYS, HOURS)), axis=1) + world.normal(
    0.0, 1.0, (DAYS, HOURS)
)
load = forecast + 1.5 + away  # the forecast is a little low, and errors grow during the day
steps, days = np.tile(hour + 1, DAYS), np.repeat(np.arange(DAYS), HOURS)
tape = sp.Tape.from_arrays({"point": forecast.ravel()}, load.ravel(), horizon=steps, time=days)

# %% [markdown]
# ## Each hour separately, and the path
#
# The first way is a stream for each hour. The second is one band for the path of 24 hours, with its own guarantee:
# the days that leave the band never exceed a tenth of all days by more than 10.9, whatever happens. Both are scored
# after the first 50 days.

# %%
hourly = sp.replay(
    sp.intervals(0.9), sp.Tape.from_arrays({"point": forecast.ravel()}, load.ravel(), series=steps)
)
lower, upper = hourly.lower.reshape(load.shape), hourly.upper.reshape(load.shape)
paths = sp.replay_paths(sp.paths(HOURS, coverage=0.9), tape)
judged = slice(50, None)
found = {}
for name, low, high in (("each hour", lower, upper), ("the path", paths.lower, paths.upper)):
    inside = ((low <= load) & (load <= high))[judged]
    width = (high - low)[judged].mean()
    found[name] = float(inside.mean()), float(inside.all(axis=1).mean()), float(width)
    print(
        f"{name}: {100 * found[name][0]:.0f} % of hours inside, {100 * found[name][1]:.0f} % of days, width {width:.1f}"
    )

# %%
day = DAYS - 1
figure, axes = plt.subplots(figsize=(8, 3.2))
axes.fill_between(hour, paths.lower[day], paths.upper[day], alpha=0.25, label="90 % of days")
axes.fill_between(hour, lower[day], upper[day], alpha=0.35, label="90 % of hours")
axes.plot(hour, load[day], color="black", label="what came")
axes.set(xlabel="hour", ylabel="load in MW")
axes.legend()
plt.show()

# %% [markdown]
# The band of the path is wider, because it promises more: on nine days in ten, no hour lies outside. It is wide where
# errors are large, late in the day. Actual values may arrive hour by hour: `stream.update(y, id=day, step=3)`; a day
# is scored at its first hour outside, or at its last. [Paths and totals](../paths.md) has the rest.
