"""The budget of a gate: Theorems A and B of docs/why.md, against adversaries that see everything.

The sums are kept here by hand, from the decisions and the labels, and held against the bound.
"""

import random
from collections.abc import Callable
from dataclasses import replace as with_changes
from math import log
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.decisions import Gate, Terms
from setpoint.decisions.log import replay, tossed
from setpoint.steps.gate import AUDITED, RING, S, block, most_errors, size
from setpoint.tape.schedule import steady

LONG = pytest.mark.slow


def moods(rng: random.Random) -> Callable[[Gate, int, float], bool]:
    """An adversary: whether acting is wrong, from the gate, the row and the score."""
    q, turn = rng.random(), rng.randrange(50, 400)
    return rng.choice(
        [
            lambda gate, t, score: True,
            lambda gate, t, score: rng.random() < q,
            lambda gate, t, score: t > turn,
            lambda gate, t, score: score > q,
            lambda gate, t, score: (t // turn) % 2 == 1,
            # It saves the account up, then spends all of it at once.
            lambda gate, t, score: gate.state[block(0) + S] < -3.0 or t % 100 > 80,
            lambda gate, t, score: gate.state[block(0) + S] > 5.0,
        ]
    )


def some_terms(rng: random.Random) -> Terms:
    audits = rng.choice([1.0, 1.0, 0.3, 0.1])
    errors: Any = rng.choice([0.01, 0.05, 0.2, {"wrong": 0.1, "unsafe": 0.02}])
    return Terms(
        errors, audits, rng.choice([None, None, 5, 30]), rng.choice(["request", "action"]),
        sure=None if audits == 1.0 else rng.choice([None, 0.9]), limit=rng.choice([10.0, 3.0]),
    )  # fmt: skip


def play(seed: int, rows: int, changes: bool = False) -> None:
    """One sequence: labels late, unordered, dropped, held back whole, restored in the middle.

    With changes the terms are others now and then: the sums begin again with what waits.
    """
    rng = random.Random(seed)
    terms, wrong = some_terms(rng), moods(rng)
    gate, p = Gate(terms, secret=str(seed)), terms.audits
    habit, outage = rng.choice([0, 0, 3, 40]), rng.randrange(rows)
    waiting: list[tuple[int, tuple[float, ...]]] = []
    count = len(terms.names)
    totals, deepest, spent = [0.0] * count, [0.0] * count, [0.0] * count
    asked = 0

    def settle(j: int, loss: float | None, acted: bool) -> None:
        """Moves the sum of one limit by what one row came to, and keeps its lowest."""
        r, q = terms.allowed[j]
        counted = loss or 0.0
        if terms.sure is not None and loss is not None:
            delta = 1.0 - terms.sure
            before, spent[j] = most_errors(spent[j], p, delta), spent[j] + loss
            counted = p * (most_errors(spent[j], p, delta) - before)
        totals[j] += counted - p * (r + q * acted)
        deepest[j] = min(deepest[j], totals[j])

    for t in range(rows):
        if changes and rng.random() < 0.01:
            other = some_terms(rng)
            scale = rng.choice([0.5, 1.0, 2.0])
            shares = [min(scale * share, 0.5) for share in terms.shares]
            errors: Any = dict(zip(terms.names, shares, strict=True)) if count > 1 else shares[0]
            terms = with_changes(
                terms, errors=errors, limit=other.limit, per=other.per,
                max_pending=other.max_pending,
            )  # fmt: skip
            held = gate.change(terms)
            assert [one.account * p for one in held.limits] == pytest.approx(
                [total + (terms.sure is not None) * p * most_errors(0.0, p, 0.1)
                 for total in totals], abs=1e-6,
            )  # fmt: skip
            totals, deepest, spent = [0.0] * count, [0.0] * count, [0.0] * count
            asked = len(waiting)
        score = rng.choice([rng.random(), round(rng.random(), 1), 1.0])
        decision = gate.decide(score, t)
        assert gate.decide(score, t) == decision  # asked again, it answers the same
        asked += 1
        bad = wrong(gate, t, score)
        if decision.audit:
            loss = rng.choice([1.0, 1.0, 0.5]) if bad else 0.0
            waiting.append((t, tuple(loss * rng.choice([1.0, 1.0, 0.0]) for _ in range(count))))
        else:
            for j in range(count):
                settle(j, None, decision.act)
            if not decision.act and rng.random() < 0.2:
                gate.update(loss=_named(terms, (float(bad),) * count), id=t)
        rng.shuffle(waiting)
        held_back = outage <= t < outage + 60
        while len(waiting) > habit and not held_back:
            id, losses = waiting.pop()
            if rng.random() < 0.1:
                gate.drop(id)
                losses = (1.0,) * count
            else:
                gate.update(loss=_named(terms, losses), id=id)
                with pytest.raises(sp.errors.AnsweredReceipt):
                    gate.update(loss=_named(terms, losses), id=id)
            for j in range(count):
                settle(j, losses[j], True)
        if rng.random() < 0.01:
            gate = Gate.restored(gate.content(), secret=str(seed))
        if t % 7 and t < rows - 1:
            continue
        certificate = gate.certificate()
        assert certificate.requests == asked
        for j, one in enumerate(certificate.limits):
            first = 0.0 if terms.sure is None else most_errors(0.0, p, 1.0 - terms.sure)
            now, bound = totals[j] / p + first, one.bound
            assert one.account == pytest.approx(now, abs=1e-6)
            assert now <= bound.worst + 1e-6
            assert bound.worst <= bound.from_now + 1e-6 <= bound.since_start + 2e-6
            if bound.window is not None:
                assert (totals[j] - deepest[j]) / p <= bound.window + 1e-6
            if habit == 0 and t < outage and terms.sure is None:
                assert bound.since_start * p <= terms.limit + 1.0


def _named(terms: Terms, losses: tuple[float, ...]) -> Any:
    return dict(zip(terms.names, losses, strict=True)) if len(losses) > 1 else losses[0]


@pytest.mark.parametrize(
    ("first", "count"),
    [(0, 200), *(pytest.param(10_000 + 1000 * part, 1000, marks=LONG) for part in range(20))],
)
def test_no_adversary_gets_more_errors_than_the_bound(first: int, count: int) -> None:
    for seed in range(first, first + count):
        play(seed, 400)


def test_no_adversary_gets_more_errors_than_the_bound_where_the_terms_change() -> None:
    for seed in range(60):
        play(seed, 300, changes=True)


def test_ten_errors_too_many_are_neared_and_never_passed_with_labels_in_time() -> None:
    """Whatever acts is wrong: r·T + 10 errors, and not one more, at every time."""
    reached = 0.0
    for errors, saved in ((0.01, 0), (0.05, 0), (0.05, 3000), (0.3, 0), (0.3, 300)):
        gate, wrong = sp.gate(errors=errors), 0
        for t in range(4000):
            if gate.decide(float(t)):  # every request looks surer than all before
                gate.update(wrong=t >= saved)
                wrong += t >= saved
            assert wrong <= errors * (t + 1) + 10.0
            reached = max(reached, wrong - errors * (t + 1))
        assert gate.certificate().limits[0].bound.since_start == 10.0
    assert reached > 7.5


def test_a_gate_heals_after_an_outage_of_labels() -> None:
    """What waits widens the bound while it lasts; then the bound comes back to where it was."""
    rng, gate, held = random.Random(0), sp.gate(errors=0.1), []
    for t in range(12_000):
        score = rng.random()
        if gate.decide(score, t):
            held.append((t, rng.random() > score))
        if not 1000 <= t < 1200:
            while held:
                gate.update(held[0][1], held.pop(0)[0])
        bound = gate.certificate().limits[0].bound
        if t == 999:
            assert bound.from_now == 10.0
        if t == 1199:
            assert bound.from_now > 20.0
    assert bound.from_now < 11.0 < bound.since_start


# Audits: the true number of errors.


def violations(p: float, kind: int, runs: int, rows: int, delta: float) -> float:
    """How often the true count ever passes its bound, where the stream sees every past coin."""
    rng = np.random.default_rng(kind)
    errors, drawn = np.zeros(runs, int), np.zeros(runs, int)
    since, passed = np.zeros(runs), np.zeros(runs, bool)
    bounds = np.array([most_errors(float(n), p, delta) for n in range(rows + 1)])
    for _ in range(rows):
        chance = [
            np.ones(runs), np.full(runs, 0.05), np.where(since > 1 / p, 0.5, 0.02),
            np.where(drawn < p * errors, 1.0, 0.01),
        ][kind]  # fmt: skip
        wrong, coin = rng.random(runs) < chance, rng.random(runs) < p
        errors += wrong
        drawn += wrong & coin
        since = np.where(wrong, np.where(coin, 0, since + 1), since)
        passed |= errors > bounds[drawn]
    return float(passed.mean())


@pytest.mark.parametrize(
    ("p", "runs", "rows"),
    [(0.2, 400, 1000), *(pytest.param(p, 2000, 20_000, marks=LONG) for p in (0.05, 0.1, 0.2, 0.5))],
)
@pytest.mark.parametrize("kind", range(4))
def test_the_probable_bound_is_passed_as_seldom_as_it_says(
    kind: int, p: float, runs: int, rows: int
) -> None:
    assert violations(p, kind, runs, rows, 0.05) <= 0.05


def passes(seed: int, sure: float | None, rows: int) -> bool:
    """Whether a gate at work ever has more true errors than its certificate says."""
    rng = random.Random(seed)
    gate, wrong = sp.gate(errors=0.1, audits=0.2, sure=sure, secret=str(seed)), 0
    drawn = 0
    for t in range(rows):
        decision = gate.decide(rng.random(), t)
        if not decision:
            continue
        bad = rng.random() < (0.9 if drawn < 0.2 * wrong else 0.05)  # it knows the coins so far
        wrong += bad
        if decision.audit:
            drawn += bad
            gate.update(bad, t)
        if bad:
            (one,) = gate.certificate().limits
            if one.probable is None or wrong > one.probable.errors:
                return True
            if sure is not None and wrong > 0.1 * (t + 1) + one.bound.since_start:
                return True
    return False


@pytest.mark.parametrize(("seeds", "rows"), [(60, 200), pytest.param(2000, 500, marks=LONG)])
@pytest.mark.parametrize("sure", [None, 0.95])
def test_a_gate_at_work_keeps_its_probable_bound(sure: float | None, seeds: int, rows: int) -> None:
    assert sum(passes(seed, sure, rows) for seed in range(seeds)) <= 0.05 * seeds


def test_the_probable_bound_by_hand() -> None:
    """Numbers of errors for 0, 10 and 100 audited ones, from the formula written out."""
    for spent, printed in ((0.0, 31), (10.0, 117), (100.0, 668)):
        kappas = [0.75 * 2.0**-i for i in range(8)]
        by_hand = min((log(8 / 0.05) - spent * log(1 - k)) / -log(1 - k * 0.2) for k in kappas)
        assert most_errors(spent, 0.2, 0.05) == pytest.approx(by_hand)
        assert round(by_hand) == printed


# The same gate in every way to run it.


def reference(scores: Any, wrong: Any, r: float) -> list[bool]:
    """The rule with labels in time, written out once more."""
    ring: list[float] = []
    first = min(max(min(20 * r, 0.5), 5 * r), 0.9)
    account, bar = 0.0, log((1 - first) / first) / 1.7
    level, labels, acts = log(r / (1 - r)), 0, []
    expected, errors = np.zeros(16), np.zeros(16)
    for n, (score, bad) in enumerate(zip(scores, wrong, strict=True)):
        z = 0.0
        if len(ring) >= 5:
            below = sum(s < score for s in ring) + 0.5 * sum(s == score for s in ring)
            rank = (below + 0.5) / (len(ring) + 1)
            z = log(rank / (1 - rank)) / 1.7
        x = min(max((z + 3) / 6 * 15, 0.0), 15.0)
        c = float(np.interp(x, range(16), np.log((errors + 10) / (expected + 10))))
        part = max(account, 0.0) / 10
        act = account + 1 - r <= 10 and part < 1
        act = act and z - c >= bar + 0.15 * account / (1 - part * part)
        ring = [*ring, score][-RING:]
        excess = (bad if act else 0.0) - r
        bar = max(bar + max(0.02, 1 / (1 + r * (n + 1))) * excess, -2.0)
        account = max(account + excess, -10.0)
        if act:
            labels += 1
            pi = 1 / (1 + np.exp(-min(max(level - z, -12), 12)))
            level += max(1 / (labels + 20), 0.005) * (bad - pi) / (pi * (1 - pi) + 0.02)
            i = min(int(x), 14)
            for o, share in ((i, 1 - (x - i)), (i + 1, x - i)):
                expected[o] += share * pi
                errors[o] += share * bad
                total = expected[o] + errors[o]
                if total > 100:
                    expected[o] *= 100 / total
                    errors[o] *= 100 / total
        acts.append(bool(act))
    return acts


@pytest.mark.parametrize("r", [0.01, 0.1])
def test_a_gate_is_the_loop_written_out(r: float) -> None:
    rng = np.random.default_rng(3)
    scores = np.round(rng.random(3000), 2)
    wrong = (rng.random(3000) > scores).astype(float)
    assert replay(Terms(r), scores, wrong).act.tolist() == reference(scores, wrong, r)


class Coined(Gate):
    """A gate whose coins are given."""

    coins: Any

    def _coin(self, id: Any) -> bool:
        return bool(self.coins[id])


@pytest.mark.parametrize("plain", ["1", "0"])
@pytest.mark.parametrize(
    ("terms", "late"),
    [
        (Terms(0.05), {"delay": 0}),
        (Terms(0.05, max_pending=7), {"delay": 30}),
        (Terms(0.1, per="action", audits=0.4), {"delay": 3}),
        (Terms(0.1, audits=0.3, sure=0.9), {"delay": 0}),
        (Terms({"wrong": 0.1, "unsafe": 0.03}), {"known": True}),
    ],
)
def test_a_replay_is_the_live_gate(
    terms: Terms, late: dict[str, Any], plain: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Codes and states to the bit, in plain Python and as machine code."""
    rng, rows = np.random.default_rng(5), 600
    scores = rng.random(rows)
    wrong: Any = (rng.random(rows) > scores).astype(float)
    if len(terms.names) > 1:
        wrong = {"wrong": wrong, "unsafe": wrong * (rng.random(rows) < 0.3)}
    known = np.arange(rows) + rng.integers(1, 40, rows)
    given = {"known": known} if "known" in late else late
    monkeypatch.setenv("SETPOINT_PLAIN", plain)
    gone = replay(terms, scores, wrong, seed=1, deferred=True, **given)
    coins = tossed(rows, terms.audits, 1)
    monkeypatch.setenv("SETPOINT_PLAIN", "1")
    gate, codes = Coined(terms), []
    gate.coins = coins
    schedule = gone.tape.schedule or steady(np.zeros(1, int), np.array([0, rows]))
    for event in schedule.events(np.array([0, rows])).tolist():
        if event >= 0:
            decision = gate.decide(float(scores[event]), event)
            codes.append(decision)
        elif not (codes[~event].act and not codes[~event].audit):
            losses = [float(column[~event]) for column in gone.losses.T]
            gate.update(loss=_named(terms, tuple(losses)), id=~event)
    assert [d.act for d in codes] == gone.act.tolist()
    assert [d.audit for d in codes] == (gone.codes == AUDITED).tolist()
    assert gate.state.tobytes() == gone.states[0].tobytes()
    assert size(len(terms.names)) == len(gate.state)


def test_gates_of_several_series_are_gates_of_their_own() -> None:
    rng = np.random.default_rng(6)
    scores, series = rng.random(900), rng.integers(0, 3, 900)
    wrong = (rng.random(900) > scores).astype(float)
    together = replay(Terms(0.1), scores, wrong, series=series, delay=4)
    for name in range(3):
        rows = series == name
        alone = replay(Terms(0.1), scores[rows], wrong[rows], delay=4)
        assert together.codes[rows].tolist() == alone.codes.tolist()
        assert together.certificate(name) == alone.certificate()


def test_a_gate_that_had_an_easy_time_still_goes_by_the_score() -> None:
    """Years without errors save nothing up: what is right of the score counts as before."""
    rng, rows = np.random.default_rng(0), 6000
    odds = rng.normal(1.5, 1.5, rows)
    wrong = (rng.random(rows) < 1 / (1 + np.exp(odds))).astype(float)
    easy = rng.normal(1.5, 1.5, 4 * rows)
    for terms in (Terms(0.05), Terms(0.05, audits=0.5, sure=0.95)):
        fresh = replay(terms, odds, wrong)
        later = replay(terms, np.append(easy, odds), np.append(np.zeros(4 * rows), wrong))
        act = later.act[4 * rows :]
        assert act.mean() > 0.8 * fresh.act.mean()
        assert (act * wrong).mean() < 0.05 + (20.0 / terms.audits + 50.0) / rows
