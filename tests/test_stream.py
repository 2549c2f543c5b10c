"""One stream: ids, and labels that come at once, late, out of order, together or not at all."""

import math
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import (
    AmbiguousReceipt,
    AnsweredReceipt,
    ExpiredReceipt,
    InputError,
    LabelError,
    PendingFull,
    ReceiptError,
    SetpointError,
    UnknownReceipt,
)
from setpoint.sets import Interval

INF, NAN = math.inf, math.nan
PAIR = (0.0, 1.0)


def make(loss: Any = None, stretch: Any = None, **options: Any) -> sp.Stream:
    loss = sp.losses.Miscoverage() if loss is None else loss
    risk = sp.Risk(loss, 0.1, sp.steps.Fixed(0.5), bounds=(-20.0, 20.0))
    return sp.Stream(sp.Controller(sp.sets.Widen(), risk, stretch), **options)


def snapshot(stream: sp.Stream) -> Any:
    content = deepcopy(stream.content())
    return {n: c.tolist() if isinstance(c, np.ndarray) else c for n, c in content.items()}


def refused(
    stream: sp.Stream, error: type[Exception], call: Callable[[], Any], say: str | None = None
) -> None:
    """The call raises this error in these words, and changes nothing."""
    before = snapshot(stream)
    with pytest.raises(error, match=say) as caught:
        call()
    assert isinstance(caught.value, SetpointError)
    assert snapshot(stream) == before


# A step


def test_one_step_after_another_by_hand() -> None:
    stream = make()
    assert stream.predict(PAIR) == Interval(0.0, 1.0)
    assert stream.update(2.0) == 1.0
    assert stream.theta == 0.45
    assert stream.predict(PAIR) == Interval(-0.45, 1.45)
    assert stream.update(1.4) == 0.0
    assert stream.theta == pytest.approx(0.4)


def test_the_loss_is_taken_on_the_set_that_was_shown() -> None:
    stream = make()
    stream.predict(PAIR, id="early")
    for _ in range(5):
        stream.predict(PAIR, id="now")
        stream.update(9.0, id="now")
    assert stream.predict(PAIR, id="late").contains(2.0)
    assert stream.update(2.0, id="early") == 1.0  # [0, 1] was shown
    assert stream.update(2.0, id="late") == 0.0


def test_predicting_asking_and_looking_do_not_move_theta() -> None:
    stream = make(stretch=sp.stretches.ErrorAdaptive(0.1, 0.1, -1.0, 1.0))
    stream.predict(PAIR)
    stream.update(5.0)
    theta, memory, lam = stream.theta, stream._state.stretch, stream.lam
    shown = stream.peek(PAIR)
    assert not stream.pending
    for _ in range(3):
        assert stream.peek(PAIR) == shown
        assert stream.predict(PAIR) == shown
        assert stream.issue(PAIR).shown == shown
        str(stream.certificate())
        repr(stream)
    assert (stream.theta, stream._state.stretch, stream.lam) == (theta, memory, lam)
    assert len(stream.pending) == 6


def test_a_receipt_says_what_was_shown_and_why() -> None:
    stream = make()
    stream.predict(PAIR)
    stream.update(5.0)
    receipt = stream.issue((1, 2))
    assert receipt == sp.Receipt(1, (1.0, 2.0), Interval(0.55, 2.45), 0.45)
    assert stream.pending == {1: receipt}
    named = stream.issue(PAIR, id="x")
    assert named.id == "x"
    assert list(stream.pending) == [1, "x"]


def test_info_tells_of_the_last_label() -> None:
    stream = make()
    assert stream.info is None
    stream.predict(PAIR)
    stream.update(5)
    assert stream.info == sp.Info(0, Interval(0.0, 1.0), 0.0, 5.0, (1.0,))
    assert stream.info.saturated is None
    stream.predict(PAIR, id="x")
    assert stream.info.id == 0
    stream.update(1.0, id="x")
    assert stream.info.id == "x"
    with pytest.raises(AttributeError):
        stream.info.lam = 3.0  # type: ignore[misc]


