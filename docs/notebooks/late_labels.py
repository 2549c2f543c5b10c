# %% [markdown]
# # Actual values that come late, or never
#
# **The question.** A parcel service promises a time of arrival. Whether the promise was good is known when the parcel
# arrives: hours later, in any order, and for lost parcels never. How do intervals learn from that?
#
# We simulate ten thousand parcels. One is sent every minute, and the roads are slow in the second half.

# %%
import heapq

import matplotlib.pyplot as plt
import numpy as np

import setpoint as sp

world = np.random.default_rng(5)
parcels = 10_000
guess = world.gamma(4.0, 30.0, parcels)  # what the model says, in minutes
slow = np.where(np.arange(parcels) > parcels // 2, 1.5, 1.0)
took = guess * slow * world.lognormal(0.0, 0.25, parcels)
lost = world.random(parcels) < 0.02

# %% [markdown]
# ## Predict now, learn later
#
# Each prediction has an id. The actual value (*label*) arrives with that id, and is compared with the interval that
# was *shown* for it. A parcel that has not arrived after 24 hours counts as lost, and its prediction is dropped.

# %%
stream = sp.Stream(sp.intervals(coverage=0.9, support=(0.0, float("inf"))))
shown, hits = np.empty((parcels, 2)), np.full(parcels, np.nan)
news: list[tuple[float, int]] = []  # (minute, parcel): when something becomes known of it

for minute in range(parcels):
    while news and news[0][0] <= minute:
        _, parcel = heapq.heappop(news)
        if lost[parcel]:
            stream.drop(id=parcel)
        else:
            hits[parcel] = 1.0 - stream.update(took[parcel], id=parcel)
    shown[minute] = stream.predict(guess[minute], id=minute)
    heapq.heappush(news, (minute + (1_440.0 if lost[minute] else took[minute]), minute))

stream.summary()

# %% [markdown]
# Coverage of the last 500 parcels that arrived. It falls when the roads become slow. You learn of that hours later,
# when the parcels arrive; then coverage recovers.

# %%
arrived = hits[~np.isnan(hits)]
rolling = np.convolve(arrived, np.ones(500) / 500, mode="valid")
figure, axes = plt.subplots(figsize=(8, 2.8))
axes.plot(np.flatnonzero(~np.isnan(hits))[499:], rolling)
axes.axhline(0.9, linestyle=":", color="grey")
axes.axvline(parcels // 2, linestyle=":", color="grey")
axes.set(xlabel="parcel", ylabel="coverage of the last 500")
plt.show()

# %% [markdown]
# ## What it costs
#
# The guarantee leaves room for the open predictions. The more there are, the more misses can pile up before the first
# of them is known. It has two numbers: one for all the time since the start, and one from now on, which falls when
# fewer parcels are on the road. A dropped parcel no longer counts. The guarantee says nothing about its arrival,
# because nobody ever saw it.

# %%
certificate = stream.certificate()
bound = certificate.risks[0].bound
print(f"at most {certificate.most_pending} awaited at once, {certificate.dropped} dropped")
print(
    f"never more than {bound.since_start:.1f} misses too many, and {bound.from_now:.1f} from now on"
)
print(
    f"now {certificate.risks[0].account:.1f}, if all that is awaited misses {certificate.risks[0].worst:.1f}"
)

# %% [markdown]
# ## The same from a file
#
# If you have a table with the time at which each actual value became known, the whole history is one call. The
# backtest uses each actual value from that time on, and gives the same intervals as the live loop. A lost parcel has
# no actual value; after 24 hours it is known that none will come.

# %%
send = np.arange(parcels, dtype=float)
known = send + np.where(lost, 1_440.0, took)
label = np.where(lost, np.nan, took)
tape = sp.Tape.from_arrays({"prediction": guess}, label, time=send, known=known)
trace = sp.replay(sp.intervals(coverage=0.9, support=(0.0, float("inf"))), tape)
same = np.array_equal(trace.lower, shown[:, 0]) and np.array_equal(trace.upper, shown[:, 1])
print(f"coverage {trace.coverage:.1%}; the intervals of the live loop, to the bit: {same}")

# %% [markdown]
# Next: [late actual values](../late-labels.md), and [horizons](../horizons.md) for forecasts several steps ahead.
