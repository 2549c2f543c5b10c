"""The one page of the reproduction: every claim of the paper in its order, with its verdict.

It is made from the results that the experiments stored, and says what each line rests on.
"""

import csv
import os
from collections.abc import Iterable, Iterator
from math import isnan
from pathlib import Path
from statistics import fmean
from textwrap import fill
from typing import NamedTuple

from setpoint._files import put
from setpoint.errors import DataError
from setpoint_paper.depth.claims import places, typical
from setpoint_paper.depth.report import NAMES, cases, compared, read_csv
from setpoint_paper.depth.runs import GEOMETRIES
from setpoint_paper.pages import Interval, Margin, Verdict, interval, table, weighed
from setpoint_paper.tabular import claims
from setpoint_paper.tabular.claims import CLAIMS, SETTINGS, decide, so_far, study_verdicts
from setpoint_paper.tabular.printed import COLUMNS, printed
from setpoint_paper.tabular.results import ENOUGH, Results, load

__all__ = ["ORDER", "summary", "write_summary"]

ORDER = (
    "abstract", "1.1", "3.3", "4.1.2", "4.1.3", "4.1.4", "4.2", "app. B", "C.3.1", "C.3.3", "C.4",
    "D.1.1", "D.1.2", "app. D.2", "app. D.3", "E.2", "G",
)  # fmt: skip
"""The sections of the paper that claim something which an experiment can show."""

_COST = {
    "tabular-printed": ("`setpoint-paper tabular --training printed --seeds 20`", "4 h"),
    "tabular": ("`setpoint-paper tabular`", "2 h"),
    "tabular-linear": ("`setpoint-paper tabular --model linear`", "2 min"),
    "depth": ("`setpoint-paper depth`", "1 h"),
    "classification": ("`setpoint-paper classification`", "5 min"),
}
"""What to type for a page, and about how long one processor works on it: two minutes a tape with a
batch of 256, twice that with 512, ten seconds to calibrate it, six minutes a seed of depth."""


class Line(NamedTuple):
    """One claim as the page has it: in a word each way, and in full."""

    where: str
    claim: str
    text: str
    code: str
    seeds: str
    page: str
    details: str


def write_summary(folder: Path, page: Path | None = None) -> Path:
    """Writes the page, by default as README.md into the folder of results."""
    target = folder / "README.md" if page is None else page
    return put(target, summary(folder, target.parent))


