"""The store: nothing acknowledged is lost, nothing counts twice, an error changes nothing."""

import io
import json
import os
import sqlite3
import sys
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

import setpoint as sp
from setpoint._state_file import to_text
from setpoint.errors import InputError, SetpointError, StateError, TakenOver, WriteError
from setpoint.jobs import inspect
from setpoint.store import SQLite
from setpoint.store.events import Unread
from setpoint.store.lines import event, serve
from tests.stored import CONTROLLER, RISK, events, reference, same


@pytest.mark.parametrize("numbered", [False, True])
def test_a_store_goes_on_where_it_was_however_often_it_is_opened(
    tmp_path: Path, numbered: bool
) -> None:
    sent = events(150, numbered=numbered)
    for start in range(0, len(sent), 40):
        with sp.Store(tmp_path, CONTROLLER if start == 0 else None) as store:
            for answer in store.apply(sent[start : start + 40]):
                assert not {"error", "repeated"} & set(answer)
    with sp.Store(tmp_path) as store:
        same(store, reference(sent))
        assert all(answer["repeated"] for answer in store.apply(sent))
        same(store, reference(sent))


@pytest.mark.parametrize("reopened", [False, True])
def test_what_is_sent_again_is_answered_as_the_first_time(tmp_path: Path, reopened: bool) -> None:
    sent = [
        {"id": 1, "prediction": [10, 14]},
        {"id": 2, "prediction": [10, 14]},
        {"id": 2, "y": 99},
        {"id": "both", "prediction": [1, 2], "y": 1.5},
        {"id": 3, "prediction": [0, 1]},
        {"id": 3, "drop": True},
        {"id": 4, "prediction": [0, 1]},
        {"id": 4, "y": None},
        {"id": 2**80, "prediction": [0, 1]},
        {"id": str(2**80), "prediction": [0, 2]},
        {"id": 2**80, "y": 0.5},
    ]
    store = sp.Store(tmp_path, CONTROLLER)
    first = store.apply(sent)
    assert not any("error" in answer for answer in first)
    assert first[3] == {"id": "both", **first[3], "loss": 0.0, "covered": True}
    if reopened:
        store.close()
        store = sp.Store(tmp_path)
    with store:
        assert store.apply(sent) == [{**answer, "repeated": True} for answer in first]
        assert store.apply([{"id": 2, "y": 99.0}]) == [{**first[2], "repeated": True}]
        stream = store.stream()
        assert stream.predict((10, 14), 2) == sp.sets.Interval(first[1]["lower"], first[1]["upper"])
        assert stream.update(99, 2) == 1.0
        stream.drop(3)
        assert list(store.read().pending) == [1, str(2**80)]


def test_a_label_sent_again_does_not_tell_its_alarms_again(tmp_path: Path) -> None:
    sent = [{"id": n, "prediction": [0, 1], "y": 99.0} for n in range(20)]
    with sp.Store(tmp_path, CONTROLLER, window=10, tolerance=0.1) as store:
        first = store.apply(sent)
        again = store.apply(sent)
        assert len(store.alarms()) == sum(len(answer.pop("alarms", [])) for answer in first) > 0
    assert again == [{**answer, "repeated": True} for answer in first]


@pytest.mark.parametrize("reopened", [False, True])
def test_another_event_under_a_known_id_is_refused_in_words(tmp_path: Path, reopened: bool) -> None:
    store = sp.Store(tmp_path, CONTROLLER)
    store.apply([{"id": n, "prediction": [10, 14]} for n in ("waits", "closed", "dropped")])
    store.apply([{"id": "closed", "y": 99}, {"id": "dropped", "drop": True}])
    if reopened:
        store.close()
        store = sp.Store(tmp_path)
    theta = store.read().theta
    told = {
        "another prediction was made under the id": [
            {"id": "waits", "prediction": [10, 15]}, {"id": "closed", "prediction": [10, 15]},
        ],
        'the id "closed" already has the label 99, got 98': [{"id": "closed", "y": 98}],
        'the id "closed" already has the label 99, got null': [{"id": "closed", "y": None}],
        "already has its label": [{"id": "closed", "drop": True}],
        "was given up (dropped)": [{"id": "dropped", "y": 1}],
    }  # fmt: skip
    for words, sent in told.items():
        for answer in store.apply(sent):
            assert words in answer["error"]
    with pytest.raises(InputError, match="another prediction"):
        store.stream().predict((10, 15), "waits")
    assert store.read().theta == theta
    store.close()


