# %% [markdown]
# # A total for the week
#
# **The question.** I order once a week. My forecast says what each of the next seven days will sell. How much is the
# whole week, at least and at most?
#
# Adding up the seven lower and the seven upper bounds is far too wide: good and bad days partly cancel. Treating the
# days as independent is too narrow: a bad week is bad on every day.

# %%
import matplotlib.pyplot as plt
import numpy as np

import setpoint as sp

WEEKS, DAYS = 300, 7
world = np.random.default_rng(5)
forecast = np.tile([40.0, 38.0, 41.0, 45.0, 60.0, 75.0, 30.0], (WEEKS, 1))
weather = world.normal(0.0, 0.08, (WEEKS, 1))  # of the whole week
sold = forecast * (1.0 + weather + world.normal(0.0, 0.12, (WEEKS, DAYS)))
steps, weeks = np.tile(np.arange(1, DAYS + 1), WEEKS), np.repeat(np.arange(WEEKS), DAYS)
tape = sp.Tape.from_arrays({"point": forecast.ravel()}, sold.ravel(), horizon=steps, time=weeks)

# %% [markdown]
# `totals=[7]` gives the total of seven days its own interval, with its own guarantee. It starts from the bounds of
# the days, and learns from past totals how far the days move together. `maximum=True` does the same for the best day.

# %%
trace = sp.replay_paths(sp.paths(DAYS, coverage=0.9, totals=[DAYS], maximum=True), tape)
judged, total = slice(50, None), sold.sum(axis=1)
low, high = (ends[0] for ends in trace.numbers)
day = np.quantile(np.abs(sold - forecast)[:50], 0.9, axis=0)  # what holds a day nine times in ten
middle = forecast.sum(axis=1)
ways = {
    "the total of its own": (low, high),
    "ends of days added up": (middle - day.sum(), middle + day.sum()),
    "days taken as independent": (middle - np.hypot.reduce(day), middle + np.hypot.reduce(day)),
}
found = {}
for name, (lower, upper) in ways.items():
    inside = ((lower <= total) & (total <= upper))[judged].mean()
    found[name] = float(inside), float((upper - lower)[judged].mean())
    print(f"{name}: {100 * inside:.0f} % of weeks inside, width {found[name][1]:.0f}")

# %%
shown = slice(WEEKS - 60, WEEKS)
figure, axes = plt.subplots(figsize=(8, 3))
axes.fill_between(np.arange(60), low[shown], high[shown], alpha=0.3, label="90 % of weeks")
axes.plot(total[shown], ".", color="black", label="sold in the week")
axes.set(xlabel="week", ylabel="pieces")
axes.legend()
plt.show()

# %% [markdown]
# The guarantee: the weeks whose total lies outside its interval never exceed a tenth of all weeks by more than 10.9,
# whatever happens, and likewise for the best days. For one-sided orders ("nine weeks in ten this is enough"), use
# [quantiles](../quantiles.md) with the weekly total as a series of its own.

# %%
print({name: round(share, 2) for name, share in trace.coverage.items()})
