"""Results on disk, the choice of γ, verdicts, the printed numbers, the report and the figures."""

from dataclasses import replace
from math import nan

import pytest

from setpoint.errors import DataError, InputError
from setpoint.experiments import _claims
from setpoint.experiments._claims import CLAIMS, SETTINGS, Verdict, decide, study_verdicts
from setpoint.experiments._protocol import METHODS, Row
from setpoint.experiments._reference import COLUMNS, CURVES, PRINTED, printed
from setpoint.experiments._results import Results, load, store
from setpoint.experiments._tables import report, table
from setpoint.experiments._tapes import Recipe, one_thread
from setpoint.experiments.tabular import redraw, reproduce, search_settings

BLANK = Row(
    dataset="power", seed=0, risk="coverage", method="none", gamma=0.1, beta_score=nan,
    beta_loss=nan, tuning=1.0, pinball=1.0, coverage=0.9, mc=0.12, msl=1.2, length=10.0,
    finite_length=10.0, full=0.0,
    empty=0.0, delta=0.01, floor=0.006, early=0.001, steps=15_000, mean=0.1, gap=0.0, low=-0.02,
    high=0.02, within=True, guarded=0,
)  # fmt: skip


def made(datasets=("power", "wind"), seeds=3):
    """Results in which γ = 0.1 is better on the tuned rows and γ = 0.2 on the judged ones."""
    rows = []
    for dataset in datasets:
        for seed in range(seeds):
            base = replace(BLANK, dataset=dataset, seed=seed)
            rows.append(
                replace(base, risk="none", method="uncalibrated", gamma=nan, coverage=0.8, gap=nan)
            )
            rows += [
                replace(
                    base, risk=risk, method=method, gamma=gamma, tuning=gamma + 0.01 * seed,
                    pinball=3.0 - gamma, length=float(length + seed),
                    mc=1 / 9 if risk == "mc" else 0.12,
                )
                for risk in ("coverage", "mc")
                for length, method in enumerate(METHODS, 10)
                for gamma in (0.1, 0.2)
            ]  # fmt: skip
    study = [
        replace(BLANK, dataset="synthetic", seed=seed, gamma=gamma, msl=msl, length=length)
        for seed in range(seeds)
        for gamma, msl, length in ((0.01, 1.3, 8.0), (0.1, 1.1, 9.0), (1.0, 1.0, 30.0))
    ]
    about = {
        "command": "setpoint reproduce tabular",
        "model": "linear quantiles",
        "units": {"power": "kW"},
        "notes": {"wind": "a stand-in"},
        "seconds": [[3.0, 5.0], [4.0, 4.5]],
    }
    return Results(tuple(rows), tuple(study), about)


def test_results_come_back_from_disk(tmp_path):
    results = made()
    store(results, tmp_path)
    again = load(tmp_path)
    assert again.about == results.about
    for one, other in zip(results.rows + results.study, again.rows + again.study, strict=True):
        for name in Row.__slots__:
            before, after = getattr(one, name), getattr(other, name)
            assert type(after) is type(before)
            if isinstance(before, float):
                before = pytest.approx(before, rel=1e-5, nan_ok=True)
            assert after == before


def test_the_same_results_make_the_same_bytes(tmp_path):
    for name in ("one", "two"):
        store(made(), tmp_path / name)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "two" / path.name).read_bytes()


def test_absent_results_are_named(tmp_path):
    with pytest.raises(DataError, match=r"tabular\.csv\.gz is absent"):
        load(tmp_path)


def test_gamma_is_tuned_for_each_seed():
    worse = replace(BLANK, gamma=0.2, tuning=2.0, pinball=0.5)
    other = [replace(BLANK, seed=1, tuning=3.0), replace(worse, seed=1, tuning=2.0)]
    results = Results((BLANK, worse, *other), ())
    assert [row.gamma for row in results.chosen("power", "none", "coverage")] == [0.1, 0.2]


