"""Every claim of the paper, the rule that decides it, and the page of all verdicts."""

from setpoint_paper.claims.page import write_page

__all__ = ["write_page"]
