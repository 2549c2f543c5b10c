"""What is asked of a job: the file and its columns, the goal, a controller, and options."""

import csv
import io
import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from typing import Any

from setpoint import spec
from setpoint._check import choice, doubt_level, finite, interval, positive
from setpoint.controller import Controller, Risk
from setpoint.errors import InputError, SetpointError, SpecError
from setpoint.jobs.columns import Columns
from setpoint.losses import Miscoverage, MiscoverageCounter
from setpoint.presets import intervals, label_sets, miss_level
from setpoint.sets import Cumulative, Multilabel, PixelIntervals, PixelSet, Threshold
from setpoint.sets.family import Columns as NamedColumns
from setpoint.sets.family import Members, Shows
from setpoint.steps import Accounts
from setpoint.stretches import ErrorAdaptive, ScoreAdaptive
from setpoint.tape.files import suffix_of

__all__ = ["RISKS", "RULES", "Config", "Goal", "Job", "check_work", "command", "listed", "unlisted"]

RISKS = ("coverage", "mc")
"""What can be held by name."""
RULES = ("budget", "paper")
"""How it can be held."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What to hold.

    Parameters
    ----------
    risk
        "coverage" holds the share of labels missed at `level`; "mc" holds the mean number of
        misses in a row at level / (1 − level), what it is where misses are independent.
    level
        The share of labels that may be missed.
    support
        Where y can lie; intervals are cut to it.
    gamma
        The step size of the paper's rule; by default the burn-in chooses it.
    coverage
        The share of labels that the sets are to hold, instead of the level.
    rule
        "budget": sets that adjust themselves, `setpoint.intervals` or `setpoint.label_sets`.
        "paper": a fixed step size, with everything open chosen by a burn-in. By default the
        budget, unless a step size is given.
    never_empty
        Whether the likeliest class is in every set of labels.

    Examples
    --------
    >>> Goal(coverage=0.8).level
    0.2
    >>> Goal("mc", 0.1).open_risk().level
    0.11111111111111112
    """

    risk: str = "coverage"
    level: float = 0.1
    support: tuple[float, float] | None = None
    gamma: float | None = None
    coverage: float | None = None
    rule: str | None = None
    never_empty: bool = False

    def __post_init__(self) -> None:
        choice(self.risk, "risk", RISKS)
        level = finite(self.level, "level")
        if self.coverage is not None:
            asked = miss_level(self.coverage)
            if level not in (0.1, asked):
                raise InputError(
                    f"coverage {self.coverage:g} is a level of {asked:g}, and the level given is "
                    f"{level:g}: give one of the two"
                )
            level = asked
        if not 0.0 < level < 1.0:
            raise InputError(
                f"level must lie between 0 and 1, both excluded, got {level:g}: it is the share of "
                "labels that may be missed, 0.1 for 90 % coverage"
            )
        doubt_level(level)
        object.__setattr__(self, "level", level)
        object.__setattr__(self, "coverage", round(1.0 - level, 12))
        if self.support is not None:
            object.__setattr__(self, "support", interval(self.support, "support"))
        if self.gamma is not None:
            object.__setattr__(self, "gamma", positive(self.gamma, "gamma"))
        usual = "budget" if self.gamma is None else "paper"
        rule = usual if self.rule is None else choice(self.rule, "rule", RULES)
        object.__setattr__(self, "rule", rule)
        if self.gamma is not None and rule == "budget":
            raise InputError("gamma is the step size of the paper's rule, and the budget has none")
        if self.never_empty and rule == "paper":
            raise InputError("never empty is for sets that adjust themselves, not the paper's rule")

    def preset(self, columns: Columns, family: Any) -> Controller:
        """The sets that adjust themselves, for predictions of these columns."""
        coverage, risk = 1.0 - self.level, self.open_risk()
        if self.never_empty and not columns.probabilities:
            raise InputError("never empty is for sets of labels: intervals are never empty anyway")
        if columns.is_pair:
            support = "learnt" if self.support is None else self.support
            features = columns.features
            return intervals(coverage, risk=risk, support=support, features=features)
        return label_sets(coverage, sets=family, risk=risk, never_empty=self.never_empty)

    def open_risk(self) -> Risk:
        """The risk, with everything else left open."""
        if self.risk == "mc":
            return Risk(MiscoverageCounter(cap=20), self.level / (1.0 - self.level))
        return Risk(Miscoverage(), self.level)


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
                f"{file} does not exist: name a controller as TOML, such as `setpoint tune --out` "
                "writes"
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

    def check_goal(self, goal: Goal, names: Sequence[str]) -> None:
        """Raises an error if a goal says what the controller says already."""
        usual = Goal()
        twice = [name for name in names if getattr(goal, name) != getattr(usual, name)]
        if twice:
            raise InputError(
                "a controller says already what to hold and how: leave out "
                f"{', '.join(twice)}, or the controller (--config)"
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
    if one_set and isinstance(sets, Members) and sets.nested:
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
        "calibrate", "run" or "demo".
    file, columns
        What was read, and which column is what; for `run` the columns of the model's predictions.
    goal, config
        What to hold, or the controller that says it.
    burn_in
        How many rows of each series choose, None for the usual number.
    model, features, without, known_ahead, budget
        For `run`: the model, the columns it was told to see or not to see, those known before
        their rows, and the seconds for learning if they were said.
    seed, title
        For `demo`; what to call it, by default as the file.
    """

    command: str
    file: Path | None = None
    columns: Columns | None = None
    goal: Goal = field(default_factory=Goal)
    config: Config | None = None
    burn_in: int | None = None
    model: str | None = None
    features: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    known_ahead: tuple[str, ...] = ()
    budget: float | None = None
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
        return self.goal.rule == "budget" if self.config is None else self.config.is_full

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
        if self.model is None:
            options = self.columns.plain()
        else:
            names = ("model", "features", "without", "known_ahead", "budget")
            learner = {name: getattr(self, name) for name in names}
            options = {**self.columns.keys(), **learner}
        goal = asdict(self.goal)
        del goal["level"]
        goal["never_empty"] = goal["never_empty"] or None
        if goal["rule"] == "budget" or goal["gamma"] is not None:
            del goal["rule"]
        options = {**options, **goal, "config": config, "burn_in": burn_in}
        return command(self.command, self.file, options)

    def as_dict(self) -> dict[str, Any]:
        """What was asked, in plain values."""
        goal = asdict(self.goal)
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


def command(name: str, file: Path | None, options: Mapping[str, Any]) -> str:
    """The command line with these options; those that are None or nothing are left out.

    >>> command("run", Path("my data.csv"), {"target": "y", "level": 0.1, "without": ("a", "b,c")})
    'setpoint run \\'my data.csv\\' --target y --level 0.1 --without \\'a,"b,c"\\''
    """
    words = ["setpoint", name, *([] if file is None else [os.fspath(file)])]
    for option, value in options.items():
        if value is None or value == ():
            continue
        words.append(f"--{option.replace('_', '-')}")
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