def test_an_error_in_an_event_changes_nothing_whenever_it_comes(tmp_path: Path) -> None:
    """A label that is refused only when the set is asked about it does not move θ."""
    risk = sp.Risk(sp.losses.SetSize(), 0.1, sp.steps.Fixed(0.5))
    controller = sp.Controller(sp.sets.Threshold(), risk)
    with sp.Store(tmp_path / "one", controller, max_pending=2) as store:
        for id in range(3):
            sent = [{"id": id, "prediction": [0.5, 0.5]}, {"id": id, "y": "cat"}]
            shown, refused = store.apply(sent)
            assert "error" not in shown or id == 2
            assert "error" in refused
        stream = store.read()
        assert (stream.theta, list(stream.pending)) == (controller.init().risks[0].theta, [0, 1])
    with sp.Store(tmp_path / "one") as store:
        assert to_text(store.read().content()) == to_text(stream.content())
    with sp.Store(tmp_path / "both", controller) as store:
        good = {"id": "a", "prediction": [0.9, 0.1], "y": 1}
        torn = {"id": "b", "prediction": [0.5, 0.5], "y": "cat"}
        last = {"id": "c", "prediction": [0.9, 0.1], "y": 0}
        answers = store.apply([good, torn, last])
        assert ["error" in answer for answer in answers] == [False, True, False]
        with sp.Store(tmp_path / "plain", controller) as plain:
            assert plain.apply([good, last]) == [answers[0], answers[2]]
            assert to_text(plain.read().content()) == to_text(store.read().content())
        assert [row["id"] for row in store.history()] == ["a", "c"]


def test_a_batch_of_events_refused_halfway_leaves_what_the_others_leave(tmp_path: Path) -> None:
    good = [{"id": n, "prediction": [0, 1], "y": 9.0 * (n % 7)} for n in range(600)]
    torn = [{"id": f"t{n}", "prediction": [0, 1], "y": "cat"} for n in range(600)]
    both = [{"id": f"d{n}", "prediction": [0, 1], "y": 0.5, "drop": True} for n in range(200)]
    mixed: list[dict[str, Any]] = [e for trio in zip_longest(good, torn, both) for e in trio if e]
    kept = []
    for name, sent in (("plain", good), ("mixed", mixed)):
        with sp.Store(tmp_path / name, CONTROLLER, window=50, tolerance=0.1) as store:
            answers = store.apply(sent)
            rows = [{**row, "made": 0, "closed": 0} for row in store.history()]
            alarms = [{**alarm, "at": 0} for alarm in store.alarms()]
            done = [answer for answer in answers if "error" not in answer]
            kept.append((done, rows, alarms, to_text(store.read().content())))
    assert kept[0] == kept[1]
    assert any("alarms" in answer for answer in kept[1][0])


def test_what_is_not_committed_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = events(20)
    with sp.Store(tmp_path, CONTROLLER) as store:
        store.apply(sent[:10])
        for error in (KeyboardInterrupt, sqlite3.OperationalError("database or disk is full")):
            with monkeypatch.context() as patched:

                def broken(*_: Any, error: Any = error) -> None:
                    raise error

                patched.setattr("setpoint.store.SQLite._own", broken)
                with pytest.raises((KeyboardInterrupt, OSError)):
                    store.apply(sent[10:])
            same(store, reference(sent[:10]))
        assert not any({"error", "repeated"} & set(answer) for answer in store.apply(sent[10:]))
        same(store, reference(sent))


