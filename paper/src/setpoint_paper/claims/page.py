"""The one page of the reproduction, made from stored results and a template."""

import csv
import io
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from math import isnan, nan
from pathlib import Path
from statistics import fmean, median
from string import Template
from typing import Any, Self

from setpoint._files import put
from setpoint.errors import DataError
from setpoint_paper.claims import classes, depth, tabular
from setpoint_paper.claims.engine import Claim, Verdict
from setpoint_paper.claims.hidden import hidden
from setpoint_paper.classification.f1 import Held
from setpoint_paper.classification.methods import Row as LabelRow
from setpoint_paper.depth.runs import METHOD_NAMES, NAMES, Row, read_csv
from setpoint_paper.depth.tapes import GEOMETRIES
from setpoint_paper.pages import fixed, number, percent, table
from setpoint_paper.rows import parsed
from setpoint_paper.tabular.methods import NAMES as METHODS
from setpoint_paper.tabular.printed import COLUMNS as PRINTED_METHODS
from setpoint_paper.tabular.printed import printed_metric
from setpoint_paper.tabular.results import COLUMNS, Results, load

_WORDS = ("holds", "partly", "undecided", "not confirmed", "does not hold")


@dataclass(frozen=True, slots=True)
class Stored:
    """What the experiments left in a folder; a quick run where nothing else stands."""

    tabular: Mapping[str, Results]
    depth: Sequence[Row]
    classes: Sequence[LabelRow]
    held: Sequence[Held]
    quick: frozenset[str]

    @classmethod
    def of(cls, folder: Path) -> Self:
        """All there is."""
        quick = set()

        def place(stem: str, end: str) -> Path | None:
            for name in (stem, f"{stem}-quick"):
                if (folder / f"{name}{end}").is_file():
                    if name != stem:
                        quick.add(stem)
                    return folder / f"{name}{end}"
            return None

        found = {
            stem: load(folder, path.stem)
            for stem in ("tabular", "tabular-printed")
            if (path := place(stem, ".json")) is not None
        }
        rows = [
            row
            for stem in ("depth", "depth-kitti")
            if (path := place(stem, ".csv")) is not None
            for row in read_csv(path)
        ]
        lines, held = place("classification", ".csv"), place("f1", ".csv")
        return cls(
            found, rows,
            [] if lines is None else parsed(LabelRow, lines.read_text("utf-8")),
            [] if held is None else parsed(Held, held.read_text("utf-8")), frozenset(quick),
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Judged:
    """A claim and its verdict in every column."""

    claim: Claim
    verdicts: tuple[Verdict, ...]
    printed: Verdict = Verdict({})  # noqa: RUF009

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(verdict.word for verdict in self.verdicts)


def write_page(folder: Path, target: Path | None = None) -> Path:
    """Writes the page, by default as README.md into the folder of results, and verdicts.csv."""
    path = folder / "README.md" if target is None else target
    text, verdicts = page(folder, path.parent)
    put(folder / "verdicts.csv", verdicts)
    return put(path, text)


def page(folder: Path, place: Path | None = None) -> tuple[str, str]:
    """The page from whatever results a folder holds, for a page in a place; and all margins."""
    stored = Stored.of(folder)
    if not (stored.tabular or stored.depth or stored.classes):
        raise DataError(f"{folder} holds no results: run an experiment with --out {folder}")
    way = Path(os.path.relpath(folder, folder if place is None else place)).as_posix()
    tables, pixels = _tabular(stored), _depth(stored)
    costs = {
        {"tabular": "by the text", "tabular-printed": "by their code"}[stem]: results.about["cost"]
        for stem, results in stored.tabular.items()
        if results.about.get("cost")
    }
    others = classes.lines(
        costs, stored.classes, stored.held, judged="classification" not in stored.quick
    )
    paper = [each for each in tables if not each.claim.own]
    text = Template(files("setpoint_paper.claims").joinpath("page.md").read_text("utf-8"))
    filled = text.substitute(
        way=way,
        screen=_screen(stored, tables, pixels, others),
        seeds=_seeds(stored),
        tabular=_table(paper, [column.name for column in COLUMNS[:3]], print_too=True),
        weekdays=_weekdays(paper),
        places=", ".join(depth.places(stored.depth)) or "none ran",
        depth=_table(pixels, [column.name for column in depth.COLUMNS]),
        classes=table(
            ["id", "claim", "verdict", "numbers"],
            [[line.id, line.text, str(line.verdict), line.numbers] for line in others],
        ),
        own=_table(
            [each for each in tables if each.claim.own], [column.name for column in COLUMNS[:3]]
        ),
        kept=_kept(stored),
        signs=_by_signs(stored, [*tables, *pixels]),
        hidden=hidden(stored.tabular.get("tabular-printed", Results((), ())), stored.depth),
        figures=_figures(folder, way),
        margins="\n\n".join(_margins(tables, COLUMNS[:3], _places(stored))),
        medians=_medians(stored),
        depth_margins="\n\n".join(
            _margins(pixels, depth.COLUMNS, {name: name for name in depth.places(stored.depth)})
        ),
        depth_medians=_depth_medians(stored.depth),
    )
    return "\n".join(line.rstrip() for line in filled.splitlines()) + "\n", _csv(tables, pixels)


# Verdicts


def _tabular(stored: Stored, *, signs: bool = False) -> list[_Judged]:
    nothing, judged = Results((), ()), "tabular" not in stored.quick
    options: Any = {"judged": judged, "signs": signs}
    known = {column: stored.tabular.get(column.stem, nothing) for column in COLUMNS}
    text = stored.tabular.get("tabular", nothing)
    found = [
        _Judged(
            claim,
            tuple(tabular.verdict(claim, *each, **options) for each in known.items()),
            tabular.by_print(claim) if judged else Verdict({}),
        )
        for claim in tabular.CLAIMS
    ]
    found += [
        _Judged(claim, (tabular.study(claim, text, **options), *[Verdict({})] * 3))
        for claim in tabular.STUDY
    ]
    return sorted(found, key=lambda each: each.claim.id)


def _depth(stored: Stored, *, signs: bool = False) -> list[_Judged]:
    options = {"judged": "depth" not in stored.quick, "signs": signs}
    return [
        _Judged(
            claim,
            tuple(
                depth.verdict(claim, column, stored.depth, **options) for column in depth.COLUMNS
            ),
        )
        for claim in depth.CLAIMS
        if stored.depth
    ]


def _by_signs(stored: Stored, usual: Sequence[_Judged]) -> str:
    """Which words would be others by the sign test."""
    other = [*_tabular(stored, signs=True), *_depth(stored, signs=True)]
    told = [
        f"{one.claim.id}, {column}: {two} in place of {word}"
        for one, each in zip(usual, other, strict=True)
        for column, word, two in zip(
            [column.name for column in (depth.COLUMNS if one.claim in depth.CLAIMS else COLUMNS)],
            one.words, each.words, strict=True,
        )
        if word != two
    ]  # fmt: skip
    return "; ".join(told) or "none"


def _table(found: Iterable[_Judged], columns: Sequence[str], *, print_too: bool = False) -> str:
    count = len(columns)
    lines = [
        [
            each.claim.id, each.claim.text, *map(str, each.verdicts[:count]),
            *([str(each.printed)] if print_too else []),
        ]
        for each in found
    ]  # fmt: skip
    return table(["id", "claim", *columns, *(["by print"] if print_too else [])], lines)


def _margins(
    found: Sequence[_Judged], columns: Sequence[Any], places: Mapping[str, str]
) -> Iterator[str]:
    called = list(places.values())
    for number_of, column in enumerate(columns):
        lines = [
            [
                each.claim.id, f"{each.claim.rule}, {each.claim.unit}" if not number_of
                else each.claim.unit,
                *_cells(outcomes, places),
            ]
            for each in found
            if (outcomes := each.verdicts[number_of].places)
        ]  # fmt: skip
        if lines:
            head = ["id", "the margin" if not number_of else "unit", *called]
            yield f"{column.name[0].upper()}{column.name[1:]}:\n\n{table(head, lines)}"


def _cells(outcomes: Mapping[str, Any], places: Mapping[str, str]) -> list[str]:
    """The outcome of every place; one of the synthetic stream stands in the first cell."""
    if "synthetic" in outcomes:
        return [f"synthetic {outcomes['synthetic']}", *[""] * (len(places) - 1)]
    return [str(outcomes.get(place, "–")) for place in places]


def _csv(tables: Sequence[_Judged], pixels: Sequence[_Judged]) -> str:
    buffer = io.StringIO()
    rows = csv.writer(buffer, lineterminator="\n")
    rows.writerow(
        ["id", "column", "place", "state", "comparison", "median", "low", "high", "seeds", "ran"]
    )
    kinds: tuple[tuple[Sequence[_Judged], Sequence[Any]], ...] = (
        (tables, COLUMNS),
        (pixels, depth.COLUMNS),
    )
    for found, columns in kinds:
        for each in found:
            for verdict, column in zip(each.verdicts, columns, strict=True):
                for place, (state, rival, margin, ran) in verdict.places.items():
                    numbers = [f"{value:.6g}" for value in margin[:3]]
                    rows.writerow([each.claim.id, column.name, place, state, rival, *numbers,
                                   margin.seeds, ran])  # fmt: skip
    return buffer.getvalue()


# The first screen


def _screen(
    stored: Stored, tables: Sequence[_Judged], pixels: Sequence[_Judged], others: Sequence[Any]
) -> str:
    """What holds, what does not, what nobody could test; of a quick run that it is one."""
    if stored.quick:
        return f"**A quick run ({', '.join(sorted(stored.quick))}): nothing of it is judged.**"
    known = {each.claim.id: each.verdicts for each in tables}
    both = [each for each in tables if each.words[0] in _WORDS and not each.claim.own]
    held = [each for each in both if each.words[0] == "holds" and each.words[2] in ("holds", "–")]
    coded = [each for each in both if each.words[2] == "holds" and each.words[0] in _WORDS[2:]]
    failed = [
        each for each in both if each.words[0] == "does not hold" and each.words[2] != "holds"
    ]
    mixed = [each for each in both if each not in (*held, *coded, *failed)]
    changed = [
        f"{each.claim.short} ({each.claim.id}) {each.verdicts[1]} in place of {each.verdicts[0]}"
        for each in both
        if each.words[1] in _WORDS and each.words[1] != each.words[0]
    ]
    clips = {word: [each for each in pixels if each.words[0] == word] for word in _WORDS}
    open_ones = [each for each in pixels if each.words[0] == "untestable"]
    template = Template(files("setpoint_paper.claims").joinpath("screen.md").read_text("utf-8"))
    return template.substitute(
        count=len(both), held_count=len(held), held=_named(held), coded=_named(coded),
        apart=_apart(stored, coded),
        conclusion=_conclusion(known), full=known["own 6"][0], full_none=known["own 1"][0],
        failed=_named(failed), mixed=_named(mixed),
        changed="; ".join(changed) or "nothing else",
        depth_held=_named(clips["holds"]), depth_failed=_named(clips["does not hold"]),
        depth_mixed=_named([*clips["partly"], *clips["not confirmed"], *clips["undecided"]]),
        others="; ".join(f"{line.short} ({line.id}): {line.verdict}" for line in others)
        or "nothing ran",
        untested=f"{_named(open_ones)} (clips of 200 frames); " if open_ones else "",
        binding=_binding(stored.tabular.get("tabular")),
    ).strip()  # fmt: skip


def _apart(stored: Stored, coded: Sequence[_Judged]) -> str:
    """What holds by their code alone: by their formulas with γ tuned, by the text's with theirs."""
    results = stored.tabular.get(COLUMNS[2].stem, Results((), ()))
    tuned, test = (
        ", ".join(str(tabular.verdict(each.claim, column, results)) for each in coded)
        for column in (replace(COLUMNS[2], by="tuned"), replace(COLUMNS[1], by="test"))
    )
    return (
        f"Their formulas with γ tuned on earlier rows: the claims are, in this order, {tuned}. The "
        f"text's formulas with γ chosen by the rows that are judged: {test}"
    )


def _conclusion(known: Mapping[str, Sequence[Verdict]]) -> str:
    """Whether what section 4.1.2 says of length and of conditional coverage is confirmed."""
    narrower, better = (
        all(verdict.word == "holds" for verdict in known[each][:2]) for each in ("4.1.2b", "4.1.2c")
    )
    turned = known["4.1.2c"][1]
    reverse = f", and is reversed under the printed training ({turned})"
    return (
        f"So narrower intervals are {'' if narrower else 'not '}confirmed by the text under both "
        f"trainings; better conditional coverage is {'' if better else 'not '}confirmed"
        f"{reverse if turned.word == 'does not hold' else ''}."
    )


def _named(found: Iterable[_Judged]) -> str:
    return ", ".join(f"{each.claim.short} ({each.claim.id})" for each in found) or "none"


def _binding(results: Results | None) -> str:
    """Which methods choose a γ at the end of the grid on half of their seeds or more."""
    told = []
    for dataset in results.datasets if results is not None else ():
        for method in ("none", "exponential", "score", "error", "cal"):
            assert results is not None
            gammas = results.values(dataset, method, "gamma")
            ends = [min(row.gamma for row in results.rows if row.gamma > 0.0),
                    max(row.gamma for row in results.rows if row.gamma > 0.0)]  # fmt: skip
            for end in ends:
                count = gammas.count(end)
                if gammas and 2 * count >= len(gammas) and ends[0] < ends[1]:
                    told.append(
                        f"{METHODS[method]} on {dataset} ({count} of {len(gammas)} at {end:g})"
                    )
    return "; ".join(told) or "nowhere"


def _seeds(stored: Stored) -> str:
    told = [
        f"{stem}: {min(map(results.seeds, results.datasets))} seeds"
        for stem, results in stored.tabular.items()
        if results.datasets
    ]
    clips = {row.seed for row in stored.depth}
    return ", ".join([*told, *([f"depth: {len(clips)}"] if clips else [])]) or "No seeds"


def _weekdays(paper: Sequence[_Judged]) -> str:
    return (
        "; ".join(
            f"{each.claim.id} {each.verdicts[3]}" for each in paper if each.verdicts[3].places
        )
        or "nothing ran"
    )


def _kept(stored: Stored) -> str:
    told = []
    for stem, results in stored.tabular.items():
        ran = results.promised
        told.append(f"{stem} {sum(row.within for row in ran):,} of {len(ran):,}")
    bounded = [row for row in stored.depth if not isnan(row.window_image) and row.telling]
    if bounded:
        told.append(f"depth {sum(row.kept for row in bounded):,} of {len(bounded):,}")
    text = f"Runs within every bound that their theorem gives: {'; '.join(told)}."
    ranged = {each.seed for results in stored.tabular.values() for each in results.ranged}
    if ranged:
        text += f" C.4a and own 3 rest on {len(ranged)} seeds."
    return text


def _figures(folder: Path, way: str) -> str:
    """Links to what was drawn."""
    names = sorted(path.name for path in folder.glob("*.png"))
    return ", ".join(f"[{Path(name).stem}]({way}/{name})" for name in names) or "None yet."


# Numbers


def _places(stored: Stored) -> dict[str, str]:
    """The data sets and what they are called, a stand-in as such."""
    return {
        name: results.called(name)
        for results in stored.tabular.values()
        for name in results.datasets
    }


_SHOWN: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("coverage", "coverage %", lambda value: percent(value)),
    ("mc", "MC", lambda value: fixed(value, 4)),
    ("msl", "MSL", lambda value: fixed(value, 3)),
    ("scaled_length", "scaled length", lambda value: fixed(value, 3)),
    ("delta", "ΔCoverage %", lambda value: percent(value)),
    ("pinball", "pinball", lambda value: number(value)),
)


