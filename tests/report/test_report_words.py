"""What people read of a job: the page, the terminal and the numbers say the same, and it is so."""

import re
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import Tape, jobs, replay
from setpoint._html import amount
from setpoint.jobs import Outcome
from setpoint.jobs.columns import label_note
from setpoint.metrics.usefulness import rolling_quantile
from setpoint.report.words import off
from setpoint.tape import Columns
from setpoint.tape.rows import read

pytest.importorskip("pyarrow")


def written(path: Path, columns: dict[str, Any]) -> Path:
    cells = zip(*(map(str, values) for values in columns.values()), strict=True)
    path.write_text("\n".join([",".join(columns), *map(",".join, cells)]))
    return path


def page_of(outcome: Outcome, folder: Path) -> str:
    """What is read on a page: without its scripts and tags."""
    text = outcome.write(folder)["report.html"].read_text("utf-8")
    captions = re.sub(r"<script.*?</script>|<style.*?</style>", "", text, flags=re.S)
    plain = unescape(re.sub(r"<[^>]*>", " ", captions)).replace("\N{NO-BREAK SPACE}", " ")
    return re.sub(r"\s+", " ", plain)


@pytest.fixture(scope="module")
def panel(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """Three series alike but for their units."""
    folder = tmp_path_factory.mktemp("panel")
    y = np.cumsum(np.random.default_rng(3).normal(size=(400, 3)), axis=0) * [1e-3, 1.0, 1e3]
    point = np.vstack([np.zeros((1, 3)), y[:-1]])
    shop = np.tile(["a", "b", "c"], 400)
    rows = {"shop": shop, "fc": point.ravel().tolist(), "load": y.ravel().tolist()}
    return jobs.calibrate(
        written(folder / "panel.csv", rows), Columns("load", point="fc", series="shop")
    )


@pytest.fixture(scope="module")
def panel_page(panel: Outcome, tmp_path_factory: pytest.TempPathFactory) -> str:
    return page_of(panel, tmp_path_factory.mktemp("out") / "panel")


def test_a_guarantee_of_several_series_is_of_each_and_of_their_sum(
    panel: Outcome, panel_page: str
) -> None:
    constants = [one.risks[0].constant_upper or 0.0 for one in panel.trace.certificates]
    (risk,) = panel.metrics()["risks"]
    assert (risk["bound"], risk["bound_all"]) == (max(constants), pytest.approx(sum(constants)))
    allowed = "misses beyond the 10 % allowed in any one series, nor more than 32.7 in all 3"
    assert f"more than 10.9 {allowed}" in panel_page
    assert "never more than 10.9 misses too many in a series, and 32.7 in all" in panel_page
    terminal = str(panel)
    assert "more than 10.9 misses beyond the 10 % allowed in any one series" in terminal
    assert "nor more than 32.7 in all 3 together" in terminal
    low = f"{100 * risk['coverage_low']:.2f} %"
    assert f"at least {low} is guaranteed" in terminal
    assert f"at least {low} ; never more than" in panel_page


def test_widths_of_unlike_series_are_never_put_together(panel: Outcome, panel_page: str) -> None:
    numbers, terminal = panel.metrics(), str(panel)
    pooled = numbers["mean_finite_length"]
    assert pooled > 50.0 * np.median(
        [row["mean_finite_length"] for row in numbers["worst_streams"]]
    )
    for text in (terminal, panel_page):
        assert amount(pooled) not in text
        assert amount(numbers["median_length"]) not in text
        for row in numbers["worst_streams"]:
            assert amount(row["mean_finite_length"]) in text
    ratio = f"{numbers['usefulness']['width']:.2f}"
    assert re.search(
        rf"Mean width \(rolling quantile of past errors: 1\) +1.00 +{ratio}\n", terminal
    )
    assert f"Mean width (rolling quantile of past errors: 1) 1.00 {ratio}" in panel_page


def test_people_read_of_series_and_of_coverage(panel: Outcome, panel_page: str) -> None:
    for text in (panel_page.partition("Certificate Of series")[0], str(panel)):
        assert not re.search(r"\bstreams?\b|[Mm]ean loss|Realised|mean length", text)
        assert not re.search(r"\de\+\d", text)
    worst = panel.metrics()["risks"][0]["windows"][0]
    assert f"{100 * worst['coverage']:.1f} % {off(0.1 - worst['risk'], True)}" in (panel_page)


@pytest.fixture(scope="module")
def late(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """One series whose labels come 20 rows late: the first intervals have no limits."""
    random = np.random.default_rng(5)
    point = 30_000.0 + 5_000.0 * np.sin(np.arange(700) / 20.0)
    y = point + random.normal(0.0, 900.0, 700)
    rows = {"fc": point.tolist(), "load": y.tolist()}
    file = written(tmp_path_factory.mktemp("late") / "late.csv", rows)
    return jobs.calibrate(file, Columns("load", point="fc", delay=20))


def test_a_point_forecast_stands_beside_a_rolling_quantile_of_its_errors(
    late: Outcome, tmp_path: Path
) -> None:
    tape, radius = late.trace.tape, np.full(700, np.inf)
    (point,) = map(np.asarray, tape.prediction)
    for row in range(700):
        known = np.sort(np.abs(tape.y - point)[max(0, row // 25 * 25 - 320) : row // 25 * 25 - 20])
        if row // 25 * 25 - 20 >= 30:
            radius[row] = known[min(int(np.ceil(0.9 * (len(known) + 1))), len(known)) - 1]
    lower, upper = rolling_quantile(tape.y, point, delay=20)
    assert np.array_equal(lower, point - radius)
    assert np.array_equal(upper, point + radius)
    before = late.metrics()["before"]
    hits = np.abs(tape.y - point) <= radius
    finite = np.isfinite(radius)
    assert before["coverage"] == pytest.approx(hits.mean())
    assert before["full"] == pytest.approx(1.0 - finite.mean())
    assert before["mean_finite_length"] == pytest.approx(2.0 * radius[finite].mean())
    text, wrong = page_of(late, tmp_path / "out"), np.abs(tape.y - point).mean()
    assert f"the forecast's mean absolute error is {amount(wrong)}" in text
    assert text.index("Before and after") < text.index("Are the intervals of use?")
    assert f"Coverage {100 * hits.mean():.2f} % {100 * late.trace.coverage:.2f} %" in text
    table = str(late).split("\n\n")[1]
    assert table.splitlines()[0].split() == ["rolling", "quantile", "with", "setpoint"]
    assert re.search(rf"Coverage +{100 * hits.mean():.2f} % +", table)
    assert f"{before['mean_finite_length']:,.0f}" in table


def test_means_of_finite_sets_say_so_and_are_in_the_numbers(late: Outcome, tmp_path: Path) -> None:
    numbers, trace = late.metrics(), late.trace
    assert numbers["mean_length"] is numbers["winkler"] is numbers["pinball"] is None
    rows = np.isfinite(trace.lower) & np.isfinite(trace.upper)
    alone = sp.metrics.summary(trace.lower[rows], trace.upper[rows], trace.tape.y[rows], 0.1)
    assert numbers["mean_finite_winkler"] == pytest.approx(alone.winkler)
    assert numbers["mean_finite_pinball"] == pytest.approx(alone.pinball)
    assert numbers["before"]["mean_finite_winkler"] > 0.0
    assert "Mean width, finite ones" in str(late)
    assert "Mean width, finite ones" in page_of(late, tmp_path / "out")


def test_the_likeliest_class_stands_beside_label_sets(tmp_path: Path) -> None:
    random = np.random.default_rng(2)
    shares = random.dirichlet([1.0, 1.0, 1.0], 400)
    label = np.array([random.choice(3, p=row) for row in shares])
    rows = {f"p_{name}": shares[:, k].tolist() for k, name in enumerate("abc")}
    file = written(tmp_path / "a.csv", {**rows, "label": np.array(list("abc"))[label]})
    outcome = jobs.calibrate(file, Columns("label", probabilities=("p_a", "p_b", "p_c")))
    before = outcome.metrics()["before"]
    judged = slice(400 - len(outcome.trace.lam), 400)
    hits = (shares.argmax(axis=1) == label)[judged]
    assert before["coverage"] == pytest.approx(hits.mean())
    assert (before["mean_length"], before["winkler"], before["full"]) == (1.0, None, 0.0)
    text = page_of(outcome, tmp_path / "out")
    assert f"Likeliest class With setpoint Coverage {100 * hits.mean():.2f} %" in text
    assert "Mean size 1 " in text


def test_a_verdict_on_use_says_over_which_labels() -> None:
    y = np.cumsum(np.random.default_rng(1).normal(size=600))
    stream = sp.Stream(sp.intervals(coverage=0.9))
    for last, label in zip(np.append(0.0, y[:-1]), y, strict=True):
        stream.predict(float(last))
        stream.update(float(label))
    assert "(the last 250 labels): over 220 labels the intervals" in str(stream.summary())
    tape = Tape.from_arrays({"point": np.append(0.0, y[:-1])}, y)
    verdict = replay(sp.intervals(coverage=0.9), tape).usefulness()
    assert "over 570 labels the intervals" in str(verdict)


def test_a_model_that_breaks_is_named_with_about_the_row_where_it_did() -> None:
    random = np.random.default_rng(0)
    y = random.normal(size=1500)
    wild = y + random.normal(0.0, 0.1, 1500)
    wild[990:] += random.choice([-1.0, 1.0], 510) * random.uniform(20.0, 40.0, 510)
    verdict = sp.metrics.usefulness(y - 1.0, y + 1.0, y, wild)
    assert verdict.diverged == 990
    assert "from about row 990 on" in verdict.words


def test_a_long_list_of_horizons_is_cut_visibly() -> None:
    tape = Tape.from_arrays(
        {"prediction": np.zeros(48)}, np.zeros(48), horizon=np.tile(np.arange(1, 25), 2)
    )
    note = label_note(tape, Columns())
    assert "(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …)" in note


def test_which_line_is_the_first_is_said_once(tmp_path: Path) -> None:
    file = written(tmp_path / "a.csv", {"y": range(40)})
    assert read(file).place(3) == "line 5 (the header is line 1)"
    assert read(file).place(3, header=False) == "line 5"
    random = np.random.default_rng(0)
    ahead = sp.forecast(
        written(tmp_path / "b.csv", {"y": random.normal(size=900).tolist()}), "y", model="seasonal"
    )
    assert (
        "no season was known yet for 100 % of the rows; for these, the forecast is the last actual "
        "value" in ahead.notes
    )
