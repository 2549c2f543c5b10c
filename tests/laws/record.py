"""A stream's calls, written down, so that another stream can be put through the very same ones."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import setpoint as sp
from tests.laws.adversary import Adversary
from tests.laws.late import Clerk, Habit, delayed


class Call(NamedTuple):
    """One call of `predict`, `update` or `drop`, with its id."""

    method: str
    given: Any
    id: Any


class Recorder:
    """Stands before a stream and writes down what is asked of it."""

    def __init__(self, stream: sp.Stream) -> None:
        self.stream = stream
        self.calls: list[Call] = []

    @property
    def theta(self) -> Any:
        return self.stream.theta

    def issue(self, prediction: Any, id: Any = None) -> sp.Receipt:
        self.calls.append(Call("predict", prediction, id))
        return self.stream.issue(prediction, id)

    def update(self, y: Any, id: Any = None) -> Any:
        self.calls.append(Call("update", y, id))
        return self.stream.update(y, id)

    def drop(self, id: Any = None) -> None:
        self.calls.append(Call("drop", None, id))
        self.stream.drop(id)


def record(
    controller: sp.Controller, adversary: tuple[str, int], habit: Habit, events: int
) -> list[Call]:
    """What an adversary and a clerk make of a stream."""
    recorder: Any = Recorder(delayed(controller, habit))
    clerk = Clerk(recorder, Adversary(controller, *adversary), habit, adversary[1])
    for _ in range(events):
        clerk.event()
    return recorder.calls


def repeat(stream: sp.Stream, calls: Sequence[Call]) -> list[str]:
    """What the stream answers to the calls, and where it stands after each, to the last bit."""
    answers = []
    for method, given, id in calls:
        if method == "drop":
            got = stream.drop(id)
        else:
            got = getattr(stream, method)(given, id)
        answers.append(repr((got, stream.theta, stream.lam, stream.info)))
    return answers


def everything(stream: sp.Stream) -> str:
    """All that can be seen of a stream, to the last bit."""
    certificate = stream.certificate().as_dict()
    return repr((stream.theta, stream.lam, stream.pending, stream.info, certificate))