def test_several_risks_answer_with_tuples() -> None:
    risks = [sp.Risk(sp.losses.Miscoverage(), level, sp.steps.Fixed(1.0)) for level in (0.1, 0.2)]
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), risks))
    stream.predict(PAIR)
    assert stream.update(5.0) == (1.0, 1.0)
    assert stream.theta == (0.9, 0.8)
    assert stream.info is not None
    assert stream.info.losses == (1.0, 1.0)


# Ids


def test_ids_are_generated_in_order() -> None:
    stream = make()
    assert [stream.issue(PAIR).id for _ in range(3)] == [0, 1, 2]
    stream.update(0.5, id=1)
    assert stream.issue(PAIR).id == 3


def test_generated_ids_keep_clear_of_given_ones() -> None:
    stream = make()
    given = [5, 2, -3, 40, 60, 7]
    generated = []
    for id in given:
        assert stream.issue(PAIR, id=id).id == id
        generated.append(stream.issue(PAIR).id)
    assert len({*given, *generated}) == 12
    assert generated == sorted(generated)
    assert generated[0] == 6


def test_numpy_ids_are_plain_ids() -> None:
    stream = make()
    stream.predict(PAIR, id=np.int64(7))
    assert list(stream.pending) == [7]
    assert type(next(iter(stream.pending))) is int
    assert stream.update(0.5, id=np.uint8(7)) == 0.0
    stream.predict(PAIR, id=np.str_("x"))
    assert stream.update(0.5, id="x") == 0.0


def test_a_number_and_its_text_are_two_ids() -> None:
    stream = make()
    stream.predict(PAIR, id=1)
    stream.predict((5.0, 6.0), id="1")
    assert stream.update(5.5, id="1") == 0.0
    assert list(stream.pending) == [1]


def test_an_open_id_is_not_given_twice() -> None:
    stream = make()
    stream.predict(PAIR, id="a")
    refused(stream, InputError, lambda: stream.predict(PAIR, id="a"), "already waits under .*'a'")
    stream.predict(PAIR)
    stream.drop("a")
    refused(stream, InputError, lambda: stream.issue(PAIR, id=1), "already waits under .*1")


def test_the_only_generated_id_that_waits_is_not_given_twice() -> None:
    stream = make()
    stream.predict(PAIR)
    refused(stream, InputError, lambda: stream.predict(PAIR, id=0), "already waits under the id 0")


def test_a_closed_id_may_be_used_again() -> None:
    stream = make()
    for y, loss in ((5.0, 1.0), (0.5, 0.0), (0.5, 0.0)):
        stream.predict(PAIR, id="day")
        assert stream.update(y, id="day") == loss
    assert stream.certificate().risks[0].judged == 3


# Labels late and out of order


def test_labels_may_come_late_and_in_any_order() -> None:
    stream = make()
    for id in "abc":
        stream.predict(PAIR, id=id)
    assert stream.update(0.5, id="c") == 0.0
    assert stream.update(5.0, id="a") == 1.0
    stream.predict(PAIR, id="d")
    assert stream.update(5.0, id="b") == 1.0
    assert list(stream.pending) == ["d"]
    assert stream.update(0.5) == 0.0  # the only one left
    assert stream.certificate().most_pending == 3


@pytest.mark.parametrize("given", [False, True])
def test_a_stream_answered_at_once_is_the_same_with_and_without_ids(given: bool) -> None:
    plain, named = make(), make()
    rng = np.random.default_rng(0)
    for k, y in enumerate(rng.normal(size=100).tolist()):
        id = f"step {k}" if given else None
        assert plain.predict(PAIR) == named.predict(PAIR, id)
        assert plain.update(y) == named.update(y, id if given else k)
        assert plain.theta == named.theta
    assert str(plain.certificate()) == str(named.certificate())


# Labels that match nothing


def test_a_label_before_any_prediction_is_unknown() -> None:
    stream = make()
    refused(stream, UnknownReceipt, lambda: stream.update(1.0), "call predict first")
    refused(stream, UnknownReceipt, lambda: stream.update(1.0, id=0), "under the id 0")
    refused(stream, UnknownReceipt, stream.drop, "call predict first")


