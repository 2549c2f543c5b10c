"""What is asked of a job: the file and its columns, and the goal or a controller."""

import csv
import io
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from setpoint import spec
from setpoint._check import confidence, doubt_level, interval, option
from setpoint.controller import Controller
from setpoint.errors import InputError, SetpointError, SpecError
from setpoint.presets import intervals, label_sets, miss_level
from setpoint.sets import Cumulative, Multilabel, Threshold
from setpoint.sets.family import Columns as NamedColumns
from setpoint.sets.family import Scalar, Shows, order_of, whole_of
from setpoint.sets.fan import rising
from setpoint.sets.pixels import PixelIntervals, PixelSet
from setpoint.steps.claims import Accounts
from setpoint.stretches import ErrorAdaptive, ScoreAdaptive
from setpoint.tape import Columns
from setpoint.tape.files import suffix_of


@dataclass(frozen=True, slots=True)
class Config:
    """A controller for a job, and the TOML file that holds it, None where it came from Python."""

    controller: Controller
    file: str | None = None

    @classmethod
    def read(cls, source: "Controller | str | os.PathLike[str] | None") -> "Config | None":
        """From a controller or its file; an error about a file begins with its name."""
        if source is None:
            return None
        if isinstance(source, Controller):
            return cls(source)
        file = os.fspath(source)
        try:
            return cls(spec.from_toml(Path(source).read_text("utf-8")), file)
        except FileNotFoundError:
            raise SpecError(
                f"{file} does not exist: name a controller as TOML, such as a job writes"
            ) from None
        except (UnicodeDecodeError, IsADirectoryError) as error:
            raise SpecError(f"{file} is no file of TOML: {error}") from error
        except SetpointError as error:
            raise type(error)(f"{file}: {error}") from error

    @property
    def is_full(self) -> bool:
        """Whether the controller leaves nothing to a burn-in."""
        controller, stretch = self.controller, self.controller.stretch
        if isinstance(stretch, ScoreAdaptive | ErrorAdaptive) and stretch.low is None:
            return False
        bounded = controller.sets.bounds() is not None
        return all(
            risk.step is not None
            and (bounded or risk.bounds is not None or isinstance(risk.step, Accounts))
            for risk in controller.risks
        )

    def check_family(self, family: Any) -> None:
        """Raises an error if the controller is for other predictions than those of `family`."""
        ends, named = (
            tuple(part.columns or ()) if isinstance(part, NamedColumns) else ()
            for part in (self.controller.reader, family)
        )
        if ends and named and ends != named and 1 in (len(ends), len(named)):
            raise InputError(
                f"the controller given is for {_ends(ends)}, and the columns named are "
                f"{_ends(named)}: name the columns it was made for, or leave it out"
            )
        known, classes = _classes_of(self.controller.sets), _classes_of(family)
        if known and classes and known != classes:
            raise InputError(
                f"the controller given has the classes {', '.join(map(str, known))} in this order, "
                f"and the probabilities named are those of {', '.join(map(str, classes))}: name "
                "the columns in its order"
            )


def _classes_of(family: Any) -> tuple[Any, ...] | None:
    """The names of the classes, where a family of labels has names for them."""
    classes = family.classes if isinstance(family, Threshold | Cumulative | Multilabel) else None
    return classes if isinstance(classes, tuple) else None


def _ends(columns: Sequence[str]) -> str:
    """What predictions of these columns are called."""
    return f"{columns[0]} bounds alone" if len(columns) == 1 else "both ends or a point"


def check_work(controller: Controller, work: str, *, one_set: bool = False) -> None:
    """Raises an error if a command cannot use a controller, because it takes one set a row, say."""
    sets = controller.sets
    name, shows = type(sets).__name__, sets.shows if isinstance(sets, Shows) else None
    if shows in (PixelIntervals, PixelSet):
        raise InputError(
            f"{work} takes numbers and classes, and {name} is for images: use setpoint.Stream in "
            "Python"
        )
    if one_set and order_of(sets) and not isinstance(whole_of(sets), Scalar):
        raise InputError(
            f"{work} takes one set a row, and {name} shows several within each other: use "
            "setpoint.replay in Python"
        )


