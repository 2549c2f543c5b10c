"""The text of bulk loops, written from a controller's scalar rules.

Live, a step is a few function calls on one state. In bulk it is the same functions in a loop over
arrays. Where cells run side by side the text has choices instead of branches, so that a compiler
can take several cells in one instruction; where time runs, it branches, so that a processor can
guess the outcome and run ahead.

    along     time runs innermost, the state stays in registers: replaying tapes
    fleet     streams run innermost, each with its own data
    sweep     the same for one configuration after the other, with tallies instead of traces
    aim       one row of sets for many streams, and
    learn     one row of labels
"""

import re
from collections.abc import Iterable, Sequence

from setpoint.bulk.vectors import Layout
from setpoint.stretches import exponential, identity, shifted_exponential, shifted_identity

__all__ = ["TALLIES", "aim", "along", "fleet", "learn", "sweep", "tally"]


# A step. Every name is a local float.


def _indent(lines: Iterable[str], depth: int) -> list[str]:
    return ["    " * depth + line for line in lines]


def _tuple(names: Iterable[str]) -> str:
    return "(" + "".join(f"{name}, " for name in names) + ")"


def _group(names: Iterable[str], prefix: str) -> list[str]:
    return [name for name in names if name.startswith(prefix + "_")]


def _choose(target: str, condition: str, value: str) -> str:
    """`target = value` where the condition holds; everywhere if there is none."""
    return (
        f"{target} = {value} if {condition} else {target}" if condition else f"{target} = {value}"
    )


def _lams(layout: Layout) -> list[str]:
    """The λ of each risk, the one they make together, and which risk leads."""
    risks = range(layout.risks)
    phi = f"phi({_tuple(_group(layout.params, 'phi'))}, {_tuple(layout.memory('stretch'))}, "
    lines = [f"lam{i} = {phi}theta{i})" for i in risks]
    if layout.risks == 1:
        return [*lines, "lam = lam0"]
    lines += [f"lam = merge({_tuple(f'lam{i}' for i in risks)})", "leader, lead = 0, lam0"]
    for i in risks[1:]:
        lines += [
            _choose("leader", f"lam{i} > lead", str(i)),
            _choose("lead", f"lam{i} > lead", f"lam{i}"),
        ]
    return lines


def _saturation(layout: Layout) -> list[str]:
    """Whether the safeguard chooses the set."""
    risks = range(layout.risks)
    low = [f"(theta{i} < bottom{i})" for i in risks]
    lines = [
        "is_full = " + " | ".join(f"(theta{i} > top{i})" for i in risks),
        f"is_empty = (not is_full) & ({(' | ' if layout.some else ' & ').join(low)})",
    ]
    if layout.risks > 1:
        lines.append(f"is_torn = is_full & ({' | '.join(low)})")
    return lines


# φ of a large θ or memory may be infinite; then the set is the full or the empty one, although
# θ is within its bounds. Below these sizes the library's stretches are finite.
_LARGE = {shifted_identity: 1e300, exponential: 600.0, shifted_exponential: 600.0}


def _overflows(layout: Layout) -> bool:
    """Whether λ can be infinite although θ is within its bounds."""
    phi = layout.rules["phi"]
    return not (phi is identity or (phi is exponential and layout.risks == 1))


def _outside(layout: Layout) -> str:
    """Whether the safeguard may choose the next set; True where that cannot be told."""
    risks = range(layout.risks)
    found = [f"(theta{i} > top{i}) | (theta{i} < bottom{i})" for i in risks]
    if _overflows(layout):
        large = _LARGE.get(layout.rules["phi"])
        if large is None:
            return "True"
        found += [f"(theta{i} > {large}) | (theta{i} < -{large})" for i in risks]
        found += [f"({n} > 1e300) | ({n} < -1e300)" for n in layout.memory("stretch")]
    return " | ".join(found)


