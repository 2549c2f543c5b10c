"""Claims and verdicts: the interval, the tolerance, the engine, the page from stored results."""

import csv
import gzip
import io
import re
from dataclasses import replace
from itertools import combinations, product
from math import comb, isnan, nan, sqrt
from pathlib import Path
from statistics import fmean, median

import numpy as np
import pytest

from setpoint.errors import DataError
from setpoint_paper.claims import classes, depth, tabular
from setpoint_paper.claims.engine import Claim, Outcome, Verdict, decide, weigh
from setpoint_paper.claims.page import Stored, page, write_page
from setpoint_paper.classification.f1 import LEVELS, SPELL, Held, hold
from setpoint_paper.classification.methods import Row as LabelRow
from setpoint_paper.classification.tapes import Recorded
from setpoint_paper.statistics import LEAST, Estimate, estimate, tolerance, two_deviations
from setpoint_paper.tabular.measures import Row
from setpoint_paper.tabular.ranges import printed_minus
from setpoint_paper.tabular.results import COLUMNS, load

DOCS = Path(__file__).parents[1] / "docs"
RESULTS = DOCS / "results"


# The interval and the tolerance


@pytest.mark.parametrize("count", [6, 7, 10])
def test_the_interval_is_that_of_all_signs_of_the_ranks(count: int) -> None:
    """The values that a signed-rank test at 5 %, by trying every sign, does not reject."""
    values = np.random.default_rng(count).standard_normal(count).tolist()
    sums = [
        sum(rank for rank, sign in zip(range(1, count + 1), signs, strict=True) if sign)
        for signs in product((False, True), repeat=count)
    ]

    def rejected(middle: float) -> bool:
        away = [value - middle for value in values]
        order = sorted(range(count), key=lambda i: abs(away[i]))
        rank = sum(place for place, i in enumerate(order, 1) if away[i] > 0.0)
        tail = min(sum(each <= rank for each in sums), sum(each >= rank for each in sums))
        return 2.0 * tail / 2**count <= 0.05

    found = estimate(values)
    for end, side in ((found.low, -1.0), (found.high, 1.0)):
        assert rejected(end + side * 1e-9)
        assert not rejected(end - side * 1e-9)
    pairs = [(a + b) / 2.0 for a, b in combinations(values, 2)] + values
    assert found.middle == pytest.approx(median(pairs))


def test_few_seeds_have_no_interval_and_one_that_blows_up_moves_little() -> None:
    assert not estimate([1.0] * (LEAST - 1)).known
    assert estimate([1.0] * LEAST).known
    calm = [0.1 * number for number in range(1, 21)]
    wild = [*calm[:-1], 1e6]
    assert estimate(wild).low == pytest.approx(estimate(calm).low, abs=0.1)
    assert estimate(wild).low > 0.0
    assert estimate([1.0, nan] * 6).seeds == 6


def test_chance_alone_decides_in_five_percent() -> None:
    rng = np.random.default_rng(0)
    found = [estimate(rng.standard_cauchy(10).tolist()) for _ in range(2_000)]
    share = np.mean([each.low > 0.0 or each.high < 0.0 for each in found])
    assert 0.03 < share < 0.065


def test_a_level_is_confirmed_within_the_theorems_bound_or_not_at_all() -> None:
    assert tolerance(0.03, 0.1, 200) == 0.03
    assert tolerance(0.5, 0.1, 12_000) == two_deviations(0.1, 12_000)
    assert two_deviations(0.1, 12_000) == pytest.approx(2 * sqrt(0.09 / 12_000))
    assert isnan(tolerance(0.5, 0.1, 200))  # the deviation of 200 frames is 2.1 points


# The engine


def claim(**options: object) -> Claim:
    return Claim(
        "1a", "one is larger", "larger", "the margin", lambda ask: {"": ask["for"]}, "", **options
    )  # type: ignore[arg-type]  # fmt: skip


