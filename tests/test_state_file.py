"""The file of a saved state: what it holds, that it is whole or not there, and damage in words."""

import copy
import io
import json
import math
import os
import random
import tracemalloc
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import setpoint as sp
from setpoint import _state_file, spec
from setpoint.errors import SetpointError, StateError
from setpoint.sets import Interval

INF, NAN = math.inf, math.nan


pytestmark = pytest.mark.usefixtures("own_registry")


@dataclass(frozen=True)
class Reading:
    """What a user's family might read."""

    values: Any
    name: str = "a"


CONTENT: dict[str, Any] = {
    "none": None,
    "yes": True,
    "whole": 2**70,
    "real": 0.1,
    "tiny": 5e-324,
    "minus zero": -0.0,
    "infinities": [INF, -INF],
    "text": 'naïve "λ" \n',
    "pair": (1.0, (2, "three")),
    "list": [1, [2.0, []]],
    "ids": {1: "a", "1": "b"},
    "empty": {},
    "interval": Interval(1.0, INF),
    "nothing": Interval(INF, -INF),
    "array": np.array([[1.0, INF], [NAN, -0.0]]),
    "bytes": np.arange(5, dtype=np.uint8),
    "flags": np.array([True, False]),
    "no array": np.zeros((0, 3), dtype=np.float32),
    "scalar": np.array(3.5),
}


def same(left: Any, right: Any) -> bool:
    """Equal to the bit, and of the same types."""
    if isinstance(right, np.ndarray):
        return (
            isinstance(left, np.ndarray)
            and (left.dtype, left.shape) == (right.dtype, right.shape)
            and left.tobytes() == right.tobytes()
        )
    if isinstance(right, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in right)
    if isinstance(right, tuple | list):
        return type(left) is type(right) and len(left) == len(right) and all(map(same, left, right))
    if isinstance(right, float):
        return type(left) is float and (
            np.float64(left).tobytes() == np.float64(right).tobytes() or left != left
        )
    return type(left) is type(right) and left == right


def test_everything_comes_back_to_the_bit(tmp_path: Path) -> None:
    _state_file.write(tmp_path / "state", "thing", CONTENT)
    assert same(_state_file.read(tmp_path / "state", "thing"), CONTENT)


def test_the_file_is_a_zip_of_json_and_npy_and_nothing_else(tmp_path: Path) -> None:
    _state_file.write(tmp_path / "state", "thing", CONTENT)
    with zipfile.ZipFile(tmp_path / "state") as archive:
        assert archive.testzip() is None
        header = archive.read("header.json").decode()
        for name in set(archive.namelist()) - {"header.json"}:
            data = archive.read(name)
            assert name.endswith(".npy")
            assert data.startswith(b"\x93NUMPY")
            np.load(io.BytesIO(data), allow_pickle=False)

    def no_constant(word: str) -> None:
        raise AssertionError(f"{word} is not JSON")

    plain = json.loads(header, parse_constant=no_constant)
    assert plain["format"] == "setpoint thing"
    assert plain["version"] == _state_file.VERSION
    assert '{"$real": "inf"}' in header
    assert '{"$real": "-inf"}' in header


def test_nothing_in_the_file_can_be_executed(tmp_path: Path) -> None:
    stream = example()
    stream.save(tmp_path / "state")
    with zipfile.ZipFile(tmp_path / "state") as archive:
        content = b"".join(archive.read(name) for name in archive.namelist())
    words = (b"pickle", b"__reduce__", b"builtins", b"\x80\x04", b"setpoint.")
    assert not [word for word in words if word in content]


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, 1j, b"raw", np.array([object()]), lambda: 0, Reading(1), np.array],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_written_down_is_refused_in_words(tmp_path: Path, value: Any) -> None:
    _state_file.write(tmp_path / "state", "thing", {"x": 1})
    with pytest.raises(StateError, match=r"cannot be saved; .* spec.register\(\"values\", …\)"):
        _state_file.write(tmp_path / "state", "thing", {"x": value})
    assert _state_file.read(tmp_path / "state", "thing") == {"x": 1}
    assert os.listdir(tmp_path) == ["state"]


