"""The notebooks of the site run, and what came out is what their words say."""

import os
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

DOCS = Path(__file__).resolve().parents[1] / "docs"
NOTEBOOKS = sorted(DOCS.glob("notebooks/*.py"))
NEEDS = {
    "from_mapie": ("mapie", "sklearn"), "route_models": ("sklearn",), "review_queue": ("sklearn",),
}  # fmt: skip


def off(coverage: float, asked: float = 0.9) -> float:
    """How far coverage is from what was asked."""
    return abs(float(coverage) - asked)


def drifting(told: dict[str, Any]) -> None:
    assert told["inside"].mean() < 0.6
    assert off(told["held"].mean()) < 0.005
    assert max(map(off, told["calibrated"])) < 0.02
    assert told["last"] < 1.1 * told["first"]  # this drift costs no width


def day_ahead(told: dict[str, Any]) -> None:
    at_once, late, _ = (trace.summary() for trace in told["traces"].values())
    assert told["same"]
    assert late.mean_finite_length > 3.0 * at_once.mean_finite_length
    assert late.longest_streak > told["DAY"] > at_once.longest_streak
    found = told["found"]
    assert found["rolling quantile of known errors"].coverage < 0.88
    assert found["labels a day late"].coverage > 0.9
    best = found["γ chosen in hindsight"]
    assert 0.97 < best.winkler / found["labels a day late"].winkler < 0.99
    assert best.worst_window > found["labels a day late"].worst_window


def forty_series(told: dict[str, Any]) -> None:
    assert off(told["pooled"].mean()) < 0.005
    assert told["by_shop"].min() < 0.7
    assert told["held"].map(off).max() < 0.02
    assert len(told["fleet"]) == len(told["tomorrow"].lower) == 40
    assert (told["tomorrow"].lower < told["tomorrow"].upper).all()


def new_classes(told: dict[str, Any]) -> None:
    sizes, summer = told["sizes"], slice(told["summer"].start, told["summer"].stop)
    assert off(told["hits"].mean(), 0.95) < 0.005
    assert off(told["hits"][summer].mean(), 0.95) < 0.01
    assert sizes[summer].mean() > 1.5 * sizes[500:2_500].mean()
    assert sizes[-500:].mean() < 1.2 * sizes[500:2_500].mean()
    assert told["shown"].labels == ("strike",)


def gate_answers(told: dict[str, Any]) -> None:
    gate, threshold = told["above"]["gate"], told["above"]["threshold"]
    (limit,) = told["gate"].certificate().limits
    assert threshold.max() > 5 * gate.max()
    assert limit.account <= limit.bound.since_start
    assert (told["sent"] & ~told["right"]).sum() <= limit.probable.errors


def route_models(told: dict[str, Any]) -> None:
    assert told["lost"].mean() < 0.05
    assert told["calls"] < 0.95 * len(told["digit"])
    assert told["answered"].mean() > told["cheap_right"].mean()


def review_queue(told: dict[str, Any]) -> None:
    passed, wrong = told["passed"], told["wrong"]
    assert wrong[-1000:].mean() > 4 * 0.04
    assert (passed & wrong).mean() < 0.045
    assert passed[-1000:].mean() < 0.6 * passed[:1000].mean()


def several_risks(told: dict[str, Any]) -> None:
    one, both = told["one"].mean(axis=0), told["both"].mean(axis=0)
    assert one[1] > 2.0 * 0.005  # coverage alone does not keep the money
    assert both[0] < 0.1
    assert both[1] < 0.0055


def own_loss(told: dict[str, Any]) -> None:
    assert told["cost"].mean() > 24.0
    assert 11.0 < told["paid"].mean() < 13.0
    assert told["told"].verdict == "guaranteed on both sides"


def late_labels(told: dict[str, Any]) -> None:
    assert off(np.nanmean(told["hits"])) < 0.01
    assert told["certificate"].dropped > 100
    assert told["same"]


def from_mapie(told: dict[str, Any]) -> None:
    assert told["inside"](told["fixed"]).mean() < 0.5
    assert off(told["inside"](told["adaptive"]).mean()) < 0.02
    assert np.ptp(told["adaptive"], axis=1).mean() < np.ptp(told["fixed"], axis=1).mean()
    assert off(np.mean(told["hits"])) < 0.02


