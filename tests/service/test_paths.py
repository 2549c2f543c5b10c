"""Paths over HTTP: labels step by step, as a live stream takes them."""

from pathlib import Path

import pytest

pytest.importorskip("httpx", reason="needs httpx: pip install 'setpoint[service]'")
pytest.importorskip("starlette", reason="needs starlette: pip install 'setpoint[service]'")

import setpoint as sp
from setpoint.client import ServiceError
from tests.laws.test_paths import events_of, played
from tests.serving import Serving

pytestmark = pytest.mark.service


def test_paths_over_http(tmp_path: Path) -> None:
    events = events_of(5, 25)
    controller = sp.paths(4, [0.5, 0.9], totals=[2, 4], maximum=True, every=2)
    with Serving("--store", str(tmp_path)) as serving, serving.client() as client:
        asked = {"totals": [2, 4], "maximum": True, "every": 2}
        client.create("day", coverage=[0.5, 0.9], horizon=4, **asked)
        expected = played(sp.Stream(controller), events)
        half = len(events) // 2
        for event, own in zip(events[:half], expected, strict=False):
            if "prediction" in event:
                answer = client.predict("day", event["prediction"], event["id"])
                assert [e for e in answer["lower"] if e is not None] == [
                    end for end in own[0] if end > -1e300
                ]
                assert [*answer["levels"]] == ["0.5"]
            elif "y" in event:
                sent = "day", event["y"], event["id"]
                answer = client.label(*sent, step=event.get("step"))
                assert answer["loss"] == (None if own is None else list(own))
                assert client.label(*sent, step=event.get("step")) == {**answer, "repeated": True}
            else:
                client.drop("day", event["id"])
        answers = client.events(events[half:], "day")
        for event, own, answer in zip(events[half:], expected[half:], answers, strict=True):
            if "y" in event:
                assert answer["loss"] == (None if own is None else list(own))
        assert "maximum of 4, coverage 0.9" in client.certificate("day")["text"]
        assert {type(past["y"]) for past in client.history("day")} <= {dict, type(None)}
        assert client.show("day")["asked"] == 0.9
        client.create("plain")
        client.predict("plain", [1, 2], "a")
        client.predict("day", [1, 2, 3, 4], "new")
        with pytest.raises(ServiceError, match="step is for paths"):
            client.label("plain", 1.5, "a", step=1)
        with pytest.raises(ServiceError, match="a path needs horizon"):
            client.create("none", preset="paths")
        with pytest.raises(ServiceError, match="between 1 and 4"):
            client.label("day", 1.5, "new", step=9)
