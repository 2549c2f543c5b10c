"""Every rule of the library beside its default, on the same streams: `python -m comparison`.

A rule is a line in `rules.RULES`; the numbers of every rule on every stream are in
`results/comparison.csv`.
"""

from pathlib import Path

__all__ = ["RESULTS"]

RESULTS = Path(__file__).parent / "results"
"""Where the results lie."""
