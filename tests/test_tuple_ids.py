"""Ids that are tuples, such as (day, hour): in streams, fleets, tapes, stores and saved states."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import AnsweredReceipt, InputError, TapeError, UnknownReceipt

CONTROLLER = sp.intervals()


def test_a_stream_takes_tuples_as_ids_and_saves_them(tmp_path: Path) -> None:
    stream = sp.Stream(CONTROLLER)
    stream.predict((0.0, 1.0), id=(1, "noon"))
    stream.predict((0.0, 2.0), id=(np.int64(1), 2))
    stream.update(0.5, id=(1, 2))
    stream.save(tmp_path / "state.zip")
    loaded = sp.Stream.load(tmp_path / "state.zip")
    assert list(loaded.pending) == [(1, "noon")]
    assert type(next(iter(loaded.pending))[0]) is int
    with pytest.raises(AnsweredReceipt, match=r"\(1, 2\) already has its label"):
        loaded.update(0.5, id=(1, 2))
    with pytest.raises(UnknownReceipt):
        loaded.update(0.5, id=(1, 3))
    assert loaded.update(0.5, id=(1, "noon")) == stream.update(0.5, id=(1, "noon"))


@pytest.mark.parametrize("odd", [(), (1.5,), (True,), (1, (2, 3)), (None,), [1, 2]])
def test_an_odd_id_is_refused(odd: Any) -> None:
    stream = sp.Stream(CONTROLLER)
    with pytest.raises(InputError, match="must be a whole number, a string or a tuple of them"):
        stream.predict((0.0, 1.0), id=odd)
    assert not stream.pending


def test_a_fleet_takes_tuples_as_ids(tmp_path: Path) -> None:
    ids = [("north", 1), ("north", 2), ("south", 1)]
    fleet = sp.Fleet(CONTROLLER, ids)
    streams = {id: sp.Stream(CONTROLLER) for id in ids}
    ends = np.array([[0.0, 1.0], [0.0, 5.0], [2.0, 3.0]])
    for y in (0.5, 4.0, 2.5):
        lower, _ = fleet.predict((ends[:, 0], ends[:, 1]))
        shown = [
            streams[id].predict(tuple(row)) for id, row in zip(ids, ends.tolist(), strict=True)
        ]
        assert lower.tolist() == [interval.lower for interval in shown]
        fleet.update(dict.fromkeys(ids, y))
        for stream in streams.values():
            stream.update(y)
    fleet.save(tmp_path / "fleet.zip")
    assert sp.Fleet.load(tmp_path / "fleet.zip").ids == tuple(ids)


def test_the_streams_of_a_tape_may_be_tuples() -> None:
    ids = [("a", 1), ("b", 1), ("a", 1), ("a", 2)]
    ends = {"lower": [0.0] * 4, "upper": [1.0] * 4}
    tape = sp.Tape.from_arrays(ends, [0.5, 3.0, 2.0, 0.5], series=ids)
    assert list(tape.streams) == [("a", 1), ("b", 1), ("a", 2)]
    trace = sp.replay(CONTROLLER, tape)
    stream = sp.Stream(CONTROLLER)
    for y in (0.5, 2.0):
        stream.predict((0.0, 1.0))
        stream.update(y)
    assert trace.certificate(("a", 1)) == stream.certificate()
    with pytest.raises(TapeError, match=r"tuples of them, got \(1.5,\) at row 0"):
        sp.Tape.from_arrays({"lower": [0.0], "upper": [1.0]}, [0.5], series=[(1.5,)])


@pytest.mark.parametrize("form", [list, tuple])
def test_a_store_keeps_lists_as_tuples(tmp_path: Path, form: Any) -> None:
    with sp.Store(tmp_path / "a.sqlite", CONTROLLER) as store:
        (shown,) = store.apply([{"id": form([3, "x"]), "prediction": [0, 1]}])
        assert json.loads(json.dumps(shown["id"])) == [3, "x"]
        (odd, empty) = store.apply([{"id": [1.5], "y": 1}, {"id": [], "y": 1}])
        assert "a part of an id must be a whole number or text" in odd["error"]
        assert "must have a part" in empty["error"]
        (named,) = store.apply([{"stream": [1, 2], "id": 1, "prediction": [0, 1]}])
        assert "the name of a stream must be a whole number or text" in named["error"]
    with sp.Store(tmp_path / "a.sqlite") as store:
        (again,) = store.apply([{"id": form([3, "x"]), "prediction": [0, 1]}])
        assert (again["lower"], again["upper"]) == (shown["lower"], shown["upper"])
        (answer,) = store.apply([{"id": form([3, "x"]), "y": 5}])
        assert answer["loss"] == 1.0
