"""The experiments of the paper behind setpoint, and others like them: data, networks, results.

`tabular`, `depth` and `classification` each have `reproduce`, which runs an experiment, prints its
tables and stores them with the figures; `datasets` and `models` hold what they run on.
"""

__all__: list[str] = []
