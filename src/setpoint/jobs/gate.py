"""A gate over a log of requests: what it would have done, beside what was done."""

import json
import os
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
from setpoint.tape import Columns, Tape
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
    def outcomes(self) -> tuple[Outcome, Outcome]:
        """What came of the gate's actions and of those of today, on the rows that are judged."""
        rows, (wrong,) = ~self.skipped, self.replay.losses.T
        share = self.replay.terms.shares[0]
        return (
            outcome(self.replay.act[rows], wrong[rows], share),
            outcome(self.today[rows], wrong[rows], share),
        )

    @property
    def asked(self) -> str:
        """What was asked, in words."""
        return f"at most {100.0 * self.replay.terms.shares[0]:g} % of all requests acted on wrongly"

    def metrics(self) -> dict[str, Any]:
        """Every number as plain values."""
        gate, today = self.outcomes
        names = self.replay.tape.streams
        certificates = [self.replay.certificate(n if len(names) > 1 else None) for n in names]
        return {
            "source": self.source, "rows": len(self.replay.tape),
            "judged": int((~self.skipped).sum()), "terms": self.replay.terms.as_dict(),
            "gate": gate._asdict(), "today": {"what": self.before, **today._asdict()},
            "audited": int(self.replay.audit.sum()),
            "certificates": {
                named(name): each.as_dict() for name, each in zip(names, certificates, strict=True)
            },
            "notes": list(self.notes),
        }  # fmt: skip

    def __str__(self) -> str:
        gate, today = self.outcomes
        lines = [f"{self.source}: {len(self.replay.tape):,} requests, {self.asked}", ""]
        lines += [f"{'':<26}{'the gate':>12}{'today':>12}"]
        for what, form, field in TOLD:
            pair = (getattr(one, field) for one in (gate, today))
            cells = "".join(f"{format(value, form):>12}" for value in pair)
            lines.append(f"{what.format(window=gate.window):<26}{cells}")
        lines += ["", f"today: {self.before}"]
        if len(self.replay.tape.streams) == 1:
            lines += ["", str(self.replay.certificate())]
        else:
            lines += [
                "",
                f"{len(self.replay.tape.streams):,} series, each with a budget of its own",
            ]
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


TOLD = (
    ("acted on", ".1%", "acted"),
    ("wrong, of all requests", ".2%", "per_request"),
    ("wrong, of the actions", ".1%", "per_action"),
    ("errors", ",.6g", "errors"),
    ("most errors too many", ",.1f", "most_above"),
    ("worst {window} in a row", ".1%", "worst_window"),
)
"""What is said of a gate beside what is done today: the words, the form, the field."""


def gate(
    source: Any,
    score: str,
    wrong: str,
    errors: float = 0.05,
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
        have been: 0 and 1, or yes and no, empty where it is not known.
    errors, audits, max_pending, sure
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
    terms = Terms(errors, audits, max_pending, sure=sure)
    if isinstance(terms.errors, dict):
        raise InputError("a log has one column of errors: give one share")
    if threshold is not None and acted is not None:
        raise InputError(f"give {option('threshold')} or {option('acted')}, not both")
    rows = read(source)
    columns = Columns(
        wrong, point=score, series=series, time=time, known=known, delay=delay
    )  # fmt: skip
    columns, time_notes = timed(rows, columns)
    scores = rows.numbers(score, "score")
    if not np.isfinite(scores).all():
        row = int((~np.isfinite(scores)).argmax())
        raise DataError(f"every row needs a score, and {score!r} has none in {rows.place(row)}")
    losses = _losses(rows, wrong)
    tape, notes = tape_of(rows, {"score": scores}, losses, columns)
    replayed = replay(terms, tape, deferred=deferred, seed=seed)
    today, before, skipped = _today(rows, tape, terms.shares[0], threshold, acted)
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
    rows: Rows, tape: Tape, share: float, threshold: float | None, acted: str | None
) -> tuple[Array, str, Array]:
    """The actions of today, what they are in words, and the rows that are not judged."""
    scores, skipped = np.asarray(tape.prediction[0]), np.zeros(len(tape), bool)
    if acted is not None:
        return _losses(rows, acted)[tape.places] == 1.0, f"what {acted!r} says was done", skipped
    if threshold is not None:
        threshold = finite(threshold, option("threshold"))
        return scores >= threshold, f"act from a score of {threshold:g} on", skipped
    first = min(_FIRST, len(tape) // 4)
    skipped[:first] = True
    known = ~np.isnan(tape.y[:first])
    early, wrong = scores[:first][known], tape.y[:first][known]
    order = np.argsort(-early, kind="stable")
    ends = np.append(np.diff(early[order]) != 0.0, True)[: len(order)]
    fits = np.flatnonzero((np.cumsum(wrong[order]) <= share * max(len(order), 1)) & ends)
    least = float(early[order][fits[-1]]) if len(fits) else float("inf")
    said = f"act from a score of {least:.4g} on" if len(fits) else "act on nothing"
    words = f"{said}, the threshold that kept to it on the first {first:,} rows"
    return scores >= least, f"{words}, which are not judged", skipped
