# %% [markdown]
# # Intervals for the day ahead
#
# **The question.** Every half hour you forecast the demand at the same time tomorrow. The actual value (*label*) is
# known a day later. Until then you make 47 other forecasts. Your backtest says 90 % and narrow intervals. Will the
# live system have them too?
#
# We simulate half-hourly demand with a daily cycle and slowly changing weather, more volatile in a storm. The
# forecast says that tomorrow will be like today.

# %%
import matplotlib.pyplot as plt
import numpy as np

import setpoint as sp

DAY, DAYS = 48, 120
random = np.random.default_rng(0)
step = np.arange(DAY * DAYS)
wave = np.sin(2.0 * np.pi * step / DAY) + 0.4 * np.sin(4.0 * np.pi * step / DAY)
storm = np.where((step > 60 * DAY) & (step < 70 * DAY), 2.0, 1.0)
weather, slow = 0.0, np.empty(len(step))
for row, shock in enumerate(storm * random.normal(0.0, 0.25, len(step))):
    slow[row] = weather = 0.985 * weather + shock
demand = 30.0 + 8.0 * wave + slow + random.normal(0.0, 0.15, len(step))

forecast, label = demand[:-DAY], demand[DAY:]
tape = sp.Tape.from_arrays({"prediction": forecast}, label)

# %% [markdown]
# ## Say when actual values are known
#
# We run the same backtest three times. First as if every actual value were known at once: this is what a backtest
# without the delay claims, and no live system can reach it. Then with the delay. Then with the delay and a daily
# season.
#
# Two other methods are compared. A *rolling quantile* puts the 90 % quantile of the last 300 known errors on both
# sides of the forecast. The *γ chosen in hindsight* is the paper's rule with the best of thirty step sizes, which
# nobody knows beforehand. The *Winkler score* adds up width and a penalty for misses; lower is better. All are scored
# after the first week.

# %%
late, judged = DAY - 1, slice(7 * DAY, None)


def measured(lower, upper):
    return sp.metrics.summary(lower[judged], upper[judged], label[judged], level=0.1)


ways = {
    "labels taken as known at once": (sp.intervals(coverage=0.9), 0),
    "labels a day late": (sp.intervals(coverage=0.9), late),
    "labels a day late, period a day": (sp.intervals(coverage=0.9, period=DAY), late),
}
traces = {name: sp.replay(each, tape, delay=delay) for name, (each, delay) in ways.items()}
found = {name: measured(trace.lower, trace.upper) for name, trace in traces.items()}
found["rolling quantile of known errors"] = measured(*traces["labels a day late"].baseline())

tried = []
for gamma in np.geomspace(0.001, 1.0, 30):
    risk = sp.Risk(sp.losses.Miscoverage(), level=0.1, step=sp.steps.Fixed(gamma))
    trace = sp.replay(sp.Controller(sp.sets.Widen(), risk), tape, delay=late)
    tried.append(measured(trace.lower, trace.upper))
found["γ chosen in hindsight"] = min(tried, key=lambda told: told.winkler)

print(f"{'':34}coverage   length   Winkler   longest streak   worst 250")
for name, told in found.items():
    print(
        f"{name:34}{told.coverage:8.1%}{told.mean_length:9.2f}{told.winkler:10.2f}"
        f"{told.longest_streak:17d}{told.worst_window:12.3f}"
    )

# %% [markdown]
# *Worst 250* is how far the coverage of 250 consecutive rows was from 90 %, at worst. When the weather forecast is
# wrong it is wrong for hours, and none of these actual values is known before the next day. So long streaks of misses
# cannot be avoided, and a backtest that hides them is useless. Apart from the storm this stream never changes, and
# there a step size chosen in hindsight is hard to beat. The rolling quantile is narrow because it covers less than
# asked. The picture shows the first days of the storm.

# %%
rows = slice(59 * DAY, 64 * DAY)
figure, axes = plt.subplots(figsize=(8, 3))
for name, colour in (("labels a day late", "C0"), ("labels taken as known at once", "C1")):
    trace = traces[name]
    axes.fill_between(
        step[rows] / DAY, trace.lower[rows], trace.upper[rows], alpha=0.35, color=colour, label=name
    )
axes.plot(step[rows] / DAY, label[rows], ".", markersize=2, color="grey", label="demand")
axes.set(xlabel="day", ylabel="GW")
axes.legend(loc="upper left")
plt.show()

# %% [markdown]
# ## Live is the same
#
# A live stream receives each actual value when it is known, by its id. It shows the same intervals as the backtest,
# bit for bit.

# %%
stream = sp.Stream(sp.intervals(coverage=0.9))
same = True
for row, point in enumerate(forecast):
    if row > late:
        stream.update(label[row - 1 - late], id=row - 1 - late)
    shown = stream.predict(point, id=row)
    held = traces["labels a day late"]
    same &= tuple(shown) == (held.lower[row], held.upper[row])
print(f"the live stream showed the intervals of the replay, to the bit: {same}\n")
print(stream.certificate())

# %% [markdown]
# Next: the guide on [horizons](../horizons.md), with measurements on real data and with files.
