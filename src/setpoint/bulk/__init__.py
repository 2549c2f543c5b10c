"""Running many: whole tapes, fleets of streams, and grids of configurations."""

__all__: list[str] = []