def summary(folder: Path, place: Path | None = None) -> str:
    """The page, from whatever results there are in a folder, for a page that lies in a place."""
    way = Path(os.path.relpath(folder, folder if place is None else place))

    def link(page: str) -> str:
        return f"[{page}]({(way / page).as_posix()}.md)"

    lines = [*_tabular(folder), *_depth(folder), *_classes(folder)]
    if not lines:
        raise DataError(f"{folder} holds no results: run an experiment with --out {folder}")
    lines.sort(key=lambda line: _place(line.where))
    cells = [
        [f"{number}", line.where, line.claim, line.text, line.code, line.seeds]
        for number, line in enumerate(lines, 1)
    ]
    pages = sorted({line.page for line in lines})
    parts = [
        "# What the paper claims, and what came out here",
        _wrapped(
            "Every claim of the paper that an experiment can show, in the paper's order. *By the "
            "text* is the protocol of the paper's text, with γ tuned on rows that are not judged, "
            "and with one repair: it scales by 5,000 rows, because the text's 8,000 hold rows that "
            "γ is tuned on. *By their code* is the protocol behind the printed numbers: the "
            "authors' older code, trained as they did, with γ chosen by the rows that are judged. "
            "Of depth, the first is the text's centre and the second that of their code, both with "
            "the paper's registration and its bare Max and Mean. A claim holds where it does on "
            "every data set, and partly where on some; it is undecided where seeds differ too much "
            "on every one. The numbers count data sets, and the last column seeds, by the text and "
            "by their code. [The numbers](#the-numbers) follow below, by number."
            + " Here the linear model stands for the network."
            * any(line.page == "tabular-linear" for line in lines)
        ),
        table(["no.", "section", "claim", "by the text", "by their code", "seeds"], cells),
        _wrapped(
            "A theorem is not listed: its bounds are checked on every run, and the pages say how "
            "many kept them (all)."
        ),
        "## What to type, and what it costs",
        table(
            ["page", "command", "one processor", "seeds so far"],
            [[link(page), *_COST[page], _seeds(folder, page)] for page in pages if page in _COST],
        ),
        _wrapped(
            "`setpoint-paper all` runs all of it and the tapes in which one step of the training "
            "is switched, two hours more: nine in all, less with `--jobs`. `setpoint-paper all "
            "--quick` runs something small of everything in one to two minutes, and "
            "`setpoint-paper summary` makes this page anew. `setpoint-paper tapes` makes every "
            "recording that the tabular pages use, in the order of their use, and goes on where it "
            "was stopped; the pages can be made from what there is at any time (`--ready`). Rows "
            "that stand in the folder of `--out` are kept, so seeds can be added on any machine."
        ),
        "## What the printed numbers hide",
        "\n".join(_hidden(folder)),
        "## The numbers",
        _wrapped(
            "A claim is decided by margins, positive where it holds: for each data set the mean "
            "over seeds and the 95 % confidence interval, paired by seed. Where there are several "
            "comparisons, all must lie above 0; one below 0 is against the claim, of k comparisons "
            "by an interval of 1 − 0.05/k. The worst comparison is shown, with its rival in "
            "brackets. A data set is undecided where neither is so; with one seed there is no "
            "interval and the sign decides. *γ by test* is γ chosen "
            "by the rows that are judged. Numbers are medians over seeds. The command of each page "
            "is in the table above."
        ),
        *(
            f"**{number}. {line.claim[0].upper()}{line.claim[1:]}** ({line.where}; "
            f"{link(line.page)})\n\n{line.details}"
            for number, line in enumerate(lines, 1)
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _seeds(folder: Path, page: str) -> str:
    """How many seeds a page rests on."""
    if page == "depth":
        return f"{len({row.seed for row in read_csv(folder / 'depth.csv')})} of 10"
    results = _found(folder, page)
    if results is None or not results.random:
        return "not random"
    return f"{_counted(results)} of {ENOUGH}"


def _counted(results: Results) -> str:
    """How many seeds there are of every data set."""
    counts = sorted({results.seeds(dataset) for dataset in results.datasets})
    return " to ".join(str(count) for count in dict.fromkeys((counts[0], counts[-1])))


def _wrapped(text: str, *, point: bool = False) -> str:
    return fill(
        text, 110, initial_indent="- " if point else "", subsequent_indent="  " if point else "",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip


def _place(where: str) -> int:
    first = where.partition(",")[0]
    for place, name in enumerate(ORDER):
        if first.startswith(name):
            return place
    return len(ORDER)


def _found(folder: Path, stem: str) -> Results | None:
    return load(folder, stem) if (folder / f"{stem}.json").is_file() else None


def _brief(verdict: Verdict | None) -> str:
    """A verdict in a word, with how many data sets are for it and how many against it."""
    if verdict is None or not verdict.count:
        return "–"
    against = f", {len(verdict.failed)} against" if 0 < len(verdict.failed) < verdict.count else ""
    return f"{verdict.word}, {len(verdict.held)} of {verdict.count}{against}"


def _tabular(folder: Path) -> Iterator[Line]:
    text_page, code_page = _stem(folder, coded=False), _stem(folder, coded=True)
    text, code = _found(folder, text_page), _found(folder, code_page)
    known = {
        setting: results
        for setting in SETTINGS
        if (results := code if setting.coded else text) is not None
    }
    settled = {setting: decide(results, setting) for setting, results in known.items()}
    for place, claim in enumerate(CLAIMS):
        verdicts = {
            setting: found[place] for setting, found in settled.items() if found[place].count
        }
        if not verdicts:
            continue
        text_word, code_word = (_brief(verdicts.get(each)) for each in (SETTINGS[0], SETTINGS[2]))
        counts = [
            _spans(found)
            for coded in (False, True)
            if (found := [each for setting, each in verdicts.items() if setting.coded is coded])
        ]
        page = code_page if next(iter(verdicts)).coded else text_page
        yield Line(
            claim.where, claim.text, text_word, code_word, ", ".join(counts), page,
            _compared(claim, verdicts, known),
        )  # fmt: skip
    for stem, results in ((code_page, code), (text_page, text)):
        spent = results.about.get("cost") if results is not None else None
        if spent:
            model, live = spent
            word = "holds" if live < 0.01 * model else "does not hold here"
            columns = ("–", word) if results is code else (word, "–")
            yield Line(
                "abstract", "essentially zero additional computational cost", *columns, "–", stem,
                _wrapped(
                    "The rule: a step of calibration takes less than 1 % of a step of the model. "
                    f"It takes {100.0 * live / model:.2f} % ({1000.0 * live:.1f} µs of "
                    f"{model:.1f} ms)."
                ),
            )  # fmt: skip
            break
    for verdict in study_verdicts(text.study) if text is not None else ():
        if verdict.count:
            yield Line(
                verdict.where, verdict.claim, verdict.word, "–", _spans([verdict]), text_page,
                _wrapped(f"The margin: {verdict.rule}. {verdict.margin('synthetic')}."),
            )  # fmt: skip


_MAIN = (SETTINGS[2], SETTINGS[0])
"""Each protocol as it is meant: the numbers beside the printed ones first."""


def _compared(
    claim: claims.Claim,
    verdicts: dict[claims.Setting, Verdict],
    known: dict[claims.Setting, Results],
) -> str:
    """A claim in full: its rule, a table of the data sets, and the verdicts in other settings."""
    shown = [setting for setting in _MAIN if setting in verdicts]
    head = ["data set", "printed"]
    lines: dict[str, list[str]] = {}
    for results in (known[setting] for setting in shown):
        for dataset in results.datasets:
            other = results.stands_in(dataset)
            told = "other data" if other else claims.printed_numbers(claim, dataset)
            lines.setdefault(dataset, [results.called(dataset), told])
    for setting in shown:
        head += [setting.short, f"margin, {claim.unit}"]
        results = known[setting]
        for dataset, cells in lines.items():
            ran = dataset in results.datasets
            cells.append(claims.numbers(results, claim, setting, dataset) if ran else "–")
            cells.append(verdicts[setting].margin(cells[0]))
    words = [f"The margin: {claim.rule}."]
    if shown:
        words.append(f"In the table: {claims.heading(claim)}.")
    for setting, verdict in verdicts.items():
        few = so_far(known[setting])
        words.append(f"*{setting.name}{f', {few}' if few else ''}*: {verdict}.")
    text = _wrapped(" ".join(words))
    return f"{text}\n\n{table(head, lines.values())}" if shown else text


def _stem(folder: Path, coded: bool) -> str:
    """The page that a claim is judged on: the linear model's where no network has run."""
    networks = ("tabular", "tabular-printed")
    ran = any((folder / f"{each}.json").is_file() for each in networks)
    return networks[coded] if ran else "tabular-linear"


def _depth(folder: Path) -> Iterator[Line]:
    if not (folder / "depth.csv").is_file():
        return
    rows = read_csv(folder / "depth.csv")
    for claim, found in cases(rows):
        briefs = {case.geometry: _brief(case.verdict) for case in found if case.way == found[0].way}
        told = [f"The margin: {claim.rule}. Printed: {claim.printed}."]
        told += [f"*{str(case)[0].upper()}{str(case)[1:]}*: {case.verdict}." for case in found]
        yield Line(
            claim.where, claim.text, briefs.get("text", briefs.get("", "–")),
            briefs.get("authors", "–"), _spans(case.verdict for case in found), "depth",
            f"{_wrapped(' '.join(told))}\n\n{compared(rows, claim, found)}",
        )  # fmt: skip


def _spans(verdicts: Iterable[Verdict]) -> str:
    """How many seeds some verdicts rest on, on the least and the best known data set."""
    counts = [margin.interval.count for each in verdicts for margin in each.margins.values()]
    return " to ".join(f"{count}" for count in dict.fromkeys((min(counts), max(counts))))


def _classes(folder: Path) -> Iterator[Line]:
    path = folder / "classification.csv"
    if not path.is_file():
        return
    with path.open(newline="", encoding="utf-8") as file:
        ran = [
            line
            for line in csv.DictReader(file)
            if (line["method"], line["pace"]) == ("controlled", "1") and line["unbalanced"]
        ]
    unbalanced = {
        (line["stream"], line["family"]): 100.0 * float(line["unbalanced"]) for line in ran
    }
    margins = {}
    for line in ran:
        if line["balance_gain"]:
            gain, low, high = (float(line[f"balance_{end}"]) for end in ("gain", "low", "high"))
            margins[line["stream"]] = [Margin("", Interval(gain, low, high, 1), high < 0.0)]
    if not margins:
        return
    claim = "threshold sets have unbalanced coverage, cumulative sets are better"
    rule = (
        "how much nearer to 90 % the coverage of a class is with cumulative sets, the mean over "
        "classes, in points"
    )
    verdict = weighed(claim, "G", rule, "", margins)
    lines = [
        [
            stream,
            ", ".join(f"{unbalanced[stream, name]:.1f}" for name in ("Threshold", "Cumulative")),
            verdict.margin(stream),
        ]
        for stream in margins
    ]
    told = (
        f"The margin: {rule}, of one run; its 95 % interval is that of blocks of rows drawn anew. "
        f"In the table: how far the coverage of a class is from 90 %, threshold and cumulative. "
        f"{verdict}."
    )
    yield Line(
        "G", claim, _brief(verdict), "–", "–", "classification",
        f"{_wrapped(told)}\n\n{table(['stream', 'here', 'margin, points'], lines)}",
    )  # fmt: skip


def _hidden(folder: Path) -> list[str]:
    """What is in the printed numbers that the text does not tell, and how much each matters."""
    points = [
        _wrapped(
            "**γ by the test part.** The notebook behind the figures chooses γ by the pinball loss "
            f"of the rows that are judged. {_gamma(folder)}",
            point=True,
        ),
        _wrapped(
            "**Weekdays by index modulo 7.** The printed ΔCoverage groups rows by their index "
            "modulo 7, whatever the sampling: it measures noise. "
            f"{_weekdays(folder)}",
            point=True,
        ),
        _wrapped(
            "**Raw zeros before the data.** Four rows of zeros are standardised like data: a year "
            "of 0 is thousands of standard deviations from its mean, and the network learns from "
            f"it while it is in the batch. {_switched(folder, 'padded by means')}",
            point=True,
        ),
        _wrapped(
            "**Batch and scaling.** The text has a batch of 512 rows, the code 256; and both scale "
            "by 8,000 rows, though γ is tuned on the last 3,000 of them. "
            f"{_switched(folder, 'batch 512')} {_switched(folder, 'scaled by 5,000 rows')}",
            point=True,
        ),
        _wrapped(
            "**Lengths of one pixel.** The printed lengths of depth intervals index pixel i of "
            "frame i: one pixel a frame, mostly of the top rows. Only that of the constant "
            "heuristic is a length. Lengths here are means over all judged pixels; the authors' "
            f"18.04, 21.92 and 39.06 m cannot be compared with anything. {_one_pixel(folder)}",
            point=True,
        ),
        _wrapped(
            "**The centre.** A window of 50 × 50 pixels is 11 % of the padded height and 27 % of "
            f"the height that is seen. `setpoint-paper depth` judges both. {_centres(folder)}",
            point=True,
        ),
    ]
    results = _found(folder, "tabular-printed")
    if results is not None:
        near = []
        for dataset in results.datasets:
            if results.stands_in(dataset):
                continue
            found = {
                method: results.values(dataset, f"{method}_coded", "pinball", by="test")
                for method in COLUMNS
            }
            away = [
                100.0 * (fmean(values) / printed(dataset, method).pinball - 1.0)
                for method, values in found.items()
                if values and not isnan(printed(dataset, method).pinball)
            ]
            if away:
                near.append(f"{dataset} {min(away):+.1f} to {max(away):+.1f} %")
        points.append(
            _wrapped(
                "**With all of it repeated,** the authors' code and protocol give pinball losses "
                f"beside the printed ones of: {'; '.join(near)} (five methods each). Wind is "
                "another zone here, because the paper's file needs an account; "
                "`setpoint-paper fetch wind` gets it from beside the authors' code.",
                point=True,
            )
        )
    return points


def _gamma(folder: Path) -> str:
    results = _found(folder, "tabular-printed")
    if results is None:
        return ""
    told = []
    for dataset in results.datasets:
        test = results.by_seed(dataset, "error_coded", "pinball", by="test")
        tuned = results.by_seed(dataset, "error_coded", "pinball", by="tuned")
        if test:
            change = interval([100.0 * (tuned[s] / test[s] - 1.0) for s in test])
            told.append(f"{results.called(dataset)} {change}")
    return (
        "With γ tuned on rows 5,001 to 8,000 instead, the loss of error adaptive changes by, in "
        f"%: {'; '.join(told)}."
    )


_STEPS = {
    "padded by means": "With rows of means there instead",
    "batch 512": "With a batch of 512",
    "scaled by 5,000 rows": "Scaled by 5,000 rows",
}


def _switched(folder: Path, step: str) -> str:
    """How far one step of training, switched alone, moves the loss of none."""
    results = _found(folder, "tabular-printed")
    if results is None:
        return ""
    told, counts = [], set()
    for dataset in results.datasets:
        usual, other = (
            results.by_seed(dataset, f"none_coded{form}", "pinball", by="test")
            for form in ("", f"; printed, {step}")
        )
        both = [100.0 * (other[seed] / usual[seed] - 1.0) for seed in other if seed in usual]
        if both:
            counts.add(len(both))
            told.append(f"{results.called(dataset)} {interval(both)}")
    if not told:
        return ""
    seeds = ", of one seed each" if counts == {1} else ""
    return f"{_STEPS[step]} the loss of none changes by, in %{seeds}: {'; '.join(told)}."


def _centres(folder: Path) -> str:
    """Failures of the centre in both geometries, one risk and registered residuals."""
    path, told = folder / "depth.csv", []
    rows = read_csv(path) if path.is_file() else []
    for place in places(rows):
        found = [
            100.0 * typical(rows, place, "registered", "centre_failure", geometry=each)
            for each in GEOMETRIES
        ]
        if not any(map(isnan, found)):
            told.append(f"{place[0]} ({place[1]}) {found[0]:.1f} and {found[1]:.1f}")
    return (
        "With registered residuals and one risk the centre fails in so many % of the frames, the "
        f"text's and the authors': {'; '.join(told)}." * bool(told)
    )


def _weekdays(folder: Path) -> str:
    results = _found(folder, "tabular-printed")
    if results is None:
        return ""
    told = []
    for dataset in results.datasets:
        row = [
            100.0 * results.median(dataset, "none_coded", metric, by="test")
            for metric in ("delta", "delta_modulo", "floor")
        ]
        if not any(map(isnan, row)):
            told.append(f"{results.called(dataset)} {row[0]:.2f}, {row[1]:.2f}, {row[2]:.2f}")
    return (
        "By weekday, by index modulo 7, and what independent misses would give, in points: "
        f"{'; '.join(told)}."
    )


def _one_pixel(folder: Path) -> str:
    """By how much a length of one pixel a frame differs from that of the image, on our clips."""
    path = folder / "depth.csv"
    rows = [
        row
        for row in (read_csv(path) if path.is_file() else ())
        if (row.method, row.geometry) == ("single", "text") and not isnan(row.pixel_length)
    ]
    told = []
    for heuristic in dict.fromkeys(row.heuristic for row in rows if row.heuristic != "constant"):
        shares = [row.pixel_length / row.length for row in rows if row.heuristic == heuristic]
        told.append(f"{NAMES[heuristic]} {min(shares):.2f} to {max(shares):.2f}")
    if not told:
        return ""
    return (
        "On the clips here the length of that one pixel is so many times the mean length: "
        f"{'; '.join(told)}."
    )