def test_a_database_that_fails_while_a_stream_is_read_fails_the_whole_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = events(20)
    with sp.Store(tmp_path, CONTROLLER) as store:
        store.apply(sent[:10])
    with sp.Store(tmp_path) as store:
        with monkeypatch.context() as patched:

            def broken(*_: Any, **__: Any) -> None:
                raise WriteError(5, "the disk does not answer")

            patched.setattr(SQLite, "load", broken)
            with pytest.raises(WriteError):
                store.apply(sent[10:])
        store.apply(sent[10:])
        same(store, reference(sent))


def test_a_commit_after_sqlite_rolled_back_by_itself_is_refused(tmp_path: Path) -> None:
    database = SQLite(tmp_path)
    database.begin([])
    database._ask("ROLLBACK")
    with pytest.raises(WriteError, match="no transaction"):
        database.commit([])
    database.close()


def test_a_stream_belongs_to_who_used_it_last(tmp_path: Path) -> None:
    sent = events(40)
    with sp.Store(tmp_path, CONTROLLER) as first, sp.Store(tmp_path) as second:
        first.apply(sent[:20])
        second.apply(sent[20:30])
        for _ in range(2):
            with pytest.raises(
                TakenOver, match=r"another process has taken over the stream '[ab]'"
            ):
                first.apply(sent[30:])
        same(first, reference(sent[:30]))
        first.stream("a"), first.stream("b")
        first.apply(sent[30:])
        with pytest.raises(TakenOver):
            second.apply(sent[30:])
        same(second, reference(sent))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_write_to_its_parents_store(tmp_path: Path) -> None:
    sent = events(20)
    with sp.Store(tmp_path, CONTROLLER) as store:
        store.apply(sent[:10])
        child = os.fork()
        if child == 0:
            told = b""
            try:
                store.apply(sent[10:])
            except StateError as error:
                told = str(error).encode()
            store.close()
            del store
            with sp.Store(tmp_path) as other:
                other.apply(sent[10:20])
            (tmp_path / "told").write_bytes(told)
            os._exit(0)
        os.waitpid(child, 0)
        assert "was forked from it: open it again here" in (tmp_path / "told").read_text()
        with pytest.raises(TakenOver):
            store.apply(sent[20:])
        same(store, reference(sent[:20]))


def test_settings_and_controllers_are_kept_and_guarded(tmp_path: Path) -> None:
    path = tmp_path / "streams.db"
    with sp.Store(path, CONTROLLER, max_pending=2, overflow="expire") as store:
        store.apply([{"id": n, "prediction": [0, 1]} for n in range(6)])
        store.apply([{"id": 5, "y": None}])
        assert store.apply([{"id": 3, "y": 1}])[0]["error"].endswith("was given up (expired)")
    with sp.Store(path) as store:
        stream = store.read()
        assert list(stream.pending) == [4]
        assert (stream.state.expired, stream.state.missing) == (4, 1)
        store.apply([{"stream": "new", "id": n, "prediction": [0, 1]} for n in range(3)])
        assert list(store.read("new").pending) == [1, 2]
    with sp.Store(path, overflow="refuse") as store:
        (answer,) = store.apply([{"stream": "new", "id": 9, "prediction": [0, 1]}])
        assert "as many as max_pending allows" in answer["error"]
    other = sp.Controller(sp.sets.Widen(), replace(RISK, level=0.2), CONTROLLER.stretch)
    with pytest.raises(StateError, match=r"another controller: it has 'level = 0.1', .* 0.2'"):
        sp.Store(path, other)
    with sp.Store(path) as store:
        store.stream("other", other).predict((0.0, 1.0), "a")
        assert store.read("other").controller == other
        with pytest.raises(StateError, match="another controller"):
            store.stream("other", CONTROLLER)
    with sp.Store(tmp_path / "bare.db") as store:
        with pytest.raises(StateError, match="give a controller"):
            store.stream("a")
        custom = sp.Controller(sp.sets.Widen(), sp.Risk(sp.losses.Custom(lambda s, y: 0.0), 0.1))
        with pytest.raises(StateError, match="keeps its controller as text"):
            store.stream("a", custom)
        assert store.names == []
    with pytest.raises(StateError, match="is closed"):
        store.apply([])


