"""The guarantee in people's words: coverage first, then counts of misses, by hand."""

import json
from typing import Any

import pytest

import setpoint as sp
from setpoint.errors import InputError
from setpoint.steps import Claim


def answered(stream: sp.Stream, misses: int, hits: int) -> sp.guarantee.RiskCertificate:
    """The certificate after misses and then hits: labels at the middle of a shown set, or far."""
    for miss in (*[True] * misses, *[False] * hits):
        shown = stream.predict((10.0, 14.0))
        stream.update(shown.upper + 1.0 if miss and shown.upper < 1e300 else shown.centre)
    return stream.certificate().risks[0]


def test_a_budget_is_told_in_misses() -> None:
    risk = answered(sp.Stream(sp.intervals(coverage=0.9)), misses=4, hits=196)
    assert risk.excess == pytest.approx(4 - 20)
    assert risk.words() == {
        "coverage": "98.0 % of the actual values inside; asked 90 % (200 labels)",
        "budget": "at most 10.9 misses above 10 % at any time since the start (now -16.0): "
        "5.5 % of 200 labels",
        "any window": "at most 20.9 misses above 10 %",
    }


def test_before_it_says_something_the_share_is_left_out() -> None:
    assert answered(sp.Stream(sp.intervals(coverage=0.8)), misses=1, hits=1).words() == {
        "coverage": "50.0 % of the actual values inside; asked 80 % (2 labels)",
        "budget": "at most 10.8 misses above 20 % at any time since the start (now +0.6)",
        "any window": "at most 20.8 misses above 20 %",
    }


def test_both_sides_are_told_where_both_are_kept() -> None:
    words = answered(sp.Stream(sp.intervals(coverage=0.9, two_sided=True)), 1, 99).words()
    assert words["budget"] == (
        "at most 10.9 misses above 10 % and at most 10.1 below it at any time since the start "
        "(now -9.0): 11 % and 10 % of 100 labels"
    )
    assert words["any window"] == "at most 21 misses more or less than 10 %"


def test_another_loss_is_told_in_its_own_unit() -> None:
    class Euros:
        low, high = 0.0, 5.0
        noun = ("euro", "euros")

        def __call__(self, shown: Any, y: float) -> float:
            return 0.0 if y in shown else 5.0

    points = sp.losses.Custom(lambda shown, y: float(y not in shown), high=5.0, empty=1.0)
    for loss, unit in ((Euros(), "euros"), (points, "points of loss")):
        stream = sp.Stream(sp.intervals(risk=sp.Risk(loss, level=0.5)))
        words = answered(stream, misses=0, hits=100).words()
        assert words["mean loss"] == "0 over 100 labels (-0.5 from the level)"
        assert words["budget"] == (
            f"at most 14.5 {unit} above 0.5 a label at any time since the start (now -50.0): "
            "0.14 for each of 100 labels"
        )


def test_a_change_begins_the_count_anew_and_says_so() -> None:
    stream = sp.Stream(sp.intervals(coverage=0.9))
    answered(stream, 1, 1)
    stream.change(level=0.2)
    answered(stream, 0, 1)
    assert "20 % at any time since the last change (now -0.2)" in str(stream.certificate())


def test_the_paper_rule_keeps_its_bound_on_the_mean() -> None:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5), bounds=(-20, 20))
    text = str(sp.Stream(sp.Controller(sp.sets.Widen(), risk)).certificate())
    assert "budget" not in text
    assert "the sum of (loss − level) over any labels in a row is within ±81" in text


def test_the_certificate_says_it_in_text_and_in_json() -> None:
    stream = sp.Stream(sp.intervals(coverage=0.9))
    words = answered(stream, misses=2, hits=18).words()
    text = str(stream.certificate())
    places = [text.index(sentence) for sentence in words.values()]
    assert places == sorted(places)
    plain = json.loads(json.dumps(stream.certificate().as_dict()))["risks"][0]
    assert plain["words"] == list(words.values())
    assert plain["unit"] == ["miss", "misses"]
    assert (plain["coverage"], plain["asked"], plain["counted"]) == (0.9, 0.9, True)
    assert plain["excess"] == pytest.approx(0.0, abs=1e-12)
    assert "✗" not in text


def test_a_rule_says_itself_that_its_constants_are_counts() -> None:
    class Told(sp.steps.Account):
        def claim(self, within: Any, memory: Any, T: int) -> Claim:
            return Claim(upper=3.0, window_needs_lower=False)

    stream = sp.Stream(sp.intervals())
    assert stream.certificate().risks[0].counted
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, Told())
    told = sp.Stream(sp.Controller(sp.sets.Widen(), risk))
    assert "budget" not in told.certificate().risks[0].words()


@pytest.mark.parametrize("noun", ["miss", ("miss",), ("miss", 2)])
def test_a_noun_is_two_words(noun: Any) -> None:
    class Odd:
        low, high = 0.0, 1.0

        def __call__(self, shown: Any, y: float) -> float:
            return 0.0

    Odd.noun = noun  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="noun must be two words"):
        sp.losses.declaration(Odd())


def test_groups_are_told_in_the_same_words() -> None:
    stream = sp.Stream(sp.intervals(coverage=0.9))
    for y in (12.0, 20.0):
        stream.predict((10.0, 14.0), groups=("north",))
        stream.update(y)
    text = str(stream.certificate())
    assert (
        "north: at most 10.9 misses above 10 %, which says nothing yet of 2 labels, now +0.8"
        in text
    )
