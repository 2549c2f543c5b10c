"""Gates as their users meet them: calls, refusals, states, secrets, alarms, many of them."""

import copy
import json
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.decisions import Gate, Gates, Terms
from setpoint.decisions.live import Decision
from setpoint.decisions.log import outcome
from setpoint.errors import (
    AmbiguousReceipt,
    AnsweredReceipt,
    ExpiredReceipt,
    InputError,
    StateError,
    UnknownReceipt,
)
from setpoint.steps.gate import COMPLAINTS, LEVEL, block, most_errors


def work(gate: Gate, rows: int, seed: int = 0, late: int = 0) -> list[Decision]:
    """Requests whose chance of an error is one less the score, labelled so many rows late."""
    rng, decisions, waiting = random.Random(seed), [], []
    for t in range(rows):
        score = rng.random()
        decision = gate.decide(score, f"{seed}-{t}")
        decisions.append(decision)
        if decision.audit:
            waiting.append((rng.random() > score, decision.id))
        if len(waiting) > late:
            gate.update(*waiting.pop(0))
    return decisions


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"errors": 5}, "errors must be a share from 1e-06 up to 1, got 5: write 5 % as 0.05"),
        ({"errors": {}}, "errors must be a share, or shares by name"),
        ({"errors": {"unsafe": 0.0}}, r"errors\['unsafe'\] must be a share"),
        ({"audits": 10}, "audits must be a share from 1e-06 up to 1, got 10: write 10 % as 0.1"),
        ({"max_pending": 0}, "max_pending must be a whole number of at least 1, got 0"),
        ({"per": "day"}, "per must be one of 'request', 'action', got 'day'"),
        ({"sure": 0.9}, "sure=0.9 is about audits: with audits=1 every action has its label"),
        ({"limit": 0.5}, "limit must be at least 1, one error, got 0.5"),
        ({"per": "action", "errors": 0.99, "spare": 0.02}, "must be below 1"),
        ({"window": 100}, "window, tolerance and on_alarm go together"),
        ({"secret": 7}, "secret must be text or bytes, got 7"),
    ],
)
def test_bad_terms_are_refused_in_one_sentence(options: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        sp.gate(**options)


def test_bad_calls_change_nothing() -> None:
    gate = sp.gate(errors=0.2)
    gate.decide(0.9, "a")
    gate.decide(0.8, "b")
    before = json.dumps(gate.content(), default=np.ndarray.tolist)
    calls: list[tuple[Any, type[Exception], str]] = [
        (lambda: gate.decide(float("nan")), InputError, "score must be finite, got nan"),
        (lambda: gate.decide("0.9"), InputError, "score must be a number"),
        (lambda: gate.decide(0.8, "a"), InputError, "decided by the score 0.9, got 0.8"),
        (lambda: gate.decide(0.8, 1.5), InputError, "an id must be a whole number"),
        (lambda: gate.update(wrong=0.5, id="a"), InputError, "wrong must be True or False"),
        (lambda: gate.update(loss=20, id="a"), InputError, "divide a cost by the largest one"),
        (lambda: gate.update(id="a"), InputError, "give wrong"),
        (lambda: gate.update(True, "c"), UnknownReceipt, "no decision is known under the id 'c'"),
        (lambda: gate.update(True), AmbiguousReceipt, "2 actions wait for their labels"),
        (lambda: gate.drop("c"), UnknownReceipt, "no decision is known"),
    ]
    for call, kind, says in calls:
        with pytest.raises(kind, match=says):
            call()
        assert json.dumps(gate.content(), default=np.ndarray.tolist) == before
    gate.update(True, "a")
    with pytest.raises(AnsweredReceipt, match="already has its label"):
        gate.update(True, "a")
    gate.drop("b")
    with pytest.raises(ExpiredReceipt, match="given up"):
        gate.update(True, "b")
    several = sp.gate(errors={"wrong": 0.1, "unsafe": 0.1})
    several.decide(0.9, 1)
    with pytest.raises(InputError, match="one value for each of wrong, unsafe"):
        several.update(wrong={"wrong": True}, id=1)


def test_a_request_asked_again_is_answered_as_before() -> None:
    gate = sp.gate(errors=0.1, audits=0.5)
    first = [gate.decide(t % 9 / 10, t) for t in range(300)]
    state = gate.state.tobytes()
    assert [gate.decide(t % 9 / 10, t) for t in range(300)] == first
    assert gate.state.tobytes() == state
    assert {(d.act, d.audit) for d in first} == {(True, True), (True, False), (False, False)}


def test_generated_ids_and_the_only_one_that_waits() -> None:
    gate = sp.gate(errors=0.3)
    assert [gate.decide(0.5).id, gate.decide(0.5, 7).id, gate.decide(0.5).id] == [0, 7, 8]
    assert gate.pending == (0, 7, 8)
    for id in (7, 0):
        gate.update(False, id)
    gate.update(True)  # the only one
    assert gate.pending == ()
    assert gate.certificate().limits[0].errors == 1.0


# Audits


def test_coins_are_fair_secret_and_the_same_for_an_id() -> None:
    gate = sp.gate(errors=0.5, audits=0.2, secret="a")
    coins = [gate._coin(id) for id in range(20_000)]
    assert abs(np.mean(coins) - 0.2) < 0.01
    assert abs(np.corrcoef(coins[1:], coins[:-1])[0, 1]) < 0.03
    assert coins == [gate._coin(id) for id in range(20_000)]
    other = sp.gate(errors=0.5, audits=0.2)
    assert coins != [other._coin(id) for id in range(20_000)]
    assert [gate._coin(n) for n in range(200)] != [gate._coin(str(n)) for n in range(200)]


def test_a_coin_that_was_seen_says_nothing_of_an_id_used_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Errors only under ids that were seen undrawn: their second coins are fair all the same."""
    monkeypatch.setattr(sp.decisions.live, "_REMEMBERED", 50)
    gate = sp.gate(errors=0.9, audits=0.5, secret="a")

    def drawn(id: int) -> bool:
        decision = gate.decide(0.5, id)
        if decision.audit:
            gate.update(False, id)
        return decision.audit

    undrawn = [id for id in range(400) if not drawn(id)][:100]
    again = [drawn(id) for id in undrawn]
    assert 25 < sum(again) < 75


def test_the_seed_is_in_nothing_that_is_shown_or_saved(tmp_path: Path) -> None:
    gate = sp.gate(errors=0.2, audits=0.3, secret="hunter2")
    work(gate, 50)
    gate.save(tmp_path / "gate.zip")
    shown = [
        (tmp_path / "gate.zip").read_bytes(), pickle.dumps(gate), repr(gate).encode(),
        str(gate.certificate()).encode(), str(gate.summary()).encode(),
        json.dumps(gate.certificate().as_dict()).encode(),
        pickle.dumps(Gates(gate, secret="hunter2")),
    ]  # fmt: skip
    for text in shown:
        assert b"hunter2" not in text
        assert gate._secret not in text
        assert gate._secret.hex().encode() not in text
    assert copy.deepcopy(gate)._secret != gate._secret


def test_labels_of_actions_that_no_coin_drew_do_not_count() -> None:
    gate = sp.gate(errors=0.3, audits=0.1, secret="b")
    drawn = [gate.decide(0.9, t) for t in range(30)]
    quiet = next(d for d in drawn if d.act and not d.audit)
    state = gate.state
    gate.update(wrong=True, id=quiet.id)
    assert np.flatnonzero(gate.state != state).tolist() == [COMPLAINTS]
    assert gate.certificate().complaints == 1
    assert "1 of actions that no coin drew are not counted" in str(gate.certificate())
    with pytest.raises(AnsweredReceipt):
        gate.update(wrong=True, id=quiet.id)
    with pytest.raises(InputError, match="no coin drew it"):
        gate.drop(next(d.id for d in drawn if d.act and not d.audit and d != quiet))


def test_the_probable_bound_counts_what_waits_as_wrong() -> None:
    gate = sp.gate(errors=0.3, audits=0.5, secret="c")
    drawn = [gate.decide(0.9, t) for t in range(40)]
    waiting = len(gate.pending)
    (one,) = gate.certificate().limits
    assert one.probable is not None
    assert one.probable.errors == min(most_errors(waiting, 0.5, 0.05), sum(d.act for d in drawn))
    for id in gate.pending:
        gate.drop(id)
    assert gate.certificate().limits[0].probable == one.probable
    assert gate.certificate().limits[0].errors == waiting / 0.5


# Labels


def test_labels_of_deferred_requests_only_teach() -> None:
    gate = sp.gate(errors=0.05)
    decisions = work(gate, 500)
    deferred = [d.id for d in decisions if not d.act]
    account = gate.certificate().limits[0].account
    level = gate.state[block(0) + LEVEL]
    for id in deferred[-50:]:
        gate.update(wrong=True, id=id)
    assert gate.certificate().limits[0].account == account
    assert gate.state[block(0) + LEVEL] > level
    assert gate.certificate().deferred == 50


def test_a_reversed_score_is_revealed_by_labels_of_deferred_requests() -> None:
    rng = np.random.default_rng(0)
    scores = rng.random(6000)
    wrong = (rng.random(6000) < scores).astype(float)  # the surer it says it is, the worse
    shares = [
        sp.decisions.replay(Terms(0.05), scores, wrong, deferred=deferred).act[3000:].mean()
        for deferred in (False, True)
    ]
    assert shares[1] > 1.2 * shares[0]


def test_a_cap_on_what_waits_and_what_it_is_called() -> None:
    gate = sp.gate(errors=0.9, max_pending=3)
    reasons = [gate.decide(0.5, t).reason for t in range(6)]
    assert reasons == ["score"] * 3 + ["pending"] * 3
    gate = sp.gate(errors=0.3, limit=1.0)
    gate.decide(0.5, "a")
    gate.update(wrong=True, id="a")
    assert gate.decide(0.9).reason == "budget"
    assert "by the budget" in str(gate.summary())


# Terms


def test_per_action_says_exactly_what_it_promises() -> None:
    gate = sp.gate(errors=0.1, per="action", spare=0.002)
    gone = gate.replay([0.5] * 40, [0, 0, 1, 1] * 10)
    act, wrong = gone.act, np.tile([0, 0, 1, 1], 10)
    for done, actions in ((gone.outcomes, act), (gone.beside(~act), ~act)):
        above = np.cumsum(actions * (wrong - 0.1)) - 0.002 * np.arange(1, 41)
        assert done["errors"].most_above == pytest.approx(max(above.max(), 0.0))
    words = "errors ≤ 10 % of actions + 2 per 1,000 requests + 10"
    assert words in str(gate.certificate())


def test_errors_per_request_and_per_action_are_both_printed() -> None:
    gate = sp.gate(errors=0.05)
    work(gate, 3000)
    certificate = gate.certificate()
    (one,) = certificate.limits
    assert one.per_action == one.errors / certificate.acted
    for text in (str(certificate), str(gate.summary())):
        shares = 100 * one.per_request, 100 * one.per_action
        assert "{:.2f} % of requests, {:.1f} % of actions".format(*shares) in text
    for premise in certificate.premises:
        assert premise in str(certificate)
    assert certificate.status == "guaranteed"
    assert sp.gate().certificate().status == "says nothing yet"
    assert "<pre>" in certificate._repr_html_()
    assert "<table>" in gate._repr_html_()


def test_a_router_is_a_gate_whose_audits_are_shadow_calls() -> None:
    router = sp.route(errors=0.05, audits=0.1)
    assert router.terms == Terms(0.05, 0.1)


# States


@pytest.mark.parametrize("audits", [1.0, 0.4])
def test_a_gate_resumes_to_the_bit(audits: float, tmp_path: Path) -> None:
    whole, parts = (sp.gate(errors=0.1, audits=audits, secret="d") for _ in range(2))
    for seed in range(3):
        first = work(whole, 300, seed, late=9)
        assert work(parts, 300, seed, late=9) == first
        parts.save(tmp_path / "gate.zip")
        parts = Gate.load(tmp_path / "gate.zip", secret="d")
    assert parts.certificate() == whole.certificate()
    assert parts.state.tobytes() == whole.state.tobytes()
    assert parts.pending == whole.pending


def test_a_state_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    gate = sp.gate(errors=0.3)
    gate.decide(0.5, "a")
    content = gate.content()
    for damage in ({"state": np.zeros(7)}, {"open": []}, {"state": gate.state * np.nan}):
        with pytest.raises(StateError):
            Gate.restored({**content, **damage})
    stream = sp.Stream(sp.intervals())
    stream.save(tmp_path / "stream.zip")
    with pytest.raises(StateError, match="must hold a setpoint gate"):
        Gate.load(tmp_path / "stream.zip")


def test_old_deferred_requests_are_forgotten_and_actions_never(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sp.decisions.live, "_REMEMBERED", 20)
    gate = sp.gate(errors=0.05)
    first = gate.decide(0.9, "first")
    for t in range(200):
        gate.decide(0.01 * (t % 7), t)
    content = gate.content()
    assert (len(content["past"]), len(content["open"])) == (20, len(gate.pending))
    assert first.act
    gate.update(wrong=False, id="first")


# Alarms


def test_alarms_are_told_once_an_episode() -> None:
    told: list[Any] = []
    gate = sp.gate(errors=0.05, on_alarm=told.append, window=50, tolerance=0.05)
    for t in range(400):
        decision = gate.decide(0.5 + t)
        if decision.act:
            gate.update(wrong=t > 150)
    kinds = [alarm.kind for alarm in told]
    assert set(kinds) <= {"window", "full"}
    assert 1 <= len(kinds) < 10
    quiet: list[Any] = []
    gate = sp.gate(errors=0.3, on_alarm=quiet.append, window=50, tolerance=0.05)
    for _ in range(400):
        if gate.decide(0.5):
            gate.update(wrong=False)  # far below what was asked is no alarm
    assert not quiet


def halved(gate: Gate, rows: int = 6000, turn: int = 3000, labels_until: int = 10**9) -> None:
    """Requests whose scores are worth nothing from a turn on; labels may end."""
    rng = random.Random(3)
    for t in range(rows):
        score = rng.random()
        if gate.decide(score, t) and t < labels_until:
            gate.update(rng.random() > (score if t < turn else 0.5), t)


def test_a_price_says_how_much_less_a_gate_acts_than_it_did(tmp_path: Path) -> None:
    told: list[Any] = []
    gate = sp.gate(errors=0.1, on_alarm=told.append)
    halved(gate, rows=1000)
    assert gate.price is None
    assert "price" not in str(gate.summary())
    gate = sp.gate(errors=0.1, on_alarm=told.append)
    halved(gate)
    price = gate.price
    assert price is not None
    assert (price.first, price.last) == (201, 700)
    assert price.times == pytest.approx(price.usual / price.share)
    assert price.share < 0.7 * price.usual
    alarm = next(one for one in told if one.kind == "dearer")
    assert "the gate acts on less than it did since action" in alarm.said
    assert "the guarantee still holds" in alarm.said
    assert list(gate.alarms) == ["dearer"]
    for text in (str(gate.summary()), str(gate.summary().as_dict())):
        assert "the gate acts on less" in text
    gate.save(tmp_path / "gate.zip")
    assert Gate.load(tmp_path / "gate.zip").price == price
    gate.acknowledge()
    assert gate.price is None
    assert gate.alarms == {}
    gate.change(Terms(0.05))
    assert gate.price is None


def test_a_gate_that_stops_acting_is_noticed_without_an_action() -> None:
    told: list[Any] = []
    gate = sp.gate(errors=0.1, max_pending=1, on_alarm=told.append)
    halved(gate, labels_until=3000)
    assert "dearer" in {alarm.kind for alarm in told}
    assert gate.price is not None
    assert gate.price.times > 5.0


def test_labels_that_stop_coming_are_called_for_once() -> None:
    told: list[Any] = []
    halved(sp.gate(errors=0.1, on_alarm=told.append), rows=4000, turn=4000, labels_until=3000)
    (silence,) = [alarm for alarm in told if alarm.kind == "silence"]
    assert silence.said.startswith(
        "20 actions wait for their labels, and usually 0 do; the oldest is "
    )
    told.clear()
    work(sp.gate(errors=0.1, on_alarm=told.append), 3000, late=40)
    work(sp.gate(errors=0.1, audits=0.3, on_alarm=told.append), 3000, late=40)
    assert [alarm for alarm in told if alarm.kind == "silence"] == []


# Many


def test_gates_keep_a_budget_each(tmp_path: Path) -> None:
    gates = Gates(sp.gate(errors=0.1, audits=0.5), secret="e")
    alone = {name: Gate(gates["a"].terms, secret=b"e" + repr(name).encode()) for name in "abc"}
    rng = random.Random(2)
    for t in range(300):
        name, score = rng.choice("abc"), rng.random()
        (decision,) = gates.decide([name], [score], [t])
        assert decision == alone[name].decide(score, t)
        if decision.audit:
            bad = name == "b"
            gates[name].update(bad, t)
            alone[name].update(bad, t)
    assert gates.worst(1)[0][0] == "b"
    gates.save(tmp_path / "gates.zip")
    back = Gates.load(tmp_path / "gates.zip", secret="e")
    assert back.certificates() == gates.certificates()
    assert {n: g.certificate() for n, g in alone.items()} == gates.certificates()
    assert "x" not in gates
    with pytest.raises(InputError, match="got 2 names, 1 scores and 2 ids"):
        gates.decide(["a", "b"], [0.5], [1, 2])
    with pytest.raises(InputError, match="score must be finite"):
        gates.decide(["a", "b"], [0.5, np.nan])
    assert gates.certificates() == back.certificates()  # none of the rows was decided


# Replays


def test_a_replay_counts_what_happened() -> None:
    rng = np.random.default_rng(4)
    scores = rng.random(5000)
    wrong = (rng.random(5000) > scores).astype(float)
    gone = sp.gate(errors=0.05).replay(scores, wrong)
    one, certificate = gone.outcomes["errors"], gone.certificate()
    assert one.errors == certificate.limits[0].errors == wrong[gone.act].sum()
    assert one.acted == gone.act.mean()
    assert one.most_above <= 10.0
    above = np.cumsum(np.where(gone.act, wrong, 0.0) - 0.05).max()
    assert one.most_above == pytest.approx(above)
    losses = np.where(gone.act, wrong, 0.0)
    assert one.worst_window == max(losses[a : a + 500].mean() for a in range(4501))
    fixed = gone.beside(scores > 0.5)["errors"]
    assert fixed.per_action == wrong[scores > 0.5].mean()
    assert outcome([], np.zeros(0), 0.1).acted == 0.0


def test_a_label_that_a_log_lacks_is_unknown_to_it_and_wrong_to_the_gate() -> None:
    wrong = np.zeros(300)
    wrong[::10] = np.nan
    gone = sp.gate(errors=0.3).replay(np.full(300, 0.5), wrong)
    assert gone.outcomes["errors"].errors == 0.0
    assert gone.outcomes["errors"].unknown == np.isnan(wrong[gone.act]).sum() > 0
    certificate = gone.certificate()
    assert certificate.limits[0].errors == certificate.dropped
    assert certificate.dropped == gone.outcomes["errors"].unknown


@pytest.mark.parametrize(
    ("scores", "wrong", "says"),
    [
        ([0.5, np.nan], [0.0, 1.0], "got nan at row 1"),
        ([0.5, np.inf], [0.0, 1.0], "every row needs a finite score"),
        ([0.5, 0.5], [0.0, 3.0], "losses from 0 to 1, got 3"),
    ],
)
def test_a_log_that_makes_no_sense_is_refused(scores: Any, wrong: Any, says: str) -> None:
    with pytest.raises(InputError, match=says):
        sp.gate().replay(scores, wrong)
