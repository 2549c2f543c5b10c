"""Files that went wrong on the way: each is refused in one sentence, or its result is right.

Nothing is half-written, and no error but setpoint's own is raised.
"""

import csv
import datetime as dt
import gzip
import io
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import jobs
from setpoint.errors import SetpointError

pytest.importorskip("pyarrow")

ROWS = 60
HEAD = ["when", "low", "high", "y"]
CELLS = (
    "", "NaN", "inf", "-inf", "abc", "1e400", "1e200", "-1e308", "1e15", "1,5", "1 000", "0x10",
    "é", '"', "None", "-", "1e-320", "  3.5  ", "TRUE", "2024-13-45", "=1+1", "0",
)  # fmt: skip


def rows() -> list[list[str]]:
    random = np.random.default_rng(0)
    days = np.datetime64("2024-01-01") + np.arange(ROWS)
    middle = np.sin(np.arange(ROWS) / 5.0)
    y = middle + random.normal(0.0, 0.5, ROWS)
    return [
        [str(day), f"{m - 0.6:.3f}", f"{m + 0.6:.3f}", f"{label:.3f}"]
        for day, m, label in zip(days, middle, y, strict=True)
    ]


def text(lines: list[list[str]], delimiter: str = ",", head: list[str] | None = None) -> str:
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerows([HEAD if head is None else head, *lines])
    return file.getvalue()


def cells() -> Iterator[tuple[str, bytes]]:
    """One cell, or a whole column, that holds something else."""
    for (column, name), value, where in product(enumerate(HEAD), CELLS, ("first", "last", "all")):
        lines = rows()
        chosen = {"first": [0], "last": [ROWS - 1], "all": range(ROWS)}[where]
        for row in chosen:
            lines[row][column] = value
        yield f"{name} {where} {value!r}", text(lines).encode()


def shapes() -> Iterator[tuple[str, bytes]]:
    """The whole file in another shape."""
    whole, lines = text(rows()), rows()
    bare = "\n".join(",".join(line) for line in lines)
    for share in (0.0, 0.001, 0.01, 0.3, 0.5, 0.77, 0.999):
        yield f"cut at {share}", whole[: int(share * len(whole))].encode()
    for name, delimiter in (("semicolons", ";"), ("tabs", "\t"), ("bars", "|"), ("spaces", " ")):
        yield name, text(lines, delimiter).encode()
    for name, ending in (("CRLF", "\r\n"), ("CR", "\r"), ("blank lines", "\n\n")):
        yield name, whole.replace("\n", ending).encode()
    for encoding in ("utf-8-sig", "utf-16", "utf-16-le", "utf-32"):
        yield encoding, whole.encode(encoding)
    yield "latin-1", whole.replace("2024-01-03", "3. März").encode("latin-1")
    yield "NUL", whole.replace("2024-01-03", "2024\0").encode()
    yield "header alone", text([]).encode()
    yield "one row", text(lines[:1]).encode()
    yield "two rows", text(lines[:2]).encode()
    yield "no header", bare.encode()
    yield "header twice", (text([]) + whole).encode()
    yield "header in the middle", text([*lines[:30], HEAD, *lines[30:]]).encode()
    yield "header in capitals", text(lines, head=[name.upper() for name in HEAD]).encode()
    yield "header with spaces", text(lines, head=[f" {name} " for name in HEAD]).encode()
    yield "names twice", text(lines, head=["when", "low", "low", "y"]).encode()
    yield "nameless", text(lines, head=["", "low", "high", "y"]).encode()
    yield "rows twice", text([line for line in lines for _ in range(2)]).encode()
    yield "whole file twice", text(lines + lines).encode()
    yield "backwards", text(lines[::-1]).encode()
    yield "one date", text([["2024-01-01", *line[1:]] for line in lines]).encode()
    yield "no dates", text([["", *line[1:]] for line in lines]).encode()
    yield "crossed ends", text([[d, high, low, y] for d, low, high, y in lines]).encode()
    yield "a field too few", whole.replace(lines[30][3], "", 1).replace(",\n", "\n", 1).encode()
    yield "a field too many", whole.replace(lines[30][3], f"{lines[30][3]},9", 1).encode()
    yield "an empty column", text([[*line, ""] for line in lines], head=[*HEAD, "z"]).encode()
    yield "an open quote", whole.replace(lines[30][1], f'"{lines[30][1]}', 1).encode()
    yield "quotes", whole.replace(",", '","').replace("\n", '"\n"').encode()
    yield "a comment", b"# made by hand\n" + whole.encode()
    yield "sep", b"sep=,\n" + whole.encode()
    yield "a sum below", (whole + "total,,,9\n").encode()
    yield "decimal commas", text([[d, *(v.replace(".", ",") for v in vs)] for d, *vs in lines],
                                 ";").encode()  # fmt: skip
    yield "huge", text([[d, *(f"{v}e140" for v in vs)] for d, *vs in lines]).encode()
    yield "tiny", text([[d, *(f"{v}e-300" for v in vs)] for d, *vs in lines]).encode()
    yield "constant", text([[d, "1", "1", "1"] for d, *_ in lines]).encode()
    yield "zeros", text([[d, "0", "0", "0"] for d, *_ in lines]).encode()
    yield "many columns", text([[*line, *"1" * 500] for line in lines],
                               head=[*HEAD, *(f"x{i}" for i in range(500))]).encode()  # fmt: skip
    yield "a long cell", text([["x" * 100_000, *line[1:]] for line in lines]).encode()
    yield "JSON", b'{"low": 1, "high": 2, "y": 3}\n' * ROWS
    yield "HTML", b"<html><body>404</body></html>"
    yield "packed", gzip.compress(whole.encode())
    yield "bytes", bytes(range(256)) * 20


