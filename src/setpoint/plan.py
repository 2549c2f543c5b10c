"""One plan of a controller: every rule and number looked up once.

Live streams and bulk loops run the same plan. Controllers made of the same rules share `Rules`, and
with them `aim` and `learn`; their numbers differ. The plan of a controller is made when it is first
asked for and lives as long as the controller does.
"""

from functools import lru_cache
from math import inf, nan
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from setpoint._check import number
from setpoint._rules import (
    Rules,
    check_memory,
    numbers_of,
    rules_of,
    scalar,
    support_of,
    tried,
    try_out,
)
from setpoint.controller import Controller, Risk, new_group
from setpoint.correction import Rebases, Rescores
from setpoint.correction.compiled import Arrays, rules_once_many
from setpoint.errors import InputError, LossError
from setpoint.losses import Counts, Declaration, declaration, turns
from setpoint.recursion import Memory, Recursion, recursion
from setpoint.sets.family import (
    Draws,
    Forecasts,
    InParts,
    Measured,
    Priced,
    never_empty,
    order_of,
    outermost,
    whole_of,
)
from setpoint.sets.labels import place_of
from setpoint.state import Id, State
from setpoint.steps.claims import Accounts
from setpoint.watch import MOST, take


class Stage(NamedTuple):
    """A correction with its numbers: `predict` and `learn` take `params` first.

    The family of sets reads a part of the `size` numbers of a base, from `begins` to `ends`.
    `annex` numbers come into being once the first number of a memory is positive.
    """

    params: Memory
    predict: Any
    learn: Any
    begins: int
    ends: int
    size: int
    annex: int

    def based(self, state: State, row: Any, waiting: float) -> tuple[Memory, Memory]:
        """What is remembered once a row is shown, and its base."""
        arrays = state.arrays
        if arrays is not None:
            arrays.base = own = np.empty(self.size)
            memory = arrays.predict(
                self.params, state.memory, arrays.table, arrays.annex, row, float(waiting), own
            )
            arrays.made = made = tuple(own.tolist())
            return memory, made
        base = [0.0] * self.size
        memory = self.predict(
            self.params, state.memory, state.own_table, state.own_annex, row, waiting, base
        )
        return memory, tuple(base)

    def taught(self, state: State, base: Memory, y: float) -> None:
        """Lets a state learn from a label."""
        arrays = state.arrays
        if arrays is not None:
            own = arrays.base if base is arrays.made else np.array(base)
            state.memory = memory = arrays.learn(
                self.params, state.memory, arrays.table, arrays.annex, own, y
            )
            if self.annex and memory[0] > 0.0:
                arrays.begin(self.annex)
            return
        table, annex = state.own_table, state.own_annex
        memory = self.learn(self.params, state.memory, table, annex, base, y)
        if len(memory) != len(state.memory):
            check_memory(memory, len(state.memory), "the correction")
        state.memory = memory
        if self.annex and memory[0] > 0.0 and not annex:
            annex = state.own_annex = [0.0] * self.annex
        fast = rules_once_many(self.predict, self.params, memory, table, annex, base)
        if fast is not None:
            state.arrays = Arrays(fast, table, annex)


class Rescoring(NamedTuple):
    """A correction of label sets, as steps call it.

    The base of a row is what its family reads, and all that `predict` wrote as one array.
    """

    params: Memory
    predict: Any
    learn: Any
    begins: int
    ends: int
    sizes: Any

    def based(self, state: State, reading: Any, waiting: float) -> Any:
        """What is remembered once a row is shown, and its base."""
        values, names = reading[0], reading[1]
        count, table = len(values), state.own_table
        memory, made = table.predict(self.params, state.memory, names, -values, waiting)
        return memory, (
            made[:count].copy(),
            names,
            float(made[count]),
            made,
        )  # what is shown lives on

    def taught(self, state: State, base: Any, y: Any) -> None:
        """Lets a state learn from a label, or from several."""
        table = state.own_table
        places = [place_of(base, label) for label in (y if self.params[1] else (y,))]
        for place in sorted([-1 if place is None else place for place in places]):
            state.memory = table.learn(self.params, state.memory, base[1], base[3], place)
        if table.fast is None and table.straight(base[1], len(base[0])):
            table.fast = rules_once_many(
                self.predict, self.params, state.memory, table.numbers, None, base[3],
                2.0 + 0.01 * len(base[0]),
            )  # fmt: skip


