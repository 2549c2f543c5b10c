"""Results on disk, and the choice of a step size among them."""

import csv
import gzip
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from statistics import fmean, median
from typing import Any

from setpoint._check import choice
from setpoint.errors import DataError
from setpoint.experiments._protocol import STRETCHES, Row

__all__ = ["SELECTIONS", "Results", "load", "store"]

SELECTIONS = ("tuned", "test")
"""How γ is chosen: on the rows to be tuned on, for each seed; or as behind the printed figures, by
the pinball loss of the very rows that are judged, for all seeds together."""

_FILES = ("{}.csv.gz", "{}-gamma.csv", "{}.json")


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
        What ran: the command, the model, the batch, units and notes by data set, seconds a tape.
    """

    rows: tuple[Row, ...]
    study: tuple[Row, ...]
    about: dict[str, Any] = field(default_factory=dict)
    _places: dict[tuple[str, str, str], list[Row]] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        places: dict[tuple[str, str, str], list[Row]] = {}
        for row in self.rows:
            places.setdefault((row.dataset, row.method, row.risk), []).append(row)
        object.__setattr__(self, "_places", places)

    @property
    def datasets(self) -> tuple[str, ...]:
        """The data sets, in their order."""
        return tuple(dict.fromkeys(row.dataset for row in self.rows))

    def seeds(self, dataset: str) -> int:
        """How many tapes of a data set there are."""
        return len({row.seed for row in self.rows if row.dataset == dataset})

    def chosen(self, dataset: str, method: str, risk: str, by: str = "tuned") -> list[Row]:
        """One row for each seed, at the γ that a selection takes; the bare model's for any risk."""
        bare = method == "uncalibrated"
        found = self._places.get((dataset, method, "none" if bare else risk), [])
        if choice(by, "by", SELECTIONS) == "tuned" or bare:
            seeds = dict.fromkeys(row.seed for row in found)
            return [
                min((row for row in found if row.seed == seed), key=lambda row: row.tuning)
                for seed in seeds
            ]
        gammas = dict.fromkeys(row.gamma for row in found)
        groups = [[row for row in found if row.gamma == gamma] for gamma in gammas]
        return min(groups, key=lambda group: fmean(row.pinball for row in group), default=[])

    def values(
        self, dataset: str, method: str, metric: str, risk: str = "coverage", by: str = "tuned"
    ) -> list[float]:
        """A metric of each seed; `scaled_length` is the length over its mean, as in the figures.

        The mean is over seeds and over the four stretchings, or over no stretching, error adaptive
        and calibration with cal for the last of these: the methods it shares a figure with.
        """
        rows = self.chosen(dataset, method, risk, by)
        if metric != "scaled_length":
            return [float(getattr(row, metric)) for row in rows]
        beside = ("none", "error", "cal") if method == "cal" else STRETCHES
        return self.scaled(dataset, method, beside, risk, by)

    def scaled(
        self, dataset: str, method: str, beside: Sequence[str], risk: str, by: str
    ) -> list[float]:
        """The lengths of each seed over the mean length of the methods of one figure."""
        usual = fmean(row.length for each in beside for row in self.chosen(dataset, each, risk, by))
        return [row.length / usual for row in self.chosen(dataset, method, risk, by)]

    def median(
        self, dataset: str, method: str, metric: str, risk: str = "coverage", by: str = "tuned"
    ) -> float:
        """The median over seeds."""
        return median(self.values(dataset, method, metric, risk, by))

    def mean(
        self, dataset: str, method: str, metric: str, risk: str = "coverage", by: str = "tuned"
    ) -> float:
        """The mean over seeds."""
        return fmean(self.values(dataset, method, metric, risk, by))


def store(results: Results, out: Path, stem: str = "tabular") -> None:
    """Writes the results into files of a folder whose names begin with `stem`."""
    out.mkdir(parents=True, exist_ok=True)
    rows, study, about = (out / name.format(stem) for name in _FILES)
    # No name and no time in the header: the same results make the same bytes.
    with rows.open("wb") as raw, gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed:
        packed.write(_written(results.rows).encode())
    study.write_text(_written(results.study), encoding="utf-8")
    about.write_text(json.dumps(results.about, indent=1, ensure_ascii=False) + "\n", "utf-8")


def load(out: Path, stem: str = "tabular") -> Results:
    """The results that `store` wrote."""
    rows, study, about = (out / name.format(stem) for name in _FILES)
    for path in (rows, study, about):
        if not path.is_file():
            raise DataError(f"{path} is absent: `setpoint reproduce tabular` writes it")
    return Results(
        tuple(_read(gzip.decompress(rows.read_bytes()).decode())),
        tuple(_read(study.read_text(encoding="utf-8"))),
        json.loads(about.read_text(encoding="utf-8")),
    )


def _written(rows: Iterable[Row]) -> str:
    """A table with six digits a number: enough to tell, and to be told twice the same."""
    buffer = io.StringIO()
    names = [each.name for each in fields(Row)]
    table = csv.DictWriter(buffer, names, lineterminator="\n")
    table.writeheader()
    for row in rows:
        table.writerow(
            {
                name: f"{value:.6g}" if isinstance(value, float) else value
                for name, value in asdict(row).items()
            }
        )
    return buffer.getvalue()


def _read(text: str) -> list[Row]:
    makers: dict[Any, Any] = {str: str, int: int, float: float, bool: lambda word: word == "True"}
    kinds = {each.name: makers[each.type] for each in fields(Row)}
    return [
        Row(**{name: kinds[name](word) for name, word in line.items()})
        for line in csv.DictReader(io.StringIO(text))
    ]