def _ends(layout: Layout) -> list[str]:
    """λ → the ends, cut to the support."""
    lines = [f"lo, hi = ends({_tuple(layout.locals)}, lam)"]
    if layout.cuts:
        lines.append(_choose("lo", "lo < cut_low", "cut_low"))
        lines.append(_choose("hi", "hi > cut_high", "cut_high"))
    return lines


def _aim(layout: Layout) -> list[str]:
    """θ → λ, with a choice where a stream would branch."""
    return [
        *_saturation(layout),
        *_lams(layout),
        *([_choose("leader", "is_torn", "-1")] if layout.risks > 1 else []),
        "lam = inf if is_full else (-inf if is_empty else lam)",
        *(["is_full, is_empty = lam == inf, lam == -inf"] if _overflows(layout) else []),
    ]


def _show(layout: Layout) -> list[str]:
    """λ → the ends of the set, with choices."""
    return [
        *_ends(layout),
        "is_nothing = is_empty | ((not is_full) & (lo > hi))",
        "lo = cut_low if is_full else (inf if is_nothing else lo)",
        "hi = cut_high if is_full else (-inf if is_nothing else hi)",
    ]


def _aim_and_show(layout: Layout) -> list[str]:
    """θ → λ → the ends of the set, with branches."""
    several = layout.risks > 1
    return [
        *_saturation(layout),
        "if is_full:",
        "    lam, lo, hi = inf, cut_low, cut_high",
        *(["    leader = -1 if is_torn else 0"] if several else []),
        "elif is_empty:",
        "    lam, lo, hi = -inf, inf, -inf",
        *(["    leader = 0"] if several else []),
        "else:",
        *_indent(_lams(layout), 1),
        *_indent(_set(layout), 1),
    ]


def _set(layout: Layout) -> list[str]:
    """λ → the ends of the set, with branches."""
    found = [*_ends(layout), "if lo > hi:", "    lo, hi = inf, -inf"]
    if not _overflows(layout):
        return found
    return [
        "if (lam < inf) & (lam > -inf):",
        *_indent(found, 1),
        "elif lam > 0.0:",
        "    is_full, lo, hi = True, cut_low, cut_high",
        "else:",
        "    is_empty, lo, hi = True, inf, -inf",
    ]


def _narrowed(layout: Layout, narrow: bool) -> list[str]:
    """The ends as they are shown where the data are float32: the support is rounded outwards."""
    if not narrow:
        return []
    rounded = "lo, hi = float64(float32(lo)), float64(float32(hi))"
    if not layout.cuts:
        return [rounded]
    return [
        "is_lowest, is_highest = lo <= cut_low, hi >= cut_high",
        rounded,
        _choose("lo", "is_lowest", "out_low"),
        _choose("hi", "is_highest", "out_high"),
    ]


def _judge_and_step(layout: Layout, missed: str) -> list[str]:
    """The losses, and where they would take the θ's."""
    lines = []
    for i in range(layout.risks):
        stepping, judging = layout.memory(f"stepping{i}"), layout.memory(f"judging{i}")
        judge, step = _group(layout.params, f"judge{i}"), _group(layout.params, f"step{i}")
        excess = (f"level{i}", f"value{i}") if layout.grows[i] else (f"value{i}", f"level{i}")
        lines += [
            f"value{i}, after_judging{i} = judge{i}({_tuple(judge)}, {_tuple(judging)}, {missed})",
            f"excess{i} = {' - '.join(excess)}",
            f"after{i}, after_stepping{i} = "
            f"step{i}({_tuple(step)}, theta{i}, {_tuple(stepping)}, excess{i}, 0.0, None)",
        ]
    return lines


