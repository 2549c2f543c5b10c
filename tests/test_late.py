"""Late labels: each way is what it says, by hand and by the delay it is given."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import setpoint as sp
from comparison import late as lateness
from comparison.streams import BURN_IN, Series, write


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few hundred rows are sooner done than compiled."""
    monkeypatch.setenv("SETPOINT_PLAIN", "1")


def series(delay: int = 9) -> Series:
    random = np.random.default_rng(3)
    y = np.zeros(450)
    for row in range(1, len(y)):
        y[row] = 0.97 * y[row - 1] + random.normal()
    point = np.concatenate([np.zeros(delay + 1), y[: -delay - 1]])
    return Series("a", "dev", "late", point - 1.0, point + 1.0, y, delay)


def test_every_way_is_measured_and_the_claim_without_a_delay_is_that_of_a_replay_without() -> None:
    one = series()
    found = dict(zip(lateness.WAYS, lateness.measured(one), strict=True))
    tape = sp.Tape.from_arrays({"lower": one.lower, "upper": one.upper}, one.y)
    for name, delay in (("default", one.delay), ("labels taken as known at once", 0)):
        trace = sp.replay(sp.intervals(0.9), tape, delay=delay)
        rows = slice(BURN_IN, None)
        hits = ((trace.lower <= one.y) & (one.y <= trace.upper))[rows]
        assert found[name][0] == hits.mean()
        assert found[name][2] == sp.metrics.streaks(hits).max()
    assert found["labels taken as known at once"][1] < 0.7 * found["default"][1]
    chosen, hindsight = found["γ chosen as if known at once"], found["γ chosen in hindsight"]
    assert chosen[3] >= hindsight[3], "nothing is better than hindsight among the same γ"
    at_once = dict(zip(lateness.WAYS, lateness.measured(replace(one, delay=0)), strict=True))
    same = at_once["γ chosen as if known at once"], at_once["γ chosen in hindsight"]
    assert np.array_equal(*same), "without a delay there is one choice"


def test_a_season_is_found_in_the_first_errors_and_used_from_there_on() -> None:
    hours = np.arange(600)
    noise = np.random.default_rng(0).normal(0.0, 0.1, len(hours))
    point, y = np.zeros(len(hours)), np.sin(2.0 * np.pi * hours / 12) + noise
    one = Series("a", "dev", "late", point - 1.0, point + 1.0, y, 3)
    found, plain = lateness.WAYS["default, period found"](one), lateness.WAYS["default"](one)
    told = lateness.WAYS["default, period"](replace(one, period=12))
    assert np.array_equal(found, told), "60 rows show a season of 12, and no judged row is older"
    # Without a period the default finds it by itself, a little later.
    assert np.mean(found[1] - found[0]) < np.mean(plain[1] - plain[0])
    flat = replace(one, y=noise)
    assert np.array_equal(lateness.WAYS["default, period found"](flat),
                          lateness.WAYS["default"](flat))  # fmt: skip


def test_the_page_has_a_table_for_the_data_and_for_the_streams_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lateness, "ahead", lambda name, steps: [series(steps)])
    monkeypatch.setattr(lateness, "_STEPS", (5,))
    write([series(2), series(20), series(0)], tmp_path / "some.npz")
    text = lateness.late(streams=tmp_path / "some.npz", out=tmp_path / "out")
    assert (tmp_path / "out" / "late.md").read_text(encoding="utf-8") == text
    titles = [line for line in text.splitlines() if line.startswith("## ")]
    assert titles == [
        "## Power, 5 rows ahead, 1 forecasts",
        "## Power, labels 0 to 10 rows late by chance, 1 forecasts",
        "## Power, 10 labels at once, 1 forecasts", "## 2 streams, 2 to 20 rows late",
        "## 1 streams, 2 to 2 rows late", "## 1 streams, 20 to 20 rows late",
    ]  # fmt: skip
    assert text.count("| γ chosen in hindsight") == 6
    assert "python -m comparison late --streams some.npz" in capsys.readouterr().out
