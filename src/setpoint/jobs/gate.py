"""A gate over a log of requests: what it would have done, beside what was done."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from setpoint._check import finite, option
from setpoint._html import named
from setpoint.decisions import Terms, replay
from setpoint.decisions.log import Outcome, Replay, outcome
from setpoint.errors import DataError, InputError
from setpoint.jobs.columns import tape_of, timed, unused
from setpoint.jobs.folders import LIST, folder_for, results
from setpoint.tape import Columns
from setpoint.tape.files import write
from setpoint.tape.rows import Rows, read

Array = np.ndarray[Any, Any]
_WORDS = {"true": 1.0, "yes": 1.0, "false": 0.0, "no": 0.0}
_FIRST = 2000


@dataclass(frozen=True, eq=False)
class Gated:
    """What a gate would have done on a log; print it, or write its rows and its report.

    `today` is what was done, or a threshold tuned on the first rows where nobody says; `before` is
    that in words. Rows that it was tuned on are not judged, neither for it nor for the gate.
    """

    source: str
    rows: Rows
    replay: Replay
    today: Array
    before: str
    skipped: Array
    notes: tuple[str, ...]

    @cached_property
    def outcomes(self) -> dict[str, tuple[Outcome, Outcome]]:
        """What came of the gate and of today on the rows that are judged, by limit."""
        rows, terms, act = ~self.skipped, self.replay.terms, self.replay.act
        named = zip(terms.names, self.replay.losses.T, terms.shares, strict=True)
        return {
            name: (
                outcome(act[rows], wrong[rows], share),
                outcome(self.today[rows], wrong[rows], share),
            )
            for name, wrong, share in named
        }

    @property
    def asked(self) -> str:
        """What was asked, in words."""
        terms = self.replay.terms
        each = [
            f"{100.0 * share:g} % of all requests acted on wrongly{called(self, name)}"
            for name, share in zip(terms.names, terms.shares, strict=True)
        ]
        return f"at most {', and '.join(each)}"

    def table(self) -> list[tuple[str, str, str]]:
        """The gate beside today, line by line: what it is, the gate, today."""
        lines: list[tuple[str, str, str]] = []
        for name, (gate, today) in self.outcomes.items():
            for what, form, field in _TOLD if not lines else _TOLD[1:]:
                said = what.format(window=gate.window) + (called(self, name) if lines else "")
                one, other = (format(getattr(each, field), form) for each in (gate, today))
                lines.append((said, one, other))
        return lines

    def metrics(self) -> dict[str, Any]:
        """Every number as plain values."""
        done, names = self.replay, self.replay.tape.streams
        ends = {named(n): done.certificate(n if len(names) > 1 else None) for n in names}
        costs = {named(n): done.price(n if len(names) > 1 else None) for n in names}
        return {
            "job": {
                "source": self.source, "rows": len(done.tape), "judged": int((~self.skipped).sum()),
                "terms": done.terms.as_dict(), "today": self.before,
            },
            "limits": {
                name: {"gate": gate._asdict(), "today": today._asdict()}
                for name, (gate, today) in self.outcomes.items()
            },
            "audited": int(done.audit.sum()),
            "certificates": {name: each.as_dict() for name, each in ends.items()},
            "prices": {name: None if p is None else p._asdict() for name, p in costs.items()},
            "notes": list(self.notes),
        }  # fmt: skip

    def __str__(self) -> str:
        lines = [f"{self.source}: {len(self.replay.tape):,} requests, {self.asked}", ""]
        table = self.table()
        wide = max(26, *(len(what) + 2 for what, *_ in table))
        lines += [f"{'':<{wide}}{'the gate':>12}{'today':>12}"]
        lines += [f"{what:<{wide}}{gate:>12}{today:>12}" for what, gate, today in table]
        lines += ["", f"today: {self.before}", ""]
        count = len(self.replay.tape.streams)
        if count == 1:
            lines.append(str(self.replay.certificate()))
            lines += [f"  {'price':<22}{price}"] if (price := self.replay.price()) else []
        else:
            lines.append(f"{count:,} series, each with a budget of its own")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def write(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        report: bool = True,
        suffix: str | None = None,
    ) -> dict[str, Path]:
        """Writes the rows with the decisions, the numbers and a report into a folder."""
        source, suffix = self.rows.source, suffix or self.rows.file.suffix
        if folder is None and source is None:
            raise InputError(f"a data frame needs a folder to write to: name it by {option('out')}")
        where = folder_for(self.source, "gated") if folder is None else folder
        with results(where, source) as stage:
            table = self.rows.with_columns(self._added(), suffix)
            write(table, stage / f"rows{suffix}", self.rows.file.delimiter)
            if report:
                from setpoint.jobs.gate_page import page

                (stage / "report.html").write_text(page(self), encoding="utf-8")
            listed = {**self.metrics(), "files": sorted([*stage.names(), LIST])}
            text = json.dumps(listed, indent=2, ensure_ascii=False, allow_nan=False)
            (stage / LIST).write_text(f"{text}\n", encoding="utf-8")
        return dict(sorted(stage.moved.items()))

    def _added(self) -> dict[str, Array]:
        """The columns that go behind those of the file."""
        names = unused(("act", "audit", "reason"), self.rows.names, ("", "gate_"))
        reasons = np.array(["score", "budget", "pending", "score", "score"])
        values = self.replay.act, self.replay.audit, reasons[self.replay.codes]
        back = np.empty(len(self.replay.tape), np.int64)
        back[self.replay.tape.places] = np.arange(len(back))
        return {name: column[back] for name, column in zip(names.values(), values, strict=True)}


_TOLD = (
    ("acted on", ".1%", "acted"),
    ("wrong, of all requests", ".2%", "per_request"),
    ("wrong, of the actions", ".1%", "per_action"),
    ("errors", ",.6g", "errors"),
    ("most errors too many", ",.1f", "most_above"),
    ("worst {window} in a row", ".1%", "worst_window"),
)
"""What is said of a gate beside what is done today: the words, the form, the field."""


def called(gated: Gated, name: str) -> str:
    """The name of a limit in brackets, where there are several."""
    return f" ({name})" if len(gated.replay.terms.names) > 1 else ""


def gate(
    source: Any,
    score: str,
    wrong: str | Sequence[str],
    errors: float | Sequence[float] = 0.05,
    *,
    audits: float = 1.0,
    max_pending: int | None = None,
    sure: float | None = None,
    deferred: bool = False,
    threshold: float | None = None,
    acted: str | None = None,
    series: str | tuple[str, ...] | None = None,
    time: str | None = None,
    known: str | None = None,
    delay: Any = None,
    seed: int = 0,
) -> Gated:
    """What a gate would have done on a log of requests.

    Parameters
    ----------
    source
        A .csv, .parquet or .jsonl file, or a data frame: a row for each request.
    score, wrong
        The columns with the score, higher is surer, and with whether acting was wrong, or would
        have been: 0 and 1, or yes and no, empty where it is not known. Several columns are limits
        of their own, and a row that lacks one of them has no label.
    errors
        As for `setpoint.gate`; of several columns a share for each.
    audits, max_pending, sure
        As for `setpoint.gate`.
    deferred
        Whether the labels of deferred requests come too, and teach.
    threshold, acted
        What is done today: act from a score on, or a column that says so. By default a threshold
        tuned on the first 2,000 rows, a quarter of the file at most.
    series, time, known, delay
        As for `tape.Columns`: whose request it was, when it came and when its label was known.
    seed
        Of the coins.
    """
    names = (wrong,) if isinstance(wrong, str) else tuple(wrong)
    shares = tuple(errors) if isinstance(errors, Sequence) else (errors,)
    if len(shares) != len(names) or not names:
        raise InputError(
            f"{option('errors')} must have a share for each column of {option('wrong')}, "
            f"{', '.join(names) or 'none'}; got {', '.join(f'{share:g}' for share in shares)}"
        )
    asked: Any = dict(zip(names, shares, strict=True)) if len(names) > 1 else shares[0]
    terms = Terms(asked, audits, max_pending, sure=sure)
    if threshold is not None and acted is not None:
        raise InputError(f"give {option('threshold')} or {option('acted')}, not both")
    rows = read(source)
    columns = Columns(
        names[0], point=score, series=series, time=time, known=known, delay=delay
    )  # fmt: skip
    columns, time_notes = timed(rows, columns)
    scores = rows.numbers(score, "score")
    if not np.isfinite(scores).all():
        row = int((~np.isfinite(scores)).argmax())
        raise DataError(f"every row needs a score, and {score!r} has none in {rows.place(row)}")
    losses = {name: _losses(rows, name) for name in names}
    tape, notes = tape_of(rows, {"score": scores}, losses[names[0]], columns)
    if len(names) > 1:
        tape = tape.with_extras({name: each[tape.places] for name, each in losses.items()})
    replayed = replay(terms, tape, deferred=deferred, seed=seed)
    today, before, skipped = _today(rows, replayed, threshold, acted)
    late: tuple[str, ...] = ()
    missing = int(np.isnan(replayed.losses[replayed.act, 0]).sum())
    if missing:
        late += (
            f"the log does not say of {missing:,} actions of the gate whether they were wrong: the "
            "gate counts them as wrong, the table leaves them out",
        )
    name = "the data frame" if rows.source is None else rows.source.name
    return Gated(name, rows, replayed, today, before, skipped, (*time_notes, *notes, *late))


def _losses(rows: Rows, wrong: str) -> Array:
    """The column of errors as numbers from 0 to 1."""
    try:
        losses = rows.labels(wrong)
    except DataError:
        words, codes = rows.words(wrong, "wrong")
        values = [_WORDS.get(word.strip().lower(), np.nan) for word in words]
        known = {word for word in words if word.strip()}
        if any(word.strip().lower() not in _WORDS for word in known):
            raise
        return np.asarray([*values, np.nan])[codes]
    bad = (losses < 0.0) | (losses > 1.0)
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            f"{option('wrong')} must hold 0 and 1, or losses from 0 to 1: divide a cost by the "
            f"largest one; {wrong!r} holds {losses[row]:g} in {rows.place(row)}"
        )
    return losses


def _today(
    rows: Rows, replayed: Replay, threshold: float | None, acted: str | None
) -> tuple[Array, str, Array]:
    """The actions of today, what they are in words, and the rows that are not judged."""
    tape = replayed.tape
    scores, skipped = np.asarray(tape.prediction[0]), np.zeros(len(tape), bool)
    if acted is not None:
        return _losses(rows, acted)[tape.places] == 1.0, f"what {acted!r} says was done", skipped
    if threshold is not None:
        threshold = finite(threshold, option("threshold"))
        return scores >= threshold, f"act from a score of {threshold:g} on", skipped
    first = min(_FIRST, len(tape) // 4)
    skipped[:first] = True
    known = ~np.isnan(replayed.losses[:first, 0])
    early, wrong = scores[:first][known], replayed.losses[:first][known]
    order = np.argsort(-early, kind="stable")
    ends = np.append(np.diff(early[order]) != 0.0, True)[: len(order)]
    allowed = np.array(replayed.terms.shares) * max(len(order), 1)
    kept = (np.cumsum(wrong[order], axis=0) <= allowed).all(axis=1)
    fits = np.flatnonzero(kept & ends)
    least = float(early[order][fits[-1]]) if len(fits) else float("inf")
    said = f"act from a score of {least:.4g} on" if len(fits) else "act on nothing"
    words = f"{said}, the threshold that kept to it on the first {first:,} rows"
    return scores >= least, f"{words}, which are not judged", skipped
