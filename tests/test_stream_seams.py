"""What those who keep streams need of them: what waits, how ids ended, and the state as values."""

import pytest

import setpoint as sp
from setpoint.errors import (
    AmbiguousReceipt,
    AnsweredReceipt,
    ExpiredReceipt,
    InputError,
    UnknownReceipt,
)
from tests.stored import CONTROLLER


def stream(shared: bool = False) -> sp.Stream:
    made = sp.Stream(CONTROLLER, missing="skip", max_pending=3, overflow="expire", shared=shared)
    for id in ("answered", "missing", "dropped", "expired"):
        made.predict((0.0, 1.0), id=id)
        if id == "answered":
            made.update(0.5, id)
        elif id == "missing":
            made.update(None, id)
        elif id == "dropped":
            made.drop(id)
    for id in (10, 11, 12):
        made.predict((0.0, 2.0), id=id)
    return made


@pytest.mark.parametrize("shared", [False, True])
def test_a_receipt_is_found_by_its_id_or_as_the_only_one(shared: bool) -> None:
    held = stream(shared)
    assert held.receipt(11) == held.pending[11]
    with pytest.raises(AmbiguousReceipt):
        held.receipt()
    for id, error in [
        ("answered", AnsweredReceipt), ("dropped", ExpiredReceipt), ("new", UnknownReceipt)
    ]:  # fmt: skip
        with pytest.raises(error):
            held.receipt(id)
    held.drop(10)
    held.drop(11)
    assert held.receipt().id == 12
    assert held.receipt().prediction == held.read([0, 2], 12)


def test_how_an_id_ended_is_known_until_it_is_handed_over() -> None:
    held = stream()
    ends = {id: held.closed(id) for id in ("answered", "missing", "dropped", "expired")}
    assert ends == {id: id for id in ends}
    assert held.closed(11) is None
    assert held.closed("new") is None
    with pytest.raises(InputError, match="an id must be a whole number, a string or a tuple"):
        held.closed(1.5)  # type: ignore[arg-type]
    assert held.recent
    assert held.hand_over() == ends
    assert held.recent == ()
    assert [held.closed(id) for id in ends] == [None] * 4
    assert held.hand_over() == {}
    assert list(held.pending) == [10, 11, 12]


def test_generated_ids_that_were_handed_over_are_known_to_have_ended() -> None:
    held = sp.Stream(CONTROLLER)
    for _ in range(3):
        held.predict((0.0, 1.0))
        held.update(0.5)
    assert held.closed(1) == "answered"
    held.predict((0.0, 1.0))
    held.drop()
    held.hand_over()
    assert held.closed(1) == "closed"
    assert held.closed(4) is None
