# %% [markdown]
# # Answer, or ask a person
#
# **The question.** A language model answers customers. Each answer comes with a confidence, and sending a wrong
# answer costs trust. "At most 5 % of all questions may be answered wrongly," says the product owner. Nobody has the
# time to check every answer.
#
# We simulate a log of twenty thousand questions on six topics. The model's confidence is right for the first half.
# Then two topics change (new prices, new rules), and the model is as confident as before.

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
# ## Last month's threshold
#
# The usual way: label two thousand answers, take the lowest confidence that keeps errors to 5 %, and leave it there.

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
# The gate picks every answer that it sends with probability 20 %, and asks for a check of these. `decide` says
# whether to send, and whether to check. The check may come at any time.

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
# These are two separate statements. The *estimate* stays within the budget whatever the questions are. The *true*
# number of errors is below the last number with 95 % probability, over the random choice of checks.
#
# Here we know the truth, and can look. Errors above what you allow:

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
# When the two topics change, the threshold keeps sending, and errors pile up. The gate sends less, until sending is
# worth it again. Nobody told it what had changed.
#
# With a log of your own: `setpoint gate log.csv --score confidence --wrong wrong --audits 0.2`.
# [Decisions](../decisions.md) lists the pitfalls.
