"""The report of the depth experiment: tables and sentences that follow rules."""

from collections.abc import Iterator, Sequence
from math import isfinite, isnan
from statistics import median
from textwrap import fill

from setpoint_paper.depth.claims import PRINTED, PRINTED_RISKS, middle, places, runs_of, typical
from setpoint_paper.depth.maps import HEURISTICS
from setpoint_paper.depth.runs import (
    CENTRE,
    GEOMETRIES,
    GEOMETRY_NAMES,
    IMAGE,
    METHOD_NAMES,
    METHODS,
    NAMES,
    OURS,
    WINDOW,
    Row,
)
from setpoint_paper.depth.verdicts import cases, compared, length_told
from setpoint_paper.pages import percent, table, word_rule

__all__ = ["blown_up", "brief", "report", "telling"]

_ENOUGH = 10
_FAR = 10.0
"""How many times the median of its seeds a length is called far beyond."""


def report(
    rows: Sequence[Row], command: str, notes: dict[str, str], quick: bool, parts_told: str = ""
) -> str:
    """The page without its figures; `parts_told` says what the parts are of KITTI's own frames."""
    parts = ["# Online depth estimation, with one and two risks", f"    {command}"]
    if quick:
        parts.append("A quick run: the first frames of each clip and one seed. It shows the way.")
    parts += [
        *(() if parts_told else (_ran(rows),)),
        f"{parts_told or _CLIPS}\n{_TUNED}",
        _CENTRES,
        _TERMS,
        *(() if parts_told else (_SETTLED,)),
        "\n".join(f"- *{name}*: {note}" for name, note in notes.items()),
        "## What is guaranteed",
        _guarantees(rows),
        "## The paper's claims",
        _claims(rows, full=bool(parts_told)),
        "## Beside the printed numbers",
        _beside(rows),
    ]
    for place in places(rows):
        clip, model = place
        parts += [
            f"## {clip}, {_model(model)}",
            f"Mean absolute error of the estimate on the test part: {_error(rows, place):.2f} m. "
            f"Medians over {_seeds(rows, place)}; of lengths the least and the most as well.",
            _heuristics(rows, place),
            "Two risks, and what the certificate says of them:",
            _risks(rows, place),
        ]
    return "\n\n".join(parts) + "\n"


def brief(rows: Sequence[Row]) -> str:
    """What fits on a screen."""
    return "\n\n".join([_guarantees(rows), _claims(rows), _beside(rows)])


def _ran(rows: Sequence[Row]) -> str:
    """What is behind the page, and what is not."""
    found = places(rows)
    clips = ", ".join(f"{clip} with {_model(model)}" for clip, model in found)
    count = len({clip for clip, _ in found})
    told = (
        "Nothing on this page ran on the paper's 10,000 frames of KITTI or with its network, "
        f"LeReS. {count} clip{'' if count == 1 else 's'} ran: {clips}. The online network is a "
        "small convolutional one of this project, whose stages are told below. A seed is that of "
        "its first weights and of the 200 known pixels."
    )
    if any(model == "stored" for _, model in found):
        told += (
            " Stored predictions are those of another network, struct2depth, made once: there a "
            "seed redraws the 200 known pixels and nothing else."
        )
    return (
        f"{fill(told, 100)}\n\nWhoever has KITTI and LeReS settles the claims with:\n\n"
        "    setpoint-paper depth --kitti FOLDER --model MODULE:FUNCTION --weights FILE"
    )


_CLIPS = """\
The first 40 % of each clip are the warm-up, the next 20 % the validation part, the last 40 % the
test part. The network is fitted on the first three quarters of the warm-up and then predicts and
learns frame by frame; stored predictions are taken as they come. 200 known pixels of each frame
give scale and shift, by least squares, to the estimate and to each side of the heuristic; they are
judged like all others."""

_TUNED = """\
θ starts where the risks would have been held on the end of the warm-up; calibration runs from the
first frame of the validation part, with exponential stretching. γ is tuned on the validation part
alone, by the paper's rule and grids: the narrowest sets among those with image coverage above
79.9 % and, with two risks, centre failure below 11 %, and first of all the fewest full ones; where
no γ has both, the tolerances of 0.1 and 1 points are doubled until one has. The safeguard shows the
full set where λ would make intervals four times as wide as the range of depth in the warm-up. Every
number below is of the test part, except those of certificates, which speak of the whole run."""

_CENTRES = """\
The centre is the middlemost window, in the text one of 50 × 50 pixels of a square of 448 × 448.
*The text's centre* is that share of each side, 50/448. *The authors' centre* is 50/448 of the width
and 50/188 of the height: in their code the window lies in the 188 of 448 rows that are not
padding. These are two windows in the same picture, judged by the code of this project: neither is a
run of the authors' code."""