class Rebasing(NamedTuple):
    """A correction of paths, as steps call it."""

    predict: Any
    learn: Any
    begins: int
    ends: int

    def based(self, state: State, reading: Any, waiting: float) -> Any:
        """What is remembered once a path is shown, and its base."""
        return self.predict(state.memory, state.table, reading, waiting)

    def taught(self, state: State, base: Any, heard: Any) -> None:
        """Lets a state learn from what is known of a path."""
        state.memory = self.learn(state.memory, state.table, base, heard)


def staged(controller: Controller, stage: Any) -> Stage | Rescoring | Rebasing:
    """A correction as steps call it, tried once."""
    if isinstance(stage, Rescores):
        ends = len(stage.gives)
        return Rescoring(stage.params, stage.predict, stage.learn, 0, ends, stage.sizes)
    if isinstance(stage, Rebases):
        return Rebasing(*stage.rules(controller.sets), 0, len(stage.gives))
    params, name = (*stage.params, *support_of(controller)), type(stage).__name__
    (memory, table), base = stage.init(), [0.0] * stage.base
    first, annex = tuple(memory), [0.0] * stage.annex
    row = next(filter(stage.sound, _sample_rows(len(stage.columns))), None)
    if row is None:
        raise InputError(f"{name}.sound takes none of the rows that are tried, such as (0, 1, 1)")
    begins, ends = stage.begins, stage.begins + len(stage.gives)
    if len(base) < ends:
        raise InputError(
            f"a base of {name} must have {', '.join(stage.gives)} from place {begins} on, "
            f"got {base!r}"
        )
    memory = tried(stage, stage.predict, params, first, table, annex, row, 0.0, base)
    check_memory(memory, len(first), name)
    after = tried(stage, stage.learn, params, memory, table, annex, tuple(base), 0.5)
    check_memory(after, len(first), name)
    return Stage(params, stage.predict, stage.learn, begins, ends, len(base), stage.annex)


def _sample_rows(columns: int) -> list[Memory]:
    """Rows to try a correction on."""
    return [(first, *(rest,) * (columns - 1)) for first in (0.0, 1.0) for rest in (1.0, 0.0, 2.0)]


TWO_SIDED = (
    "a two-sided account needs every label before the next prediction, and here labels wait: "
    "answer or drop what waits, or leave out two_sided"
)
"""Why no second prediction may wait."""
MOST_GROUPS = 100_000
"""How many groups a stream may name."""


class Groups(NamedTuple):
    """How risks are held in groups of rows: why they cannot be, or their numbers and closures."""

    refused: str | None
    numbers: Any
    begun: tuple[Any, ...]
    glance: Any
    enter: Any
    judge: Any
    leave: Any

    def check(self) -> None:
        """Raises where no group can be held."""
        if self.refused is not None:
            raise InputError(self.refused)


class Promise(NamedTuple):
    """What a loss promises, to be held against every value it gives."""

    name: str
    declared: Declaration
    empties: bool
    step: str

    def check(self, value: Any, lam: float) -> float:
        """A loss as a float, within its range and within what it promises of full and empty."""
        promise, empties = self.declared, self.empties
        sign = -1.0 if promise.grows else 1.0
        loss = number(value, f"the loss {self.name}", LossError)
        if not promise.low <= loss <= promise.high:
            allowed = f"a loss in [{promise.low:g}, {promise.high:g}]"
        elif lam == inf and (loss - promise.full) * sign > 0.0:
            allowed = f"at {'least' if promise.grows else 'most'} {promise.full:g} on the full set"
        elif lam == -inf and empties and (loss - promise.empty) * sign < 0.0:
            end = f"{promise.empty:g} on the empty set"
            allowed = f"at {'most' if promise.grows else 'least'} {end}"
        else:
            return loss
        raise LossError(f"{self.name} promises {allowed}, got {loss}")


