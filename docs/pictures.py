"""The pictures of the site, made by the library: `python docs/pictures.py` writes them.

The home page shows one stream with the intervals of a model that stands still and with those of
setpoint, the architecture its three machines, the page on features what was learnt, the comparison
a few rules out of the tables of `python -m comparison`. The build of the site calls `REPORTS` for
the live pages of the gallery.
"""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import setpoint as sp

DOCS = Path(__file__).resolve().parent
IMAGES = DOCS / "images"
RESULTS = DOCS.parent / "comparison" / "results" / "comparison.md"
ROWS, SHOWN = 600, 240
COLOURS = {
    "light": {"ink": "#1c2b2e", "grey": "#7b8a8d", "band": "#1d7580", "miss": "#c0421c"},
    "dark": {"ink": "#e4ecee", "grey": "#93a3a6", "band": "#59b8c4", "miss": "#ff8f63"},
}
WIDTH, HEIGHT, LEFT, TOP, BOTTOM = 960, 380, 12, 80, 44


def wandering(rows: int = ROWS, seed: int = 4) -> tuple[sp.Tape, np.ndarray]:
    """A forecast of a level that wanders off, as a tape, and the labels."""
    world = np.random.default_rng(seed)
    time = np.arange(rows)
    noise = np.where((time > rows - 130) & (time < rows - 60), 2.4, 1.0)
    level = 40.0 + 5.0 * np.sin(time / 21.0) + np.where(time > rows - 170, 7.0, 0.0)
    y = level + noise * world.normal(size=rows)
    said = 40.0 + 5.0 * np.sin(time / 21.0)
    return sp.Tape.from_arrays({"lower": said - 1.6, "upper": said + 1.6}, y), y