def check_reading(path: Path, outcome: jobs.Outcome) -> None:
    """Whatever Python reads as a finite number in the file, the tape has too."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            names, *lines = csv.reader(file)
    except (UnicodeDecodeError, ValueError, csv.Error):
        return
    if names != HEAD or any(len(line) != len(HEAD) for line in lines):
        return
    tape = outcome.trace.tape
    for place, label in zip(tape.places.tolist(), tape.y.tolist(), strict=True):
        try:
            number = float(lines[place][3])
        except ValueError:
            continue
        assert label == number or not np.isfinite(number), (place, label, number)


def refused_or_right(
    path: Path, folder: Path, work: Callable[[], jobs.Outcome | sp.Forecast], *, stream: bool
) -> bool:
    """Whether a job was refused; if not, its rows are right."""
    try:
        outcome = work()
        outcome.write(folder, report=False)
    except SetpointError as error:
        said = str(error)
        assert "\n" not in said.strip(), said
        assert 20 < len(said) < 1_000, said
        assert "Traceback" not in said
        assert not folder.exists(), "nothing is half-written"
        assert sorted(path.parent.iterdir()) == [path]
        return True
    if isinstance(outcome, sp.Forecast):
        assert np.isfinite(outcome.to_frame()["point"]).all()
        return False
    trace = outcome.trace
    assert outcome.rows is not None
    assert len(trace.lam) + outcome.burn_in == len(outcome.rows)
    check_reading(path, outcome)
    seen = trace.observed
    y, lower, upper = trace.tape.y, trace.lower, trace.upper
    assert np.array_equal(trace.covered[seen], ((lower <= y) & (y <= upper))[seen])
    assert not np.isnan(lower).any()
    assert not np.isnan(upper).any()
    written = outcome.write(folder, report=False)
    with open(written["rows.csv"], newline="", encoding="utf-8") as file:
        delimiter = outcome.rows.file.delimiter
        assert len(list(csv.reader(file, delimiter=delimiter))) == len(outcome.rows) + 1
    if stream:
        live = sp.Stream(trace.controller, missing="skip")
        ends = zip(*map(np.asarray, trace.tape.prediction), strict=True)
        for row, pair in enumerate(ends):
            assert tuple(live.predict(pair, row)) == (lower[row], upper[row])
            live.update(y[row], row)
    return False


def through(
    folder: Path, mutations: Iterator[tuple[str, bytes]],
    job: Callable[[Path], jobs.Outcome | sp.Forecast], *, stream: bool,
) -> tuple[int, int]:  # fmt: skip
    """How many files were refused, and how many were not."""
    counts = [0, 0]
    for number, (name, content) in enumerate(mutations):
        place = folder / str(number)
        place.mkdir()
        path = place / "a.csv"
        path.write_bytes(content)
        try:
            refused = refused_or_right(path, place / "out", lambda p=path: job(p), stream=stream)
        except BaseException as error:
            raise AssertionError(f"{name}: {error!r}") from error
        counts[0 if refused else 1] += 1
    return counts[0], counts[1]


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixty rows are sooner done than compiled."""
    monkeypatch.setenv("SETPOINT_PLAIN", "1")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mutations", [cells, shapes])