def test_a_claim_must_win_every_comparison_and_is_lost_by_one() -> None:
    up, flat = [1.0 + 0.01 * i for i in range(10)], [(-1.0) ** i for i in range(10)]
    down = [-each for each in up]

    def state(*columns: list[float]) -> str:
        rows = [dict(zip("abc", row, strict=False)) for row in zip(*columns, strict=True)]
        return weigh([(row, row) for row in rows]).state

    assert (state(up), state(flat), state(down)) == ("for", "open", "against")
    assert (state(up, up), state(up, flat), state(up, down)) == ("for", "open", "against")
    assert state(up[:3]) == "few"
    # A seed without a number may not be left out, unless bounds decide which can be tested.
    rows = [({"": each}, {"": each}) for each in [nan, *up]]
    assert weigh(rows).state == "untestable"
    found = weigh(rows, whole=False)
    assert found.state == "for"
    assert str(found).endswith("(10 of 11 seeds)")


def test_words_count_places() -> None:
    def verdict(*states: str) -> Verdict:
        known = Estimate(1.0, 0.5, 2.0, 10)
        return Verdict({str(i): Outcome(state, "", known) for i, state in enumerate(states)})

    assert str(verdict("for", "for")) == "holds 2 : 0"
    assert str(verdict("for", "open", "against")) == "partly 1 : 1"
    assert str(verdict("open", "against")) == "does not hold 0 : 1"
    assert str(verdict("open", "open", "against")) == "not confirmed 0 : 1"
    assert str(verdict("for", "untestable")) == "partly 1 : 0, 1 untestable"
    assert str(verdict("against", "untestable")) == "does not hold 0 : 1, 1 untestable"
    assert str(verdict("untestable")) == "untestable"
    assert str(verdict("few")) == "not judged"
    assert str(Verdict(verdict("for").places, judged=False)) == "not judged"
    assert str(Verdict({})) == "–"


def test_what_no_bound_confirms_can_still_be_refuted() -> None:
    against = {"near": 0.5, "far": -3.0}
    asked = claim(against=lambda ask: {"": ask["against"]})
    for place, state in (("near", "untestable"), ("far", "against")):
        found = decide(
            asked, [place], lambda _: range(10),
            lambda at, seed: {"for": nan, "against": against[at] + 0.01 * seed},
        )  # fmt: skip
        rows = found.places[place]
        assert rows.state == state


def test_every_claim_has_an_id_of_its_section_of_its_own() -> None:
    ids = [each.id for each in (*tabular.CLAIMS, *tabular.STUDY, *depth.CLAIMS)]
    assert len(ids) == len(set(ids)) == 56
    for name in ids:
        assert re.fullmatch(r"(\d|[A-G])(\.\d)*[a-k]|own \d", name), name
    assert sum(each.own for each in tabular.CLAIMS) == 5
    # Section 4.1.4 has none and error adaptive alone.
    asked = set()
    for each in tabular.CLAIMS:
        if each.id.startswith("4.1.4"):
            each.margins(lambda method, *_: asked.add(method) or 0.0)
    assert asked == {"none", "error"}


def test_the_authors_code_has_the_bound_of_a_safeguard_it_never_reached() -> None:
    blank = dict.fromkeys(Row.__slots__, nan) | {
        "risk": "coverage", "method": "none_coded", "gamma": 0.05, "steps": 12_000, "mean": 0.1,
        "farthest": 2.0,
    }  # fmt: skip
    row = Row(**blank)  # type: ignore[arg-type]
    assert row.bound == pytest.approx((20.0 + 0.05) / (0.05 * 12_000))
    beyond = Row(**blank | {"farthest": 10.5})  # type: ignore[arg-type]
    assert beyond.bound == float("inf")
    assert beyond.tolerance == pytest.approx(two_deviations(0.1, 12_000))
    assert Row(**blank | {"low": -0.01, "high": 0.02}).bound == 0.02  # type: ignore[arg-type]


# F1, and the printed minus


def test_f1_locks_in_after_a_bad_spell_and_not_without() -> None:
    rng = np.random.default_rng(0)
    y = rng.random((1_500, 8)) < 0.3
    p = np.clip(np.where(y, 0.7, 0.25) + 0.15 * rng.standard_normal(y.shape), 0.01, 0.99)
    recorded = Recorded("made", p, y, 0, 0)
    level = hold(recorded, 0.5, False).constant + 0.15
    calm, locked = (hold(recorded, level, spell) for spell in (False, True))
    assert abs(calm.after - level) < 0.05
    assert calm.full < 0.1
    assert locked.full == 1.0
    assert locked.after > level + 0.05
    assert len(SPELL) == 300
    assert min(LEVELS) > 0.38