def test_a_setting_that_cannot_be_is_refused_and_not_kept(tmp_path: Path) -> None:
    for name in ("max_pending", "history", "window", "tolerance"):
        with pytest.raises(InputError, match=name):
            sp.Store(tmp_path, CONTROLLER, **{name: 0})
    for name in ("overflow", "missing"):
        with pytest.raises(InputError, match=name):
            sp.Store(tmp_path, CONTROLLER, **{name: ""})
    assert not list(tmp_path.iterdir())


def test_the_history_is_kept_as_long_as_is_asked(tmp_path: Path) -> None:
    with sp.Store(tmp_path, CONTROLLER, history=100) as store:
        store.apply([{"id": "late", "prediction": [0, 1]}])
        for start in range(0, 1000, 50):
            ids = range(start, start + 50)
            store.apply({"id": f"p{id}", "prediction": [0, 1], "y": 0.5} for id in ids)
        rows = list(store.history())
        assert 100 <= len(rows) <= 250
        assert (rows[0]["id"], rows[-1]["id"]) == ("late", "p999")
        assert rows[-1] | {"made": 0, "closed": 0} == {
            "number": 1000, "id": "p999", "prediction": [0, 1], "groups": [],
            "shown": rows[-1]["shown"],
            "lam": rows[-1]["lam"], "y": 0.5, "loss": 0.0, "covered": True, "ended": "answered",
            "made": 0, "closed": 0,
        }  # fmt: skip
        assert list(store.history(after=998)) == rows[-2:]
        assert store.apply([{"id": "late", "y": 0.5}])[0]["loss"] == 0.0


def test_the_history_of_all_streams_is_bounded_in_bytes(tmp_path: Path) -> None:
    with sp.Store(tmp_path, CONTROLLER, history_bytes=400_000) as store:
        for number in range(1200):
            sent = {"id": f"p{number}", "prediction": [-1.0, 1.0], "y": 0.5}
            store.apply([{**sent, "stream": name} for name in "ab"])
        kept = {name: list(store.history(name)) for name in "ab"}
        assert {100 < len(rows) < 1200 for rows in kept.values()} == {True}
        assert kept["a"][-1]["id"] == "p1199"
        rows = store._database._ask("SELECT sum(length(receipt) + length(id)) FROM predictions")
        assert rows[0][0] < 400_000
        assert store.read("a").state.risks[0].judged == 1200


def test_every_kind_of_set_goes_in_and_comes_out(tmp_path: Path) -> None:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5))
    bounded = replace(risk, bounds=(-20.0, 20.0))
    probabilities = {"no": 0.8, "yes": 0.2}
    parts: list[tuple[sp.Controller, Any, Any, dict[str, Any]]] = [
        (sp.Controller(sp.sets.Threshold(), risk), probabilities, "no", {"labels": ["no", "yes"]}),
        (sp.Controller(sp.sets.Cumulative(), risk), probabilities, "yes", {}),
        (sp.Controller(sp.sets.Upper(), risk), 5.0, 4.0, {"lower": None, "upper": 5.0}),
        (sp.Controller(sp.sets.TwoSided(), [bounded, bounded]), [0, 1], 2.0, {"lower": 0.0}),
        (sp.Controller(sp.sets.ScoreWindow(sp.sets.Widen(), 50), risk), [0, 1], 2.0, {}),
    ]
    for number, (controller, prediction, y, told) in enumerate(parts):
        plain = sp.Stream(controller, missing="skip")
        for id in range(5):
            with sp.Store(tmp_path / f"{number}.db", controller) as store:
                (shown,) = store.apply([{"id": id, "prediction": prediction}])
            plain.predict(prediction, id)
            with sp.Store(tmp_path / f"{number}.db") as store:
                (answer,) = store.apply([{"id": id, "y": y}])
                json.dumps([shown, answer], allow_nan=False)
                loss = plain.update(y, id)
                assert answer["loss"] == (list(loss) if isinstance(loss, tuple) else loss)
                assert store.read().theta == plain.theta
                assert str(store.summary()) == str(plain.summary())
            if id == 0:
                assert shown | told == shown