def _medians(stored: Stored) -> str:
    lines = []
    for column in (COLUMNS[0], COLUMNS[2]):
        results = stored.tabular.get(column.stem)
        for dataset in results.datasets if results is not None else ():
            assert results is not None
            for method in PRINTED_METHODS:
                name = f"{method}_coded" if column.coded else method
                gammas = results.values(dataset, name, "gamma", "coverage", column.by)
                if not gammas:
                    continue
                cells = [column.name, results.called(dataset, unit=True), METHODS[method],
                         f"{Counter(gammas).most_common(1)[0][0]:g}"]  # fmt: skip
                for metric, _, told in _SHOWN:
                    metric = "delta_modulo" if column.modulo and metric == "delta" else metric
                    values = results.values(dataset, name, metric, "coverage", column.by)
                    cell = told((fmean if metric == "pinball" else median)(values))
                    beside = printed_metric(dataset, method, metric) if column.coded else nan
                    cells.append(
                        cell if isnan(beside) or results.stands_in(dataset)
                        else f"{cell} ({told(beside)})"
                    )  # fmt: skip
                lines.append(cells)
    return table(["column", "data set", "method", "γ", *(name for _, name, _ in _SHOWN)], lines)


def _depth_medians(rows: Sequence[Row]) -> str:
    column, lines = depth.COLUMNS[0], []
    asked = [("single", heuristic) for heuristic in depth.PRINTED]
    asked += [(method, "registered") for method in depth.PRINTED_RISKS]
    for method, heuristic in asked:
        printed = depth.PRINTED_RISKS.get(method, depth.PRINTED[heuristic])
        star = "*" if heuristic != "constant" else ""
        beside = (
            f"({percent(printed.coverage)}, {printed.length:.2f}{star} m, "
            f"{percent(printed.centre_failure)})"
        )
        cells = [NAMES[heuristic], METHOD_NAMES[column.named(method)], beside]
        for place in depth.places(rows):
            found = [
                row
                for row in rows
                if (row.place, row.heuristic, row.method, row.geometry)
                == (place, column.named(heuristic), column.named(method), next(iter(GEOMETRIES)))
            ]
            cells.append(
                ", ".join((percent(median(row.coverage for row in found)),
                           f"{number(median(row.length for row in found), 3)} m",
                           percent(median(row.centre_failure for row in found))))
                if found else "–"
            )  # fmt: skip
        lines.append(cells)
    head = ["heuristic", "risks", "image cov. %, length, centre failure %", *depth.places(rows)]
    return table(head, lines)
