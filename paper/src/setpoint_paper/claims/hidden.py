"""What the printed numbers hide: steps of the authors' code that the text does not tell."""

from collections.abc import Sequence
from importlib.resources import files
from math import isnan
from statistics import fmean, median
from string import Template

from setpoint_paper.depth.runs import NAMES, Row
from setpoint_paper.depth.tapes import GEOMETRIES
from setpoint_paper.statistics import estimate
from setpoint_paper.tabular.printed import COLUMNS, printed
from setpoint_paper.tabular.results import Results


def hidden(results: Results, rows: Sequence[Row]) -> str:
    """A list of what is hidden, from results of the printed training and rows of depth."""
    text = files("setpoint_paper.claims").joinpath("hidden.md").read_text("utf-8")
    return Template(text.strip()).substitute(
        tuned=_change(results, "error_coded", "error_coded", by="tuned"),
        formulas=_change(results, "error_coded", "error"),
        cal=_change(results, "cal_coded", "cal"),
        weekdays=_weekdays(results),
        padded=_change(results, "none_coded", "none_coded; printed, padded by means"),
        batch=_change(results, "none_coded", "none_coded; printed, batch 512"),
        scaled=_change(results, "none_coded", "none_coded; printed, scaled by 5,000 rows"),
        pixel=_one_pixel(rows),
        centres=_centres(rows),
        repeated=_repeated(results),
    )


def _told(parts: Sequence[str]) -> str:
    return "; ".join(parts) or "nothing ran"


def _change(results: Results, usual: str, other: str, by: str = "test") -> str:
    """How far the loss moves from one way to another, paired by seed, in %."""
    return _told(
        [
            f"{dataset} {estimate(both)}"
            for dataset in results.datasets
            if (both := results.changes(dataset, usual, other, by=("test", by)))
        ]
    )


def _weekdays(results: Results) -> str:
    told = []
    for dataset in results.datasets:
        if not results.chosen(dataset, "none_coded", "coverage", "test"):
            continue
        row = [
            100.0 * results.median(dataset, "none_coded", metric, by="test")
            for metric in ("delta", "delta_modulo", "floor")
        ]
        told.append(f"{dataset} {row[0]:.2f}, {row[1]:.2f}, {row[2]:.2f}")
    return _told(told)


def _one_pixel(rows: Sequence[Row]) -> str:
    shares: dict[str, list[float]] = {}
    for row in rows:
        judged = (row.method, row.geometry) == ("single", "text") and row.heuristic != "constant"
        if judged and not isnan(row.pixel_length):
            shares.setdefault(row.heuristic, []).append(row.pixel_length / row.length)
    return _told(
        [f"{NAMES[name]} {min(all_):.2f} to {max(all_):.2f}" for name, all_ in shares.items()]
    )


def _centres(rows: Sequence[Row]) -> str:
    asked = [row for row in rows if (row.heuristic, row.method) == ("registered_paper", "single")]
    told = []
    for place in dict.fromkeys(row.place for row in asked):
        found = [
            median(
                100.0 * row.centre_failure
                for row in asked
                if (row.place, row.geometry) == (place, each)
            )
            for each in GEOMETRIES
        ]
        told.append(f"{place} {found[0]:.1f}, {found[1]:.1f}")
    return _told(told)


def _repeated(results: Results) -> str:
    near = []
    for dataset in results.datasets:
        away = [
            100.0 * (fmean(values) / printed(dataset, method).pinball - 1.0)
            for method in COLUMNS
            if (values := results.values(dataset, f"{method}_coded", "pinball", by="printed"))
        ]
        if away and not results.stands_in(dataset):
            near.append(f"{dataset} {min(away):+.1f} to {max(away):+.1f} %".replace("-", "−"))
    return _told(near)
