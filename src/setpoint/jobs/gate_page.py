"""The page of a gate over a log: what it would have done, for people who decide about it."""

from collections.abc import Sequence
from html import escape
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._html import preformatted
from setpoint.report.page import as_json, asset

if TYPE_CHECKING:
    from setpoint.jobs.gate import Gated

Array = np.ndarray[Any, Any]
_WIDE, _HIGH, _LEFT, _POINTS = 900.0, 220.0, 60.0, 600


def page(gated: "Gated") -> str:
    """One HTML file with everything in it; it asks no network for anything and has no script."""
    from setpoint.jobs.gate import called

    rows = "".join(
        f"<tr><td class=title>{escape(what)}</td><td class=number>{gate}</td>"
        f"<td class=number>{today}</td></tr>"
        for what, gate, today in gated.table()
    )
    notes = "".join(f"<p class=note>{escape(note)}.</p>" for note in gated.notes)
    heads = "".join(
        f"<div class=wide><dt>Wrong{escape(called(gated, name))}</dt><dd class=wide>"
        f"{gate.per_request:.2%} of all requests<br>{gate.per_action:.1%} of its actions</dd></div>"
        for name, (gate, _) in gated.outcomes.items()
    )
    figures = "".join(
        _figure(lines, f"Errors above what was asked{called(gated, name)}, request by request")
        for name, lines in _above(gated).items()
    )
    gate = next(iter(gated.outcomes.values()))[0]
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{escape(gated.source)}: a gate</title>
<style>
{asset("page.css")}
svg {{ width: 100%; height: auto; display: block; }}
svg text {{ font: 12px var(--sans); fill: var(--muted); }}
.gate {{ stroke: var(--line); }} .today {{ stroke: var(--bad); }}
.gate, .today {{ fill: none; stroke-width: 2; vector-effect: non-scaling-stroke; }}
.rule {{ stroke: var(--rule); }}
</style></head>
<body><header>
<h1>A gate on {escape(gated.source)}</h1>
<p class="about">{len(gated.replay.tape):,} requests; asked: {escape(gated.asked)}</p>
<p class="lede">{escape(lede(gated))}</p>
<dl class="headline">
<div><dt>Acted on by the gate</dt><dd>{gate.acted:.1%}</dd></div>
{heads}
<div class="wide"><dt>Guaranteed, whatever the data</dt>
<dd class="wide">{escape(bound(gated))}</dd></div>
</dl></header>
<main>
<section><h2>The gate beside today</h2>
<p class="note" id="beside">Today: {escape(gated.before)}.</p>
<div class="scroll"><table aria-labelledby="beside">
<tr><th scope="col"></th><th scope="col" class=number>The gate</th>
<th scope="col" class=number>Today</th></tr>{rows}</table></div></section>
<section><h2>Errors above what was asked</h2>
{figures}
<p class="note">Above 0 there were more errors than asked so far. The gate is the
<span style="color:var(--line)">blue line</span>, today the
<span style="color:var(--bad)">red one</span>.</p></section>
<section><h2>Share acted on</h2>
{_figure(_shares(gated), "The share of requests acted on, over time")}
<p class="note">Of the last {gate.window:,} requests. Where it falls, the score has become worth
less, or labels are awaited.</p></section>
<section><h2>The certificate</h2>{_certificate(gated)}{notes}</section>
</main>
<footer><p>Made by setpoint {escape(version("setpoint"))}. Everything on this page is in this file.
</p></footer>
<script type="application/json" id="metrics">{as_json(gated.metrics())}</script>
</body></html>
"""


def lede(gated: "Gated") -> str:
    """What came out, in two sentences."""
    from setpoint.jobs.gate import called

    pairs = gated.outcomes.items()
    gate, today = next(iter(gated.outcomes.values()))
    wrong = " and ".join(f"{g.per_request:.1%}{called(gated, name)}" for name, (g, _) in pairs)
    first = (
        f"The gate would have acted on {gate.acted:.0%} of the requests, and "
        f"{wrong} of all requests would have been acted on wrongly. "
    )
    for name, (one, other) in pairs:
        if other.most_above > max(2.0 * one.most_above, 10.0):
            return first + (
                f"Today's way acted on {today.acted:.0%}, and was at one time "
                f"{other.most_above:,.0f} errors above what is asked{called(gated, name)}; the "
                f"gate never more than {one.most_above:,.0f}."
            )
    more = "more often" if gate.acted > today.acted else "less often"
    wrong = " and ".join(f"{t.per_request:.1%}{called(gated, name)}" for name, (_, t) in pairs)
    return first + (
        f"Today's way acted on {today.acted:.0%} with {wrong} wrong. The gate acts "
        f"{more}, and what it does is guaranteed."
    )


def bound(gated: "Gated") -> str:
    """The bound for every stream, in words."""
    names = gated.replay.tape.streams
    most = max(
        one.bound.since_start
        for name in names
        for one in gated.replay.certificate(name if len(names) > 1 else None).limits
    )
    what = "" if gated.replay.terms.audits == 1.0 else " (of the estimate)"
    each = " in a series" if len(names) > 1 else ""
    return f"never more than {most:,.0f} errors too many{each}{what}"


def _certificate(gated: "Gated") -> str:
    names = gated.replay.tape.streams
    if len(names) == 1:
        return preformatted(gated.replay.certificate())
    return f"<p>{len(names):,} series, each with a budget of its own.</p>"


# Figures: lines in SVG.


def _above(gated: "Gated") -> dict[str, list[Array]]:
    terms, judged, lines = gated.replay.terms, ~gated.skipped, {}
    for name, wrong, share in zip(terms.names, gated.replay.losses.T, terms.shares, strict=True):
        known = np.nan_to_num(wrong)
        lines[name] = [
            np.cumsum(np.where(act, known, 0.0)[judged] - share)
            for act in (gated.replay.act, gated.today)
        ]
    return lines


def _shares(gated: "Gated") -> list[Array]:
    width, lines = next(iter(gated.outcomes.values()))[0].window, []
    for act in (gated.replay.act, gated.today):
        sums = np.concatenate(([0.0], np.cumsum(act[~gated.skipped])))
        lines.append((sums[width:] - sums[:-width]) / width)
    return lines


def _figure(lines: Sequence[Array], label: str) -> str:
    """Two lines over the rows, with their scale: the gate and today."""
    low = min(0.0, *(float(line.min(initial=0.0)) for line in lines))
    high = max(1e-9, *(float(line.max(initial=0.0)) for line in lines))
    span = high - low

    def y(value: float) -> float:
        return 10.0 + (_HIGH - 20.0) * (high - value) / span

    paths = []
    for line, name in zip(lines, ("gate", "today"), strict=True):
        at = np.unique(np.linspace(0, max(len(line) - 1, 0), _POINTS).astype(int))
        x = _LEFT + (_WIDE - _LEFT) * at / max(len(line) - 1, 1)
        points = " ".join(
            f"{a:.1f},{y(b):.1f}" for a, b in zip(x, line[at] if len(line) else [], strict=False)
        )
        paths.append(f'<polyline class="{name}" points="{points}"/>')
    marks = "".join(
        f'<line class="rule" x1="{_LEFT}" x2="{_WIDE}" y1="{y(v):.1f}" y2="{y(v):.1f}"/>'
        f'<text x="{_LEFT - 8}" y="{y(v) + 4:.1f}" text-anchor="end">{v:,.3g}</text>'
        for v in (0.0, high, low)
        if v == 0.0 or abs(v) > 0.1 * span
    )
    return (
        f'<figure><svg viewBox="0 0 {_WIDE:.0f} {_HIGH:.0f}" role="img" aria-label="{label}">'
        f"{marks}{''.join(paths)}</svg></figure>"
    )
