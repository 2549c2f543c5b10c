# %% [markdown]
# # A classifier that meets new classes
#
# **The question.** A classifier sorts mail into four topics. In the summer a fifth topic appears, which it has never
# seen. It still names one of the four, with confidence. How do you notice, and what do you show?
#
# We make the classifier: a score for each class, turned into probabilities.

# %%
import matplotlib.pyplot as plt
import numpy as np

import setpoint as sp

world = np.random.default_rng(2)
classes = ["billing", "delivery", "returns", "praise"]
rows, summer = 6_000, range(2_500, 4_500)
truth = world.choice(classes, rows)
new = np.zeros(rows, dtype=bool)
new[summer] = world.random(len(summer)) < 0.12  # letters about the strike

scores = world.normal(size=(rows, 4))
scores[np.arange(rows), [classes.index(each) for each in truth]] += 3.5
scores[new] = world.normal(size=(int(new.sum()), 4)) * 1.5  # it guesses
chance = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
truth = np.where(new, "strike", truth)
best = np.array(classes)[chance.argmax(axis=1)]
print(f"right before the summer: {np.mean(best[:2_500] == truth[:2_500]):.1%}")
print(f"right in the summer:     {np.mean(best[2_500:4_500] == truth[2_500:4_500]):.1%}")

# %% [markdown]
# ## Sets of labels
#
# A set contains the true label as often as you asked. Where the classifier is sure it has one label, otherwise more.
# A label that the classifier does not know counts as a miss, unless the set is full: a *full* set says "it may be
# anything".

# %%
stream = sp.Stream(sp.label_sets(coverage=0.95))
sizes, hits = np.empty(rows), np.empty(rows)
for row in range(rows):
    shown = stream.predict(dict(zip(classes, chance[row].tolist(), strict=True)))
    sizes[row] = 5 if shown.full else shown.size
    hits[row] = 1.0 - stream.update(str(truth[row]))

print(f"coverage {hits.mean():.1%}, in the summer {hits[2_500:4_500].mean():.1%}")

# %% [markdown]
# ## What you see
#
# More than one letter in ten is about the new topic, and only 5 % may be missed. So small sets are no longer enough.
# They grow, and some are full. When the summer is over they shrink again. The size of the sets is the signal: it
# rises when the classifier no longer understands its input.

# %%
figure, axes = plt.subplots(figsize=(8, 3))
axes.plot(np.convolve(sizes, np.ones(100) / 100, mode="valid"))
axes.axvspan(summer.start, summer.stop, alpha=0.15, color="grey", label="a new topic")
axes.set(xlabel="letter", ylabel="labels in a set, mean of 100", ylim=(0, None))
axes.legend()
plt.show()

# %% [markdown]
# ## The class gets a name
#
# When the new class is known, train the classifier with it and pass five probabilities instead of four. The stream
# adapts: classes are identified by their names, and what was learnt is kept.

# %%
five = {"billing": 0.02, "delivery": 0.03, "returns": 0.03, "praise": 0.02, "strike": 0.9}
shown = stream.predict(five)
stream.update("strike")
print(shown)

# %% [markdown]
# Next: [classification](../classification.md), and [monitoring](../monitoring.md).