def _move(layout: Layout, condition: str) -> list[str]:
    """The stretch's next memory, by the excess of the leading risk."""
    stretch, params = layout.memory("stretch"), _tuple(_group(layout.params, "phi"))
    return [
        "excess = excess0",
        *(_choose("excess", f"leader == {i}", f"excess{i}") for i in range(1, layout.risks)),
        f"distance = score({_tuple(layout.locals)}, y)",
        f"after_stretch = move({params}, {_tuple(stretch)}, excess, distance, lam)",
        *(_choose(name, condition, f"after_stretch[{i}]") for i, name in enumerate(stretch)),
    ]


def _keep(layout: Layout, condition: str) -> list[str]:
    """θ's and memories moved on, totals counted, slack risks lifted."""
    lines = []
    for i in range(layout.risks):
        lines.append(_choose(f"theta{i}", condition, f"after{i}"))
        for memory in (f"stepping{i}", f"judging{i}"):
            lines += [
                _choose(name, condition, f"after_{memory}[{j}]")
                for j, name in enumerate(layout.memory(memory))
            ]
        lines.append(
            f"total{i} += " + (f"value{i} if {condition} else 0.0" if condition else f"value{i}")
        )
    if layout.lifts:
        lines.append("highest = theta0")
        lines += [
            _choose("highest", f"theta{i} > highest", f"theta{i}") for i in range(1, layout.risks)
        ]
        lines.append("floor = highest - delta")
        for i in range(layout.risks):
            low = f"theta{i} < floor"
            lines += [
                f"is_low = ({condition}) & ({low})" if condition else f"is_low = {low}",
                _choose(f"lifts{i}", "is_low", f"lifts{i} + 1.0"),
                _choose(f"lifted{i}", "is_low", f"lifted{i} + (floor - theta{i})"),
                _choose(f"theta{i}", "is_low", "floor"),
            ]
    return lines


def _learn(layout: Layout) -> list[str]:
    """The losses, the next θ's and the next memories where y was seen, with choices."""
    lines = ["seen = y == y", "missed = not ((lo <= y) & (y <= hi))"]
    lines += _judge_and_step(layout, "missed")
    if layout.moves:
        lines.append("calm = seen & (not is_full) & (not is_empty)")
        lines += _move(layout, "calm")
    return [*lines, *_keep(layout, "seen")]


def _learn_known(layout: Layout, missed: bool) -> list[str]:
    """The same where y was seen and its place is known, with branches.

    Whether y was missed is a constant here, so that whatever follows from it alone is computed
    once for the whole loop.
    """
    lines = _judge_and_step(layout, str(missed))
    if layout.moves:
        lines += ["if not (is_full | is_empty):", *_indent(_move(layout, ""), 1)]
    return [*lines, *_keep(layout, "")]


# What a loop without traces keeps of each cell. The first part reads an interval, the second
# counts it; a set without ends has a size for its length, and nothing below or above it.
_MEASURE = """
length = hi - lo if lo < hi else 0.0
is_whole = (lo <= cut_low) & (hi >= cut_high)
is_nothing = (lo > hi) | (lo == inf) | (hi == -inf)
below, above = lo - y, y - hi
apart = (below if below > 0.0 else 0.0) + (above if above > 0.0 else 0.0)
near = (-below if below < 0.0 else 0.0) + (-above if above < 0.0 else 0.0)
"""

_TALLY = """
is_finite = length < inf
tally_observed += 1.0
tally_length += length if is_finite else 0.0
tally_finite += 1.0 if is_finite else 0.0
tally_full += 1.0 if is_whole else 0.0
tally_empty += 1.0 if is_nothing else 0.0
tally_near += near
tally_apart += apart
"""

_MISSED = """
tally_misses += 1.0
tally_streaks += 1.0 if tally_counter == 0.0 else 0.0
tally_counter += 1.0
tally_counters += tally_counter
tally_longest = tally_counter if tally_counter > tally_longest else tally_longest
"""

TALLIES = tuple(dict.fromkeys(re.findall(r"^tally_(\w+)", _TALLY + _MISSED, re.MULTILINE)))
"""What a loop without traces keeps of each cell: `near` and `apart` are how far y was from the ends
inside and outside, `counter` the misses in a row until now and `counters` their sum."""


