# %% [markdown]
# # A review queue, and a classifier that drifts
#
# **The question.** A classifier sorts incoming items, and people review what it is not sure of. The scanner gets
# worse over the months. Who notices, and who keeps the errors that nobody reviewed to 4 % of all items?
#
# The items are the digits of scikit-learn, and a scanner that blurs them more and more. A reviewer's finding is known
# fifty items later.

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.svm import SVC

import setpoint as sp

digits, world = load_digits(), np.random.default_rng(4)
order = world.permutation(len(digits.target))
pixels, digit = digits.images[order], digits.target[order]
model = SVC(gamma=0.001).fit(pixels[:400].reshape(-1, 64), digit[:400])

items = world.integers(400, len(digit), 6_000)
noise = np.linspace(0.0, 7.0, len(items))[:, None, None]
scans = pixels[items] + noise * world.normal(size=(len(items), 8, 8))
margins = np.sort(model.decision_function(scans.reshape(-1, 64)), axis=1)
score = margins[:, -1] - margins[:, -2]  # any number, as long as higher is surer
wrong = model.predict(scans.reshape(-1, 64)) != digit[items]
wrong[:1_000].mean(), wrong[-1_000:].mean()

# %% [markdown]
# ## The gate sorts
#
# It acts on what it lets pass; the rest goes to the queue. Reviewers judge the queue too, and the gate learns from
# what they find (this costs nothing).

# %%
alarms: list[sp.Alarm] = []
gate = sp.gate(errors=0.04, on_alarm=alarms.append, window=500, tolerance=0.02)
passed = np.zeros(len(items), bool)
for t in range(len(items)):
    passed[t] = gate.decide(score[t], id=t).act
    if t >= 50:
        gate.update(wrong=wrong[t - 50], id=t - 50)
gate.certificate()

# %% [markdown]
# The queue grows as the scanner gets worse, and the errors stay at the level you set:

# %%
window = np.ones(500) / 500
figure, (top, bottom) = plt.subplots(2, 1, figsize=(8, 4), sharex=True)
top.plot(np.convolve(passed, window, mode="valid"))
top.set(ylabel="passed, of 500")
bottom.plot(np.convolve(passed & wrong, window, mode="valid"))
bottom.plot(np.convolve(wrong, window, mode="valid"), color="grey", linewidth=1)
bottom.axhline(0.04, linestyle=":", color="grey")
bottom.set(xlabel="item", ylabel="passed and wrong")
plt.show()

# %% [markdown]
# The grey line is how often the classifier is wrong. If everything passed, that would be the error rate. Watch the
# share that passes: when it falls, the model has got worse.