def test_gamma_by_test_is_one_for_all_seeds():
    rows = [
        replace(BLANK, seed=seed, gamma=gamma, pinball=pinball)
        for seed, gamma, pinball in [(0, 0.1, 1.0), (1, 0.1, 4.0), (0, 0.2, 2.0), (1, 0.2, 2.0)]
    ]
    chosen = Results(tuple(rows), ()).chosen("power", "none", "coverage", "test")
    assert [(row.seed, row.gamma) for row in chosen] == [(0, 0.2), (1, 0.2)]


def test_the_bare_model_stands_under_every_risk_and_selection():
    results = made()
    for risk in ("coverage", "mc"):
        for by in ("tuned", "test"):
            assert results.values("wind", "uncalibrated", "coverage", risk, by) == [0.8] * 3


def test_an_unknown_selection_is_refused():
    with pytest.raises(InputError, match="by must be one of 'tuned', 'test', got 'best'"):
        made().chosen("power", "none", "coverage", "best")


def test_lengths_are_scaled_by_the_methods_of_their_figure():
    results = made()
    # none, exponential, score, error have 10, 11, 12, 13 and each seed adds 0, 1, 2: mean 12.5
    assert results.values("power", "none", "scaled_length") == pytest.approx(
        [10 / 12.5, 11 / 12.5, 12 / 12.5]
    )
    # cal has 16, so cal, none, error have 17, 11, 14 on the middle seed
    assert results.median("power", "cal", "scaled_length") == pytest.approx(17 / 14)


def test_the_printed_numbers_agree_with_themselves():
    assert set(PRINTED) == set(CURVES) == {"power", "energy", "traffic", "prices", "wind"}
    for dataset, curves in CURVES.items():
        for method, curve in curves.items():
            best = min(curve.values())
            assert printed(dataset, method).pinball == best
            assert curve[printed(dataset, method).gamma] == best
        for method in COLUMNS:
            found = printed(dataset, method)
            assert found.mc >= 0.1  # at 10 % misses
            assert found.msl >= 1.0
        lengths = [printed(dataset, method).scaled_length for method in COLUMNS[:4]]
        assert sum(lengths) / 4 == pytest.approx(1.0, abs=0.012)
    assert printed("power", "error_coded") == printed("power", "error")
    assert printed("synthetic", "none").pinball != printed("synthetic", "none").pinball


def test_verdicts_count_data_sets():
    def verdict(held, failed):
        return Verdict("claim", "4.1", "rule", "ours", held, failed)

    assert str(verdict(("a", "b"), ())) == "holds (2 of 2)"
    assert str(verdict(("a",), ("b",))) == "holds partly (1 of 2, not b)"
    assert str(verdict((), ("a", "b"))) == "does not hold here (0 of 2)"


def test_claims_are_decided_by_their_rules():
    results = made()
    decided = {each.claim: each for each in decide(results, SETTINGS[0])}
    assert len(decided) == len(CLAIMS)

    def word(start):
        (found,) = [each.word for claim, each in decided.items() if claim.startswith(start)]
        return found

    # Lengths rise from none over error adaptive to calibration with cal; all else is equal.
    assert word("Rolling RC attains 90 %") == "holds"
    assert word("error adaptive stretching gives narrower") == "does not hold here"
    assert word("error adaptive stretching gives better") == "does not hold here"
    assert word("control of coverage alone") == "holds"
    assert word("MC is held") == "holds"

    def shorter(row):
        return row.dataset == "wind" and row.method == "error"

    changed = [replace(row, length=1.0) if shorter(row) else row for row in results.rows]
    partly = decide(Results(tuple(changed), ()), SETTINGS[0])
    (found,) = [each for each in partly if each.claim.startswith("error adaptive gives the short")]
    assert (found.word, found.held, found.failed) == ("holds partly", ("wind",), ("power",))


def test_a_setting_takes_the_authors_form_of_the_adaptive_stretchings_only():
    coded = SETTINGS[2]
    assert [coded.method(name) for name in ("none", "score", "error", "cal")] == [
        "none", "score_coded", "error_coded", "cal",
    ]  # fmt: skip
    assert SETTINGS[0].method("error") == "error"