def test_an_overview_says_which_coverage_is_asked_for(tmp_path: Path) -> None:
    size = sp.Risk(sp.losses.SetSize(), 0.3, sp.steps.Fixed(0.5))
    for number, (controller, asked) in enumerate(
        [
            (CONTROLLER, 0.9),
            (sp.Controller(sp.sets.TwoSided(), [RISK, RISK]), 0.8),  # either side may miss a tenth
            (sp.Controller(sp.sets.Threshold(), size), None),
        ]
    ):
        with sp.Store(tmp_path / f"{number}.db") as store:
            stream = store.stream("a", controller)
            assert store.overviews()["a"]["asked"] == asked
            if asked is not None:
                stream.change(level=0.3)
                assert store.overviews()["a"]["asked"] == round(asked - 0.2, 12)


def test_a_file_that_is_no_store_is_told(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no database" * 100)
    with sqlite3.connect(tmp_path / "other") as other:
        other.execute("CREATE TABLE mine (x)")
    sp.Store(tmp_path / "newer", CONTROLLER).close()
    with sqlite3.connect(tmp_path / "newer") as newer:
        newer.execute("INSERT INTO migrations VALUES ('of tomorrow', 0)")
    for name, words in [
        ("text", "is damaged or no store"),
        ("other", "is a database of something else"),
        ("newer", r"was changed by a newer setpoint \(of tomorrow\): update"),
        ("none/new", "cannot be used: unable to open"),
    ]:
        with pytest.raises(SetpointError, match=words):
            sp.Store(tmp_path / name)
    with sp.Store(tmp_path / "bad", CONTROLLER) as store:
        store.apply([{"id": 1, "prediction": [0, 1]}])
    with sqlite3.connect(tmp_path / "bad") as bad:
        bad.execute("UPDATE streams SET state = replace(state, 'judged', 'jugded')")
    with pytest.raises(StateError, match="is damaged: the stream '' does not fit its checksum"):
        inspect(tmp_path / "bad")


# Lines


def test_a_key_that_is_given_twice_is_found_among_many() -> None:
    line = b"{%b}" % b",".join(b'"%d":1' % min(n, 29_999) for n in range(30_001))
    assert event(line) == Unread('an object must have each key once, got "29999" twice')


def served(store: sp.Store, data: bytes) -> list[dict[str, Any]]:
    sink = io.BytesIO()
    serve(store, io.BufferedReader(io.BytesIO(data)), sink)
    return [json.loads(line) for line in sink.getvalue().splitlines()]


BAD = {
    b"{no json": "not JSON: Expecting property name enclosed in double quotes at character 2",
    b"[" * 100_000: "an event must be made of numbers, text and short lists, got deep ones",
    b'{"id": 2, "prediction": "' + b"x" * 2_000_000 + b'"}': "a line may have 1,048,576 bytes",
    b"\xff\xfe": "not JSON: byte 1 is no text in UTF-8",
    b"null": "an event must be an object with prediction, y, score, wrong, loss, drop, "
    "certificate, got null",
    b"{}": "an event needs one of prediction, y, score, wrong, loss, drop, certificate, got {}",
    b'{"id": 1, "drop": "yes"}': 'drop must be true or false, got "yes"',
    b'{"id": 1, "lable": 3}': "certificate, groups, features, step, got",
    b'{"id": 1, "y": 3, "y": 4}': 'an object must have each key once, got "y" twice',
    b'{"id": 1, "y": true}': "y must be a number, text or a list, got true",
    b'{"id": 2, "prediction": [true, 2]}': "a prediction must be made of numbers, text and lists",
    b'{"id": 2, "prediction": null}': "must be a pair (lower, upper) or one number, got None",
    b'{"id": 2, "prediction": [NaN, 1]}': "a prediction must not be NaN",
    b'{"id": 1, "y": "abc"}': "a label must be a number, got 'abc'",
    b'{"id": 1, "y": -Infinity}': "a label must be finite, got -inf",
    b'{"id": "z", "y": 1}': "no prediction waits under the id 'z'",
    b'{"id": true, "y": 1}': "an id must be a whole number or text, got true",
    b'{"id": 1.5, "y": 1}': "an id must be a whole number or text, got 1.5",
    b'{"stream": {}, "id": 1, "y": 1}': "the name of a stream must be a whole number or text, ",
    b'{"stream": "\\ud800", "id": 1, "prediction": 1}': "a stream must be whole characters",
    b'{"id": ' + b"9" * 5000 + b', "y": 1}': "a whole number may have 4,300 digits",
    b'{"id": ' + b"9" * 2000 + b', "y": 1}': "an id that is a number may have 900 digits",
    b'{"id": 1, "y": 1' + b"0" * 400 + b"}": "a label must be one number, got 1000",
    b'{"id": "' + b"x" * 2000 + b'", "y": 1}': "an id may have 200 characters, got 2,000: ",
    b'{"id": [' + b"9999, " * 1000 + b'1], "y": 1}': "an id may have 2,500 characters as JSON",
    b'{"stream": "none", "id": 1, "y": 1}': 'there is no stream "none"',
}


def test_each_bad_line_gets_one_clear_error_with_its_number_and_the_stream_goes_on(
    tmp_path: Path,
) -> None:
    lines = [b'\xef\xbb\xbf{"id": 1, "prediction": [0, 1]}', b"", *BAD, b'{"id": 1, "y": 0.5}']
    with sp.Store(tmp_path, CONTROLLER) as store:
        first, *bad, last = served(store, b"\n".join(lines))  # the last line needs no end
        assert store.names == [""]
    assert first == {"line": 1, "id": 1, "lower": 0.0, "upper": 1.0}
    for number, (line, error) in enumerate(BAD.items(), 3):
        answer = bad[number - 3]
        assert answer["line"] == number
        assert error in answer["error"], line[:80]
        assert len(answer["error"]) <= 1000
    assert last == {"line": 3 + len(BAD), "id": 1, "loss": 0.0, "covered": True}


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pipe")
def test_a_lone_line_is_answered_at_once(tmp_path: Path) -> None:
    read, write = os.pipe()

    class Sink(io.BytesIO):
        def write(self, data: Any) -> int:
            if not self.getvalue():
                os.write(write, b'{"y": 0.5}\n{"certificate": true}\n')
                os.close(write)
            return super().write(data)

    sink = Sink()
    os.write(write, b'{"stream": null, "id": null, "prediction": 3.0}\n')
    with sp.Store(tmp_path, CONTROLLER) as store, os.fdopen(read, "rb") as source:
        serve(store, source, sink)
    shown, answer, asked = [json.loads(line) for line in sink.getvalue().splitlines()]
    assert shown == {"line": 1, "stream": None, "id": 0, "lower": 3.0, "upper": 3.0}
    assert answer == {"line": 2, "id": 0, "loss": 1.0, "covered": False}
    assert asked["certificate"]["risks"][0]["judged"] == 1


def test_a_quick_encoder_writes_what_the_standard_library_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("msgspec", reason="needs msgspec")
    from setpoint.store import live

    numbers = [0.1 + 0.2, -0.0, 5e-324, 1.7e308, 1e22, 123456789.123456789, 3, 10**25, -(10**300)]
    sent: list[dict[str, Any]] = [
        {"id": n, "prediction": [number, number], "y": 0.5} for n, number in enumerate(numbers)
    ]
    sent += [{"id": "a", "prediction": 7.5}, {"id": "b", "prediction": {"lower": 1, "upper": 2.5}}]
    kept = []
    for folder in ("quick", "slow"):
        with sp.Store(tmp_path / folder, CONTROLLER) as store:
            answers = store.apply(sent)
            rows = [{**row, "made": 0, "closed": 0} for row in store.history()]
            kept.append((answers, repr(rows), repr(list(store.read().pending.items()))))
        monkeypatch.setattr(live, "_quick", lambda: None)
    assert kept[0] == kept[1]
    assert len([answer for answer in kept[0][0] if "error" not in answer]) >= 9