_TERMS = """\
Lengths are means over *all* judged pixels of a frame, then over frames, in metres. A frame is
*saturated* when the safeguard shows the full set; such frames have no finite length and are counted
apart. *Never covered* is the share of pixels whose uncertainty is 0 on the side of the truth. The
centre *fails* when no more than 60 % of its judged pixels are covered. Anti-windup keeps each θ
within 1 of the largest. The *bare* Max and Mean are the paper's, with neither anti-windup nor a
safeguard; the bare Mean holds nothing, and nothing ends the growth of its sets. *The paper's way*
is TV-L1 with flows of their own for estimates and truths, and bare Max and Mean; *our way* is one
DIS flow of the images, and Max and Mean under anti-windup. *Self-adjusting* is `sp.label_sets` with
the image risk, which has no γ and is not in the paper. *Pixel Δ* is the mean distance of the
coverage of a pixel over time from 80 %. A dash stands for a run not made yet, and for what a method
does not have."""

_SETTLED = """\
Settled only after first results were seen: that θ starts from the warm-up (at λ = 1 before), that
tolerances are doubled where no γ keeps them, where the safeguard begins (at 100 times that width
before, which let sets of hundreds of metres count as finite), medians over seeds instead of means,
that claims are judged in the paper's way first, that lengths are compared by the logarithm of their
ratio (by the ratio before), and that length and centre of the residual network are judged apart.
The defaults of the heuristics (floor, line, which flow) were chosen by looking at the kitti clip
with its stored predictions, its test part included."""


def _model(model: str) -> str:
    return {"stored": "stored predictions", "network": "the online network"}.get(model, model)


def _seeds(rows: Sequence[Row], place: tuple[str, str]) -> str:
    count = len({row.seed for row in rows if (row.clip, row.model) == place})
    return f"{count} seed{'' if count == 1 else 's'}"


def _error(rows: Sequence[Row], place: tuple[str, str]) -> float:
    """That of the estimate, which is the same under all heuristics."""
    return median(row.error for row in rows if (row.clip, row.model) == place)


def _range(found: Sequence[Row]) -> str:
    lengths = [row.length for row in found]
    return f"{length_told(min(lengths))} to {length_told(max(lengths))}"


def _gammas(found: Sequence[Row]) -> str:
    """The step sizes of each seed, those that are the same told once."""
    if all(isnan(row.gamma) for row in found):
        return "–"
    told = dict.fromkeys(
        f"{row.gamma:g}" + ("" if isnan(row.gamma_centre) else f" & {row.gamma_centre:g}")
        for row in found
    )
    return "; ".join(told)


def _verdicts(found: Sequence[Row], name: str) -> str:
    """The verdicts of the seeds, each once, without the reasons of a guarantee that is none."""
    words = dict.fromkeys(
        str(getattr(row, f"verdict_{name}")).partition(",")[0].partition(";")[0] for row in found
    )
    return "; ".join(words)


def _both_verdicts(found: Sequence[Row]) -> str:
    """Of the image, then of the centre if that is a risk and has another."""
    image, centre = _verdicts(found, "image"), _verdicts(found, "centre")
    return image if centre in ("", image) else f"{image}; centre: {centre}"


def _run(rows: Sequence[Row], place: tuple[str, str]) -> Iterator[tuple[str, str, str, list[Row]]]:
    for heuristic in HEURISTICS:
        for method in METHODS:
            for geometry in GEOMETRIES:
                found = runs_of(rows, place, heuristic, method, geometry)
                if found:
                    yield heuristic, method, geometry, found


def _heuristics(rows: Sequence[Row], place: tuple[str, str]) -> str:
    head = ["one risk", "centre", "image cov. %", "worst window", "length m", "least to most",
            "centre cov. %", "centre failure %", "at 50 %", "at 70 %", "centre length m",
            "elsewhere m", "pixel Δ %", "saturated %", "never covered %", "γ",
            "bound of missed %", "certificate"]  # fmt: skip
    lines = [
        [
            NAMES[heuristic] + (", self-adjusting (ours)" if method == OURS else ""),
            GEOMETRY_NAMES[geometry],
            percent(middle(found, "coverage")),
            percent(1.0 - max(row.worst_image for row in found), 1),
            length_told(middle(found, "length")),
            _range(found),
            percent(middle(found, "centre_coverage")),
            percent(middle(found, "centre_failure"), 1),
            percent(middle(found, "poor_50"), 1),
            percent(middle(found, "poor_70"), 1),
            length_told(middle(found, "centre_length")),
            length_told(middle(found, "other_length")),
            percent(middle(found, "pixel_delta"), 1),
            _saturated(found),
            percent(middle(found, "infinite"), 2),
            _gammas(found),
            _limit(found, "image"),
            _verdicts(found, "image"),
        ]
        for heuristic, method, geometry, found in _run(rows, place)
        if method in ("single", OURS)
    ]
    return table(head, lines)