def home(theme: str) -> str:
    """The picture of the home page as SVG, complete from the first frame."""
    ink, grey, band, miss = COLOURS[theme].values()
    tape, y = wandering()
    trace = sp.replay(sp.intervals(coverage=0.9), tape)
    last = slice(ROWS - SHOWN, ROWS)
    given = np.column_stack(tape.prediction)[last]
    lower, upper, labels = trace.lower[last], trace.upper[last], y[last]
    low, high = min(lower.min(), labels.min()) - 0.5, max(upper.max(), labels.max()) + 0.5
    across = LEFT + (WIDTH - 2 * LEFT) * np.arange(SHOWN) / (SHOWN - 1)

    def down(values: Any) -> Any:
        return TOP + (HEIGHT - TOP - BOTTOM) * (high - np.asarray(values)) / (high - low)

    def path(values: Any, turned: bool = False) -> str:
        points = zip(across, down(values), strict=True)
        listed = [f"{x:.1f},{each:.1f}" for x, each in points]
        return " ".join(listed[::-1] if turned else listed)

    inside = (lower <= labels) & (labels <= upper)
    before = float(np.mean((given[:, 0] <= labels) & (labels <= given[:, 1])))
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{each:.1f}" r="{1.7 if hit else 3.2}" '
        f'fill="{ink if hit else miss}"/>'
        for x, each, hit in zip(across, down(labels), inside, strict=True)
    )
    ours = f"with setpoint: {100 * inside.mean():.0f} % of the actual values inside; asked 90 %"
    theirs = f"- - the model alone: {100 * before:.0f} %"
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">
<title>Intervals that follow the data: a jump, a volatile stretch, and coverage comes back</title>
<style>
text {{ font: 17px system-ui, sans-serif; }}
@media (max-width: 600px) {{ text {{ font-size: 28px; }} }}
</style>
<text x="{LEFT}" y="28" fill="{band}">{ours}</text>
<text x="{LEFT}" y="64" fill="{grey}">{theirs}</text>
<text x="{WIDTH - LEFT}" y="64" fill="{miss}" text-anchor="end">● a miss</text>
<g>
<polygon points="{path(upper)} {path(lower, True)}" fill="{band}" fill-opacity="0.3"/>
<polyline points="{path(upper)}" fill="none" stroke="{band}"/>
<polyline points="{path(lower)}" fill="none" stroke="{band}"/>
<g fill="none" stroke="{grey}" stroke-dasharray="5 4" stroke-width="1.3">
<polyline points="{path(given[:, 0])}"/><polyline points="{path(given[:, 1])}"/></g>
{dots}</g>
<text x="{LEFT}" y="{HEIGHT - 12}" fill="{grey}">the last {SHOWN} of {ROWS} rows, in time →</text>
</svg>
"""


RULES = {
    "default": "setpoint, the default",
    "PID, two-sided": "PID and scorecaster, two-sided",
    "DtACI, two-sided": "DtACI, two-sided",
    "fixed γ, two-sided, hindsight": "fixed γ, two-sided, in hindsight",
    "ECI, two-sided": "ECI, two-sided",
    "DtACI": "DtACI",
    "fixed γ, hindsight": "fixed γ, in hindsight",
    "SF-OGD": "SF-OGD",
    "ACI, γ = 0.005": "ACI, γ = 0.005",
    "last 300 scores": "last 300 scores",
    "split conformal": "split conformal",
}
"""The rules that the comparison page leads with, and what it calls them."""


def compared() -> dict[str, tuple[float, ...]]:
    """Coverage, score, width, worst window and deviation of these rules, from the results."""
    text = RESULTS.read_text("utf-8").partition("### Validation, labels at once")[2]
    lines = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()[2:40]]
    names, found = lines[0], {}
    for cells in lines[2:]:
        if cells and cells[0] in RULES:
            row = dict(zip(names, cells, strict=True))
            wanted = ("coverage %", "Winkler / best", "width / best", "worst window")
            found[cells[0]] = tuple(float(row[name]) for name in (*wanted, "mean deviation"))
    return {name: found[name] for name in RULES}


def table() -> str:
    """The table that the comparison page opens with."""
    lines = [
        "| rule | coverage | mean deviation | Winkler score | width | worst 250 rows |",
        "|---|--:|--:|--:|--:|--:|",
    ]
    for name, (coverage, winkler, width, worst, off) in compared().items():
        lines.append(f"| {RULES[name]} | {coverage} % | {off} | {winkler} | {width} | {worst} % |")
    return "\n".join(lines)


def rules(theme: str) -> str:
    """The picture of the comparison page as SVG: a dot for each rule, in two panels."""
    ink, grey, band, miss = COLOURS[theme].values()
    found, tall, parts = compared(), 34, []
    panels = (
        (300, "Winkler score", 1, 0.8, 2.4, (1.0, 1.5, 2.0)),
        (640, "coverage of the worst 250 rows, %", 3, 40.0, 92.0, (50.0, 70.0, 90.0)),
    )
    bottom = TOP + tall * len(found)
    deep = bottom + 56
    for left, title, which, low, high, ticks in panels:
        parts.append(f'<text x="{left}" y="28" fill="{ink}">{title}</text>')
        parts.append(
            f'<text x="{left}" y="52" fill="{grey}">{"←" if which == 1 else "→"} better</text>'
        )
        for tick in ticks:
            x = left + 290 * (tick - low) / (high - low)
            parts.append(
                f'<path d="M{x:.1f} {TOP - 12}V{bottom - 12}" stroke="{grey}" '
                f'stroke-opacity="0.45"/><text x="{x:.1f}" y="{bottom + 10}" fill="{grey}" '
                f'text-anchor="middle">{tick:g}</text>'
            )
        for place, numbers in enumerate(found.values()):
            x, y = left + 290 * (numbers[which] - low) / (high - low), TOP + tall * place
            off = abs(numbers[0] - 90.0) > 1.0
            colour = band if place == 0 else miss if off else ink
            size = 8 if place == 0 else 5.5
            parts.append(
                f'<path d="M{x - 5:.1f} {y - 5}l10 10m0 -10l-10 10" stroke="{colour}" '
                'stroke-width="2.4"/>'
                if off
                else f'<circle cx="{x:.1f}" cy="{y}" r="{size}" fill="{colour}"/>'
            )
    for place, name in enumerate(found):
        bold = ' font-weight="600"' if place == 0 else ""
        parts.append(
            f'<text x="{LEFT}" y="{TOP + tall * place + 6}" fill="{band if place == 0 else ink}"'
            f"{bold}>{RULES[name]}</text>"
        )
    parts.append(
        f'<text x="{LEFT}" y="{bottom + 42}" fill="{miss}">× more than a point from 90 %</text>'
    )
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {deep}" role="img">
<title>The default has the best Winkler score and the best worst window of these rules</title>
<style>text {{ font: 17px system-ui, sans-serif; }}</style>
{"".join(parts)}
</svg>
"""


