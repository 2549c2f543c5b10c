# %% [markdown]
# # The next week
#
# **The question.** You have daily sales and want the next seven days, with intervals. How far can you trust them on the
# seventh day?
#
# The sales have a weekly cycle, a drifting level, and promotions that are known in advance.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import setpoint as sp

DAYS, STEPS = 900, 7
world, day = np.random.default_rng(4), np.arange(DAYS + STEPS)
promotion = (world.random(DAYS + STEPS) < 0.15).astype(int)
level = 200 + np.cumsum(world.normal(0, 2, DAYS + STEPS))
sales = level + 30 * np.sin(2 * np.pi * day / 7) + 60 * promotion + world.normal(0, 8, DAYS + STEPS)
rows = pd.DataFrame(
    {
        "day": pd.date_range("2023-01-01", periods=DAYS + STEPS),
        "promotion": promotion,
        "sales": sales,
    }
)
truth = rows["sales"].tail(STEPS).to_numpy()
rows.loc[DAYS:, "sales"] = np.nan  # seven future rows, with their promotions
rows.tail(8)

# %% [markdown]
# ## Three lines
#
# Rows after the last actual value are forecast. `known_ahead` lists the columns whose future values you know.

# %%
ahead = sp.forecast(rows, "sales", known_ahead=["promotion"], model="linear")
frame = ahead.to_frame()
frame

# %%
past = rows["sales"].to_numpy()[DAYS - 40 : DAYS]
figure, axes = plt.subplots(figsize=(8, 3))
axes.plot(np.arange(-39, 1), past, color="black")
for coverage in (90, 80, 50):
    axes.fill_between(
        frame["step"],
        frame[f"lower_{coverage}"],
        frame[f"upper_{coverage}"],
        color="C0",
        alpha=0.25,
    )
axes.plot(frame["step"], frame["point"], color="C0")
axes.plot(frame["step"], truth, "k.")
axes.set(xlabel="days ahead", ylabel="sales")
plt.show()

# %% [markdown]
# ## How good were such forecasts?
#
# The backtest forecasts every past day seven times, one to seven days ahead. Intervals widen with the horizon, and
# cover the same share at each.

# %%
table = pd.DataFrame(
    {
        "MAE": [one["mae"] for one in ahead.horizons],
        "MAE, a week before": [one["mae_seasonal"] for one in ahead.horizons],
        "in 90 %": [one["levels"][-1]["share"] for one in ahead.horizons],
        "width": [one["levels"][-1]["width"] for one in ahead.horizons],
    },
    index=[one["horizon"] for one in ahead.horizons],
)
table.round(3)

# %% [markdown]
# ## A day later
#
# The first day is over. `update` adds its actual value and makes the next forecast, as if the whole file had been
# there at once.

# %%
come = rows.iloc[DAYS:].copy()
come.loc[DAYS, "sales"] = truth[0]
later = ahead.update(come)
later.to_frame()[["day", "step", "point", "lower_90", "upper_90"]]
