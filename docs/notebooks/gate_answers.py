# %% [markdown]
# # Answer, or ask a person
#
# **The question.** A language model answers customers. Each answer comes with a confidence, and a wrong answer that is sent
# costs trust. "At most 5 % of all questions may be answered wrongly" is what the product owner asks. Nobody has the time
# to check every answer.
#
# The log here is made by a formula: twenty thousand questions on six topics. The model's confidence is right for the first
# half. Then two topics change (prices and rules are new), and the model is as sure of itself as before.

# %%
import matplotlib.pyplot as plt
import numpy as np

import setpoint as sp

world = np.random.default_rng(11)
questions = 20_000
topic = world.integers(0, 6, questions)
confidence = world.beta(5.0, 1.5, questions)
changed = (np.arange(questions) >= questions // 2) & (topic < 2)
right = world.random(questions) < np.where(changed, 0.35, confidence)

# %% [markdown]
# ## The threshold of last month
#
# The usual way: label two thousand answers, take the lowest confidence that keeps errors to 5 %, and leave it.

# %%
first = 2_000
order = np.argsort(-confidence[:first])
allowed = np.cumsum(~right[:first][order]) <= 0.05 * first
threshold = confidence[:first][order][allowed][-1]
by_threshold = confidence >= threshold
print(f"send from {threshold:.2f} on")

# %% [markdown]
# ## A gate, with every fifth answer checked
#
# The gate tosses a coin for each answer that it sends, and asks for a check of every fifth. `decide` says whether to send, and
# whether to check. The check comes when it comes.

# %%
gate = sp.gate(
    errors=0.05, audits=0.2, secret="the notebook's coins, so that it runs the same again"
)
sent = np.zeros(questions, bool)
for question in range(questions):
    decision = gate.decide(confidence[question], id=question)
    sent[question] = decision.act
    if decision.audit:
        gate.update(wrong=not right[question], id=question)
gate.certificate()

# %% [markdown]
# Two statements, apart. The *estimate* keeps to the budget whatever the questions are. The *true* number of errors is below
# the last number with 95 %, over the gate's own coins.
#
# Here we know the truth, and can look. Errors above what was asked:

# %%
above = {
    "gate": np.cumsum(sent & ~right) - 0.05 * np.arange(1, questions + 1),
    "threshold": np.cumsum(by_threshold & ~right) - 0.05 * np.arange(1, questions + 1),
}
figure, axes = plt.subplots(figsize=(8, 2.8))
for name, line in above.items():
    axes.plot(line, label=name)
axes.axhline(0.0, linestyle=":", color="grey")
axes.set(xlabel="question", ylabel="errors too many")
axes.legend()
plt.show()

# %% [markdown]
# When the two topics change, the threshold goes on sending, and errors pile up. The gate sends less, until what it sends is worth
# sending again. It was never told what had changed.
#
# With a log of your own: `setpoint gate log.csv --score confidence --wrong wrong --audits 0.2`. [Decisions](../decisions.md) has
# the pitfalls, one by one.
