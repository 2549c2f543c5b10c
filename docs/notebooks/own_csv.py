# %% [markdown]
# # A CSV of your own
#
# **The question.** You have a file with forecasts and actual values. You want 90 % intervals, in five minutes.
#
# Install `pip install -e '.[cli,data,plots,fast]'` in a clone, and open this page in Jupyter, or paste its cells.
# Then change the names in the first cell. If you have no file yet, the second cell makes one.

# %%
FILE = "sales.csv"
TIME, FORECAST, TARGET = "day", "forecast", "sales"
READ = {}  # what pandas must know of your file, such as {"sep": ";", "decimal": ","}

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import setpoint as sp

if not Path(FILE).exists():
    world = np.random.default_rng(1)
    day = pd.date_range("2023-01-01", periods=900)
    usual = 200 + 40 * np.sin(2 * np.pi * np.arange(900) / 7)
    sales = usual * np.linspace(1.0, 1.3, 900) + world.normal(0, 12, 900)
    pd.DataFrame({TIME: day, FORECAST: usual, TARGET: sales.round(1)}).to_csv(FILE, index=False)

rows = pd.read_csv(FILE, **READ)
rows.tail(3)

# %% [markdown]
# ## Intervals for every row
#
# The file is replayed as a live stream would have seen it: row by row, without looking ahead. A row without an actual
# value gets an interval and is not scored.

# %%
trace = sp.replay(
    sp.intervals(coverage=0.9), rows, columns=sp.Columns(TARGET, point=FORECAST, time=TIME)
)
trace

# %%
shown = trace.to_frame()
last = shown.tail(100)
figure, axes = plt.subplots(figsize=(8, 3))
axes.fill_between(last.index, last["lower"], last["upper"], alpha=0.35, label="90 % interval")
axes.plot(last.index, last["y"], ".", color="grey", label=TARGET)
axes.set(xlabel="row")
axes.legend()
plt.show()

# %% [markdown]
# ## Save it

# %%
rows.assign(lower=shown["lower"], upper=shown["upper"]).to_csv("intervals.csv", index=False)
print(trace.certificate())

# %% [markdown]
# ## The next row
#
# A stream continues where the file ended. Its next interval is for a forecast that has no actual value yet.

# %%
stream = sp.Stream(sp.intervals(coverage=0.9), state=trace.state)
forecast = float(rows[FORECAST].iloc[-1])
interval = stream.predict(forecast)
print(f"forecast {forecast:.4g}: 90 % interval from {interval.lower:.4g} to {interval.upper:.4g}")

# %% [markdown]
# ## If your file is different
#
# | you have | pass |
# |---|---|
# | a lower and an upper bound instead of a point forecast | `Columns("sales", lower="low", upper="high")` |
# | several series | `Columns(…, series="shop")` |
# | actual values that arrive later than the next row | `delay=6`, in rows: see [horizons](../horizons.md) |
# | probabilities of classes | `sp.label_sets(coverage=0.9)`, `Columns(…, probabilities=("p_cat", "p_dog"))` |
# | no forecasts at all | `setpoint forecast sales.csv --target sales --steps 7`: see [forecast](../forecast.md) |