def tally() -> str:
    """One step counted in plain Python: of an interval, or of a set that has a size."""
    arguments = "held, lo, hi, y, missed, cut_low, cut_high, size, is_whole, is_nothing"
    loaded = [f"tally_{n} = held[{k}]" for k, n in enumerate(TALLIES)]
    return "\n".join(
        [
            f"def tally({arguments}):",
            "    if size is None:",
            *_indent(_MEASURE.strip().splitlines(), 2),
            "    else:",
            "        length, near, apart = size, nan, nan",
            *_indent([*loaded, *_TALLY.strip().splitlines()], 1),
            "    if missed:",
            *_indent(_MISSED.strip().splitlines(), 2),
            "    else:",
            "        tally_counter = 0.0",
            f"    held[:] = {_tuple(f'tally_{n}' for n in TALLIES)}",
        ]
    )


# The loops.


def _load(names: Sequence[str], vector: str, index: str) -> list[str]:
    return [f"{name} = {vector}[{k}{index}]" for k, name in enumerate(names)]


def _changed(layout: Layout) -> list[str]:
    """The fields a step may change, counts apart."""
    fixed = ("judged", "full", "empty", "torn", "missing")
    kept = ("stretch",) if not layout.moves else ()
    lifted = () if layout.lifts else ("lifts", "lifted")
    return [n for n in layout.fields if n not in fixed and not n.startswith((*kept, *lifted))]


def along(layout: Layout, *, narrow: bool = False) -> str:
    """Each stream of a tape from its first row to its last, with everything written down.

    `out_covered` must come filled with True.
    """
    risks, columns = range(layout.risks), (*layout.locals, "y")
    counts = ["judged", "full", "empty", "torn", "missing"]
    inner = [
        *(f"{name} = float64({name}_in[t])" for name in (*layout.locals, "y")),
        *_aim_and_show(layout),
        *_narrowed(layout, narrow),
        "lower_[t], upper_[t], lam_[t] = lo, hi, lam",
        *(f"theta_{i}[t] = theta{i}" for i in risks),
        "if not (y == y):",
        *(f"    loss_{i}[t] = nan" for i in risks),
        "    covered_[t] = False",
        "    missing += 1.0",
        "    continue",
        "if (lo <= y) & (y <= hi):",
        *_indent(_learn_known(layout, False), 1),
        "else:",
        *_indent(_learn_known(layout, True), 1),
        # Written on one side only: a compiler then keeps the branch, and the next θ need not
        # wait for this λ.
        "    covered_[t] = False",
        *(f"loss_{i}[t] = value{i}" for i in risks),
        "judged += 1.0",
        "if is_full:",
        "    full += 1.0",
        *(["    torn += 1.0 if leader < 0 else 0.0"] if layout.risks > 1 else []),
        "elif is_empty:",
        "    empty += 1.0",
    ]
    return "\n".join(
        [
            f"def along(p, z, offsets, {', '.join(f'col_{n}' for n in columns)}, "
            "out_lower, out_upper, out_lam, out_covered, out_theta, out_loss):",
            *_indent(_load(layout.params, "p", ""), 1),
            "    for s in range(len(offsets) - 1):",
            "        first, last = offsets[s], offsets[s + 1]",
            *_indent(_load(layout.fields, "z", ", s"), 2),
            *_indent([f"{n}_in = col_{n}[first:last]" for n in columns], 2),
            *_indent(
                [f"{n}_ = out_{n}[first:last]" for n in ("lower", "upper", "lam", "covered")], 2
            ),
            *_indent([f"theta_{i} = out_theta[{i}, first:last]" for i in risks], 2),
            *_indent([f"loss_{i} = out_loss[{i}, first:last]" for i in risks], 2),
            "        for t in range(last - first):",
            *_indent(inner, 3),
            *_indent(
                [f"z[{layout.fields.index(n)}, s] = {n}" for n in (*_changed(layout), *counts)], 2
            ),
        ]
    )


