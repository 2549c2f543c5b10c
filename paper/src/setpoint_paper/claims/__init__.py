"""Every claim of the paper, the rule that decides it, and the page of all verdicts."""