def test_calibrate_refuses_a_mutated_file_in_a_sentence_or_is_right(
    tmp_path: Path, mutations: Callable[[], Iterator[tuple[str, bytes]]]
) -> None:
    columns = sp.Columns("y", "low", "high")
    refused, right = through(
        tmp_path, mutations(), lambda path: jobs.calibrate(path, columns), stream=True
    )
    assert refused + right >= (200 if mutations is cells else 50)
    assert min(refused, right) > 10


FORMS = {
    "%Y-%m-%d %H:%M:%S": ("",), "%Y-%m-%dT%H:%M:%S": ("", "Z", "+02:00", "-05:30"),
    "%d.%m.%Y %H:%M": ("",), "%m/%d/%Y %H:%M": ("",), "%d/%m/%Y %H:%M": ("",),
    "%m/%d/%y %I:%M %p": ("",), "%d-%b-%Y %H:%M": ("",), "%b %d, %Y %H:%M": ("",),
}  # fmt: skip
"""Ways of writing times, and the zones that go behind them."""
ORDERS = {
    "even": range(ROWS),
    "gaps": [row for row in range(ROWS) if row % 7 and not 20 <= row < 33],
    "twice": [row for row in range(ROWS) for _ in range(1 + (row % 9 == 0))],
    "backwards": range(ROWS - 1, -1, -1),
    "shuffled": [row * 7 % ROWS for row in range(ROWS)],
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_times_of_every_form_zone_and_order_are_read_right_or_refused(
    tmp_path: Path, order: str, delimiter: str
) -> None:
    first, base, refused = dt.datetime(2024, 1, 11, 9), rows(), list[str]()
    for form, zones in FORMS.items():
        for zone in zones:
            away = dt.timedelta(minutes={"": 0, "Z": 0, "+02:00": 120, "-05:30": -330}[zone])
            lines, times = [], []
            for row in ORDERS[order]:
                _, *cells = base[row]
                cells = [cell.replace(".", ",") for cell in cells] if delimiter == ";" else cells
                times.append(first + dt.timedelta(hours=row))
                lines.append([f"{times[-1] + away:{form}}{zone}", *cells])
            path = tmp_path / "a.csv"
            path.write_text(text(lines, delimiter), "utf-8")
            try:
                tape = jobs.calibrate(path, sp.Columns("y", "low", "high", time="when")).trace.tape
            except SetpointError as error:
                refused.append(str(error))
                continue
            assert tape.time is not None
            assert tape.time.astype("datetime64[s]").tolist() == sorted(times), (form, zone)
            assert tape.y.tolist() == [float(base[ORDERS[order][p]][3]) for p in tape.places]
    assert order == "twice" or not refused
    assert not any("\n" in said for said in refused)


def sampled() -> Iterator[tuple[str, bytes]]:
    every: list[Any] = [*cells()]
    yield from every[::7]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("mutations", [sampled, shapes])
def test_forecast_refuses_a_mutated_file_in_a_sentence_or_is_right(
    tmp_path: Path, mutations: Callable[[], Iterator[tuple[str, bytes]]]
) -> None:
    refused, right = through(
        tmp_path, mutations(), lambda path: sp.forecast(path, "y", model="last"), stream=False
    )
    assert min(refused, right) > 5
