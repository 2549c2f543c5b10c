"""A gate over a log of requests: what it would have done, beside what was done."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from setpoint._check import finite, option
from setpoint._files import staged
from setpoint._html import named, percent
from setpoint.decisions import Terms, replay
from setpoint.decisions.log import Outcome, Replay, outcome
from setpoint.errors import DataError, InputError
from setpoint.jobs.columns import tape_of, timed, unused
from setpoint.jobs.result import Result, aligned
from setpoint.tape import Columns
from setpoint.tape.rows import Rows, read

Array = np.ndarray[Any, Any]
_WORDS = {"": np.nan, "1": 1.0, "true": 1.0, "yes": 1.0, "0": 0.0, "false": 0.0, "no": 0.0}
_FIRST = 2000


@dataclass(frozen=True, eq=False)
class Gated(Result):
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
    folder: ClassVar[str] = "gated"

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
            f"{100.0 * share:g} % of all requests acted on wrongly{self.called(name)}"
            for name, share in zip(terms.names, terms.shares, strict=True)
        ]
        return f"at most {', and '.join(each)}"

    def called(self, name: str) -> str:
        """The name of a limit in brackets, where there are several."""
        return f" ({name})" if len(self.replay.terms.names) > 1 else ""

    def table(self) -> list[tuple[str, str, str]]:
        """The gate beside today, line by line: what it is, the gate, today."""
        lines: list[tuple[str, str, str]] = []
        for name, (gate, today) in self.outcomes.items():
            for what, form, field in _TOLD if not lines else _TOLD[1:]:
                said = what.format(window=gate.window) + (self.called(name) if lines else "")
                one, other = (
                    format(getattr(each, field), form).replace("%", " %") for each in (gate, today)
                )
                lines.append((said, one, other))
        return lines

    def metrics(self) -> dict[str, Any]:
        """Every number as plain values."""
        done = self.replay
        series = {named(name): name for name in done.tape.streams}
        prices = {name: done.price(one) for name, one in series.items()}
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
            "certificates": {n: done.certificate(one).as_dict() for n, one in series.items()},
            "prices": {name: price and price._asdict() for name, price in prices.items()},
            "notes": list(self.notes),
        }  # fmt: skip

    def __str__(self) -> str:
        lines = [f"{self.source}: {len(self.replay.tape):,} requests, {self.asked}", ""]
        table = [("", "the gate", "today"), *self.table()]
        lines += aligned(table, left=1)
        lines += ["", f"today: {self.before}", "", self.certificate()]
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])

    def certificate(self) -> str:
        """The certificate of a gate with its price, in words."""
        count = len(self.replay.tape.streams)
        if count > 1:
            return f"{count:,} series, each with a budget of its own: {self.bound}"
        price = self.replay.price()
        more = f"\n  {'price':<22}{price}" if price else ""
        return f"{self.replay.certificate()}{more}"

    def _put(self, stage: staged, report: bool) -> None:
        names = unused(("act", "audit", "reason"), self.rows.names, "gate_")
        values = self.replay.act, self.replay.audit, self.replay.reason
        back = np.empty(len(self.replay.tape), np.int64)
        back[self.replay.tape.places] = np.arange(len(back))
        added = {name: column[back] for name, column in zip(names.values(), values, strict=True)}
        self._table(stage, "rows", self.rows.with_columns(added, self.rows.file.suffix))
        if report:
            from setpoint.report import page

            lines = {
                f"Errors beyond the allowance{self.called(name)}": pair
                for name, pair in self._above().items()
            } | {"Share acted on": self._shares()}
            (stage / "report.html").write_text(page.of_gate(self, lines), "utf-8")

    @property
    def lede(self) -> str:
        """What came out, in two sentences."""
        told = []
        for place, who in enumerate(("The gate would have", "Today's way has")):
            pairs = {name: pair[place] for name, pair in self.outcomes.items()}
            wrong = [
                f"{percent(one.per_request, 1)}{self.called(name)}" for name, one in pairs.items()
            ]
            acted = next(iter(pairs.values())).acted
            most = max(one.most_above for one in pairs.values())
            told.append(
                f"{who} acted on {percent(acted, 0)} of the requests, {' and '.join(wrong)} of all "
                f"wrongly, and was {most:,.0f} errors beyond the allowance at its worst."
            )
        return " ".join(told)

    @property
    def bound(self) -> str:
        """The bound for every stream, in words."""
        names = self.replay.tape.streams
        most = max(
            one.bound.since_start for name in names for one in self.replay.certificate(name).limits
        )
        terms = self.replay.terms
        what = "" if terms.audits == 1.0 else " (of the estimate)"
        what = what if terms.sure is None else f", with probability {terms.sure:g}"
        each = " in a series" if len(names) > 1 else ""
        return f"never more than {most:,.0f} errors too many{each}{what}"

    def _above(self) -> dict[str, tuple[Array, Array]]:
        """Errors beyond what was asked, request by request: of the gate and of today, by limit."""
        terms, judged, lines = self.replay.terms, ~self.skipped, {}
        for name, wrong, share in zip(terms.names, self.replay.losses.T, terms.shares, strict=True):
            gate, today = (
                np.cumsum(np.where(act, np.nan_to_num(wrong), 0.0)[judged] - share)
                for act in (self.replay.act, self.today)
            )
            lines[name] = gate, today
        return lines

    def _shares(self) -> tuple[Array, Array]:
        """The share acted on among the last requests, of the gate and of today."""
        width = next(iter(self.outcomes.values()))[0].window
        sums = [
            np.append(0.0, np.cumsum(act[~self.skipped], dtype=float))
            for act in (self.replay.act, self.today)
        ]
        gate, today = ((each[width:] - each[:-width]) / width for each in sums)
        return gate, today


_TOLD = (
    ("acted on", ".1%", "acted"),
    ("wrong, of all requests", ".2%", "per_request"),
    ("wrong, of the actions", ".1%", "per_action"),
    ("errors", ",.9g", "errors"),
    ("most errors too many", ",.1f", "most_above"),
    ("worst {window} in a row", ".1%", "worst_window"),
)
"""What is said of a gate beside what is done today: the words, the form, the field."""


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
    """Replays a gate on a log of requests: what it would have done.

    Parameters
    ----------
    source
        A .csv, .parquet or .jsonl file, or a data frame: a row for each request.
    score
        Column with the score; a higher score means more certain.
    wrong
        Column that says whether acting was wrong, or would have been: 0 or 1, yes or no, or a loss
        between 0 and 1; empty if not known. Several columns set several limits; a row in which one
        of them is empty has no label.
    errors
        The share of all requests that may be acted on wrongly, one for each column of `wrong`.
        Default: 0.05.
    audits
        The share of actions that are audited, drawn at random.
    max_pending
        How many actions may wait for their labels.
    sure
        With audits: bound the true errors with this probability.
    deferred
        Deferred requests have labels too, and the gate learns from them.
    threshold
        Today's rule: act if the score is at least this. Default: a threshold tuned on the first
        2,000 rows, a quarter of the file at most.
    acted
        Column that says whether a request was acted on today.
    series, time, known, delay
        As for `tape.Columns`: whose request it was, when it came and when its label was known.
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
    losses = {name: _losses(rows, name, "wrong") for name in names}
    tape, notes = tape_of(rows, {"score": scores}, losses[names[0]], columns)
    if len(names) > 1:
        tape = tape.with_extras({name: each[tape.places] for name, each in losses.items()})
    replayed = replay(terms, tape, deferred=deferred, seed=seed)
    today, before, skipped = _today(rows, replayed, threshold, acted)
    missing = int(np.isnan(replayed.losses[replayed.act, 0]).sum())
    if missing:
        notes.append(
            f"the log does not say of {missing:,} actions of the gate whether they were wrong: the "
            "gate counts them as wrong, the table leaves them out"
        )
    notes = [*time_notes, *notes]
    return Gated(rows.path.name, rows, replayed, today, before, skipped, tuple(notes))


def _losses(rows: Rows, name: str, role: str) -> Array:
    """A column of truths or losses as numbers from 0 to 1, NaN where it is empty."""
    try:
        losses = rows.numbers(name, role)
    except DataError:
        words, codes = rows.words(name, role)
        known = [_WORDS.get(word.strip().lower(), np.inf) for word in words]
        losses = np.asarray([*known, np.nan])[codes]
    bad = (losses < 0.0) | (losses > 1.0)
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            f"{option(role)} must hold 0 and 1, yes and no, or losses from 0 to 1: divide a cost "
            f"by the largest one; {name!r} holds {rows.table[name][row]} in {rows.place(row)}"
        )
    return losses


def _today(
    rows: Rows, replayed: Replay, threshold: float | None, acted: str | None
) -> tuple[Array, str, Array]:
    """The actions of today, what they are in words, and the rows that are not judged."""
    tape = replayed.tape
    scores, skipped = np.asarray(tape.prediction[0]), np.zeros(len(tape), bool)
    if acted is not None:
        done = _losses(rows, acted, "acted")[tape.places] == 1.0
        return done, f"what {acted!r} says was done", skipped
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
