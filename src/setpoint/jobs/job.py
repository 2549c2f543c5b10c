"""What is asked of a job: the file and its columns, the goal, a controller, and options."""

import csv
import io
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
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
class Goal:
    """What to hold, where no controller says it.

    Parameters
    ----------
    coverage
        The share of actual values that the intervals are to hold, or several, as in 0.5,0.8,0.9,
        for intervals within each other; 0.9 by default.
    support
        Where the target can lie, as in (0, inf); intervals are cut to it.

    Examples
    --------
    >>> Goal(coverage=0.8).level
    0.2
    """

    coverage: float | Sequence[float] | None = None
    support: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if self.coverage is not None:
            asked: Any = self.coverage
            several = rising(asked, "coverage") if isinstance(asked, tuple | list) else ()
            one = several[0] if several else asked
            object.__setattr__(
                self, "coverage", several if len(several) > 1 else confidence(one, "coverage")
            )
        doubt_level(self.level)
        if self.support is not None:
            object.__setattr__(self, "support", interval(self.support, "support"))

    @property
    def share(self) -> float:
        """The coverage asked for, the largest of several."""
        asked: Any = 0.9 if self.coverage is None else self.coverage
        largest: float = asked[-1] if isinstance(asked, tuple) else asked
        return largest

    def check_one(self, what: str) -> None:
        """Raises an error where several levels were asked for and one can be held."""
        if isinstance(self.coverage, tuple):
            raise InputError(f"{what} takes one coverage, got {listed(self.coverage)}")

    @property
    def level(self) -> float:
        """The share of actual values that may be missed."""
        return miss_level(self.share)

    def preset(self, columns: Columns, family: Any) -> Controller:
        """The sets that adjust themselves, for predictions of these columns."""
        if columns.is_pair:
            support = "learnt" if self.support is None else self.support
            features = columns.features
            coverage = self.share if self.coverage is None else self.coverage
            return intervals(coverage, support=support, features=features)
        self.check_one("a command on classes")
        return label_sets(self.share, sets=family)


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
            text = Path(source).read_text("utf-8")
        except FileNotFoundError:
            raise SpecError(
                f"{file} does not exist: name a controller as TOML, such as a job writes"
            ) from None
        except (UnicodeDecodeError, IsADirectoryError) as error:
            raise SpecError(f"{file} is no file of TOML: {error}") from error
        try:
            controller = spec.from_toml(text)
        except SetpointError as error:
            raise type(error)(f"{file}: {error}") from error
        return cls(controller, file)

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

    def check_goal(self, goal: Goal) -> None:
        """Raises an error if a goal says what the controller says already."""
        asked = {name: getattr(goal, name) for name in goal.__slots__}
        twice = [option(name) for name, value in asked.items() if value is not None]
        if twice:
            raise InputError(
                f"{' and '.join(twice)} beside {option('controller')}: the controller says already "
                "what to hold and how; leave out the one or the other"
            )

    def check_family(self, family: Any) -> None:
        """Raises an error if the controller is for other predictions than those of `family`."""
        sets: Any = self.controller.sets
        reader: Any = self.controller.reader
        ends, named = (
            tuple(part.columns or ()) if isinstance(part, NamedColumns) else ()
            for part in (reader, family)
        )
        if ends and named and ends != named and 1 in (len(ends), len(named)):
            raise InputError(
                f"the controller given is for {_ends(ends)}, and the columns named are "
                f"{_ends(named)}: name the columns it was made for, or leave it out"
            )
        known, classes = _classes_of(sets), _classes_of(family)
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

    Parameters
    ----------
    command
        "calibrate" or "demo".
    file, columns
        What was read, and which column is what.
    goal, config
        What to hold, or the controller that says it.
    burn_in
        How many rows of each series choose, None for the usual number.
    model, seed, title
        For `demo`: whose predictions they are; what to call it, by default as the file.
    """

    command: str
    file: Path | None = None
    columns: Columns | None = None
    goal: Goal = field(default_factory=Goal)
    config: Config | None = None
    burn_in: int | None = None
    model: str | None = None
    seed: int | None = None
    title: str | None = None

    @property
    def name(self) -> str:
        """What it is called."""
        if self.title is not None or self.file is None:
            return self.title or self.command
        return self.file.name[: -len(suffix_of(self.file))]

    @property
    def is_full(self) -> bool:
        """Whether nothing is left to a burn-in."""
        return self.config is None or self.config.is_full

    def repeat(self, burn_in: int | None) -> str | None:
        """The command that does the job again with this burn-in; None where no command can.

        A controller that left something open and came from Python is written down filled in, and
        that does not say which rows of several series filled it in.
        """
        if self.seed is not None:
            return command(self.command, None, {"seed": self.seed})
        if self.file is None or self.columns is None:
            return None
        config = None
        if self.config is not None:
            config = self.config.file or "controller.toml"
            if self.config.file is None and not self.config.is_full and burn_in is None:
                return None
        options = self.columns.plain()
        options.pop("group", None)  # it changes no number but those of groups
        if isinstance(self.columns.series, str):
            options["series"] = (self.columns.series,)  # it may hold a comma
        goal = {"coverage": self.goal.coverage or self.goal.share, "support": self.goal.support}
        options |= {"controller": config} if config is not None else goal
        return command(self.command, self.file, {**options, "burn_in": burn_in})

    def as_dict(self) -> dict[str, Any]:
        """What was asked, in plain values."""
        goal: dict[str, Any] = {"coverage": self.goal.share}
        if isinstance(self.goal.coverage, tuple):
            goal["levels"] = list(self.goal.coverage)
        if self.config is not None:
            first = self.config.controller.risks[0]
            goal = {"risk": first.name, "level": first.level}
        elif self.goal.support is not None:
            goal["support"] = [end if abs(end) < inf else str(end) for end in self.goal.support]
        values = {
            "command": self.command,
            "name": self.name,
            "file": None if self.file is None else self.file.name,
            "columns": None if self.columns is None else self.columns.plain(),
            "model": self.model,
            "seed": self.seed,
            "goal": goal,
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
    if text is None:
        return ()
    cells = next(csv.reader([text], skipinitialspace=True), [])
    return tuple(cell.strip() for cell in cells if cell.strip())
