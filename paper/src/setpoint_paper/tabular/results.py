"""Results on disk, and the choice of a step size among them."""

import gzip
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from math import log, nan
from pathlib import Path
from statistics import fmean, median
from typing import Any

from setpoint._check import choice
from setpoint.errors import DataError
from setpoint_paper.rows import parsed, written
from setpoint_paper.tabular.measures import Row
from setpoint_paper.tabular.methods import METHODS, STRETCHES
from setpoint_paper.tabular.printed import printed_metric
from setpoint_paper.tabular.ranges import Range
from setpoint_paper.tabular.training import SWITCHED, TRAININGS

_SIX = (*STRETCHES, "score_exponential", "error_exponential")
SCALED_BY = {"coverage": (*_SIX, "cal"), "mc": _SIX}
"""The methods whose mean length a scaled length is a share of, by the risk that is controlled: all
that the authors ran. They ran calibration with cal for coverage alone."""

SELECTIONS = ("tuned", "test", "printed", "smallest", "largest")
"""How γ is chosen: on the rows to be tuned on, for each seed; as behind the printed figures, by the
pinball loss of the very rows that are judged, for all seeds together; the printed one that came of
this, where there is one for these data and this training, else as before; the smallest tried, or
the largest."""

_FILES = ("{}.csv.gz", "{}-gamma.csv", "{}-ranges.csv", "{}.json")


@dataclass(frozen=True, slots=True)
class Column:
    """A way to judge: whose training and methods, how γ is chosen, and what a day is.

    `stem` begins the names of the files of results. Their code tells days by the index of a row
    modulo 7.
    """

    name: str
    stem: str
    by: str
    coded: bool = False
    modulo: bool = False

    def method(self, name: str) -> str:
        """The method that stands for a name of the paper."""
        return f"{name}_coded" if self.coded else name

    def metric(self, name: str) -> str:
        """The metric that stands for a name of the paper."""
        return "delta_modulo" if self.modulo and name == "delta" else name

    def ask(self, results: "Results", dataset: str, seed: int) -> Callable[..., float]:
        """What the margins of one data set and seed are asked of; KeyError where nothing ran."""

        def asked(method: str, metric: str, risk: str = "coverage", by: str = "") -> float:
            if method == "ranges":
                return results.ranges[dataset, seed, metric]
            name = method.rstrip("!") if method.endswith("!") else self.method(method)
            return results.by_seed(dataset, name, self.metric(metric), risk, by or self.by)[seed]

        return asked


COLUMNS = (
    Column("by the text", "tabular", "tuned"),
    Column("text's methods, printed training", "tabular-printed", "tuned"),
    Column("by their code", "tabular-printed", "printed", coded=True, modulo=True),
    Column("by their code, by weekday", "tabular-printed", "printed", coded=True),
)
"""The last one concerns claims about ΔCoverage alone."""


