"""Every number is the one that it was when the golden file was written."""

import json
from typing import Any

import pytest

from tests.laws import golden

GOLDEN = json.loads(golden.FILE.read_text(encoding="utf-8"))
SAME_PLATFORM = GOLDEN["platform"] == golden.platform()


def test_the_golden_file_has_every_case() -> None:
    assert len(golden.cases()) == golden.CASES
    assert GOLDEN.keys() - {"platform"} == golden.modes().keys()


@pytest.mark.parametrize("name", golden.modes())
def test_numbers_are_golden(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    mode = golden.modes()[name]
    monkeypatch.setenv("SETPOINT_PLAIN", "0" if mode.fast else "1")
    prints, *numbers = golden.stored(mode.call(*mode.arguments))
    wanted: Any
    wanted, *old = GOLDEN[name]
    for number, was in zip(numbers, old, strict=True):
        assert (number is None) == (was is None)
        assert number is None or number == pytest.approx(was, rel=1e-9, abs=1e-9)
    if SAME_PLATFORM:
        before, now = (dict(each.split("=") for each in text.split()) for text in (wanted, prints))
        assert [each for each in before if now.get(each) != before[each]] == []
        assert now.keys() == before.keys()
