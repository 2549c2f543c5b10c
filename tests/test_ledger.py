"""The ledger: what was answered survives any crash, nothing is taken in twice, bad events pass."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

import setpoint as sp
from setpoint.jobs import inspect
from tests.ledgers import CONTROLLER, events, reference, same


@pytest.mark.parametrize("every", [1, 7, 100_000])
def test_a_ledger_goes_on_where_it_was_however_often_it_is_opened(
    tmp_path: Path, every: int
) -> None:
    made = events(150)
    for start in range(0, len(made), 40):
        with sp.Ledger(tmp_path, CONTROLLER if start == 0 else None, every=every) as ledger:
            for answer in ledger.handle(made[start : start + 40]):
                assert "error" not in answer
                assert "repeated" not in answer
    with sp.Ledger(tmp_path) as ledger:
        same(ledger, reference(made))
    assert len(list(tmp_path.glob("log-*"))) <= 3
    assert len(list(tmp_path.glob("streams-*"))) <= 2


@pytest.mark.parametrize("numbered", [False, True])
def test_events_sent_again_change_nothing_and_say_so(tmp_path: Path, numbered: bool) -> None:
    made = events(60, numbered=numbered)
    with sp.Ledger(tmp_path, CONTROLLER) as ledger:
        first = ledger.handle(made)
        again = ledger.handle(made)
        same(ledger, reference(made))
    assert not any("repeated" in answer for answer in first)
    assert all(answer["repeated"] for answer in again)


@pytest.mark.parametrize("reopened", [False, True])
def test_what_is_sent_again_is_answered_as_the_first_time(tmp_path: Path, reopened: bool) -> None:
    made = [
        {"id": 1, "prediction": [10, 14]},
        {"id": 2, "prediction": [10, 14]},
        {"id": 2, "y": 99},
        {"id": "both", "prediction": [1, 2], "y": 1.5},
        {"id": 3, "prediction": [0, 1]},
        {"id": 3, "drop": True},
    ]
    ledger = sp.Ledger(tmp_path, CONTROLLER)
    first = ledger.handle(made)
    assert first[3] == {"id": "both", **first[3], "loss": 0.0, "covered": True}
    if reopened:
        ledger.checkpoint()
        ledger.close()
        ledger = sp.Ledger(tmp_path)
    with ledger:
        assert ledger.handle(made) == [{**answer, "repeated": True} for answer in first]
        assert ledger.handle([{"id": 2, "y": 99.0}]) == [{**first[2], "repeated": True}]


@pytest.mark.parametrize("reopened", [False, True])
def test_another_prediction_or_label_under_a_known_id_is_told(
    tmp_path: Path, reopened: bool
) -> None:
    ledger = sp.Ledger(tmp_path, CONTROLLER)
    made = [{"id": n, "prediction": [10, 14]} for n in ("waits", "closed")]
    shown = ledger.handle(made)[1]
    (answered,) = ledger.handle([{"id": "closed", "y": 99}])
    if reopened:
        ledger.checkpoint()
        ledger.close()
        ledger = sp.Ledger(tmp_path)
    with ledger:
        theta = ledger.streams[""].theta
        told = ledger.handle(
            [
                {"id": "waits", "prediction": [10, 15]},
                {"id": "closed", "prediction": [10, 15]},
                {"id": "closed", "y": 98},
                {"id": "closed", "y": None},
            ]
        )
        assert ledger.streams[""].theta == theta
    errors = [
        'another prediction already waits under the id "waits"',
        'another prediction was made under the id "closed": an id is used once',
        'the id "closed" already has the label 99, got 98',
        'the id "closed" already has the label 99, got null',
    ]
    first = [{**shown, "id": "waits"}, shown, answered, answered]
    for answer, error, before in zip(told, errors, first, strict=True):
        assert answer == {**before, "repeated": True, "error": error}


def test_an_id_is_known_long_after_it_was_closed(tmp_path: Path) -> None:
    lines = [f"p{number}" for number in range(15_000)]
    with sp.Ledger(tmp_path, CONTROLLER) as ledger:
        for start in range(0, len(lines), 1000):
            batch = lines[start : start + 1000]
            ledger.handle({"id": id, "prediction": [0, 1], "y": 0.5} for id in batch)
        theta = ledger.streams[""].theta
        again = ledger.handle({"id": id, "prediction": [0, 1], "y": 0.5} for id in lines[:200])
        assert again == [{"id": id, "repeated": True} for id in lines[:200]]
        assert "loss" in ledger.handle([{"id": lines[-1], "y": 0.5}])[0]
        assert ledger.streams[""].theta == theta
        assert len(ledger.streams[""].content()["closed"]) < 2000


def test_a_label_may_come_when_a_million_later_ones_are_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("setpoint.ledger._ids._GENERATION", 1000)
    with sp.Ledger(tmp_path, CONTROLLER) as ledger:
        ledger.handle([{"id": 7, "prediction": [0, 1]}])
        for start in range(1, 20_000, 2000):
            ids = range(10 * start, 10 * (start + 2000), 10)
            ledger.handle({"id": id, "prediction": [0, 1], "y": 0.5} for id in ids)
        first, late = ledger.handle([{"id": 10, "y": 0.5}, {"id": 7, "y": 0.5}])
    assert first == {"id": 10, "repeated": True}
    assert late == {"id": 7, "loss": 0.0, "covered": True}


def test_all_is_written_whole_only_when_the_log_has_grown_as_large(tmp_path: Path) -> None:
    def newest() -> tuple[str, int]:
        path = max(tmp_path.glob("streams-*"))
        return path.stem.removeprefix("streams-"), path.stat().st_size

    made = [{"stream": f"s{n}", "id": 0, "prediction": [0, 1]} for n in range(50)]
    with sp.Ledger(tmp_path, CONTROLLER, every=1) as ledger:
        ledger.handle(made)
        (number, size), writings = newest(), 0
        for start in range(1, 4000, 20):
            ids = range(start, start + 20)
            ledger.handle({"stream": "s0", "id": id, "prediction": [0, 1], "y": 0.5} for id in ids)
            if newest()[0] != number:
                grown = (tmp_path / f"log-{number}.jsonl").stat().st_size
                assert size <= grown < size + 20 * 80
                (number, size), writings = newest(), writings + 1
    assert writings >= 2


def test_bad_events_are_answered_and_the_others_go_on(tmp_path: Path) -> None:
    with sp.Ledger(tmp_path, CONTROLLER) as ledger:
        answers = ledger.handle(
            [
                {"id": 1, "prediction": [0, 1]},
                {"id": 2, "prediction": "text"},
                {"id": 3, "prediction": [0, float("nan")]},
                {"id": 9, "y": 1.0},
                {"stream": "none", "id": 1, "y": 1.0},
                {"id": 1, "y": "text"},
                {"id": 1.5, "prediction": [0, 1]},
                {"id": 1},
                {"id": 1, "lable": 3},
                ["no", "object"],
                {"id": 4, "prediction": [0, {1}]},
                {"id": 1, "y": 0.5},
            ]
        )
        with sp.Ledger(tmp_path / "other", CONTROLLER) as other:
            other.handle([{"id": 1, "prediction": [0, 1]}, {"id": 1, "y": 0.5}])
            assert ledger.streams[""].theta == other.streams[""].theta
    assert [("error" in answer) for answer in answers] == [False] + [True] * 10 + [False]
    assert "an event may have stream, id, prediction, y, drop, certificate" in answers[8]["error"]
    assert 'there is no stream "none"' in answers[4]["error"]


def test_one_event_may_predict_and_bring_the_label(tmp_path: Path) -> None:
    with sp.Ledger(tmp_path, CONTROLLER) as ledger:
        (answer,) = ledger.handle([{"prediction": 3.0, "y": 3.5}])
        (asked,) = ledger.handle([{"certificate": True}])
    assert answer == {"id": 0, "lower": 3.0, "upper": 3.0, "loss": 1.0, "covered": False}
    assert asked["certificate"]["risks"][0]["judged"] == 1


def test_open_ends_and_label_sets_are_told_in_json(tmp_path: Path) -> None:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5))
    labels = sp.Controller(sp.sets.Threshold(), risk)
    sides = sp.Controller(sp.sets.Upper(), risk)
    with sp.Ledger(tmp_path / "labels", labels) as ledger:
        told = ledger.handle(
            [{"id": 1, "prediction": {"no": 0.8, "yes": 0.2}}, {"id": 1, "y": "maybe"}]
        )
        told += ledger.handle([{"id": 2, "prediction": {"no": 0.8, "yes": 0.2}}])
    with sp.Ledger(tmp_path / "sides", sides) as ledger:
        told += ledger.handle([{"id": 1, "prediction": 5.0}])
    assert told[0] == {"id": 1, "labels": ["no", "yes"]}
    assert told[1] == {"id": 1, "loss": 1.0, "covered": False}
    assert told[2] == {"id": 2, "labels": ["no", "yes"], "full": True}
    assert told[3] == {"id": 1, "lower": None, "upper": 5.0}
    json.dumps(told, allow_nan=False)


def test_missing_labels_and_given_up_predictions_are_remembered(tmp_path: Path) -> None:
    with sp.Ledger(tmp_path, CONTROLLER, missing="skip") as ledger:
        made = [{"id": n, "prediction": [0, 1]} for n in range(3)]
        made += [{"id": 0, "y": None}, {"id": 1, "drop": True}]
        assert not any("error" in answer for answer in ledger.handle(made))
        assert ledger.handle([{"id": 1, "drop": True}, {"id": 0, "y": None}]) == [
            {"id": 1, "dropped": True, "repeated": True},
            {"id": 0, "loss": None, "repeated": True},
        ]
    with sp.Ledger(tmp_path) as ledger:
        stream = ledger.streams[""]
        assert (stream.state.missing, stream.state.dropped) == (1, 1)
        assert list(stream.pending) == [2]


def served(ledger: sp.Ledger, data: bytes) -> list[dict[str, Any]]:
    sink = io.BytesIO()
    ledger.serve(io.BufferedReader(io.BytesIO(data)), sink)
    return [json.loads(line) for line in sink.getvalue().splitlines()]


BAD = {
    b"{no json": "not JSON: Expecting property name enclosed in double quotes at character 2",
    b"[" * 100_000: "an event must be made of numbers, text and short lists, got deep ones",
    b'{"id": 2, "prediction": "' + b"x" * 2_000_000 + b'"}': "a line may have 1,048,576 bytes",
    b"\xff\xfe": "not JSON: byte 1 is no text in UTF-8",
    b"null": "an event must be an object with prediction, y, drop, certificate, got null",
    b"3": "an event must be an object with prediction, y, drop, certificate, got 3",
    b"{}": "an event needs one of prediction, y, drop, certificate, got {}",
    b'{"id": 1, "drop": false}': "an event needs one of prediction, y, drop, certificate, "
    'got {"id": 1, "drop": false}',
    b'{"id": 1, "drop": "yes"}': 'drop must be true or false, got "yes"',
    b'{"id": 1, "y": true}': "y must be a number, text or a list, got true",
    b'{"id": 1, "y": {"a": null}}': 'a label must be one number, got {"a": null}',
    b'{"id": 2, "prediction": [true, 2]}': "a prediction must be made of numbers, got [true, 2]",
    b'{"id": 2, "prediction": null}': "Widen takes a pair (lower, upper) or one number, got null",
    b'{"id": 2, "prediction": [1, null]}': "the upper quantile must be a number, got null",
    b'{"id": 2, "prediction": "abc"}': 'Widen takes a pair (lower, upper) or one number, got "abc"',
    b'{"id": 2, "prediction": [NaN, 1]}': "a prediction must not be NaN, got [NaN, 1.0]",
    b'{"id": 2, "prediction": ["it\'s", 1]}': 'the lower quantile must be a number, got "it\'s"',
    b'{"id": 1, "y": "abc"}': 'a label must be a number, got "abc"',
    b'{"id": 1, "y": -Infinity}': "a label must be finite, got -Infinity",
    b'{"id": "z", "y": 1}': 'no prediction waits under the id "z"',
    b'{"id": true, "y": 1}': "an id must be a whole number or text, got true",
    b'{"id": [1], "y": 1}': "an id must be a whole number or text, got [1]",
    b'{"id": 1.5, "y": 1}': "an id must be a whole number or text, got 1.5",
    b'{"stream": {}, "id": 1, "y": 1}': "the name of a stream must be a whole number or text, "
    "got {}",
    b'{"id": 9223372036854775808, "y": 1}': "an id must lie between -9223372036854775807 and "
    "9223372036854775807 if it is a number, got 9223372036854775808: longer ones are written as "
    "text",
    b'{"id": ' + b"9" * 5000 + b', "y": 1}': "a whole number may have 4,300 digits",
    b'{"id": 1, "y": 1' + b"0" * 400 + b"}": f"a number must be below 1e308, got 1{'0' * 198}…",
    b'{"id": 2, "prediction": "' + b"x" * 500 + b'"}': "Widen takes a pair (lower, upper) or one "
    f'number, got "{"x" * 198}…',
    b'{"id": "' + b"x" * 2000 + b'", "y": 1}': "an id may have 1,000 characters, got 2,000: "
    f'"{"x" * 198}…',
    b'{"id": 5, "y": 1}': "no prediction waits under the id 5",
    b'{"stream": "none", "id": 1, "y": 1}': 'there is no stream "none"',
}


def test_each_bad_line_gets_one_clear_error_with_its_number_and_the_stream_goes_on(
    tmp_path: Path,
) -> None:
    lines = [b'{"id": 1, "prediction": [0, 1]}', b"", *BAD, b'{"id": 1, "y": 0.5}']
    with sp.Ledger(tmp_path, CONTROLLER) as ledger:
        first, *bad, last = served(ledger, b"\n".join(lines))  # the last line needs no end
    assert first == {"line": 1, "id": 1, "lower": 0.0, "upper": 1.0}
    for number, (line, error) in enumerate(BAD.items(), 3):
        answer = bad[number - 3]
        assert (answer["line"], answer["error"]) == (number, error), line[:80]
    assert last == {"line": 3 + len(BAD), "id": 1, "loss": 0.0, "covered": True}


@pytest.mark.parametrize("end", [b"", b"\n"])
@pytest.mark.parametrize("length", [1_100_000, 3_000_000])
def test_a_last_line_that_is_too_long_is_told_with_or_without_its_end(
    tmp_path: Path, length: int, end: bytes
) -> None:
    with sp.Ledger(tmp_path, CONTROLLER) as ledger:
        told = served(ledger, b'{"id": 1, "prediction": [0, 1]}\n' + b"x" * length + end)
    assert [answer["line"] for answer in told] == [1, 2]
    assert told[1]["error"] == "a line may have 1,048,576 bytes"


class Dripping(io.BytesIO):
    """A source from which one byte arrives at a time."""

    def read1(self, size: int | None = -1) -> bytes:
        return super().read1(1)


def test_a_mark_of_byte_order_before_the_first_line_is_no_part_of_it(tmp_path: Path) -> None:
    data = b'\xef\xbb\xbf{"id": 1, "prediction": [0, 1]}\n{"id": 1, "y": 0.5}\n'
    expected = [
        {"line": 1, "id": 1, "lower": 0.0, "upper": 1.0},
        {"line": 2, "id": 1, "loss": 0.0, "covered": True},
    ]
    with sp.Ledger(tmp_path / "whole", CONTROLLER) as ledger:
        assert served(ledger, data) == expected
    with sp.Ledger(tmp_path / "bytes", CONTROLLER) as ledger:
        sink = io.BytesIO()
        ledger.serve(Dripping(data), sink)
    assert [json.loads(line) for line in sink.getvalue().splitlines()] == expected


def test_null_names_no_stream(tmp_path: Path) -> None:
    with sp.Ledger(tmp_path, CONTROLLER) as ledger:
        made = [{"stream": None, "id": None, "prediction": [0, 1]}, {"y": 0.5}]
        assert not any("error" in answer for answer in ledger.handle(made))
        assert list(ledger.streams) == [""]
    assert "None" not in str(inspect(tmp_path))