def sweep(layout: Layout, *, narrow: bool = False) -> str:
    """One configuration after the other over the same tape, with tallies instead of traces.

    A stream begins in `begin`, where each configuration has a state of its own, or, if `which`
    is not negative, in that column of `given`. What the last one ends in is left in `z`.
    """
    risks, columns = range(layout.risks), (*layout.locals, "y")
    doubted = [i for i in risks if layout.doubted[i]]
    kept = [f"{name}{i}" for i in doubted for name in ("least", "most", "at_full", "at_empty")]
    inner = [
        *(f"{name} = float64(col_{name}[t])" for name in columns),
        *_aim_and_show(layout),
        *_narrowed(layout, narrow),
        "if not (y == y):",
        "    missing += 1.0",
        "    continue",
        *_MEASURE.strip().splitlines(),
        *_TALLY.strip().splitlines(),
        "if (lo <= y) & (y <= hi):",
        *_indent(_learn_known(layout, False), 1),
        "    tally_counter = 0.0",
        "else:",
        *_indent(_learn_known(layout, True), 1),
        *_indent(_MISSED.strip().splitlines(), 1),
        "judged += 1.0",
        *(line for i in doubted for line in _extremes(layout, i)),
        "if is_full:",
        "    full += 1.0",
        *(["    torn += 1.0 if leader < 0 else 0.0"] if layout.risks > 1 else []),
        "elif is_empty:",
        "    empty += 1.0",
    ]
    arguments = ["p", "z", "begin", "given", "which", "offsets", *(f"col_{n}" for n in columns)]
    return "\n".join(
        [
            f"def sweep({', '.join([*arguments, 'tally', 'totals', 'extremes'])}):",
            "    for j in range(z.shape[1]):",
            *_indent(_load(layout.params, "p", ", j"), 2),
            *_indent([f"tally_{n} = tally[{k}, j]" for k, n in enumerate(TALLIES)], 2),
            *_indent([f"{n} = extremes[{k}, j]" for k, n in enumerate(kept)], 2),
            *_indent(_load(layout.fields, "begin", ", j"), 2),
            "        for s in range(len(offsets) - 1):",
            "            own = which[s]",
            "            if own < 0:",
            *_indent(_load(layout.fields, "begin", ", j"), 4),
            "            else:",
            *_indent(_load(layout.fields, "given", ", own"), 4),
            "            tally_counter = 0.0",
            "            for t in range(offsets[s], offsets[s + 1]):",
            *_indent(inner, 4),
            *_indent([f"totals[{i}, j] += total{i}" for i in risks], 3),
            *_indent([f"z[{k}, j] = {n}" for k, n in enumerate(layout.fields)], 2),
            *_indent([f"tally[{k}, j] = tally_{n}" for k, n in enumerate(TALLIES)], 2),
            *_indent([f"extremes[{k}, j] = {n}" for k, n in enumerate(kept)], 2),
        ]
    )


def _extremes(layout: Layout, i: int) -> list[str]:
    """The least and the largest value of a loss that is a user's own, and its worst value on full
    and on empty sets: what its promises are held against."""
    full, empty = ("<", ">") if layout.grows[i] else (">", "<")
    asked = {"least": ("<", ""), "most": (">", "")}
    asked |= {"at_full": (full, "is_full & "), "at_empty": (empty, "is_empty & ")}
    return [
        _choose(f"{name}{i}", f"{where}(value{i} {sign} {name}{i})", f"value{i}")
        for name, (sign, where) in asked.items()
    ]


def _wrong_prediction(layout: Layout) -> str:
    """Whether a prediction is none: NaN, or an uncertainty that is not finite or negative."""
    if layout.columns == ("centre", "low", "high"):
        scales = " | ".join(f"(not (x{i} >= 0.0)) | (x{i} == inf)" for i in (1, 2))
        return f"(x0 - x0 != 0.0) | {scales}"
    return " | ".join(f"({name} != {name})" for name in layout.locals)