class Plan(NamedTuple):
    """A controller with everything a step asks of it looked up once.

    `counts`: the evidence of a label is only whether its set missed it, else the pair of the set
    and y. `at_once`: labels must come before the next prediction. `needs` gives what a label cost,
    None where nothing is watched; `plain`: sets and labels are numbers. A stream begins in `first`,
    and `packed` has what `setpoint.bulk.layout` worked out.
    """

    rules: Rules
    numbers: Any
    aim: Any
    learn: Any
    drop: Any
    read: Any
    stage: Stage | Rescoring | Rebasing | None
    draws: bool
    counts: bool
    at_once: bool
    promises: tuple[Promise, ...]
    groups: Groups
    needs: Any
    forecast: Any
    plain: bool
    first: State
    packed: dict[Any, Any]

    def ask(
        self, state: State, sets: Any, reading: Any, name: Id, others: int, position: Any,
        names: tuple[Id, ...] | None = None, groups: Any = None,
    ) -> tuple[Any, Memory, tuple[Any, ...]]:  # fmt: skip
        """What a prediction shows: the next position and memory, and its receipt; moves `groups`.

        `others` predictions wait beside it, and its row belongs to the groups in `names`.
        """
        memory, stage, entries = state.memory, self.stage, ()
        given = reading = sets.draw(reading, name) if self.draws else reading
        if stage is not None:
            memory, reading = stage.based(state, reading, others)
            given = reading[stage.begins : stage.ends]
        if names is None:
            position, lam, leader, habits = self.aim(self.numbers, position)
        else:
            position, lam, leader, habits, entries = self.aim_in(position, names, groups)
        receipt = name, reading, sets.at(given, lam), lam, leader, habits, entries, ()
        return position, memory, receipt

    def aim_in(self, position: Any, names: tuple[Id, ...], groups: dict[Id, Any]) -> Any:
        """As `aim`, for a row of some groups, whose risks it moves: habits of each, last."""
        _, numbers, begun, glance, enter, _, _ = self.groups
        params, memory, wide = self.numbers[1], position[1], (-inf,) * len(begun)
        looked = []
        for name in names:
            risks = groups.get(name, begun)
            books, own, wide = glance(numbers, params, risks, memory, wide)
            looked.append((name, risks, books, own))
        position, lam, leader, habits = self.aim(self.numbers, position, wide)
        for name, risks, books, _ in looked:
            groups[name] = enter(risks, books, lam)
        return position, lam, leader, habits, tuple([(name, own) for name, *_, own in looked])

    def give_up(self, position: Any, lam: Any, named: Any, groups: dict[Id, Any]) -> Any:
        """The position once a set is given up whose label will not come; moves its groups."""
        if self.drop is None:
            return position
        for name, _ in named:
            groups[name] = self.groups.leave(groups[name], lam)
        return self.drop(position, lam)

    def take_in(
        self, state: State, base: Any, shown: Any, y: Any, lam: Any, leader: int, habits: Memory,
        groups: Any = (), teaches: bool = True, others: float = 0.0,
    ) -> tuple[float, ...]:  # fmt: skip
        """Takes the label of a shown set into a state: the loss of each risk, NaN if unjudged.

        Nothing is changed before everything is computed and checked. A label that teaches nothing
        is judged and counted only. `others` is how many predictions wait beside it.
        """
        position, values, moved = self.judge(state, base, shown, y, lam, leader, habits, groups)
        stage, window = self.stage, state.sets
        cost = None if self.needs is None or not teaches else self.needs(base, shown, y)
        if not teaches:
            position, stage, window = (position[0], state.position[1]), None, None
        if window is not None:
            weighed = window.weigh(base, y)
        if stage is not None:
            stage.taught(state, base, y)
        state.position = position
        if moved:
            state.groups.update(moved)
        if window is not None:
            window.observe(weighed)
        if self.rules.split or not -inf < lam < inf:
            state.count(self.lams(lam), leader, values)
        if cost is not None and state.watch is not None:
            now, held = state.watch
            need, error, value, size = cost
            state.watch = take(now, held, need, error, value, size, others), held
        losses: tuple[float, ...] = values
        return losses

    def judge(
        self, state: State, base: Any, shown: Any, y: Any, lam: Any, leader: int, habits: Memory,
        groups: Any = (),
    ) -> Any:  # fmt: skip
        """Where the risks would stand after a label, and the losses; changes nothing.

        And where those of the groups of its row would, by name.
        """
        evidence: Any
        if self.rules.partly:
            evidence = y.outcomes(shown, lam)
        elif self.rules.members == 1:
            evidence = not shown.contains(y) if self.counts else (shown, y)
        elif self.counts:
            evidence = tuple([not part.contains(y) for part in shown.parts])
        else:
            evidence = tuple([(part, y) for part in shown.parts])
        stage, window = self.stage, state.sets
        reading = base if window is None else (window, base)
        if stage is not None:
            reading = base[stage.begins : stage.ends]
        position, values = self.learn(
            self.numbers, state.position, reading, evidence, y, lam, leader, habits
        )
        self._check(state.position[0], position[0], values, lam)
        if not groups:
            return position, values, ()
        moved = []
        for name, own in groups:
            before, each = state.groups[name], self.groups.numbers
            after, losses = self.groups.judge(each, before, reading, evidence, y, lam, own)
            self._check(before, after, losses, lam)
            moved.append((name, after))
        return position, values, moved

    def lams(self, lam: Any) -> tuple[float, ...]:
        """The λ of the set that each risk judges."""
        links = self.rules.links
        if not self.rules.split:
            return (lam,) * len(links)
        return tuple([lam[link.member] for link in links])

    def _check(self, before: Any, after: Any, values: tuple[float, ...], lam: Any) -> None:
        """Raises the error of a loss or a step rule that broke a promise."""
        lams = self.lams(lam) if self.rules.split else (lam,) * len(values)
        for place, value in enumerate(values):
            name, declared, _, step = promise = self.promises[place]
            old, risk = before[place], after[place]
            lam = lams[place]
            if self.rules.partly and value != value:
                continue
            inside = type(value) is float and declared[0] <= value <= declared[1]
            if risk[3] != old[3]:  # there was nothing to judge
                if self.counts:
                    raise LossError(f"{name} promises a number, got {nan}")
            elif not (inside and -inf < lam < inf):
                promise.check(value, lam)
            theta = risk[0]
            if theta - theta != 0.0:
                raise InputError(f"the θ of {step} must be finite, got {theta}")
            if len(risk[7]) != len(old[7]):
                check_memory(risk[7], len(old[7]), name)
            if len(risk[8]) != len(old[8]):
                check_memory(risk[8], len(old[8]), step)


