# %% [markdown]
# # A forecaster that drifts in production
#
# **The question.** You trained a model some weeks ago. It has been in service since, and conditions have changed. Its
# 90 % intervals no longer cover 90 %. What can you show today, without a new model?
#
# We simulate hourly electricity demand for a year and a half, with seasons, a trend, a heat wave and volatile weeks.
# You need only numpy.

# %%
import matplotlib.pyplot as plt
import numpy as np

import setpoint as sp
from setpoint.jobs.demo import world

hours = world(seed=3)
print(f"{len(hours.demand):,} hours, from {hours.time[0]} to {hours.time[-1]}")

# %% [markdown]
# ## The model
#
# The model is a linear regression on the calendar and the temperature. We train it on the first eight weeks, and
# measure its errors there. Then it goes live and is never trained again.

# %%
hour = np.arange(len(hours.demand))
clock = 2 * np.pi * (hour % 24) / 24
weekend = hour // 24 % 7 >= 5
x = np.column_stack(
    [
        np.ones(len(hour)),
        np.sin(clock),
        np.cos(clock),
        np.sin(2 * clock),
        weekend,
        hours.temperature,
    ]
)
past, live = slice(0, 8 * 7 * 24), slice(8 * 7 * 24, None)
weights, *_ = np.linalg.lstsq(x[past], hours.demand[past], rcond=None)
forecast = x @ weights
low, high = np.quantile(hours.demand[past] - forecast[past], [0.05, 0.95])

y = hours.demand[live]
lower, upper = forecast[live] + low, forecast[live] + high
inside = (lower <= y) & (y <= upper)
print(f"asked 90 %, and {inside.mean():.1%} lie inside")

# %% [markdown]
# The intervals were right for the weeks they were made on. Over the year they are far from it.
#
# ## The same forecasts, kept at 90 %
#
# A `Stream` takes each interval of the model and shows one of its own. When the actual value (*label*) is known, you
# pass it to the stream. That is all: nothing is trained, and there are no settings to choose.

# %%
stream = sp.Stream(sp.intervals(coverage=0.9))
shown = []
for ends, label in zip(zip(lower, upper, strict=True), y, strict=True):
    shown.append(stream.predict(ends))
    stream.update(label)
shown = np.array(shown)
stream.summary()

# %% [markdown]
# Coverage by month: the model alone in grey, with setpoint in colour.

# %%
held = (shown[:, 0] <= y) & (y <= shown[:, 1])
month = hours.time[live].astype("datetime64[M]")
months = np.unique(month)[:-1]
alone = np.array([inside[month == each].mean() for each in months])
calibrated = np.array([held[month == each].mean() for each in months])

figure, axes = plt.subplots(figsize=(8, 3))
axes.plot(months.astype("datetime64[D]"), alone, "o-", color="grey", label="the model alone")
axes.plot(months.astype("datetime64[D]"), calibrated, "o-", label="with setpoint")
axes.axhline(0.9, linestyle=":", color="grey")
axes.set(ylabel="coverage", ylim=(0, 1))
axes.legend()
plt.show()

# %% [markdown]
# ## What is guaranteed
#
# The certificate says what happened so far, and what can never happen. It also lists the assumptions, and whether
# they hold here.

# %%
print(stream.certificate())

# %% [markdown]
# ## What does the drift cost?
#
# The stream has learnt how far the forecast is off, and moves the interval there. So this drift costs no width. Other
# drifts do. When the intervals become too wide for your use, train the model again; the stream continues as it is.

# %%
width = shown[:, 1] - shown[:, 0]
first, last = width[month == months[0]].mean(), width[month == months[-1]].mean()
print(f"mean width: {first:.1f} GW in the first month, {last:.1f} GW in the last")
print(f"the forecast is off by {np.mean(y - forecast[live]):.1f} GW on average")

# %% [markdown]
# Next: [get alerts](../monitoring.md#alarms), or [run it as a service](../service.md).
