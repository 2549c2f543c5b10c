"""What the tests share; scripts beside them are not to be imported for their doctests."""

import pytest

from setpoint import spec

collect_ignore = ["faults.py", "moved_clock", "postgres.py", "serving.py"]


@pytest.fixture
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers is forgotten after it."""
    for role, known in spec._known.items():
        monkeypatch.setitem(spec._known, role, dict(known))
