"""Gates over HTTP: decided, labelled, looked at, as in a store."""

import random
from pathlib import Path

import pytest

pytest.importorskip("httpx", reason="needs httpx: pip install 'setpoint[service]'")
pytest.importorskip("starlette", reason="needs starlette: pip install 'setpoint[service]'")

import httpx

from setpoint.client import Client, ServiceError
from tests.serving import Serving

pytestmark = pytest.mark.service


def test_a_gate_over_http(tmp_path: Path) -> None:
    with Serving("--store", str(tmp_path)) as serving, serving.client() as client:
        shown = client.create("mail", gate={"errors": 0.2, "audits": 0.5})
        assert shown["controller"].startswith("[gate]")
        acted = drawn = 0
        for n in range(60):
            answer = client.decide("mail", n % 7 / 10, id=n)
            assert client.decide("mail", n % 7 / 10, id=n) == {**answer, "repeated": True}
            acted += answer["act"]
            drawn += answer["audit"]
            if answer["audit"]:
                assert client.label("mail", id=n, wrong=n % 9 == 0)["taken"]
        certificate = client.certificate("mail")
        assert certificate["gate"]["acted"] == acted
        assert certificate["gate"]["audited"] == certificate["gate"]["judged"] == drawn
        assert "over the gate's own coins" in certificate["text"]
        row = client.show("mail")
        assert row["predictions"] == 60
        assert row["acted"][0] == acted / 60
        assert "acted on" in row["summary"]["text"]
        past = client.history("mail")
        assert {entry["shown"]["act"] for entry in past} <= {True, False}
        metrics = httpx.get(f"{serving.url}/metrics").text
        assert 'setpoint_stream_acted{stream="mail",window="100"}' in metrics
        with pytest.raises(ServiceError, match="write 5 % as"):
            client.create("other", gate={"errors": 5})
        with pytest.raises(ServiceError, match="the terms of a gate are errors, audits"):
            client.create("other", gate={"error": 0.05})
        with pytest.raises(ServiceError, match="a gate takes score"):
            client.predict("mail", [0, 1])
        with pytest.raises(ServiceError, match="a gate is changed by all its terms"):
            client.change("mail", level=0.1)
        with pytest.raises(ServiceError, match="nothing else"):
            client.change("mail", level=0.1, gate={"errors": 0.1})
        with pytest.raises(ServiceError, match="the terms of a gate are errors, audits"):
            client.change("mail", gate={"error": 0.1})
        changed = client.change("mail", gate={"errors": 0.1, "audits": 0.5})
        assert "errors = 0.1" in changed["controller"]
        assert client.certificate("mail")["gate"]["requests"] == 0
        client.create("demand", preset="intervals")
        with pytest.raises(ServiceError, match="is no gate"):
            client.change("demand", gate={"errors": 0.1})
        client.delete("mail")


def test_a_client_needs_the_id_of_a_label() -> None:
    with Client("http://localhost:1", attempts=1) as client, pytest.raises(ValueError, match="id"):
        client.label("mail", wrong=True)


def test_a_gate_that_acts_on_less_is_seen_everywhere(tmp_path: Path) -> None:
    draw, sent = random.Random(0), []
    for t in range(4000):
        score = draw.random()
        wrong = draw.random() > (score if t < 2500 else 0.5)
        sent += [{"id": t, "score": score}, {"id": t, "wrong": wrong}]
    with Serving("--store", str(tmp_path)) as serving, serving.client() as client:
        client.create("mail", gate={"errors": {"wrong": 0.1, "unsafe": 0.1}})
        client.create("calls", gate={"errors": 0.1})
        for some in range(0, len(sent), 500):
            client.events(sent[some : some + 500], "calls")
        first = client.streams()[0]
        assert (first["name"], list(first["alarms"]), first["called"]) == (
            "calls",
            ["dearer"],
            True,
        )
        assert first["price"][0] > 1.3
        assert "the gate acts on less" in client.show("calls")["summary"]["text"]
        metrics = httpx.get(f"{serving.url}/metrics").text
        assert f'setpoint_stream_price{{stream="calls"}} {first["price"][0]}' in metrics
        assert 'setpoint_stream_alarm{kind="dearer",stream="calls"} 1.0' in metrics
        assert "setpoint_stream_price_model{" not in metrics
        client.acknowledge("calls")
        assert client.show("calls")["price"] is None