def machines(theme: str) -> str:
    """The three machines of the architecture as SVG."""
    ink, grey, band, _ = COLOURS[theme].values()

    def box(x: int, y: int, wide: int, name: str, *lines: str) -> str:
        said = "".join(
            f'<text x="{x + wide // 2}" y="{y + 58 + 24 * place}" fill="{ink}">{line}</text>'
            for place, line in enumerate(lines)
        )
        return (
            f'<rect x="{x}" y="{y}" width="{wide}" height="104" rx="10" fill="{band}" '
            f'fill-opacity="0.14" stroke="{band}"/>'
            f'<text x="{x + wide // 2}" y="{y + 31}" fill="{band}" class="name">{name}</text>{said}'
        )

    def arrow(path: str, dashes: str = "") -> str:
        line = f' stroke-dasharray="{dashes}"' if dashes else ""
        return f'<path d="{path}" fill="none" stroke="{grey}"{line} marker-end="url(#tip)"/>'

    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} 380" role="img">
<title>A forecast is corrected, then controlled; the label goes back to both; watch looks on</title>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="9" markerHeight="9"
orient="auto"><path d="M0 0 8 4 0 8z" fill="{grey}"/></marker></defs>
<style>
text {{ font: 17px system-ui, sans-serif; text-anchor: middle; }}
.name {{ font-size: 22px; font-weight: 600; }}
</style>
{box(160, 20, 240, "correct", "what is wrong with it?", "keeps a memory, a table")}
{box(500, 20, 240, "control", "how wide must it be?", "keeps θ, φ, counts")}
<text x="62" y="77" fill="{ink}">forecast</text>{arrow("M100 72H158")}
<text x="450" y="60" fill="{grey}">base</text>{arrow("M402 72H498")}
<text x="872" y="77" fill="{ink}">set, shown</text>{arrow("M742 72H816")}
<text x="866" y="183" fill="{ink}">label</text>
<path d="M840 178H280" fill="none" stroke="{grey}"/>
{arrow("M620 178V128")}{arrow("M280 178V128")}
<rect x="330" y="256" width="240" height="104" rx="10" fill="none" stroke="{band}"
stroke-dasharray="6 5"/>
<text x="450" y="287" fill="{band}" class="name">watch</text>
<text x="450" y="314" fill="{ink}">certificate, alarms,</text>
<text x="450" y="338" fill="{ink}">summary, metrics</text>
{arrow("M866 200V308H572", "3 5")}
<text x="740" y="334" fill="{grey}">looks on, never feeds back</text>
</svg>
"""


def learnt(theme: str) -> str:
    """What the default learns of a forecast, as SVG: bars of how large errors are, by feature."""
    ink, grey, band, miss = COLOURS[theme].values()
    world, hours = np.random.default_rng(0), np.arange(6_000) % 24
    wet, noise = world.random(6_000) < 0.3, world.normal(size=6_000)
    y = 10.0 + (hours >= 12) + noise * np.where(wet, 2.0, 1.0) * np.where(hours // 6 == 1, 1.5, 0.7)
    ends = {"lower": np.full(6_000, 9.0), "upper": np.full(6_000, 11.0)}
    sky = np.where(wet, "rain", "sun")
    tape = sp.Tape.from_arrays(ends, y, extras={"hour": hours.astype(float), "sky": sky})
    controller = sp.intervals(features=["hour", "sky"], categories={"sky": ["sun", "rain"]})
    state = sp.replay(controller, tape).state
    known: Any = controller.correction
    _, hour, weather = known.effects(state)
    parts, floor, unit = [], 300, 130.0
    places = [(70 + 36 * k, 26, f"{abs(value):.0f}") for k, value in enumerate(hour.values)]
    places += [(760 + 90 * k, 60, name) for k, name in enumerate(weather.values)]
    for (x, wide, name), size in zip(places, (*hour.size, *weather.size), strict=True):
        high = unit * size
        colour = miss if size > 1.1 else band
        parts.append(
            f'<rect x="{x}" y="{floor - high:.1f}" width="{wide}" height="{high:.1f}" '
            f'fill="{colour}" fill-opacity="0.7"/><text x="{x + wide // 2}" y="{floor + 24}" '
            f'fill="{ink}">{name}</text>'
        )
    for x, name in ((340, "hour"), (835, "sky")):
        parts.append(f'<text x="{x}" y="{floor + 54}" fill="{grey}">{name}</text>')
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} 370" role="img">
<title>How large errors are at each hour and in each weather, against the usual</title>
<style>text {{ font: 17px system-ui, sans-serif; text-anchor: middle; }}</style>
<text x="{WIDTH // 2}" y="34" fill="{ink}">size of errors against the usual, as it was learnt</text>
<path d="M50 {floor - unit:.1f}H{WIDTH - 30}" stroke="{grey}" stroke-dasharray="5 5"/>
{"".join(parts)}
</svg>
"""


