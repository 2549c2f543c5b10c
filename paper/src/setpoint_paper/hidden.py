"""What the printed numbers hide: steps of the authors' code that the text does not tell.

Each is told with how much it matters here, in the results that the experiments stored.
"""

from collections.abc import Sequence
from math import isnan
from statistics import fmean

from setpoint_paper.depth.claims import places, typical
from setpoint_paper.depth.runs import GEOMETRIES, NAMES, Row
from setpoint_paper.pages import interval, wrapped
from setpoint_paper.tabular.methods import NAMES as METHOD_NAMES
from setpoint_paper.tabular.printed import COLUMNS, printed
from setpoint_paper.tabular.results import ENOUGH, Results

__all__ = ["hidden"]


def hidden(results: Results, rows: Sequence[Row]) -> str:
    """A list of what is hidden, from results of the printed protocol and rows of depth."""
    points = [
        "**γ by the test part.** The notebook behind the figures chooses γ by the pinball loss of "
        "the rows that are judged."
        + _change(
            results,
            "error_coded",
            "error_coded",
            "With γ tuned on rows 5,001 to 8,000 instead",
            by="tuned",
        ),
        "**Other formulas than the text's.** The printed error adaptive takes the distance to the "
        "nearer end of the interval without its sign and the sign of l − r, and searches β_loss up "
        "to 2; the printed cal clips and interpolates, so that no set of it is full."
        + _change(results, "error_coded", "error", "With the text's, γ by test too,")
        + _change(results, "cal_coded", "cal", "With the text's"),
        "**Weekdays by index modulo 7.** The printed ΔCoverage groups rows by their index modulo "
        "7, whatever the sampling: under control of coverage it measures noise."
        f"{_weekdays(results)}",
        "**Raw zeros before the data.** Four rows of zeros are standardised like data: a year of 0 "
        "is thousands of standard deviations from its mean, and the network learns from it while "
        "it is in the batch." + _switched(results, "padded by means", "With rows of means instead"),
        "**Batch and scaling.** The text has a batch of 512 rows, the code 256; and both scale by "
        "8,000 rows, though γ is tuned on the last 3,000 of them."
        + _switched(results, "batch 512", "With a batch of 512")
        + _switched(results, "scaled by 5,000 rows", "Scaled by 5,000 rows"),
        "**Lengths of one pixel.** The printed lengths of depth intervals index pixel i of frame "
        "i: one pixel a frame, mostly of the top rows. Only that of the constant heuristic is a "
        "length. Lengths here are means over all judged pixels; the authors' 18.04, 21.92 and "
        f"39.06 m cannot be compared with anything.{_one_pixel(rows)}",
        "**The centre.** A window of 50 × 50 pixels is 11 % of the padded height and 27 % of the "
        f"height that is seen. `setpoint-paper depth` judges both.{_centres(rows)}",
    ]
    points += _repeated(results)
    return "\n".join(wrapped(point, point=True) for point in points)


def _change(results: Results, usual: str, other: str, told: str, *, by: str = "test") -> str:
    """How far the loss of a method moves from γ by test to something else, paired by seed."""
    found, counts = [], set()
    for dataset in results.datasets:
        both = results.changes(dataset, usual, other, by=("test", by))
        if both:
            counts.add(len(both))
            found.append(f"{results.called(dataset)} {interval(both)}")
    if not found:
        return ""
    few, named = min(counts), METHOD_NAMES[usual.removesuffix("_coded")]
    seeds = f", of {few} seed{'s' * (few > 1)} each" if few < ENOUGH else ""
    return f" {told} the loss of {named} changes by, in %{seeds}: {'; '.join(found)}."


def _switched(results: Results, step: str, told: str) -> str:
    """How far one step of training, switched alone, moves the loss of none."""
    return _change(results, "none_coded", f"none_coded; printed, {step}", told)


def _weekdays(results: Results) -> str:
    told = []
    for dataset in results.datasets:
        row = [
            100.0 * results.median(dataset, "none_coded", metric, by="test")
            for metric in ("delta", "delta_modulo", "floor")
        ]
        if not any(map(isnan, row)):
            told.append(f"{results.called(dataset)} {row[0]:.2f}, {row[1]:.2f}, {row[2]:.2f}")
    return (
        " By weekday, by index modulo 7, and what independent misses would give, of none with γ by "
        "test, in points: "
        f"{'; '.join(told)}." * bool(told)
    )


def _centres(rows: Sequence[Row]) -> str:
    """Failures of the centre in both geometries, one risk and registered residuals."""
    told = []
    for place in places(rows):
        found = [
            100.0 * typical(rows, place, "registered_paper", "centre_failure", geometry=each)
            for each in GEOMETRIES
        ]
        if not any(map(isnan, found)):
            told.append(f"{place[0]} ({place[1]}) {found[0]:.1f} and {found[1]:.1f}")
    return (
        " With residuals registered in the paper's way and one risk the centre fails in so many % "
        f"of the frames, the text's and the authors': {'; '.join(told)}." * bool(told)
    )


def _one_pixel(rows: Sequence[Row]) -> str:
    """By how much a length of one pixel a frame differs from that of the image."""
    shares: dict[str, list[float]] = {}
    for row in rows:
        judged = (row.method, row.geometry) == ("single", "text") and row.heuristic != "constant"
        if judged and not isnan(row.pixel_length):
            shares.setdefault(row.heuristic, []).append(row.pixel_length / row.length)
    told = [f"{NAMES[each]} {min(found):.2f} to {max(found):.2f}" for each, found in shares.items()]
    return (
        " Here the length of that one pixel is so many times the mean length: "
        f"{'; '.join(told)}." * bool(told)
    )


def _repeated(results: Results) -> list[str]:
    """How near to print the authors' code comes here."""
    near = []
    for dataset in results.datasets:
        away = [
            100.0 * (fmean(values) / printed(dataset, method).pinball - 1.0)
            for method in COLUMNS
            if (values := results.values(dataset, f"{method}_coded", "pinball", by="printed"))
        ]
        if away and not results.stands_in(dataset):
            near.append(f"{dataset} {min(away):+.1f} to {max(away):+.1f} %".replace("-", "−"))
    if not near:
        return []
    return [
        "**With all of it repeated,** with the printed γ too, the authors' code and protocol give "
        f"pinball losses beside the printed ones of: {'; '.join(near)} (five methods each). Wind "
        "is another zone here, because the paper's file could not be fetched where these pages "
        "were made; `setpoint-paper fetch wind` gets it from beside the authors' code."
    ]