_plans: dict[int, tuple[Any, Plan]] = {}


def begun(controller: Controller) -> State:
    """The state before the first step, which nobody else holds."""
    return plan(controller).first.copy()


def plan(controller: Controller) -> Plan:
    """The plan of a controller."""
    key = id(controller)
    found = _plans.get(key)
    if found is None or found[0]() is not controller:
        found = ref(controller, lambda _: _plans.pop(key, None)), _plan(controller)
        _plans[key] = found
    return found[1]


def _plan(controller: Controller) -> Plan:
    for risk in controller.risks:
        if risk.step is None:
            raise InputError(
                f"the risk {risk.name} has no step rule yet: give step=steps.Fixed(γ), or let "
                "setpoint.burn_in choose γ from past predictions and labels"
            )
        if turns(risk.loss, risk.level):
            _check_turn(controller, risk)
    sets, stage = controller.sets, controller.correction
    try_out(controller)
    counts = all(isinstance(risk.loss, Counts) for risk in controller.risks)
    rules = rules_of(controller, counts)
    aim, learn, drop, *rest = (_shared if scalar(controller) else _made)(rules)
    empties = not never_empty(sets)
    reader = controller.reader
    return Plan(
        rules,
        numbers_of(controller),
        aim,
        learn,
        drop,
        reader.read,
        None if stage is None else staged(controller, stage),
        isinstance(sets, Draws) and sets.draws,
        counts,
        any(isinstance(r.step, Accounts) and r.step.two_sided for r in controller.risks),
        tuple(
            Promise(risk.name, declaration(risk.loss), empties, type(risk.step).__name__)
            for risk in controller.risks
        ),
        Groups(
            _refusal(controller), numbers_of(controller, group=True)[0], new_group(controller),
            *rest,
        ),
        _needs(controller) if controller.watched else None,
        reader.forecast if isinstance(reader, Forecasts) else None,
        not isinstance(sets, Measured | InParts),
        controller.init(),
        {},
    )  # fmt: skip