def test_the_study_of_gamma_has_verdicts():
    assert [each.word for each in study_verdicts(made().study)] == ["holds"] * 3
    turned = tuple(replace(row, msl=2.0, length=1 / row.gamma) for row in made().study)
    assert [each.word for each in study_verdicts(turned)] == ["does not hold here"] * 3
    assert study_verdicts(()) == []


def test_every_claim_names_its_place_and_rule():
    for claim in CLAIMS:
        assert claim.where
        assert claim.rule
        assert claim.text[0] == claim.text[0].strip()
    assert len({claim.text for claim in CLAIMS}) == len(CLAIMS)
    assert _claims.SETTINGS[0].by == "tuned"


def test_tables_line_up():
    lines = table(["name", "value"], [["a", "1.0"], ["longer", "–"]]).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[1] == "|--------|------:|"


def test_the_report_says_when_a_promise_is_broken():
    good = report(made())
    assert "BROKEN" not in good
    assert good.count("HOLDS") == 2
    results = made()
    bad = replace(results.rows[1], within=False)
    assert report(Results((bad, *results.rows[2:]), ())).count("BROKEN") == 1
    off = replace(results.rows[1], gap=1e-3)
    assert report(Results((off, *results.rows[2:]), ())).count("BROKEN") == 1


def test_report_and_figures_come_from_what_is_stored(tmp_path, capsys):
    store(made(), tmp_path)
    redraw(tmp_path)
    text = (tmp_path / "tabular.md").read_text(encoding="utf-8")
    shown = capsys.readouterr().out
    assert text.startswith(shown.rstrip())
    assert "Note on wind: a stand-in." in text
    figures = sorted(path.name for path in tmp_path.glob("*.png"))
    assert len(figures) == 8
    for name in figures:
        assert f"({name})" in text
        picture = (tmp_path / name).read_bytes()
        assert picture[:4] == b"\x89PNG"
        assert len(picture) < 150_000


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"datasets": ("wine",)}, "a data set must be one of 'power', .*, got 'wine'"),
        ({"datasets": ()}, r"datasets must be some of power, .*, got \(\)"),
        ({"model": "gru"}, "model must be one of 'lstm', 'linear', got 'gru'"),
        ({"seeds": 0}, "seeds must be a whole number of at least 1, got 0"),
        ({"jobs": 0}, "jobs must be a whole number of at least 1, got 0"),
    ],
)
def test_reproduce_says_what_it_takes(options, message, tmp_path):
    with pytest.raises(InputError, match=message):
        reproduce(**options, out=tmp_path, cache=tmp_path)


def test_without_a_finished_tape_there_is_nothing_to_calibrate(shared_data, tmp_path):
    with pytest.raises(InputError, match="no tape of wind is finished in"):
        reproduce(datasets=("wind",), seeds=1, ready=True, out=tmp_path, cache=tmp_path)


def test_the_search_for_the_models_shape_finds_what_a_plain_search_finds():
    torch = pytest.importorskip("torch")
    from setpoint.models.lstm import LSTMSettings, combinations, search

    threads = torch.get_num_threads()
    data = Recipe("synthetic").data()
    some = combinations(LSTMSettings(batch=4))[::7]
    tried = search_settings("synthetic", some, rows=(10, 25))
    with one_thread():
        plain = search(data.x, data.y, some, (10, 25))
    assert tried[0] == (plain.settings, plain.pinball)
    assert [loss for _, loss in tried] == sorted(loss for _, loss in plain.tried)
    assert torch.get_num_threads() == threads


@pytest.mark.slow
def test_one_command_goes_from_real_data_to_figures(shared_data, tmp_path, capsys):
    results = reproduce(datasets=("wind",), quick=True, out=tmp_path / "out", cache=tmp_path)
    assert {row.dataset for row in results.rows} == {"wind"}
    assert len(results.study) > 5
    for row in results.rows:
        if row.method != "uncalibrated":
            assert row.within
            assert row.gap < 1e-9
        if row.risk == "mc":
            assert abs(row.mc - 1 / 9) < 0.01
    assert "stand-in" in capsys.readouterr().out
    assert (tmp_path / "out" / "tabular-linear.md").is_file()