@dataclass(frozen=True, slots=True, eq=False)
class Results:
    """Everything the tables and figures are made of.

    Parameters
    ----------
    rows
        Every method with every step size on every tape.
    study
        The study of γ on the synthetic stream.
    about
        What ran: the model, the rows that scale, the names of the tapes, milliseconds a step, and
        by data set units, notes and what a printed γ is to be multiplied by to be in our unit.
    ranged
        What the four β and the printed minus are worth.
    """

    rows: tuple[Row, ...]
    study: tuple[Row, ...]
    about: dict[str, Any] = field(default_factory=dict)
    ranged: tuple[Range, ...] = ()
    _places: dict[tuple[str, str, str], list[Row]] = field(init=False, repr=False)
    _pairs: dict[tuple[str, ...], dict[int, float]] = field(default_factory=dict, repr=False)
    _picks: dict[tuple[str, ...], list[Row]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        places: dict[tuple[str, str, str], list[Row]] = {}
        for row in self.rows:
            places.setdefault((row.dataset, row.method, row.risk), []).append(row)
        object.__setattr__(self, "_places", places)

    @property
    def ranges(self) -> dict[tuple[str, int, str], float]:
        """By data set, seed and what varies: 100 ln of the most over the least pinball loss."""
        return {
            (each.dataset, each.seed, each.what): 100.0 * log(each.most / each.least)
            for each in self.ranged
        }

    @property
    def datasets(self) -> tuple[str, ...]:
        """The data sets, in their order."""
        return tuple(dict.fromkeys(dataset for dataset, _, _ in self._places))

    def seeds(self, dataset: str) -> int:
        """How many tapes of a data set there are."""
        return len({row.seed for row in self.rows if row.dataset == dataset and not row.switched})

    def of_tape(self, dataset: str, seed: int, training: str) -> list[Row]:
        """The rows of one tape; those of a training with one step switched say so."""
        return [
            row
            for row in (*self.rows, *self.study)
            if (row.dataset, row.seed) == (dataset, seed)
            and row.switched == (training if training in SWITCHED else "")
        ]

    def called(self, dataset: str, *, unit: bool = False) -> str:
        """A data set by its name, with its unit if asked, and as a stand-in if it is one."""
        name = f"{dataset} (stand-in)" if self.stands_in(dataset) else dataset
        told = self.about.get("units", {}).get(dataset, "") if unit else ""
        return f"{name}, {told}" if told else name

    def stands_in(self, dataset: str) -> bool:
        """Whether the data are others than the paper's."""
        return "stand-in" in self.about.get("notes", {}).get(dataset, "")

    def gamma_factor(self, dataset: str) -> float:
        """What a printed γ is to be multiplied by to be in the unit of ours; NaN if not known."""
        if self.stands_in(dataset):
            return nan
        return float(self.about.get("gamma_factor", {}).get(dataset, nan))

    @property
    def as_printed(self) -> bool:
        """Whether the model is trained as behind the printed numbers."""
        return bool(self.about.get("scale_rows") == TRAININGS["printed"].scale_rows)

    @property
    def promised(self) -> list[Row]:
        """The runs to which a theorem applies: all but the authors' code."""
        return [row for row in self.rows if row.method in METHODS] + list(self.study)

    def chosen(self, dataset: str, method: str, risk: str, by: str = "tuned") -> list[Row]:
        """One row for each seed, at the γ that a selection takes."""
        asked = (dataset, method, risk, choice(by, "by", SELECTIONS))
        if asked not in self._picks:
            self._picks[asked] = self._picked(*asked)
        return self._picks[asked]

    def _picked(self, dataset: str, method: str, risk: str, by: str) -> list[Row]:
        found = self._places.get((dataset, method, risk), [])
        if not found:
            return []
        if by == "tuned":
            seeds = dict.fromkeys(row.seed for row in found)
            return [
                min((row for row in found if row.seed == seed), key=lambda row: row.tuning)
                for seed in seeds
            ]
        groups: dict[float, list[Row]] = {}
        for row in found:
            groups.setdefault(row.gamma, []).append(row)
        if by in ("smallest", "largest"):
            return groups[min(groups) if by == "smallest" else max(groups)]
        if by == "printed" and self.as_printed and not self.stands_in(dataset):
            theirs = printed_metric(dataset, method, "gamma", risk)
            if theirs in groups:
                return groups[theirs]
        return min(groups.values(), key=lambda group: fmean(row.pinball for row in group))

    def values(
        self, dataset: str, method: str, metric: str, risk: str = "coverage", by: str = "tuned"
    ) -> list[float]:
        """A metric of each seed; `scaled_length` is the length over a mean one.

        That mean is one number for all methods on a data set under a risk and a selection: over
        the seeds and the methods of `SCALED_BY`, those of the authors' code for one of these. For
        `shared_length` it is that of ours for all.
        """
        rows = self.chosen(dataset, method, risk, by)
        if metric not in ("scaled_length", "shared_length"):
            return [float(getattr(row, metric)) for row in rows]
        own = metric == "scaled_length" and method.endswith("_coded")
        form = "_coded" if own else ""
        usual = fmean(
            row.length
            for each in SCALED_BY[risk]
            for row in self.chosen(dataset, each + form, risk, by)
        )
        return [row.length / usual for row in rows]

    def by_seed(
        self, dataset: str, method: str, metric: str, risk: str = "coverage", by: str = "tuned"
    ) -> dict[int, float]:
        """A metric of each seed, by the seed: what pairs are made of."""
        asked = (dataset, method, metric, risk, by)
        if asked not in self._pairs:
            seeds = (row.seed for row in self.chosen(dataset, method, risk, by))
            self._pairs[asked] = dict(zip(seeds, self.values(*asked), strict=True))
        return self._pairs[asked]

    def changes(
        self, dataset: str, usual: str, other: str, *, by: tuple[str, str] = ("test", "test")
    ) -> list[float]:
        """How the pinball loss of a method differs from a usual one, in %, paired by seed.

        `by` has the selection of γ for each.
        """
        before, after = (
            self.by_seed(dataset, method, "pinball", by=selection)
            for method, selection in zip((usual, other), by, strict=True)
        )
        return [100.0 * (after[seed] / before[seed] - 1.0) for seed in after if seed in before]

    def median(
        self, dataset: str, method: str, metric: str, risk: str = "coverage", by: str = "tuned"
    ) -> float:
        """The median over seeds."""
        return median(self.values(dataset, method, metric, risk, by))


def store(results: Results, out: Path, stem: str = "tabular") -> None:
    """Writes the results into files of a folder whose names begin with `stem`."""
    out.mkdir(parents=True, exist_ok=True)
    rows, study, ranged, about = (out / name.format(stem) for name in _FILES)
    # No name and no time in the header: the same results make the same bytes.
    with rows.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
        packed.write(written(Row, results.rows).encode())
    study.write_text(written(Row, results.study), encoding="utf-8")
    if results.ranged:
        ranged.write_text(written(Range, results.ranged), encoding="utf-8")
    about.write_text(json.dumps(results.about, indent=1, ensure_ascii=False) + "\n", "utf-8")


def load(out: Path, stem: str = "tabular") -> Results:
    """The results that `store` wrote."""
    rows, study, ranged, about = (out / name.format(stem) for name in _FILES)
    for path in (rows, study, about):
        if not path.is_file():
            raise DataError(f"{path} is absent: `setpoint-paper tabular` writes it")
    return Results(
        tuple(parsed(Row, gzip.decompress(rows.read_bytes()).decode())),
        tuple(parsed(Row, study.read_text(encoding="utf-8"))),
        json.loads(about.read_text(encoding="utf-8")),
        tuple(parsed(Range, ranged.read_text(encoding="utf-8"))) if ranged.is_file() else (),
    )