@pytest.mark.parametrize("id", [1, -1, 99, "0", "nonsense"])
def test_an_id_never_issued_is_unknown(id: Any) -> None:
    stream = make()
    stream.predict(PAIR)
    say = f"no prediction waits under the id {id!r}"
    refused(stream, UnknownReceipt, lambda: stream.update(1.0, id), say)
    refused(stream, UnknownReceipt, lambda: stream.drop(id), say)
    refused(stream, UnknownReceipt, lambda: stream.update_many({0: 1.0, id: 1.0}), say)


def test_a_second_label_is_refused() -> None:
    stream = make()
    stream.predict(PAIR)
    stream.update(0.5)
    refused(stream, AnsweredReceipt, lambda: stream.update(0.5, id=0), "id 0 already has its label")
    refused(stream, UnknownReceipt, lambda: stream.update(0.5), "call predict first")
    stream.predict(PAIR, id="a")
    stream.update(0.5, id="a")
    refused(
        stream, AnsweredReceipt, lambda: stream.update(0.5, id="a"), "'a' already has its label"
    )
    refused(stream, AnsweredReceipt, lambda: stream.drop("a"), "'a' already has its label")


def test_a_second_label_is_told_even_after_an_id_was_given() -> None:
    stream = make()
    stream.predict(PAIR)
    stream.update(0.5)
    stream.predict(PAIR, id="a")
    refused(stream, AnsweredReceipt, lambda: stream.update(0.5, id=0), "id 0 already has its label")


def test_a_dropped_prediction_has_expired() -> None:
    stream = make()
    stream.predict(PAIR)
    stream.drop()
    refused(
        stream, ExpiredReceipt, lambda: stream.update(0.5, id=0), r"id 0 was given up \(dropped"
    )
    stream.predict(PAIR, id="a")
    stream.predict(PAIR, id="b")
    stream.drop("a")
    refused(stream, ExpiredReceipt, lambda: stream.drop("a"), r"'a' was given up \(dropped")
    assert stream.certificate().dropped == 2
    assert stream.update(0.5) == 0.0


def test_a_skipped_label_closes_its_prediction() -> None:
    stream = make(missing="skip")
    stream.predict(PAIR, id="a")
    assert stream.update(NAN, id="a") is None
    refused(stream, ExpiredReceipt, lambda: stream.update(0.5, id="a"), r"given up \(missing\)")
    assert stream.certificate().missing == 1
    assert stream.info is None


def test_with_several_waiting_a_label_needs_an_id() -> None:
    stream = make()
    stream.predict(PAIR)
    stream.predict(PAIR)
    say = r"2 predictions wait for their labels: give the id of one"
    refused(stream, AmbiguousReceipt, lambda: stream.update(0.5), say)
    refused(stream, AmbiguousReceipt, stream.drop, "2 predictions wait")
    stream.update(0.5, id=0)
    assert stream.update(0.5) == 0.0


# How many may wait


def test_one_more_than_may_wait_is_refused() -> None:
    stream = make(max_pending=2)
    stream.predict(PAIR)
    stream.predict(PAIR, id="b")
    say = "2 predictions wait for their labels, as many as max_pending allows"
    refused(stream, PendingFull, lambda: stream.predict(PAIR), say)
    refused(stream, PendingFull, lambda: stream.issue(PAIR, id="c"), say)
    stream.update(0.5, id=0)
    assert stream.issue(PAIR).id == 2


def test_the_oldest_makes_room_if_asked() -> None:
    stream = make(max_pending=2, overflow="expire")
    for id in ("a", None, "c", None):
        stream.predict(PAIR, id=id)
    assert list(stream.pending) == ["c", 3]
    assert stream.certificate().expired == 2
    assert stream.certificate().most_pending == 2
    refused(stream, ExpiredReceipt, lambda: stream.update(0.5, id="a"), r"given up \(expired\)")
    refused(stream, ExpiredReceipt, lambda: stream.update(0.5, id=1), r"given up \(expired\)")
    assert stream.update(0.5, id=3) == 0.0