def test_the_loop_with_the_plus_is_the_librarys_error_adaptive() -> None:
    import setpoint as sp

    rng = np.random.default_rng(1)
    y = np.cumsum(rng.standard_normal(400)) / 10.0
    tape = sp.Tape.from_arrays({"lower": y - 0.1 + 0.2 * rng.standard_normal(400), "upper": y}, y)
    row = Row(**dict.fromkeys(Row.__slots__, nan) | {"gamma": 0.05, "beta_score": 0.2,
                                                     "beta_loss": 0.1})  # type: ignore[arg-type]  # fmt: skip
    low, _, covered = printed_minus(tape, row, 0.3, 1.0)
    stretch = sp.stretches.ErrorAdaptive(0.2, 0.1, -0.3, 0.3, reading="paper")
    risk = sp.Risk(
        sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.05), start=0.0, bounds=(-10.0, 10.0)
    )
    trace = sp.replay(sp.Controller(sp.sets.Widen(), risk, stretch), tape)
    assert np.array_equal(covered, trace.covered)
    shown = np.isfinite(trace.lower)  # crossed ends are the empty set in the library
    assert low[shown] == pytest.approx(trace.lower[shown], abs=1e-9)


def test_the_printed_minus_loses_on_every_data_set_of_the_stored_results() -> None:
    results = load(RESULTS, "tabular")
    (asked,) = [each for each in tabular.CLAIMS if each.id == "own 3"]
    found = tabular.verdict(asked, COLUMNS[0], results)
    assert str(found) == "holds 5 : 0"


# The page


def test_the_page_comes_from_the_stored_results_to_the_byte(tmp_path: Path) -> None:
    text, verdicts = page(RESULTS, DOCS)
    assert text == (DOCS / "README.md").read_text("utf-8")
    assert verdicts == (RESULTS / "verdicts.csv").read_text("utf-8")
    assert len(text.splitlines()) < 400
    screen = text.splitlines()[6:16]
    assert all(line.startswith("- **") for line in screen)
    for words in ("Holds", "Does not hold", "Nobody could test here", "printed training", "grid"):
        assert any(words in line for line in screen), words
    assert not re.search(r"\]\(/|file:", text)
    with pytest.raises(DataError, match="holds no results"):
        page(tmp_path)


def rows_of(stem: str) -> list[dict[str, str]]:
    packed = (RESULTS / f"{stem}.csv.gz").read_bytes()
    return list(csv.DictReader(io.StringIO(gzip.decompress(packed).decode())))


def hodges_lehmann(values: list[float]) -> tuple[float, float, float]:
    """The estimate and its interval, by another way: counts of subsets of ranks."""
    count = len(values)
    pairs = sorted((values[i] + values[j]) / 2.0 for i in range(count) for j in range(i, count))
    ways = {0: 1}
    for rank in range(1, count + 1):
        for total, number in list(ways.items())[::-1]:
            ways[total + rank] = ways.get(total + rank, 0) + number
    assert sum(ways.values()) == 2**count == sum(comb(count, k) for k in range(count + 1))
    below, rank = 0, 0
    while below + ways[rank] <= 0.025 * 2**count:
        below += ways[rank]
        rank += 1
    return median(pairs), pairs[rank - 1], pairs[-rank]


