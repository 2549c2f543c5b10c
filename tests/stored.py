"""Events for stores, and plain streams that took in the same."""

import random
from typing import Any

import setpoint as sp

__all__ = ["CONTROLLER", "RISK", "events", "reference", "same"]

RISK = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.05), bounds=(-20.0, 20.0))
CONTROLLER = sp.Controller(
    sp.sets.Widen(), RISK, sp.stretches.ErrorAdaptive(0.1, 0.2, low=-1.0, high=1.0, reading="paper")
)


def events(count: int, seed: int = 1, *, numbered: bool = False) -> list[dict[str, Any]]:
    """Predictions and labels of several streams, some late, in one sequence."""
    ids = {"a": 0, "b": 0}
    world = random.Random(seed)
    sent, waiting = [], []
    for number in range(count):
        name = world.choice("ab")
        id = ids[name] if numbered else f"p{number}"
        ids[name] += 1
        sent.append({"stream": name, "id": id, "prediction": [-1.0, 1.0 + number % 3]})
        waiting.append({"stream": name, "id": id, "y": world.gauss(0.0, 2.0)})
        while waiting and world.random() < 0.6:
            sent.append(waiting.pop(world.randrange(len(waiting))))
    return sent + waiting


def reference(sent: list[dict[str, Any]]) -> dict[str, sp.Stream]:
    """The same events through plain streams."""
    streams: dict[str, sp.Stream] = {}
    for event in sent:
        stream = streams.setdefault(event["stream"], sp.Stream(CONTROLLER))
        if "prediction" in event:
            stream.predict(event["prediction"], event["id"])
        else:
            stream.update(event["y"], event["id"])
    return streams


def same(store: sp.Store, streams: dict[str, sp.Stream]) -> None:
    """Holds what is in the database against plain streams, to the bit."""
    assert set(store.names) == set(streams)
    for name, stream in streams.items():
        stored = store.read(name)
        assert stored.theta == stream.theta
        assert stored.state.stretch == stream.state.stretch
        assert str(stored.certificate()) == str(stream.certificate())
        assert list(stored.pending) == list(stream.pending)
        judged = sum(row["ended"] == "answered" for row in store.history(name))
        assert judged == stream.state.risks[0].judged