def _wrong_label(layout: Layout) -> str:
    """Whether a label is infinite or outside the support; NaN is not wrong."""
    return f"(y == inf) | (y == -inf){_beyond(layout)}"


def _beyond(layout: Layout) -> str:
    return " | (y < cut_low) | (y > cut_high)" if layout.cuts else ""


def fleet(layout: Layout, *, narrow: bool = False) -> str:
    """Many streams side by side, one row of a time-major tape after the other.

    `told[0]` is 0 at the end, or the number of the row, from 1, at which a wrong prediction or
    label ended it. As long as no θ is outside its bounds, and almost always none is, nothing
    asks for the safeguard; whatever is rare is looked for with one question a stream.
    """
    columns, changed = (*layout.locals, "y"), _changed(layout)
    risks, stretch = range(layout.risks), layout.memory("stretch")
    data = [f"{n} = float64(row_{n}[j])" for n in columns]
    thetas = [f"{n} = z_{n}[j]" for n in (*stretch, *(f"theta{i}" for i in risks))]
    wrong = _wrong_prediction(layout)
    rare = f"{_outside(layout)} | {wrong} | (y - y != 0.0){_beyond(layout)}"

    def step(aim: list[str]) -> list[str]:
        return [
            *data,
            *(f"{n} = z_{n}[j]" for n in dict.fromkeys([*stretch, *changed])),
            *aim,
            *_show(layout),
            *_narrowed(layout, narrow),
            "lower_[j], upper_[j] = lo, hi",
            *_learn(layout),
            *(f"z_{n}[j] = {n}" for n in changed),
            f"rare += 1 if {rare} else 0",
        ]

    count = [
        *data,
        *thetas,
        *_aim(layout),
        "seen = y == y",
        "z_full[j] += 1.0 if seen & is_full else 0.0",
        "z_empty[j] += 1.0 if seen & is_empty else 0.0",
        *(["z_torn[j] += 1.0 if seen & (leader < 0) else 0.0"] if layout.risks > 1 else []),
    ]
    sort = [
        *data,
        *thetas,
        f"outside += 1 if {_outside(layout)} else 0",
        f"wrong += 1 if {wrong} | {_wrong_label(layout)} else 0",
        "hidden = 0.0 if y == y else 1.0",
        "z_missing[j] += hidden",
        "z_judged[j] -= hidden",
    ]
    arguments = ["p", "z", *(f"col_{n}" for n in columns), "out_lower", "out_upper", "told"]
    return "\n".join(
        [
            f"def fleet({', '.join(arguments)}):",
            *_indent([f"z_{n} = z[{k}]" for k, n in enumerate(layout.fields)], 1),
            *_indent(_load(layout.params, "p", ""), 1),
            "    steps, cells = col_y.shape",
            "    outside = 1",
            "    for t in range(steps):",
            *_indent([f"row_{n} = col_{n}[t]" for n in columns], 2),
            "        lower_, upper_ = out_lower[t], out_upper[t]",
            "        rare = 0",
            "        if outside > 0:",
            "            for j in range(cells):",
            *_indent(count, 4),
            "            for j in range(cells):",
            *_indent(step(_aim(layout)), 4),
            "        else:",
            "            for j in range(cells):",
            *_indent(step(["is_full, is_empty = False, False", *_lams(layout)]), 4),
            "        outside = 0",
            "        if rare > 0:",
            "            wrong = 0",
            "            for j in range(cells):",
            *_indent(sort, 4),
            "            if wrong > 0:",
            "                told[0] = t + 1",
            "                return",
            "    for j in range(cells):",
            "        z_judged[j] += steps",
        ]
    )