def _needs(controller: Controller) -> Any:
    """What a label cost, as a function of its base, its set and itself: see `family.Priced`."""
    sets, stage, order = whole_of(controller.sets), controller.correction, order_of(controller.sets)
    first, last = outermost(order) if order else (0, 0)
    given_by = stage.given if isinstance(stage, Rescores | Rebases) else None
    if isinstance(sets, Priced):

        def priced(base: Any, shown: Any, y: Any) -> tuple[float, float, float, float] | None:
            shown = shown.parts[last] if order else shown
            cost = sets.needs(base, shown, y)
            if cost is None:
                return None
            given = cost
            if given_by is not None:
                given = sets.needs(given_by(base), shown, y) or cost
            return cost[0], given[0], cost[1], cost[2]

        return priced
    reader = controller.reader
    forecast = reader.forecast if isinstance(reader, Forecasts) else None

    def needs(base: Any, shown: Any, y: float) -> tuple[float, float, float, float] | None:
        lower = shown.parts[first].lower if order else shown.lower
        upper = shown.parts[last].upper if order else shown.upper
        width = upper - lower
        if not 0.0 <= width < MOST:
            return None
        need = abs(y - 0.5 * (lower + upper))
        error = need if forecast is None else abs(y - forecast(base))
        return need, error if error == error else need, y, width

    return needs


def _refusal(controller: Controller) -> str | None:
    """Why risks cannot be held in groups too; None where they can."""
    combine, several = controller.combine, len(controller.risks) > 1
    for risk in controller.risks:
        if isinstance(risk.step, Accounts) and risk.step.two_sided:
            return (
                "groups make sets larger than a risk asks for, and a two-sided account promises "
                "not too few misses either: leave out two_sided, or groups"
            )
        if declaration(risk.loss).grows:
            return (
                f"groups make sets larger, and {risk.name} grows with the set: control it over "
                "all rows, without groups"
            )
    if several and not combine.covers_each:
        return (
            f"{type(combine).__name__} takes the middle of what risks ask for, so none would be "
            "controlled in a group: use combine.Max(), or leave out groups"
        )
    if several and (combine.empty_if == "some" or combine.anti_windup is not None):
        return (
            'empty_if="some" and anti_windup are about the risks of all rows together: leave them '
            "out, or groups"
        )
    return None


def _check_turn(controller: Controller, risk: Risk) -> None:
    """A loss that rises again where sets are too large is held only where it falls."""
    stretch, sets = controller.stretch, controller.sets
    why = (
        f"{risk.name} rises again where the set is too large, and at the full set it is above the "
        f"level {risk.level:g}: θ would run there and stay"
    )
    lifted = len(controller.risks) > 1 and controller.combine.anti_windup is not None
    if stretch.move is not None or lifted:
        raise InputError(
            f"{why}; its bounds keep λ from there, but not with a stretch that moves or with "
            "anti_windup: leave these out"
        )
    top, highest = (None if risk.bounds is None else risk.bounds[1]), sets.bounds()
    open_end = inf if highest is None else stretch.inverse(highest[1], stretch.init())
    if top is None or top >= open_end:
        raise InputError(
            f"{why}. Give bounds=(m, M) with M where it is least, below {open_end:g}, or let "
            "setpoint.burn_in find them from past predictions and labels; got "
            f"bounds={risk.bounds}"
        )


def _made(rules: Rules) -> Recursion:
    return recursion(rules, lambda closure: closure)


_shared = lru_cache(maxsize=256)(_made)