def from_aci_in_r(told: dict[str, Any]) -> None:
    assert np.allclose(told["aci"].upper, told["by_hand"][:, 1])
    default, aci = told["default"], told["aci"]
    assert default.summary().worst_window < 0.3 * aci.summary().worst_window
    assert told["winkler"](default) < told["winkler"](aci)
    bounds = [each.certificate().risks[0].constant_upper for each in (default, aci)]
    assert np.allclose(bounds, 10.9)


def own_csv(told: dict[str, Any]) -> None:
    assert off(told["trace"].coverage) < 0.01
    saved = Path("intervals.csv").read_text("utf-8").splitlines()
    assert saved[0] == "day,forecast,sales,lower,upper"
    assert len(saved) == 901
    assert told["interval"].lower > told["forecast"]  # the forecast is too low by now


def next_week(told: dict[str, Any]) -> None:
    table = told["table"]
    assert (table["in 90 %"] - 0.9).abs().max() < 0.02
    assert (table["MAE"] < 0.6 * table["MAE, a week before"]).all()
    assert table["width"].iloc[-1] > 1.1 * table["width"].iloc[0]
    assert told["later"].to_frame()["step"].tolist() == [1, 2, 3, 4, 5, 6]


def service_level(told: dict[str, Any]) -> None:
    assert told["short"] < 0.06
    assert told["crossed"] == 0
    off = np.subtract(told["scores"].shares, told["scores"].levels)
    assert np.abs(off).max() < 0.03


def rainy_days(told: dict[str, Any]) -> None:
    (overall, before), (_, after) = told["found"].values()
    assert overall > 0.89
    assert before < 0.65
    assert after > 0.88
    rain = told["rain"]
    plain, held = (np.median(width[rain]) for width in told["widths"])
    assert held > 2.0 * plain
    bounds = [own.constant_upper for (own,) in told["held"].certificate().groups.values()]
    assert max(bounds) < 11.0


def whole_day(told: dict[str, Any]) -> None:
    (hours, days, width), (_, whole, wider) = told["found"].values()
    assert off(hours) < 0.01
    assert days < 0.4
    assert off(whole) < 0.03
    assert wider < 2.0 * width


def week_total(told: dict[str, Any]) -> None:
    (own, width), (summed, wide), (apart, _) = told["found"].values()
    assert off(own) < 0.02
    assert summed > 0.97
    assert apart < 0.75
    assert width < 0.8 * wide


CLAIMS: dict[str, Callable[[dict[str, Any]], None]] = {
    "drifting": drifting, "day_ahead": day_ahead, "forty_series": forty_series,
    "new_classes": new_classes, "several_risks": several_risks, "own_loss": own_loss,
    "late_labels": late_labels, "from_mapie": from_mapie, "from_aci_in_r": from_aci_in_r,
    "own_csv": own_csv, "next_week": next_week, "gate_answers": gate_answers,
    "route_models": route_models, "review_queue": review_queue,
    "service_level": service_level, "rainy_days": rainy_days,
    "whole_day": whole_day, "week_total": week_total,
}  # fmt: skip
"""What the words of each notebook claim, asked of the names that it leaves behind."""


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_its_words_are_true(
    path: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for library in ("pandas", "matplotlib", *NEEDS.get(path.stem, ())):
        pytest.importorskip(library, reason=f"the notebook {path.stem} needs {library}")
    monkeypatch.setitem(os.environ, "MPLBACKEND", "agg")
    monkeypatch.chdir(tmp_path)
    told = runpy.run_path(str(path))
    CLAIMS[path.stem](told)
    if path.stem == "day_ahead":
        table = capsys.readouterr().out.split("\n", 6)[:6]
        assert "\n".join(table) in (DOCS / "horizons.md").read_text("utf-8")


def test_every_notebook_is_in_the_gallery_with_a_question() -> None:
    gallery = (DOCS / "gallery.md").read_text("utf-8")
    assert len(NOTEBOOKS) == len(CLAIMS) >= 10
    for path in NOTEBOOKS:
        assert f"](notebooks/{path.name}) |" in gallery
        assert "**The question.**" in path.read_text("utf-8")
