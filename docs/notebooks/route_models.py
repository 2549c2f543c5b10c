# %% [markdown]
# # Route between two models
#
# **The question.** A small model is fast and cheap, a large one is better and costs ten times as much. Which requests
# can the small one take, if at most 3 % of all requests may be answered wrongly *because* the small one took them?
#
# Two real classifiers of handwritten digits: one sees the 16 pixels in the middle, the other all 64.

# %%
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

import setpoint as sp

digits = load_digits()
order = np.random.default_rng(3).permutation(len(digits.target))
pixels, digit = digits.images[order], digits.target[order]
middle, whole = pixels[:, 2:6, 2:6].reshape(-1, 16), pixels.reshape(-1, 64)
cheap = LogisticRegression(max_iter=2_000).fit(middle[:300], digit[:300])
dear = SVC(gamma=0.001).fit(whole[:300], digit[:300])

middle, whole, digit = middle[300:], whole[300:], digit[300:]
score = cheap.predict_proba(middle).max(axis=1)  # how sure the cheap model is
cheap_right, dear_right = cheap.predict(middle) == digit, dear.predict(whole) == digit
cheap_right.mean(), dear_right.mean()

# %% [markdown]
# ## The router
#
# An error is a request that the cheap model got wrong and the expensive one would have got right. To know that, the
# expensive model must be called too, in the background, for every fourth request that the cheap one takes. That is an
# audit.

# %%
router = sp.route(errors=0.03, audits=0.25, secret="the notebook's coins")
calls, took = 0, np.zeros(len(digit), bool)
for request in range(len(digit)):
    choice = router.decide(score[request], id=request)
    took[request] = choice.act
    calls += not choice.act or choice.audit
    if choice.audit:
        lost = dear_right[request] and not cheap_right[request]
        router.update(wrong=lost, id=request)
router.summary()

# %% [markdown]
# How many calls of the expensive model that saved, and what it cost:

# %%
lost = took & dear_right & ~cheap_right
answered = np.where(took, cheap_right, dear_right)
print(f"{took.mean():.0%} to the cheap model, {calls / len(digit):.0%} calls of the dear one")
print(
    f"{lost.mean():.1%} lost, {answered.mean():.1%} right; the dear one alone {dear_right.mean():.1%}"
)

# %% [markdown]
# How many errors you accept is your choice. Accept fewer, and the cheap model takes less.
# [Decisions](../decisions.md) says what is guaranteed, and what only probably.