def test_one_may_wait_at_the_least() -> None:
    stream = make(max_pending=1, overflow="expire")
    for k in range(5):
        assert stream.issue(PAIR).id == k
    assert list(stream.pending) == [4]
    assert stream.update(0.5) == 0.0
    strict = make(max_pending=1)
    strict.predict(PAIR)
    refused(strict, PendingFull, lambda: strict.predict(PAIR), "1 predictions wait")
    strict.update(0.5)
    strict.predict(PAIR)


def test_a_duplicate_id_does_not_push_out_the_oldest() -> None:
    stream = make(max_pending=2, overflow="expire")
    stream.predict(PAIR, id="a")
    stream.predict(PAIR, id="b")
    refused(stream, InputError, lambda: stream.predict(PAIR, id="b"), "already waits")
    refused(stream, InputError, lambda: stream.predict((NAN, 1.0), id="c"), "NaN")
    refused(stream, InputError, lambda: stream.predict(PAIR, id=2.5), "a string or a tuple")


def test_an_expired_id_is_never_called_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setpoint.receipts._REMEMBERED", 3)
    stream = make(max_pending=1, overflow="expire")
    for _ in range(10):
        stream.predict(PAIR)
    refused(stream, ExpiredReceipt, lambda: stream.update(0.5, id=8), "given up")
    with pytest.raises(ReceiptError) as caught:
        stream.update(0.5, id=0)
    assert not isinstance(caught.value, AnsweredReceipt)


def test_closed_ids_are_remembered_for_a_while_and_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("setpoint.receipts._REMEMBERED", 3)
    stream = make()
    for k in range(10):
        stream.predict(PAIR, id=f"{k}")
        stream.update(0.5, id=f"{k}")
    refused(stream, AnsweredReceipt, lambda: stream.update(0.5, id="9"), "already has its label")
    refused(stream, UnknownReceipt, lambda: stream.update(0.5, id="0"), "no prediction waits")
    assert 3 <= len(stream.hand_over()) <= 6


# Missing labels


@pytest.mark.parametrize("y", [NAN, None])
def test_a_missing_label_is_an_error_unless_asked(y: Any) -> None:
    stream = make()
    stream.predict(PAIR)
    refused(stream, LabelError, lambda: stream.update(y), "label must be")
    assert list(stream.pending) == [0]


def test_a_missing_label_without_a_prediction_is_still_an_error() -> None:
    stream = make(missing="skip")
    refused(stream, UnknownReceipt, lambda: stream.update(NAN), "call predict first")
    stream.predict(PAIR)
    stream.predict(PAIR)
    refused(stream, AmbiguousReceipt, lambda: stream.update(NAN), "give the id of one")
    refused(stream, UnknownReceipt, lambda: stream.update(None, id="x"), "'x'")


# Several together


def waiting(**options: Any) -> sp.Stream:
    stream = make(**options)
    for id in "abcd":
        stream.predict(PAIR, id=id)
    return stream


def test_several_labels_are_taken_in_the_order_given() -> None:
    together, apart = waiting(), waiting()
    labels = {"c": 5.0, "a": 0.5, "d": np.float64(7.0)}
    assert together.update_many(labels) == {"c": 1.0, "a": 0.0, "d": 1.0}
    for id, y in labels.items():
        apart.update(y, id)
    assert snapshot(together) == snapshot(apart)
    assert list(together.pending) == ["b"]
    assert together.update_many([("b", 0.5)]) == {"b": 0.0}
    assert together.update_many({}) == {}
    assert together.update_many(iter([])) == {}


@pytest.mark.parametrize(
    ("labels", "error"),
    [
        ([("a", 0.5), ("x", 0.5)], UnknownReceipt),
        ([("a", 0.5), ("a", 0.5)], AnsweredReceipt),
        ([("a", 0.5), ("b", NAN)], LabelError),
        ([("a", 0.5), ("b", "0.5")], LabelError),
        ([("a", 0.5), (None, 0.5)], ReceiptError),
        ([("a", 5.0), (1.5, 0.5)], InputError),
    ],
)
def test_several_labels_are_taken_all_or_none(labels: Any, error: type[Exception]) -> None:
    stream = waiting()
    refused(stream, error, lambda: stream.update_many(labels))
    refused(stream, error, lambda: stream.update_many(iter(labels)))
    assert list(stream.pending) == list("abcd")