def aim(layout: Layout, *, rows: bool = False, narrow: bool = False) -> str:
    """One row of sets for many streams: all in their order, or those in `rows`.

    `told[0]` is the number of wrong predictions.
    """
    step = [
        *(f"{n} = float64(col_{n}[j])" for n in layout.locals),
        "s = rows[j]" if rows else "s = j",
        *(f"{n} = z[{layout.fields.index(n)}, s]" for n in layout.memory("stretch")),
        *(f"theta{i} = z[{layout.fields.index(f'theta{i}')}, s]" for i in range(layout.risks)),
        *_aim(layout),
        *_show(layout),
        *_narrowed(layout, narrow),
        "out_lower[j], out_upper[j], out_lam[j] = lo, hi, lam",
        *(["out_leader[j] = leader"] if layout.risks > 1 else []),
        f"wrong += 1 if {_wrong_prediction(layout)} else 0",
    ]
    arguments = ["p", "z", "rows", *(f"col_{n}" for n in layout.locals)]
    arguments += ["out_lower", "out_upper", "out_lam", "out_leader", "told"]
    return "\n".join(
        [
            f"def {'aim_rows' if rows else 'aim'}({', '.join(arguments)}):",
            *_indent(_load(layout.params, "p", ""), 1),
            "    wrong = 0",
            "    for j in range(len(rows)):",
            *_indent(step, 2),
            "    told[0] = wrong",
        ]
    )


def learn(layout: Layout, *, rows: bool = False, narrow: bool = False) -> str:
    """One row of labels for many streams: NaN leaves a stream as it is.

    `told[0]` is the number of labels that are wrong or answer what does not wait; if there are
    any, nothing is done. `told[1]` is how many still wait.
    """
    place = {name: f"z[{k}, s]" for k, name in enumerate(layout.fields)}
    check = [
        "y = float64(col_y[j])",
        f"wrong += 1 if {_wrong_label(layout)} | ((y == y) & (not waits[j])) else 0",
    ]
    step = [
        *(f"{n} = float64(pre_{n}[j])" for n in layout.locals),
        "s = rows[j]" if rows else "s = j",
        "y, lam = float64(col_y[j]), col_lam[j]",
        "lo, hi = float64(col_lower[j]), float64(col_upper[j])",
        "is_full, is_empty = lam == inf, lam == -inf",
        *(["leader = col_leader[j]"] if layout.risks > 1 else []),
        *(f"{n} = {place[n]}" for n in _changed(layout)),
        *_learn(layout),
        *(f"{place[n]} = {n}" for n in _changed(layout)),
        *(f"out_loss[{i}, j] = value{i} if seen else nan" for i in range(layout.risks)),
        f"{place['judged']} += 1.0 if seen else 0.0",
        f"{place['full']} += 1.0 if seen & is_full else 0.0",
        f"{place['empty']} += 1.0 if seen & is_empty else 0.0",
    ]
    if layout.risks > 1:
        step.append(f"{place['torn']} += 1.0 if seen & (leader < 0) else 0.0")
    step += [
        "is_open = waits[j] & (not seen)",
        f"{place['missing']} += 1.0 if is_open & (not late) else 0.0",
        "is_open = is_open & late",
        "waits[j] = is_open",
        "left += 1 if is_open else 0",
    ]
    arguments = ["p", "z", "rows", *(f"pre_{n}" for n in layout.locals), "col_y", "late"]
    arguments += ["waits", "col_lower", "col_upper", "col_lam", "col_leader", "out_loss", "told"]
    return "\n".join(
        [
            f"def {'learn_rows' if rows else 'learn'}({', '.join(arguments)}):",
            *_indent(_load(layout.params, "p", ""), 1),
            "    wrong, left = 0, 0",
            "    for j in range(len(rows)):",
            *_indent(check, 2),
            "    told[0] = wrong",
            "    if wrong > 0:",
            "        return",
            "    for j in range(len(rows)):",
            *_indent(step, 2),
            "    told[1] = left",
        ]
    )