def _risks(rows: Sequence[Row], place: tuple[str, str]) -> str:
    head = ["heuristic", "risks", "centre", "image cov. %", "centre failure %", "length m",
            "saturated %", "γ image & centre", "tuned", "image: mean, bound", "centre: mean, bound",
            "worst Σ(l − r), most", "certificate"]  # fmt: skip
    lines = []
    for heuristic, method, geometry, found in _run(rows, place):
        lines.append(
            [
                NAMES[heuristic],
                METHOD_NAMES[method],
                GEOMETRY_NAMES[geometry],
                percent(middle(found, "coverage")),
                percent(middle(found, "centre_failure"), 1),
                length_told(middle(found, "length")),
                _saturated(found),
                _gammas(found),
                _how_tuned(found),
                f"{percent(max(row.mean_image for row in found), 1)}, {_limit(found, 'image')}",
                f"{percent(max(row.mean_centre for row in found), 1)}, {_limit(found, 'centre')}",
                f"{_window(found, 'image')}; {_window(found, 'centre')}",
                _both_verdicts(found),
            ]
        )
    told = (
        "Means and bounds of the losses in %, of the seed with the worst mean or bound; a bound "
        "says nothing if it is above 100 %, as with the smallest γ. Σ(l − r) is that of the worst "
        "window of any length, and its bound, for the image, then the centre."
    )
    return f"{table(head, lines)}\n\n{told}"


def _saturated(found: Sequence[Row]) -> str:
    """The share of saturated frames, in all seeds."""
    least, most = (percent(end(row.saturated for row in found), 1) for end in (min, max))
    return least if least == most else f"{least} to {most}"


def _how_tuned(found: Sequence[Row]) -> str:
    if all(isnan(row.gamma) for row in found):
        return "–"
    doubled = sum(not row.held for row in found)
    return f"tolerance doubled ({doubled} of {len(found)})" if doubled else "by the rule"


def _limit(found: Sequence[Row], name: str) -> str:
    """The most that the certificate lets the mean be, in the seed where that is most."""
    bounds = [float(getattr(row, f"bound_{name}")) for row in found]
    if any(map(isnan, bounds)):
        return "no bound"
    most = (IMAGE if name == "image" else CENTRE) + max(bounds)
    return f"≤ {percent(most, 1)}" if most < 1.0 else "says nothing"


def _window(found: Sequence[Row], name: str) -> str:
    worst = max(found, key=lambda row: float(getattr(row, f"excess_{name}")))
    most = float(getattr(worst, f"window_{name}"))
    limit = "none" if isnan(most) else f"{most:.1f}"
    return f"{getattr(worst, f'excess_{name}'):.1f} of {limit}"


def _guarantees(rows: Sequence[Row]) -> str:
    """How many runs have a certificate, and how many kept it on every window."""
    lines = []
    for method in METHODS:
        found = [row for row in rows if row.method == method]
        bounded = [row for row in found if not isnan(row.window_image)]
        if not found or method == "centre":
            continue
        if bounded:
            sides = {
                "single": "in both directions",
                OURS: "from above",
            }.get(method, "from above, both risks")
            told = [row for row in bounded if telling(row)]
            lines.append(
                f"- {METHOD_NAMES[method]}: of {len(told)} of {len(bounded)} runs the "
                "certificate bounds every mean below 100 %; "
                f"{sum(row.kept for row in told)} of these are within it, and within its bound "
                f"on every window of every length, {sides}."
                + _silence(bounded, told)
                + f" Image coverage of the test part: {_spread(bounded, 'coverage')} %; centre "
                f"failure: {_spread(bounded, 'centre_failure')} %; in the worst {WINDOW} frames "
                f"{percent(1.0 - max(row.worst_image for row in bounded), 1)} % and "
                f"{percent(max(row.worst_centre for row in bounded), 1)} %."
            )
        else:
            lines.append(
                f"- {METHOD_NAMES[method]}: none of {len(found)} runs has a guarantee. Image "
                f"coverage: {_spread(found, 'coverage')} %; centre failure: "
                f"{_spread(found, 'centre_failure')} %. {blown_up(rows, method)}".rstrip()
            )
    return "\n".join(lines)


def blown_up(rows: Sequence[Row], method: str) -> str:
    """How many runs of a method have far longer sets than their other seeds, and the longest."""
    found = [row for row in rows if row.method == method and isfinite(row.length)]
    groups: dict[tuple[str, ...], list[float]] = {}
    for row in found:
        key = (row.clip, row.model, row.heuristic, row.geometry)
        groups.setdefault(key, []).append(row.length)
    far = [
        length
        for lengths in groups.values()
        for length in lengths
        if length > _FAR * median(lengths)
    ]
    if not far:
        return ""
    return (
        f"In {len(far)} of {len(found)} runs ({METHOD_NAMES[method]}) the mean length is more "
        f"than ten times the median of the seeds, in the worst one {max(far):,.0f} m."
    )