def drifting(path: Path) -> None:
    """The report of a stream that jumps and grows rough."""
    from setpoint import report

    tape, y = wandering(4_000)
    hours = np.datetime64("2026-01-01T00:00") + np.arange(4_000) * np.timedelta64(1, "h")
    ends = dict(zip(("lower", "upper"), tape.prediction, strict=True))
    tape = sp.Tape.from_arrays(ends, y, time=hours)
    report.write(sp.replay(sp.intervals(coverage=0.9), tape), path, title="A drifting level")


def forty(path: Path) -> None:
    """The report of forty series in one tape."""
    from setpoint import report

    world = np.random.default_rng(7)
    shops, days = 40, 300
    size = np.repeat(world.lognormal(3.0, 0.8, shops), days)
    y = size * (1.0 + 0.15 * world.standard_t(4, size=shops * days))
    ids = np.repeat([f"shop {each:02d}" for each in range(1, shops + 1)], days)
    tape = sp.Tape.from_arrays({"prediction": size}, y, series=ids)
    report.write(sp.replay(sp.intervals(coverage=0.9), tape), path, title="Forty shops")


def classes(path: Path) -> None:
    """The report of label sets of a classifier that grows worse."""
    from setpoint import report

    world = np.random.default_rng(11)
    rows, kinds = 3_000, 5
    y = world.integers(0, kinds, rows)
    sure = np.where(np.arange(rows) < 1_500, 3.0, 1.4)
    scores = world.normal(size=(rows, kinds)) + sure[:, None] * np.eye(kinds)[y]
    chance = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    tape = sp.Tape.from_arrays({f"p{each}": chance[:, each] for each in range(kinds)}, y)
    report.write(sp.replay(sp.label_sets(coverage=0.9), tape), path, title="A classifier that ages")


REPORTS: dict[str, Callable[[Path], None]] = {
    "drifting": drifting, "forty": forty, "classes": classes,
}  # fmt: skip
"""The live pages of the gallery."""


def main() -> None:
    """Writes the pictures, for light and for dark, and the table of the comparison page."""
    for theme in COLOURS:
        (IMAGES / f"home-{theme}.svg").write_text(home(theme), "utf-8")
        (IMAGES / f"machines-{theme}.svg").write_text(machines(theme), "utf-8")
        (IMAGES / f"learnt-{theme}.svg").write_text(learnt(theme), "utf-8")
        (IMAGES / f"rules-{theme}.svg").write_text(rules(theme), "utf-8")
    page = DOCS / "comparison.md"
    made = re.sub(r"\| rule \|(?:.*\n)+?(?=\n)", table() + "\n", page.read_text("utf-8"))
    page.write_text(made, "utf-8")


if __name__ == "__main__":
    main()
