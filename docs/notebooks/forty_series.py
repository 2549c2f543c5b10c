# %% [markdown]
# # Forty series at once
#
# **The question.** You forecast the sales of forty shops. Some are large, some small, some change in mid-year. Each
# shop wants intervals that are right *for this shop*. Must you tune forty times?
#
# We make forty shops and 400 days. In every fifth shop the customers change on day 200.

# %%
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import setpoint as sp

world = np.random.default_rng(8)
shops, days = 40, 400
size = world.lognormal(4.0, 1.0, shops)
calm = world.uniform(0.05, 0.4, shops)
rows = [
    {
        "shop": f"shop {shop:02d}",
        "day": pd.Timestamp("2025-01-01") + pd.Timedelta(days=day),
        "forecast": size[shop],
        "sales": size[shop]
        * (1.4 if shop % 5 == 0 and day >= 200 else 1.0)
        * (1.0 + calm[shop] * world.standard_t(5)),
    }
    for day in range(days)
    for shop in range(shops)
]
sales = pd.DataFrame(rows)
sales.head(3)

# %% [markdown]
# ## One margin for all is wrong for most
#
# A common shortcut is one margin for all shops, in percent of the forecast. On average it is right.

# %%
errors = (sales["sales"] / sales["forecast"] - 1.0).abs()
pooled = errors <= errors.quantile(0.9)
by_shop = pooled.groupby(sales["shop"]).mean()
print(
    f"all shops {pooled.mean():.1%}; the worst shop {by_shop.min():.1%}, the best {by_shop.max():.1%}"
)

# %% [markdown]
# ## Each shop on its own, in one call
#
# Name the column that tells the series apart. Every shop is a stream of its own, with its own guarantee. They share
# no unit and no step size, so large shops do not drown out small ones.

# %%
trace = sp.replay(
    sp.intervals(coverage=0.9),
    sales,
    columns=sp.Columns("sales", point="forecast", series="shop", time="day"),
)
held = trace.to_frame().groupby("series")["covered"].mean()
print(f"all shops {trace.coverage:.1%}; the worst shop {held.min():.1%}, the best {held.max():.1%}")

# %%
figure, axes = plt.subplots(figsize=(8, 3))
axes.plot(np.sort(by_shop.to_numpy()), "o", color="grey", label="one margin for all")
axes.plot(np.sort(held.to_numpy()), "o", label="with setpoint")
axes.axhline(0.9, linestyle=":", color="grey")
axes.set(xlabel="shops, each row of dots sorted", ylabel="coverage")
axes.legend()
plt.show()

# %% [markdown]
# ## Tomorrow, live
#
# The backtest ended in a state for each shop. A `Fleet` continues from there: one call for all forty, every day.

# %%
fleet = sp.Fleet(sp.intervals(coverage=0.9), [])
fleet.add(trace.states.keys(), list(trace.states.values()))
tomorrow = fleet.predict(size)
pd.DataFrame({"lower": tomorrow.lower, "upper": tomorrow.upper}, index=fleet.ids).head(3)

# %% [markdown]
# Next: [panels](../panels.md), with new shops, and [Spark](../spark.md) for a million series.
