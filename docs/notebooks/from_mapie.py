# %% [markdown]
# # From MAPIE
#
# **The question.** You use MAPIE. Its intervals are right on the test set, where rows are in random order. Now the
# rows arrive in time order, and conditions change. What changes in your code, and what do you get?
#
# | in MAPIE | here |
# |---|---|
# | `confidence_level=0.9` | `coverage=0.9` |
# | `SplitConformalRegressor(model).conformalize(X, y)` | `IntervalRegressor(model).fit(X, y)` |
# | `predict_interval(X)` gives points, and ends (n, 2, levels) | `predict_interval(X)` gives ends (n, 2) |
# | `TimeSeriesRegressor(method="aci")` with `adapt_conformal_inference` and `update` | `partial_fit(X, y)` |
# | `SplitConformalClassifier`, `predict_set` | `SetClassifier`, `predict_set` |
# | several levels at once | `controller=` with `sets.Nested` |
# | a guarantee for rows in random order, on average | a guarantee for every stream, printed by `certificate()` |
#
# This notebook needs `pip install mapie` and the extra `sklearn`.

# %%
import matplotlib.pyplot as plt
import numpy as np
from mapie.regression import SplitConformalRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import Ridge

import setpoint as sp
from setpoint.models.sklearn import IntervalRegressor

data = sp.generators.drift(3_000, size=6.0, seed=1)  # the level rises by 6, evenly
x, y = data.x, data.y
model = Ridge().fit(x[:500], y[:500])
calibration, live = slice(500, 1_000), slice(1_000, 3_000)

# %% [markdown]
# ## MAPIE alone

# %%
mapie = SplitConformalRegressor(model, confidence_level=0.9, prefit=True)
mapie.conformalize(x[calibration], y[calibration])
_, ends = mapie.predict_interval(x[live])
fixed = ends[:, :, 0]

# %% [markdown]
# ## setpoint, with the same model
#
# `FrozenEstimator` keeps the model as it was fitted. `fit` runs over the calibration rows, and `partial_fit` over the
# live ones: for each row an interval is shown, then its actual value (*label*) is used to learn. `shown_` has the
# intervals that were shown.

# %%
held = IntervalRegressor(FrozenEstimator(model), coverage=0.9, initial=0)
held.fit(x[calibration], y[calibration]).partial_fit(x[live], y[live])
adaptive = held.shown_[-len(y[live]) :]


# %%
def inside(ends):
    return (ends[:, 0] <= y[live]) & (y[live] <= ends[:, 1])


for name, ends in (("MAPIE", fixed), ("setpoint", adaptive)):
    print(
        f"{name:10}coverage {inside(ends).mean():6.1%}, mean width {np.ptp(ends, axis=1).mean():.2f}"
    )

# %%
figure, axes = plt.subplots(figsize=(8, 3))
for name, ends, colour in (("MAPIE", fixed, "grey"), ("setpoint", adaptive, None)):
    rolling = np.convolve(inside(ends), np.ones(250) / 250, mode="valid")
    axes.plot(np.arange(249, len(rolling) + 249), rolling, color=colour, label=name)
axes.axhline(0.9, linestyle=":", color="grey")
axes.set(xlabel="live row", ylabel="coverage of the last 250", ylim=(0, 1))
axes.legend()
plt.show()

# %% [markdown]
# MAPIE's intervals stay as they were calibrated. setpoint's follow the actual values, and are not wider.
#
# ## When to stay with MAPIE
#
# If rows are in random order, and you never get actual values back, MAPIE is the right tool: its intervals are right
# from the first test row, and setpoint learns only from actual values. If you do get them, setpoint can also
# calibrate MAPIE's own intervals: pass them as predictions.

# %%
stream = sp.Stream(sp.presets.around(coverage=0.9))
hits = []
for (lower, upper), label in zip(fixed.tolist(), y[live].tolist(), strict=True):
    stream.predict((lower, upper))
    hits.append(1.0 - stream.update(label))
print(f"MAPIE's intervals, held: coverage {np.mean(hits):.1%}")

# %% [markdown]
# Next: [from MAPIE in ten minutes](../from-mapie.md), which compares both in one call, and
# [adapters](../adapters.md#scikit-learn).