def test_fifty_numbers_of_the_page_are_those_of_the_csv() -> None:
    """MSL, MC and lengths by the text and under the printed training, recomputed by plain loops."""
    text, checked = (DOCS / "README.md").read_text("utf-8"), 0
    told = {
        "By the text": text.partition("By the text:\n")[2].partition("\n\nText's")[0],
        "Text's": text.partition("Text's methods, printed training:\n")[2].partition("\n\nBy")[0],
    }
    for stem, name in (("tabular", "By the text"), ("tabular-printed", "Text's")):
        rows = [row for row in rows_of(stem) if row["risk"] == "coverage"]
        best: dict[tuple[str, str, str], dict[str, str]] = {}
        for row in rows:
            key = row["dataset"], row["method"], row["seed"]
            if key not in best or float(row["tuning"]) < float(best[key]["tuning"]):
                best[key] = row
        datasets = list(dict.fromkeys(row["dataset"] for row in rows))
        for id_, metric, ideal in (("4.1.2c", "msl", 10 / 9), ("4.1.2b", "length", None)):
            (line,) = [each for each in told[name].splitlines() if each.startswith(f"| {id_} ")]
            cells = [cell.strip() for cell in line.strip("|").split("|")][2:]
            for dataset, cell in zip(datasets, cells, strict=True):
                margins = []
                for seed in map(str, range(20)):
                    none, error = (
                        float(best[dataset, method, seed][metric]) for method in ("none", "error")
                    )
                    if ideal is None:
                        margins.append(100.0 * np.log(none / error))
                    else:
                        margins.append(abs(none - ideal) - abs(error - ideal))
                shown = [float(word) for word in re.findall(r"-?[\d.]+", cell.replace("−", "-"))]
                assert shown == pytest.approx(hodges_lehmann(margins), rel=6e-3, abs=2e-4)
                checked += len(shown)
    medians = text.partition("### Medians")[2]
    rows = [row for row in rows_of("tabular") if row["risk"] == "coverage"]
    for line in medians.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        method = {"none": "none", "error adaptive": "error"}.get(cells[2] if len(cells) > 2 else "")
        if cells[0] != "by the text" or method is None:
            continue
        dataset = cells[1].partition(" ")[0].rstrip(",")
        tried = [row for row in rows if (row["dataset"], row["method"]) == (dataset, method)]
        of = [
            min((r for r in tried if r["seed"] == str(seed)), key=lambda r: float(r["tuning"]))
            for seed in range(20)
        ]
        coverage, msl = (median(float(row[name]) for row in of) for name in ("coverage", "msl"))
        assert float(cells[4]) == pytest.approx(100.0 * coverage, abs=6e-3)
        assert float(cells[6]) == pytest.approx(msl, abs=6e-4)
        assert float(cells[9]) == pytest.approx(fmean(float(r["pinball"]) for r in of), rel=1e-3)
        checked += 3
    assert checked >= 50


def test_a_quick_run_is_never_judged(tmp_path: Path) -> None:
    for name in ("tabular.csv.gz", "tabular.json", "tabular-gamma.csv", "depth.csv", "f1.csv",
                 "classification.csv"):  # fmt: skip
        stem, _, end = name.partition(".")
        quick = stem.replace("-gamma", "") + "-quick" + ("-gamma" if "gamma" in stem else "")
        (tmp_path / f"{quick}.{end}").write_bytes((RESULTS / name).read_bytes())
    path = write_page(tmp_path)
    text = path.read_text("utf-8")
    assert Stored.of(tmp_path).quick == {"tabular", "depth", "classification", "f1"}
    assert "nothing of it is judged" in text
    assert "confirmed" not in text.partition("## How a claim is decided")[0]
    tables = text.partition("## How a claim is decided")[0]
    for word in ("holds 5", "does not hold 0", "partly 4", "confirmed 0"):
        assert word not in tables
    assert tables.count("not judged") > 40


def test_claims_of_single_runs_say_their_numbers() -> None:
    line = LabelRow("yeast", "Multilabel", 1_800, 0.1, 0.11, 3.0, 0.01, 0.03, 0.0, within=True)
    held = [Held(0.4, False, 0.37, 0.4, 0.39, 0.0), Held(0.4, True, 0.37, 0.4, 0.54, 1.0)]
    found = {each.id: each for each in classes.lines({"by the text": [5.0, 0.01]}, [line], held)}
    assert str(found["abstract a"].verdict) == "holds 1 : 0"
    assert str(found["abstract b"].verdict) == "holds 1 : 0"
    assert str(found["abstract c"].verdict) == "does not hold 0 : 1"
    assert "0.540 after one, 100 % of the sets then hold every label" in found["abstract c"].numbers
    assert "0.20 % (10.0 µs of 5.0 ms)" in found["abstract a"].numbers
    wide = classes.lines({}, [replace(line, bound=0.3)], [])
    assert str(wide[0].verdict) == "–"
