# %% [markdown]
# # A loss of your own: money
#
# **The question.** A bakery bakes up to the upper bound of a forecast. A customer who finds no bread costs 3 €. The
# baker does not think in "90 % of the days", but in "at most 12 € a day, on average". Can that be kept?
#
# Yes: setpoint can control any loss with a fixed range that does not grow with the interval. We simulate two years.

# %%
import matplotlib.pyplot as plt
import numpy as np

import setpoint as sp

world = np.random.default_rng(6)
days = 730
week = np.tile([80, 85, 85, 90, 110, 160, 120], days // 7 + 1)[:days]
fair = np.where((np.arange(days) > 400) & (np.arange(days) < 520), 1.25, 1.0)
asked = world.poisson(week * fair * world.lognormal(0.0, 0.12, days)).astype(float)
forecast = week.astype(float)  # it knows the week, and not the building site next door

# %% [markdown]
# ## The loss
#
# It is a function of the interval and the actual value. It needs a range, so we call 150 € a disaster and cap it
# there. The loss is a share of that, from 0 to 1.

# %%
DISASTER = 150.0


def unsold(shown, y):
    """What missing bread costs, as a share of a disaster."""
    return min(3.0 * max(y - shown.upper, 0.0) / DISASTER, 1.0)


loss = sp.losses.Custom(unsold)

# %% [markdown]
# A loss must keep two promises: its range, and that a wider interval never costs more. A check tests both.

# %%
from setpoint.testing import check

check(loss)
print("the loss keeps its promises")

# %% [markdown]
# ## Keep it at 12 € a day
#
# `sets.Upper` shows only an upper bound. `presets.intervals` would do as well; here only one side costs money.

# %%
risk = sp.Risk(loss, level=12.0 / DISASTER, step=sp.steps.Fixed(60.0), bounds=(-100.0, 200.0))
stream = sp.Stream(sp.Controller(sp.sets.Upper(), risk))
baked, paid = np.empty(days), np.empty(days)
for day in range(days):
    shown = stream.predict(forecast[day])
    baked[day] = shown.upper
    paid[day] = DISASTER * stream.update(asked[day])

cost = 3.0 * np.maximum(asked - forecast, 0.0)
print(f"baked as forecast: {cost.mean():.1f} € a day")
print(f"with setpoint:     {paid.mean():.1f} € a day; allowed 12 €")

# %%
figure, axes = plt.subplots(figsize=(8, 3))
for name, euros, colour in (("as forecast", cost, "grey"), ("with setpoint", paid, None)):
    month = np.convolve(euros, np.ones(56) / 56, mode="valid")
    axes.plot(np.arange(55, days), month, color=colour, label=name)
axes.axhline(12.0, linestyle=":", color="grey")
axes.set(xlabel="day", ylabel="€ a day, mean of 8 weeks", ylim=(0, None))
axes.legend()
plt.show()

# %% [markdown]
# ## What is guaranteed
#
# The certificate is about the loss. In euros, it is the bound times what we called a disaster.

# %%
told = stream.certificate().risks[0]
print(told.verdict)
print(f"after {told.judged} days: at most {DISASTER * (told.level + told.upper):.0f} € a day")

# %% [markdown]
# That holds whatever the data, even if an adversary picks them. It gets tighter every day, because the total excess
# that it allows stays the same.
#
# Next: [your own components](../extend.md#a-loss), and [several risks](several_risks.py).
