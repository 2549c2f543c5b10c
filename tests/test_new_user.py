"""What the front page promises, tried with a file that the project has never seen."""

from pathlib import Path

import pytest

from tests import new_user

pytest.importorskip("typer")
pytest.importorskip("pyarrow")
pytest.importorskip("plotly")


def test_the_front_page_leads_to_intervals_on_the_command_line(tmp_path: Path) -> None:
    calibrated, ahead = new_user.on_the_command_line(tmp_path)
    assert "the target is 90 %" in calibrated
    assert "7 steps ahead" in ahead
    held = tmp_path / "Umsatz 2024-calibrated"
    assert abs(new_user.inside(held / "rows.csv", ";", ",") - 0.9) < 0.02
    assert len((tmp_path / "next" / "forecast.csv").read_text("utf-8").splitlines()) == 8
    for folder in (held, tmp_path / "next"):
        assert (folder / "report.html").stat().st_size > 100_000


def test_the_front_page_leads_to_intervals_in_a_notebook(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    printed = new_user.in_a_notebook(tmp_path)
    assert "guaranteed: not too many misses" in printed
    assert "1 not observed (1 missing" in printed
    assert printed.rstrip().splitlines()[-1].startswith("forecast 1046: 90 % interval from 1")
    assert abs(new_user.inside(tmp_path / "intervals.csv") - 0.9) < 0.02


def test_forecasts_of_a_day_ahead_are_warned_of_and_then_right(tmp_path: Path) -> None:
    text, plain, _, late = new_user.a_day_ahead(tmp_path)
    assert text["text"].splitlines()[1].startswith("warning: errors of neighbouring rows go")
    assert "--delay" in plain["warning"]
    assert late["warning"] is None
    assert late["median_length"] > 2.0 * plain["median_length"]
    assert abs(late["coverage"] - 0.9) < 0.02


def test_a_polars_frame_goes_in_and_comes_out() -> None:
    polars = pytest.importorskip("polars")
    import setpoint as sp

    rows = range(400)
    frame = polars.DataFrame({"fc": [0.0] * 400, "sales": [float(row % 7 - 3) for row in rows]})
    shown = sp.jobs.calibrate(frame, sp.Columns("sales", point="fc")).to_frame()
    assert isinstance(shown, polars.DataFrame)
    assert shown.columns == ["fc", "sales", "lower", "upper", "covered", "burn_in"]
    assert abs(shown["covered"].mean() - 0.9) < 0.05