def test_two_spellings_of_one_id_are_one_id() -> None:
    stream = make()
    stream.predict(PAIR)
    stream.predict(PAIR)
    say = "two labels for the id"
    refused(
        stream, AnsweredReceipt, lambda: stream.update_many([(0, 0.5), (np.int64(0), 5.0)]), say
    )


class Thirteen(Exception):
    pass


@pytest.mark.parametrize("window", [1, 2, 3])
def test_a_hook_that_raises_is_heard_after_several_labels_are_all_taken_in(window: int) -> None:
    def hook(alarm: Any) -> None:
        raise Thirteen

    stream = waiting(on_alarm=hook, window=window, tolerance=0.1)
    with pytest.raises(Thirteen):
        stream.update_many({"a": 5.0, "b": 5.0, "c": 5.0})
    assert list(stream.pending) == ["d"]
    assert stream.certificate().risks[0].judged == 3
    calm = waiting()
    calm.update_many({"a": 5.0, "b": 5.0, "c": 5.0})
    assert stream.theta == calm.theta


def test_skipped_labels_may_be_among_several() -> None:
    stream = waiting(missing="skip")
    assert stream.update_many({"a": NAN, "b": 5.0, "c": None}) == {"a": None, "b": 1.0, "c": None}
    assert stream.certificate().missing == 2
    assert stream.certificate().risks[0].judged == 1


def learnt(stream: sp.Stream) -> Any:
    """What a reset forgets, and what it must not touch."""
    state = stream.state
    return (state.memory, state.table, state.annex, state.stretch), state.risks


@pytest.mark.parametrize(
    "controller",
    [
        sp.intervals(),
        sp.intervals(period=3),
        sp.Controller(
            sp.sets.Widen(),
            sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5)),
            sp.stretches.ErrorAdaptive(0.1, 0.1, -1.0, 1.0),
        ),
    ],
)
def test_a_new_model_begins_with_nothing_learnt_and_the_account_goes_on(
    controller: sp.Controller, tmp_path: Any
) -> None:
    stream = sp.Stream(controller)
    for row in range(40):
        stream.predict((0.0, 1.0), id=row)
        if row >= 3:
            stream.update(5.0 if row % 3 else 0.5, id=row - 3)
    (_, risks), fresh = learnt(stream), learnt(sp.Stream(controller))[0]
    before = stream.certificate()
    stream.reset()
    assert learnt(stream) == (fresh, risks)
    assert str(stream.certificate()) == str(before)
    stream.save(tmp_path / "a.zip")
    stream = sp.Stream.load(tmp_path / "a.zip")
    for row in (37, 38, 39):  # of the old model: counted, and not learnt from
        assert stream.update(9.0, id=row) == 1.0
    assert learnt(stream)[0] == fresh
    assert stream.state.risks[0].judged == risks[0].judged + 3
    stream.predict((0.0, 1.0))
    stream.update(9.0)
    assert learnt(stream)[0] != fresh


def test_a_window_of_scores_begins_anew_with_the_model() -> None:
    stream = sp.Stream(sp.published.aci(size=5))
    for y in (1.0, 2.0, 3.0):
        stream.predict(0.0)
        stream.update(y)
    stream.predict(0.0, id="old")
    stream.reset()
    stream.update(4.0, id="old")
    assert list(stream.state.sets.memory) == list(sp.published.aci(size=5).init().sets.memory)


def test_a_restated_value_is_refused_by_name_and_changes_nothing() -> None:
    stream = sp.Stream(sp.intervals())
    stream.predict((0.0, 1.0), id="monday")
    stream.update(0.5, id="monday")
    refused(stream, AnsweredReceipt, lambda: stream.update(9.0, id="monday"), "a restated value")
