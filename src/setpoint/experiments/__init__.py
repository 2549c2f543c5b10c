"""The paper's experiments and others like them: from data to tables and figures.

Each module has `reproduce`, which runs one, prints its tables and stores them with the figures.
"""

__all__: list[str] = []
