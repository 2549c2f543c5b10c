"""The table of all metrics beside each metric alone: its function, or a line of numpy."""

import math
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from setpoint import metrics

INF = math.inf


def _finite_pinball(lo: Any, hi: Any, y: Any, nominal: float) -> float:
    """Over the steps with a finite length, empty intervals among them."""
    finite = ~((hi > lo) & (np.isinf(lo) | np.isinf(hi)))
    if not finite.any():
        return float("nan")
    return float(metrics.pinball(lo[finite], hi[finite], y[finite], nominal))


def _parts(
    lower: np.ndarray, upper: np.ndarray, y: np.ndarray, losses: np.ndarray | None, **options: Any
) -> dict[str, Any]:
    """The table of `summary`, each number by the function that is about it alone."""
    level, nominal = options["level"], options["coverage"]
    hits = metrics.covered(lower, upper, y)
    loss = 1.0 - hits if losses is None else losses
    seen = ~np.isnan(hits) & ~np.isnan(loss)
    lo, hi, hit, size = lower[seen], upper[seen], hits[seen], metrics.lengths(lower, upper)[seen]
    by_group = metrics.delta_coverage(np.where(seen, hits, np.nan), options["groups"], nominal)
    width = min(options["window"], int(seen.sum()))
    windows = np.lib.stride_tricks.sliding_window_view(loss[seen], width) if width else loss[:0]
    errors = np.abs(windows.mean(axis=1) - level) if width else np.full(1, np.nan)
    away = np.maximum(lo - y[seen], 0.0) + np.maximum(y[seen] - hi, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = size + np.where(away > 0.0, away / ((1.0 - nominal) / 2.0), 0.0)
    finite = np.isfinite(size)
    by_width = metrics.coverage_by_width(lo, hi, y[seen]).tolist()
    varies = len(set(hit[finite])) == 2 and len(set(size[finite])) > 1
    return {
        "level": level,
        "asked": nominal,
        "window": options["window"],
        "steps": int(seen.sum()),
        "missing": int((~seen).sum()),
        "risk": metrics.risk(loss[seen]),
        "coverage": metrics.coverage(lo, hi, y[seen]),
        "mean_length": float(size.mean()) if len(size) else np.nan,
        "median_length": float(np.median(size)) if len(size) else np.nan,
        "mean_finite_length": float(size[finite].mean()) if finite.any() else np.nan,
        "full": metrics.risk((lo == -INF) & (hi == INF)),
        "empty": metrics.risk((lo > hi) | (lo == INF) | (hi == -INF)),
        "mc": metrics.mc(hit),
        "msl": metrics.msl(hit),
        "streaks": len(metrics.streaks(hit)),
        "longest_streak": int(metrics.streaks(hit).max(initial=0)),
        "delta_coverage": by_group.delta,
        "noise_floor": by_group.noise_floor,
        "groups": len(by_group.sizes),
        "pinball": metrics.pinball(lo, hi, y[seen], nominal),
        "finite_pinball": _finite_pinball(lo, hi, y[seen], nominal),
        "winkler": float(scores.mean()) if len(scores) else np.nan,
        "worst_window": float(errors.max()),
        "rms_window": float(np.sqrt(np.square(errors).mean())),
        "worst_window_start": int(np.flatnonzero(seen)[np.argmax(errors)]) if width else None,
        "correlation": float(np.corrcoef(hit[finite], size[finite])[0, 1]) if varies else 0.0,
        "narrow_coverage": by_width[0],
        "wide_coverage": by_width[-1],
    }


@pytest.mark.parametrize("kind", ["misses", "zeros and ones", "any losses", "late fraction"])
@pytest.mark.parametrize("rows", [0, 1, 7, 700, 70_001])
@pytest.mark.parametrize("nominal", [0.9, 1.0])
def test_the_table_is_that_of_its_parts(rows: int, kind: str, nominal: float) -> None:
    """Missing labels and losses, infinite and crossed ends, several blocks of windows."""
    random = np.random.default_rng(rows)
    lower = random.normal(-1.0, 2.0, rows)
    upper = lower + random.normal(2.0, 1.5, rows)
    for ends, share in (
        ((-np.inf, np.inf), 0.02),
        ((np.inf, -np.inf), 0.02),
        ((np.inf,) * 2, 0.01),
    ):
        chosen = random.random(rows) < share * (nominal < 1.0)
        lower[chosen], upper[chosen] = ends
    y = random.normal(0.0, 2.0, rows)
    y[random.random(rows) < 0.1] = np.nan
    losses: np.ndarray | None = None
    if kind != "misses":
        losses = (random.random(rows) < 0.3).astype(float)
        if kind == "any losses":
            losses = random.random(rows)
        elif rows:
            losses[-1] = 0.5 if kind == "late fraction" else 1.0
        losses[random.random(rows) < 0.05] = np.nan
    groups = random.integers(-2, 5, rows)
    options: Any = {"level": 0.1, "coverage": nominal, "window": 250, "groups": groups}
    want = _parts(lower, upper, y, losses, **options)
    got = metrics.summary(lower, upper, y, losses=losses, **options).as_dict()
    assert list(got) == list(want)
    for name, value in want.items():
        if isinstance(value, float):
            assert got[name] == pytest.approx(value, rel=1e-11, abs=1e-12, nan_ok=True), name
        else:
            assert got[name] == value, name


def test_nothing_that_was_given_is_changed() -> None:
    random = np.random.default_rng(3)
    held = [np.sort(random.normal(size=(2, 500)), axis=0)[i] for i in (0, 1)]
    held += [random.normal(size=500), random.random(500)]
    before = [each.copy() for each in held]
    for each in held:
        each.flags.writeable = False
    metrics.summary(*held[:3], 0.1, losses=held[3], window=20)
    metrics.summaries.size_summary(held[3], held[2] < 0.5, 0.1)
    assert all(np.array_equal(a, b) for a, b in zip(held, before, strict=True))


@pytest.mark.parametrize(
    "groups",
    [
        np.array([5, 5, -3, 2**40, 5]),
        np.array([5, 5, 3, 4, 5], np.uint8),
        np.array([True, True, False, True, True]),
        np.array(["b", "b", "a", "c", "b"]),
        ["b", "b", None, "c", "b"],
        np.array([1.5, 1.5, np.nan, 2.5, 1.5]),
        np.array(["2024-01-02", "2024-01-02", "2023-01-01", "NaT", "2024-01-02"], "M8[D]"),
        np.array(["2024-01-02", "2024-01-02", "2023-01-01", "2024-01-03", "2024-01-02"], "M8[D]"),
    ],
    ids=lambda groups: str(getattr(groups, "dtype", "list")),
)
def test_groups_of_every_kind_are_counted_in_order_of_appearance(groups: Any) -> None:
    counts: dict[Any, list[float]] = {}
    for key, hit in zip(groups, [1.0, 0.0, 1.0, 0.0, np.nan], strict=True):
        if key is not None and key == key and hit == hit:
            counts.setdefault(key, []).append(hit)
    found = metrics.delta_coverage([1.0, 0.0, 1.0, 0.0, np.nan], groups, 0.9)
    assert list(found.sizes) == list(counts)
    assert dict(found.coverage) == {key: sum(own) / len(own) for key, own in counts.items()}


def test_interval_scores_are_those_of_scoringrules() -> None:
    """A library of scores by other people, with numpy's arithmetic."""
    scores = pytest.importorskip("scoringrules")
    rng = np.random.default_rng(3)
    middle, half = rng.normal(size=(2, 500))
    lower, upper = middle - np.abs(half), middle + np.abs(half)
    y = rng.normal(size=500) * 2.0
    for coverage in (0.5, 0.9, 0.99):
        got = metrics.summary(lower, upper, y, level=round(1.0 - coverage, 12))
        alpha = 1.0 - coverage
        wanted = scores.interval_score(y, lower, upper, alpha, backend="numpy").mean()
        assert got.winkler == pytest.approx(wanted, rel=1e-12)
        ends = [(lower, alpha / 2.0), (upper, 1.0 - alpha / 2.0)]
        losses = [scores.quantile_score(y, q, tail, backend="numpy") for q, tail in ends]
        assert got.pinball == pytest.approx(np.mean(losses), rel=1e-12)


def test_scores_of_quantiles_are_those_of_scoringrules() -> None:
    """CRPS beside the closed one of a normal law, the weighted quantile loss, and the PIT."""
    scores = pytest.importorskip("scoringrules")
    rng, normal = np.random.default_rng(5), NormalDist()
    middle, spread = rng.normal(size=4000), rng.uniform(0.5, 2.0, 4000)
    y = middle + spread * rng.normal(size=4000)
    levels = np.arange(1, 400) / 400.0
    ends = middle[:, None] + spread[:, None] * np.array([normal.inv_cdf(p) for p in levels])
    found = metrics.calibration(levels, ends, y)
    exact = scores.crps_normal(y, middle, spread, backend="numpy").mean()
    assert found.crps == pytest.approx(exact, rel=2e-3)
    losses = scores.quantile_score(y[:, None], ends, levels, backend="numpy")
    assert found.wql == pytest.approx(2.0 * losses.mean(axis=1).sum() / np.abs(y).sum(), rel=1e-12)
    assert np.abs(np.array(found.pit) / 400.0 - 1.0).max() < 0.15  # as many labels in each tenth
    assert found.off < 0.01