def _silence(bounded: Sequence[Row], told: Sequence[Row]) -> str:
    """What is to be said of the runs whose certificate says nothing yet."""
    silent = [row for row in bounded if row not in told]
    if not silent:
        return ""
    return (
        f" Of the other {len(silent)} it says nothing yet: the γ that was chosen is too small for "
        f"so few frames; {sum(row.kept for row in silent)} of them are within it all the same."
    )


def telling(row: Row) -> bool:
    """Whether every bound of a run's mean losses is below 1."""
    centre = 0.0 if isnan(row.bound_centre) else CENTRE + row.bound_centre
    return max(IMAGE + row.bound_image, centre) < 1.0


def _spread(found: Sequence[Row], metric: str) -> str:
    values = [float(getattr(row, metric)) for row in found]
    known = [value for value in values if not isnan(value)]
    if not known:
        return "–"
    return f"{percent(min(known), 1)} to {percent(max(known), 1)}"


def _claims(rows: Sequence[Row], full: bool = False) -> str:
    """Each claim with its verdicts; in full with its numbers too, which else the one page has."""
    lines = []
    for claim, found in cases(rows):
        lines.append(
            f"- *{claim.text}* ({claim.where}). The margin: {claim.rule}. Printed: {claim.printed}."
        )
        lines += [f"    - {case}: **{case.verdict}**." for case in found]
        if full:
            lines += ["", compared(rows, claim, found), ""]
    if not lines:
        return "Not judged: this needs more heuristics."
    seeds = min(len({row.seed for row in rows if (row.clip, row.model) == p}) for p in places(rows))
    note = f" So far, with {seeds} seed{'' if seeds == 1 else 's'}." if seeds < _ENOUGH else ""
    told = (
        "A rule has margins, positive where the claim holds, for each clip, model and seed. A "
        "claim holds on a clip where the 95 % interval of every mean margin lies above 0, and "
        "fails where one lies below, of k comparisons an interval of 1 − 0.05/k. "
        f"{word_rule('clip')} Lengths are compared by 100 ln of their ratio, *log %*, which "
        "is near % while it is small, and in which one seed with sets far too long decides less. A "
        "printed length with * is that of one pixel a frame."
    )
    if not full:
        told += " The numbers and the margins stand on the page of all claims."
    return "\n".join([f"{told}{note}", "", *lines])


def _beside(rows: Sequence[Row]) -> str:
    """The printed numbers and ours, one column a clip and model."""
    found = places(rows)
    names = [f"{clip} ({model})" for clip, model in found]
    ran = [each for each in GEOMETRIES if any(row.geometry == each for row in rows)]
    metrics = [("image coverage %", "coverage", "text"), ("length m", "length", "text")]
    metrics += [
        (f"centre {told} %{f', {each}' if len(ran) > 1 else ''}", f"centre_{told}", each)
        for told in ("coverage", "failure")
        for each in ran
    ]
    lines = []
    for heuristic, printed in PRINTED.items():
        for told, metric, geometry in metrics:
            digits = length_told if metric == "length" else percent
            star = "*" if metric == "length" and heuristic != "constant" else ""
            lines.append(
                [
                    f"{NAMES[heuristic]}, one risk",
                    told,
                    digits(getattr(printed, metric)) + star,
                    *(
                        digits(typical(rows, place, heuristic, metric, "single", geometry))
                        for place in found
                    ),
                ]
            )
    for method, printed in PRINTED_RISKS.items():
        for told, metric, geometry in metrics:
            if metric == "centre_coverage":
                continue
            digits = length_told if metric == "length" else percent
            star = "*" if metric == "length" else ""
            centres = ran if metric in ("coverage", "length") else [geometry]
            lines += [
                [
                    f"{NAMES['registered_paper']}, {METHOD_NAMES[method]}",
                    f"{told}, {centre}" if len(centres) > 1 else told,
                    digits(getattr(printed, metric)) + star,
                    *(
                        digits(typical(rows, place, "registered_paper", metric, method, centre))
                        for place in found
                    ),
                ]
                for centre in centres
            ]
    told = (
        "Printed: means over 10 seeds of the authors' older notebook, LeReS on 10,000 frames of "
        "KITTI with filled LiDAR depth. Clips have other frames, another network and another "
        "truth, so only the order of things can be compared. A length with * is that of one pixel "
        "a frame, by a mistake in their code; that of the constant is the same for every pixel."
    )
    return f"{table(['what', 'measure', 'printed', *names], lines)}\n\n{told}"