def test_a_users_value_comes_back_once_it_is_registered(tmp_path: Path) -> None:
    spec.register("values", Reading)
    value = Reading(((1.0, INF), Reading(None, "inner")), "outer")
    _state_file.write(tmp_path / "state", "thing", {"x": [value]})
    assert _state_file.read(tmp_path / "state", "thing") == {"x": [value]}
    spec._known["values"].clear()
    with pytest.raises(SetpointError, match="'Reading' is not known in values"):
        _state_file.read(tmp_path / "state", "thing")


# Refused in words


def rewritten(path: Path, **changes: Any) -> None:
    """The same file with another header."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(members["header.json"])
    header.update(changes)
    members["header.json"] = json.dumps(header).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def test_a_newer_version_is_refused(tmp_path: Path) -> None:
    example().save(tmp_path / "state")
    rewritten(tmp_path / "state", version=_state_file.VERSION + 1)
    with pytest.raises(StateError, match="version 2; this setpoint reads up to 1: update setpoint"):
        sp.Stream.load(tmp_path / "state")


def test_the_state_of_something_else_is_refused(tmp_path: Path) -> None:
    _state_file.write(tmp_path / "state", "fleet", {"x": 1})
    with pytest.raises(StateError, match="must hold a setpoint stream, it holds 'setpoint fleet'"):
        sp.Stream.load(tmp_path / "state")


@pytest.mark.parametrize(
    "content",
    [
        {"$nonsense": 1},
        {},
        [],
        3,
        None,
        {"$dict": 3},
        {"$dict": [[1]]},
        {"$tuple": 3},
        {"$array": "array9"},
        {"$interval": [1.0]},
        {"$real": "much"},
        {"$value": "Nothing", "fields": {}},
        {"$dict": []},
        {"$dict": [["controller", None]]},
    ],
    ids=repr,
)
def test_a_header_that_makes_no_sense_is_refused(tmp_path: Path, content: Any) -> None:
    example().save(tmp_path / "state")
    rewritten(tmp_path / "state", content=content)
    with pytest.raises(SetpointError):
        sp.Stream.load(tmp_path / "state")


def saved_content(path: Path) -> dict[str, Any]:
    return _state_file.read(path, "stream")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("risks", []),
        ("risks", [{}, {}]),
        ("risks", 3),
        ("counts", None),
        ("receipts", [()]),
        ("receipts", 3),
        ("receipts.waiting", [()]),
        ("receipts.waiting", 3),
        ("receipts.closed", [("a",)]),
        ("receipts.closed", 3),
        ("earlier", 3),
        ("receipts.max_pending", 0),
        ("receipts.max_pending", "many"),
        ("receipts.overflow", "drop"),
        ("missing", 3),
        ("controller", {}),
        ("controller", 3),
    ],
    ids=repr,
)
def test_a_state_with_a_wrong_field_is_refused_in_words(
    tmp_path: Path, key: str, value: Any
) -> None:
    example().save(tmp_path / "state")
    content = saved_content(tmp_path / "state")
    *outer, name = key.split(".")
    (content[outer[0]] if outer else content)[name] = value
    _state_file.write(tmp_path / "state", "stream", content)
    with pytest.raises(SetpointError):
        sp.Stream.load(tmp_path / "state").certificate()


FIELDS = (
    "controller", "counts", "earlier", "last", "missing", "receipts", "receipts.alone",
    "receipts.closed", "receipts.given", "receipts.max_pending", "receipts.overflow",
    "receipts.serial", "receipts.waiting", "risks", "watch",
)  # fmt: skip


@pytest.mark.parametrize("key", FIELDS)
def test_a_state_that_lacks_a_field_is_refused_in_words(tmp_path: Path, key: str) -> None:
    example().save(tmp_path / "state")
    content = saved_content(tmp_path / "state")
    *outer, name = key.split(".")
    del (content[outer[0]] if outer else content)[name]
    _state_file.write(tmp_path / "state", "stream", content)
    with pytest.raises(StateError, match=f"damaged: .*{name}"):
        sp.Stream.load(tmp_path / "state")


@pytest.mark.parametrize(
    "data",
    [b"", b"not a zip", b"PK\x03\x04", b"PK\x05\x06" + bytes(18), bytes(1000), b"{}", b"\x93NUMPY"],
    ids=repr,
)
def test_what_is_no_saved_state_is_refused_in_words(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "state").write_bytes(data)
    with pytest.raises(StateError, match="is damaged or not a saved state"):
        sp.Stream.load(tmp_path / "state")


@pytest.mark.parametrize("header", [b"[]", b"3", b'"x"', b"null", b"{", b"\xff\xfe", b""])
def test_a_header_that_is_no_table_is_refused(tmp_path: Path, header: bytes) -> None:
    with zipfile.ZipFile(tmp_path / "state", "w") as archive:
        archive.writestr("header.json", header)
    with pytest.raises(StateError):
        sp.Stream.load(tmp_path / "state")


def test_a_pickled_array_is_never_opened(tmp_path: Path) -> None:
    _state_file.write(tmp_path / "state", "thing", {"x": np.arange(3.0)})
    with zipfile.ZipFile(tmp_path / "state") as archive:
        header = archive.read("header.json")
    member = io.BytesIO()
    np.save(member, np.array([object()], dtype=object), allow_pickle=True)
    with zipfile.ZipFile(tmp_path / "state", "w") as archive:
        archive.writestr("header.json", header)
        archive.writestr("array0.npy", member.getvalue())
    with pytest.raises(StateError, match="is damaged or not a saved state"):
        _state_file.read(tmp_path / "state", "thing")


def test_a_file_that_is_not_there_is_the_systems_own_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        sp.Stream.load(tmp_path / "state")


def test_a_folder_that_is_not_there_is_named_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(
        SetpointError, match=r"state cannot be written: .*; make the folder .*nowhe"
    ):
        example().save(tmp_path / "nowhere" / "state")


def test_a_kind_may_have_a_version_of_its_own(tmp_path: Path) -> None:
    _state_file.write(tmp_path / "state", "thing", {"x": 1}, version=3)
    assert _state_file.read(tmp_path / "state", "thing", 3) == {"x": 1}
    with pytest.raises(StateError, match="version 3; this setpoint reads up to 2: update setpoint"):
        _state_file.read(tmp_path / "state", "thing", 2)


# Damage


RISK = sp.Risk(sp.losses.MiscoverageCounter(5), 0.2, sp.steps.Fixed(0.5), bounds=(-2.0, 2.0))


def example() -> sp.Stream:
    """A stream with everything in it: memories, counts, segments, ids, a queue."""
    stretch = sp.stretches.ErrorAdaptive(0.1, 0.1, -1.0, 1.0)
    stream = sp.Stream(sp.Controller(sp.sets.Widen(), RISK, stretch), missing="skip")
    for k in range(12):
        stream.predict((0.0, 1.0))
        stream.update(k * 0.3)
    stream.change(level=0.3)
    stream.predict((0.0, 1.0), id="a")
    stream.predict((-INF, 1.0), id="b")
    stream.predict((0.0, INF))
    stream.update(NAN, id="a")
    return stream


def outcome(path: Path, wanted: Any) -> str:
    """What loading a damaged file comes to; asking for its kind fails in words too."""
    try:
        _state_file.kind(path)
    except StateError:
        return "refused"
    try:
        got = sp.Stream.load(path).content()
    except StateError:
        return "refused"
    return "the same" if got == wanted else "ANOTHER STATE"


def test_a_file_cut_short_at_any_length_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "state"
    example().save(path)
    data = path.read_bytes()
    wanted = example().content()
    assert outcome(path, wanted) == "the same"
    for length in range(len(data)):
        path.write_bytes(data[:length])
        assert outcome(path, wanted) == "refused", length


def test_a_flipped_bit_is_refused_in_words_or_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "state"
    example().save(path)
    data = path.read_bytes()
    wanted = example().content()
    bits = range(8 * len(data))
    # Every bit of the zip's own records at both ends, and a sample of those between.
    ends = [*bits[: 8 * 64], *bits[-8 * 128 :]]
    for bit in (*ends, *random.Random(0).sample(bits, 400)):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        assert outcome(path, wanted) in ("refused", "the same"), f"bit {bit} of {len(bits)}"


def test_a_block_of_rubbish_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "state"
    example().save(path)
    data = path.read_bytes()
    wanted = example().content()
    rng = random.Random(1)
    for _ in range(200):
        start, length = rng.randrange(len(data)), rng.randrange(1, 64)
        rubbish = rng.choice([bytes(length), rng.randbytes(length), b"\xff" * length])
        path.write_bytes(data[:start] + rubbish + data[start + length :])
        assert outcome(path, wanted) in ("refused", "the same"), (start, rubbish)


# A file that would take more memory than it is long


def zipped(path: Path, members: dict[str, bytes], how: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, data in members.items():
            archive.writestr(name, data)


def most_memory(call: Any) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def refused(path: Path, match: str) -> None:
    for call in (lambda: _state_file.kind(path), lambda: _state_file.read(path, "thing")):
        with pytest.raises(StateError, match=match):
            call()


@pytest.mark.parametrize("name", ["header.json", "array0.npy"])
def test_a_zip_bomb_is_refused_before_memory_is_taken(tmp_path: Path, name: str) -> None:
    members = {"header.json": b"{}", name: b" " * 200_000_000}
    zipped(tmp_path / "state", members, zipfile.ZIP_DEFLATED)
    assert (tmp_path / "state").stat().st_size < 300_000
    told = r"unpack to 200,000,0\d\d bytes from \d+,\d+, and nothing in a saved state is compressed"
    assert most_memory(lambda: refused(tmp_path / "state", told)) < 4_000_000


def test_members_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    data = bytes(100_000)
    with zipfile.ZipFile(tmp_path / "state", "w") as archive:
        archive.writestr("header.json", "{}")
        archive.writestr("array0.npy", data)
        (*_, last) = archive.infolist()
        for number in range(1, 50):  # entries of the directory that all point to one member
            twin = copy.copy(last)
            twin.filename = f"array{number}.npy"
            archive.filelist.append(twin)
    refused(tmp_path / "state", r"unpack to 5,000,002 bytes")


@pytest.mark.parametrize("shape", ["(9999999999,)", "(3,)", "(2, 9)"])
def test_an_array_that_says_it_is_longer_than_it_is_takes_no_memory(
    tmp_path: Path, shape: str
) -> None:
    member = io.BytesIO()
    np.save(member, np.arange(4.0))
    data = member.getvalue().replace(
        b"(4,), }" + b" " * len(shape), f"{shape}, }}".encode() + b" " * 4
    )
    assert shape.encode() in data
    zipped(tmp_path / "state", {"header.json": b"{}", "array0.npy": data})
    assert most_memory(lambda: refused(tmp_path / "state", "not as long as it says")) < 1_000_000


@pytest.mark.parametrize("text", ["[" * 200_000, '{"format": ' * 50_000, "1" * 100_000])
def test_a_header_without_end_is_refused_in_words(tmp_path: Path, text: str) -> None:
    zipped(tmp_path / "state", {"header.json": text.encode()})
    refused(tmp_path / "state", "is damaged or not a saved state")


# Values that no stream can have


@pytest.mark.parametrize(
    ("where", "name", "value", "allowed"),
    [
        ("risks", "theta", "abc", "a finite number"),
        ("risks", "theta", NAN, "a finite number"),
        ("risks", "theta", -INF, "a finite number"),
        ("risks", "theta", None, "a finite number"),
        ("risks", "first", True, "a finite number"),
        ("risks", "total", NAN, "a finite number"),
        ("risks", "judged", -5, "a whole number of at least 0"),
        ("risks", "judged", 2.5, "a whole number of at least 0"),
        ("risks", "unjudged", "3", "a whole number of at least 0"),
        ("risks", "lifts", -1, "a whole number of at least 0"),
        ("risks", "step", 3.0, "a tuple of numbers"),
        ("risks", "loss", ("a",), "a tuple of numbers"),
        ("counts", "peak", -3, "a whole number of at least 1"),
        ("counts", "peak", 0, "a whole number of at least 1"),
        ("counts", "full", -1, "a whole number of at least 0"),
        ("counts", "missing", True, "a whole number of at least 0"),
        ("counts", "fresh", 1, "True or False"),
        ("counts", "stretch", [1.0], "a tuple of numbers"),
    ],
)
def test_a_value_that_no_stream_can_have_is_refused_in_a_sentence(
    where: str, name: str, value: Any, allowed: str
) -> None:
    content = example().content()
    fields = content["risks"][0] if where == "risks" else content["counts"]
    fields[name] = value
    told = f"{where}[0]" if where == "risks" else where
    with pytest.raises(StateError) as caught:
        _state_file.check_state(content)
    assert str(caught.value) == f"{told}.{name} must be {allowed}, got {value!r}"


EDITS = [("theta", "abc"), ("theta", NAN), ("judged", -5), ("peak", -3), ("lifts", 0.5)]


@pytest.mark.parametrize(("name", "value"), EDITS, ids=repr)
def test_an_edited_state_of_a_fleet_is_not_loaded(name: str, value: Any, tmp_path: Path) -> None:
    fleet = sp.Fleet(sp.Controller(sp.sets.Widen(), RISK), ["a", "b", "c"])
    fleet.save(tmp_path / "fleet")
    content = _state_file.read(tmp_path / "fleet", "fleet")
    place = [field.rstrip("0123456789") for field in content["fields"]].index(name)
    rows = np.array(content["vectors"], dtype=str if isinstance(value, str) else float)
    rows[1, place] = value
    _state_file.write(tmp_path / "fleet", "fleet", {**content, "vectors": rows})
    told = "states must be numbers" if isinstance(value, str) else f"^{name}0? must be .* stream 1$"
    with pytest.raises(StateError, match=told):
        sp.Fleet.load(tmp_path / "fleet")
    wrong = rows[:2]
    _state_file.write(tmp_path / "fleet", "fleet", {**content, "vectors": wrong})
    with pytest.raises(StateError, match="states must be numbers of shape"):
        sp.Fleet.load(tmp_path / "fleet")


def test_fields_that_are_absent_or_unknown_are_refused_in_a_sentence() -> None:
    for change in ({"risks": ()}, {"risks": [3]}, {"counts": None}, {"missing": "no"}):
        with pytest.raises(StateError, match=rf"^(a stream\.)?{next(iter(change))}.* must "):
            _state_file.check_state({**example().content(), **change})
    for change in ({"serial": -1}, {"given": "x"}, {"overflow": "wait"}, {"max_pending": 0}):
        content = example().content()
        content["receipts"].update(change)
        with pytest.raises(StateError, match=rf"^receipts\.{next(iter(change))} must be "):
            _state_file.check_state(content)
    content = example().content()
    del content["risks"][0]["judged"]
    with pytest.raises(StateError, match=r"risks\[0\] must have the fields first, judged, "):
        _state_file.check_state(content)


@given(st.data())
def test_the_states_of_a_fleet_follow_the_same_rules(data: st.DataObject) -> None:
    names = ["theta0", "theta1", "total0", "lifts1", "judged", "peak", "stretch_0", "stepping0_0"]
    rows = np.ones((len(names), 3))
    _state_file.check_columns(names, rows, 3)
    row = data.draw(st.sampled_from(range(6)))
    wrong = [NAN, INF] if row < 3 else [NAN, INF, -1.0, 0.5, -3.0]
    rows[row, 1] = data.draw(st.sampled_from(wrong))
    with pytest.raises(StateError, match=f"{names[row]} must be .*, got .* in stream 1"):
        _state_file.check_columns(names, rows, 3)
    with pytest.raises(StateError, match="must be numbers of shape"):
        _state_file.check_columns(names, rows[:-1], 3)
    with pytest.raises(StateError, match="must be numbers of shape"):
        _state_file.check_columns(names, np.full((len(names), 3), "a"), 3)


# Whole or not at all


def test_a_crash_before_the_move_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    stream = example()
    stream.save(path)
    old = path.read_bytes()
    stream.update(0.5, id="b")

    def crash(source: Any, target: Any) -> None:
        assert Path(source).parent == path.parent, "a move within one folder is atomic"
        assert Path(source).read_bytes() != old
        raise OSError("crash")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", crash)
        with pytest.raises(OSError, match="crash"):
            stream.save(path)
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["state"]
    stream.save(path)
    assert path.read_bytes() != old
    assert os.listdir(tmp_path) == ["state"]


def test_a_full_disk_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "state"
    example().save(path)
    old = path.read_bytes()

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            example().save(path)
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["state"]
