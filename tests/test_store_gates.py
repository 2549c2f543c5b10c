"""Gates in a store: as safe as streams, and the same decisions as in memory."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

import setpoint as sp
from setpoint.decisions import Gate, Terms
from setpoint.errors import AnsweredReceipt, InputError, UnknownReceipt

TERMS = Terms(0.1, audits=0.5)


def events(rows: int, seed: int = 0) -> list[dict[str, Any]]:
    """Requests, and labels of some of them, late."""
    rng, sent = random.Random(seed), []
    for t in range(rows):
        sent.append({"id": t, "score": round(rng.random(), 3)})
        if t >= 5:
            sent.append({"id": t - 5, "wrong": rng.random() < 0.3})
    return sent


class Drawn(Gate):
    """A gate whose coins are those that a store has shown."""

    drawn: set[Any]

    def _coin(self, id: Any) -> bool:
        return id in self.drawn


def alone(sent: list[dict[str, Any]], answers: list[dict[str, Any]]) -> Gate:
    """A gate in memory after the same events, with the coins that were answered."""
    gate = Drawn(TERMS)
    gate.drawn = {answer["id"] for answer in answers if answer.get("audit")}
    for event in sent:
        if "score" in event:
            gate.decide(event["score"], event["id"])
        else:
            gate.update(event["wrong"], event["id"])
    return gate


def test_other_terms_are_kept(tmp_path: Path) -> None:
    sent = [*events(80), *({"id": t, "score": 0.99} for t in range(80, 100))]
    other = Terms(0.2, audits=0.5, limit=3.0)
    with sp.Store(tmp_path) as store:
        gate = store.stream("mail", TERMS)
        memory = alone(sent, store.apply(sent, "mail"))
        assert gate.change(other)
        assert not gate.change(other)
        with pytest.raises(InputError, match="once no action waits for its label"):
            gate.change(Terms(0.2, audits=0.1))
        with pytest.raises(InputError, match="a gate keeps its limits"):
            gate.change(Terms({"unsafe": 0.2}, audits=0.5))
    before = memory.certificate()
    assert memory.change(other) == before
    with sp.Store(tmp_path) as store:
        gate = store.stream("mail", TERMS)  # it began with these
        assert gate.certificate() == memory.certificate()
        assert store.read("mail").terms == other
        assert gate.decide(0.0, "next") == memory.decide(0.0, "next")
        certificate = gate.certificate()
        assert certificate.requests == 1 + before.pending
        assert certificate.limits[0].bound.since_start < before.limits[0].bound.since_start
        assert store.check() == []


def test_a_stored_gate_decides_as_one_in_memory_however_often_it_is_opened(tmp_path: Path) -> None:
    sent, answers = events(200), []
    for start in range(0, len(sent), 60):
        with sp.Store(tmp_path) as store:
            if start == 0:
                store.stream("mail", TERMS)
            answers += store.apply(sent[start : start + 60], "mail")
    assert not [answer for answer in answers if "error" in answer or "repeated" in answer]
    with sp.Store(tmp_path) as store:
        memory = alone(sent, answers)
        assert store.read("mail").certificate() == memory.certificate()
        assert store.read("mail").pending == memory.pending
        again = store.apply(sent, "mail")
        assert again == [{**answer, "repeated": True} for answer in answers]
        assert store.read("mail").certificate() == memory.certificate()
        assert store.check() == []
        reasons = {row["shown"]["reason"] for row in store.history("mail")}
        assert reasons <= {"score", "budget", "pending"}
        assert store.summary("mail").certificate.requests == 200
        over = store.overviews("mail")["mail"]
        assert over["predictions"] == 200
        assert over["accounts"] == [store.read("mail").certificate().limits[0].account]


def test_a_gate_has_the_calls_of_a_gate(tmp_path: Path) -> None:
    with sp.Store(tmp_path) as store:
        gate = store.stream("calls", Terms({"wrong": 0.2, "unsafe": 0.1}))
        first = gate.decide(0.9, "a")
        assert (first.act, first.audit, first.reason) == (True, True, "score")
        assert gate.decide(0.9, "a") == first
        gate.update(wrong={"wrong": True, "unsafe": False}, id="a")
        gate.decide(0.8, "b")
        gate.drop("b")
        assert [one.errors for one in gate.certificate().limits] == [2.0, 1.0]
        assert store.stream("calls", Terms({"wrong": 0.2, "unsafe": 0.1})).name == "calls"
        with pytest.raises(AnsweredReceipt):
            gate.update(wrong={"wrong": False, "unsafe": False}, id="a")
        with pytest.raises(UnknownReceipt):
            gate.drop("c")
        with pytest.raises(InputError, match="use an id once"):
            gate.decide(0.7, "a")
        with pytest.raises(sp.errors.StateError, match="belongs to another controller"):
            store.stream("calls", Terms(0.1))


def test_events_go_to_what_can_take_them_and_a_refused_one_changes_nothing(tmp_path: Path) -> None:
    with sp.Store(tmp_path, sp.intervals()) as store:
        store.stream("gate", TERMS)
        before = store.read("gate").content()
        answers = store.apply([
            {"stream": "gate", "id": 1, "prediction": [0, 1]},
            {"stream": "gate", "id": 2, "score": "high"},
            {"stream": "gate", "id": 3, "score": 0.5, "wrong": 7},
            {"stream": "rows", "id": 1, "prediction": [0, 1]},
            {"stream": "rows", "id": 1, "wrong": True},
        ])  # fmt: skip
        says = [answer.get("error", "") for answer in answers]
        assert says[0].startswith("a gate takes score")
        assert says[1].startswith("score must be a number")
        assert says[2].startswith("wrong must be True or False")
        assert says[3] == ""
        assert "goes to a gate" in says[4]
        after = store.read("gate").content()
        assert json.dumps(after, default=list) == json.dumps(before, default=list)


def test_a_gate_that_begins_again_under_a_name_tosses_other_coins(tmp_path: Path) -> None:
    """Whoever saw which ids were drawn knows nothing of the gate that takes its place."""
    drawn = []
    with sp.Store(tmp_path) as store:
        for _ in range(2):
            gate = store.stream("mail", Terms(0.5, audits=0.5, limit=100.0))
            drawn.append([gate.decide(0.9, id).audit for id in range(40)])
            store.delete("mail")
    assert drawn[0] != drawn[1]


def test_no_seed_of_coins_leaves_the_process(tmp_path: Path) -> None:
    with sp.Store(tmp_path) as store:
        store.stream("g", TERMS)
        store.apply(events(50), "g")
        lines = b"".join(store.lines())
        secrets = [gate.stream._secret for gate in (store._live["g"], store._look("g"))]
    files = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert secrets[0] != secrets[1]  # who looks at a gate cannot foresee its coins
    for secret in secrets:
        for text in (lines, files):
            assert secret not in text
            assert secret.hex().encode() not in text


def test_a_refused_event_leaves_the_coins_that_were_answered(tmp_path: Path) -> None:
    """A batch is done again after an event that fails in its second step; the coins stay."""
    with sp.Store(tmp_path) as store:
        gate = store.stream("mail", Terms(0.5, audits=0.5, limit=100.0))
        for first in (0, 40):
            sent: list[Any] = [{"id": t, "score": 0.9} for t in range(first, first + 40)]
            sent.insert(20, {"id": f"bad {first}", "score": 0.9, "wrong": 7})
            answers = gate.apply(sent)
            assert "wrong must be True or False" in answers.pop(20)["error"]
            drawn = {answer["id"] for answer in answers if answer["audit"]}
            assert {id for id in store.read("mail").pending if id >= first} == drawn


def test_a_gate_moves_to_another_store(tmp_path: Path) -> None:
    sent = events(80)
    with sp.Store(tmp_path / "a.sqlite") as store, sp.Store(tmp_path / "b.sqlite") as other:
        store.stream("g", TERMS)
        store.apply(sent, "g")
        store.export_streams(tmp_path / "g.jsonl", ["g"])
        assert other.import_streams(tmp_path / "g.jsonl") == ["g"]
        assert other.read("g").certificate() == store.read("g").certificate()
        assert all(answer["repeated"] for answer in other.apply(sent, "g"))


def test_the_price_of_a_gate_is_in_the_list_and_can_be_acknowledged(tmp_path: Path) -> None:
    draw, sent = random.Random(0), []
    for t in range(4000):
        score = draw.random()
        wrong = draw.random() > (score if t < 2500 else 0.5)
        sent += [{"id": t, "score": score}, {"id": t, "wrong": wrong}]
    with sp.Store(tmp_path) as store:
        mail = store.stream("mail", Terms(0.1))
        for some in range(0, len(sent), 500):
            mail.apply(sent[some : some + 500])
        row, gate = store.overviews("mail")["mail"], store.read("mail")
        assert row["price"] == [gate.price.times]
        assert row["price"][0] > 1.3
        assert list(row["alarms"]) == ["dearer"]
        assert row["lag"] == 0.0
        assert "the gate acts on less" in str(store.summary("mail"))
        assert [alarm["kind"] for alarm in store.alarms()] == ["dearer"]
        mail.acknowledge()
        assert store.overviews("mail")["mail"]["price"] is None
    with sp.Store(tmp_path) as store:
        assert store.read("mail").price is None