@dataclass(frozen=True, slots=True)
class Job:
    """What was asked of a job: enough to do it again.

    Its `name` is the command; coverage, one or several, and the support say what to hold, or the
    controller does. `title` is what to call it, and `model` whose predictions they are.
    """

    name: str
    file: Path | None = None
    columns: Columns = field(default_factory=Columns)
    coverage: float | Sequence[float] | None = None
    support: tuple[float, float] | None = None
    config: Config | None = None
    title: str | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        asked: Any = self.coverage
        if isinstance(asked, tuple | list):
            several = rising(asked, option("coverage"))
            asked = several if len(several) > 1 else several[0]
        if asked is not None and not isinstance(asked, tuple):
            asked = confidence(asked, option("coverage"))
        object.__setattr__(self, "coverage", asked)
        doubt_level(miss_level(self.share))
        if self.support is not None:
            object.__setattr__(self, "support", interval(self.support, option("support")))
        twice = [
            option(name) for name in ("coverage", "support") if getattr(self, name) is not None
        ]
        if self.config is not None and twice:
            raise InputError(
                f"{' and '.join(twice)} together with {option('controller')}: the controller "
                "already says what to control, and how; leave out one of them"
            )

    @property
    def share(self) -> float:
        """The coverage asked for, the largest of several."""
        asked: Any = 0.9 if self.coverage is None else self.coverage
        largest: float = asked[-1] if isinstance(asked, tuple) else asked
        return largest

    def preset(self, family: Any) -> Controller:
        """The sets that adjust themselves, for predictions of the columns."""
        columns, support = self.columns, self.support
        if columns.is_pair:
            made = intervals(
                self.coverage or self.share, support="learnt" if support is None else support,
                features=columns.features,
            )  # fmt: skip
            if columns.period is None:
                return made
            stage: Any = replace(made.correction, period=columns.period)  # type: ignore[type-var]
            return replace(made, correction=stage)
        if isinstance(self.coverage, tuple):
            raise InputError(f"label sets have one coverage, got {listed(self.coverage)}")
        return label_sets(self.share, sets=family)

    @property
    def repeat(self) -> str | None:
        """The command that does the job again; None where no command can.

        A controller that left something open and came from Python is written down filled in, and
        that does not say which rows filled it in.
        """
        if self.title is not None:
            return command(self.name, None, {})
        if self.file is None:
            return None
        options = self.columns.plain()
        options.pop("group", None)  # it changes no number but those of groups
        if isinstance(self.columns.series, str):
            options["series"] = (self.columns.series,)  # it may hold a comma
        if self.config is None:
            goal = {"coverage": self.coverage or self.share, "support": self.support}
            return command(self.name, self.file, options | goal)
        if self.config.file is None and not self.config.is_full:
            return None
        return command(
            self.name, self.file, options | {"controller": self.config.file or "controller.toml"}
        )

    def as_dict(self) -> dict[str, Any]:
        """What was asked, in plain values."""
        goal: dict[str, Any] = {"coverage": self.share}
        if isinstance(self.coverage, tuple):
            goal["levels"] = list(self.coverage)
        if self.config is not None:
            first = self.config.controller.risks[0]
            goal = {"risk": first.name, "level": first.level}
        elif self.support is not None:
            goal["support"] = [end if abs(end) < float("inf") else str(end)
                               for end in self.support]  # fmt: skip
        file = self.file
        values = {
            "command": self.name,
            "name": self.title or (file.name[: -len(suffix_of(file))] if file else self.name),
            "file": file and file.name,
            "columns": self.columns.plain(),
            "model": self.model,
            "goal": goal,
            "repeat": self.repeat,
        }
        return {name: value for name, value in values.items() if value is not None}


def command(verb: str, file: Path | None, options: Mapping[str, Any]) -> str:
    """The command line with these options; those that are None or nothing are left out.

    >>> command(
    ...     "forecast", Path("my data.csv"), {"target": "y", "steps": 7, "without": ("a", "b,c")}
    ... )
    'setpoint forecast \\'my data.csv\\' --target y --steps 7 --without \\'a,"b,c"\\''
    """
    words = ["setpoint", verb, *([] if file is None else [os.fspath(file)])]
    for name, value in options.items():
        if value is None or value == ():
            continue
        words.append(f"--{name.replace('_', '-')}")
        if value is not True:
            words.append(listed(value) if isinstance(value, tuple) else str(value))
    return shlex.join(words)


def listed(values: Sequence[Any]) -> str:
    """Values with commas between them, quoted where they hold commas themselves."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow(values)
    return text.getvalue()


def unlisted(text: str | None) -> tuple[str, ...]:
    """The values that `listed` joined.

    >>> unlisted('cat, dog,"sea, lion"')
    ('cat', 'dog', 'sea, lion')
    """
    cells = next(csv.reader([text or ""], skipinitialspace=True), [])
    return tuple(cell.strip() for cell in cells if cell.strip())
