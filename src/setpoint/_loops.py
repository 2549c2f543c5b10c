"""The text of bulk loops, written from a controller's scalar rules.

Live, a step is a few function calls on one state. In bulk it is the same functions in a loop over
arrays. Where cells run side by side the text has choices instead of branches, so that a compiler
can take several cells in one instruction; where time runs, it branches, so that a processor can
guess the outcome and run ahead.

    along     time runs innermost, the state stays in registers: replaying tapes
    fleet     streams run innermost, each with its own data
    sweep     configurations run innermost, all on the same data
    aim       one row of sets for many streams, and
    learn     one row of labels
"""

import re
from collections.abc import Iterable, Sequence

from setpoint._layout import Layout

__all__ = ["TALLIES", "aim", "along", "fleet", "learn", "sweep"]


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
        *_indent(_ends(layout), 1),
        "    if lo > hi:",
        "        lo, hi = inf, -inf",
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


_TALLY = """
length = hi - lo if lo < hi else 0.0
is_finite = length < inf
tally_observed += 1.0
tally_misses += 1.0 if missed else 0.0
tally_length += length if is_finite else 0.0
tally_finite += 1.0 if is_finite else 0.0
tally_full += 1.0 if (lo <= cut_low) & (hi >= cut_high) else 0.0
tally_empty += 1.0 if lo > hi else 0.0
below, above = lo - y, y - hi
low_part = (1.0 - tail) * below if below > 0.0 else tail * -below
high_part = (1.0 - tail) * above if above > 0.0 else tail * -above
tally_pinball += 0.5 * (low_part + high_part)
apart = (below if below > 0.0 else 0.0) + (above if above > 0.0 else 0.0)
tally_winkler += length + apart / tail
tally_streaks += 1.0 if missed & (tally_counter == 0.0) else 0.0
tally_counter = tally_counter + 1.0 if missed else 0.0
tally_counters += tally_counter
tally_longest = tally_counter if tally_counter > tally_longest else tally_longest
"""

TALLIES = tuple(dict.fromkeys(re.findall(r"^tally_(\w+)", _TALLY, re.MULTILINE)))
"""What a loop without traces keeps of each cell; `tail` is half the nominal miscoverage."""


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
        *(f"{name} = float({name}_in[t])" for name in (*layout.locals, "y")),
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




def fleet(layout: Layout, *, narrow: bool = False) -> str:
    """Many streams side by side, one row of a time-major tape after the other."""
    return _across(layout, "fleet", narrow, own_data=True, tallies=False)


def sweep(layout: Layout, *, narrow: bool = False) -> str:
    """Many configurations side by side on one tape, with tallies instead of traces."""
    return _across(layout, "sweep", narrow, own_data=False, tallies=True)


def _across(layout: Layout, name: str, narrow: bool, *, own_data: bool, tallies: bool) -> str:
    columns = (*layout.locals, "y")
    changed = _changed(layout)
    rows = [f"z_{n} = z[{k}]" for k, n in enumerate(layout.fields)]
    params = _load(layout.params, "p", "" if own_data else ", j")
    data = [f"{n} = float(col_{n}[t{', j' if own_data else ''}])" for n in columns]
    thetas = [f"theta{i} = z_theta{i}[j]" for i in range(layout.risks)]
    outside = " | ".join(
        f"(theta{i} > top{i}) | (theta{i} < bottom{i})" for i in range(layout.risks)
    )
    count = [
        *([] if own_data else params),
        *(data if own_data else []),
        *(f"{n} = z_{n}[j]" for n in layout.memory("stretch")),
        *thetas,
        *_aim(layout),
        "seen = y == y",
        "z_full[j] += 1.0 if seen & is_full else 0.0",
        "z_empty[j] += 1.0 if seen & is_empty else 0.0",
        *(["z_torn[j] += 1.0 if seen & (leader < 0) else 0.0"] if layout.risks > 1 else []),
    ]
    step = [
        *([] if own_data else params),
        *(data if own_data else []),
        *(f"{n} = z_{n}[j]" for n in layout.memory("stretch") if n not in changed),
        *(f"{n} = z_{n}[j]" for n in changed),
        *_aim(layout),
        *_show(layout),
        *_narrowed(layout, narrow),
        *(["out_lower[t, j], out_upper[t, j] = lo, hi"] if own_data else []),
        *_learn(layout),
        *(f"z_{n}[j] = {n}" for n in changed),
        f"outside += 1 if {outside} else 0",
        *(["unseen += 0 if seen else 1"] if own_data else []),
    ]
    if tallies:
        step += [f"tally_{n} = tally[{k}, j]" for k, n in enumerate(TALLIES)]
        step += _TALLY.strip().splitlines()
        step += [f"tally[{k}, j] = tally_{n}" for k, n in enumerate(TALLIES)]
    arguments = ["p", "z", *(f"col_{n}" for n in columns)]
    arguments += ["out_lower", "out_upper"] if own_data else ["tally", "tails"]
    unseen = [
        "if unseen > 0:",
        "    for j in range(cells):",
        "        hidden = 0.0 if col_y[t, j] == col_y[t, j] else 1.0",
        "        z_missing[j] += hidden",
        "        z_judged[j] -= hidden",
    ]
    skipped = [
        "if not (y == y):",
        "    for j in range(cells):",
        "        z_missing[j] += 1.0",
        "        z_judged[j] -= 1.0",
        "    continue",
    ]
    return "\n".join(
        [
            f"def {name}({', '.join(arguments)}):",
            *_indent(rows, 1),
            *_indent(params if own_data else [], 1),
            "    cells = z.shape[1]",
            "    steps = col_y.shape[0]",
            "    outside, unseen = 1, 0",
            "    for t in range(steps):",
            *_indent([] if own_data else [*data, *skipped], 2),
            "        if outside > 0:",
            "            for j in range(cells):",
            *_indent(count, 4),
            "        outside, unseen = 0, 0",
            "        for j in range(cells):",
            *_indent(["tail = tails[j]"] if tallies else [], 3),
            *_indent(step, 3),
            *_indent(unseen if own_data else [], 2),
            "    for j in range(cells):",
            "        z_judged[j] += steps",
        ]
    )


def aim(layout: Layout, *, rows: bool = False, narrow: bool = False) -> str:
    """One row of sets for many streams: all in their order, or those in `rows`."""
    step = [
        *(f"{n} = float(col_{n}[j])" for n in layout.locals),
        "s = rows[j]" if rows else "s = j",
        *(f"{n} = z[{layout.fields.index(n)}, s]" for n in layout.memory("stretch")),
        *(f"theta{i} = z[{layout.fields.index(f'theta{i}')}, s]" for i in range(layout.risks)),
        *_aim(layout),
        *_show(layout),
        *_narrowed(layout, narrow),
        "out_lower[j], out_upper[j], out_lam[j] = lo, hi, lam",
        *(["out_leader[j] = leader"] if layout.risks > 1 else []),
    ]
    arguments = ["p", "z", "rows", *(f"col_{n}" for n in layout.locals)]
    arguments += ["out_lower", "out_upper", "out_lam", "out_leader"]
    return "\n".join(
        [
            f"def {'aim_rows' if rows else 'aim'}({', '.join(arguments)}):",
            *_indent(_load(layout.params, "p", ""), 1),
            "    for j in range(len(rows)):",
            *_indent(step, 2),
        ]
    )


def learn(layout: Layout, *, rows: bool = False, narrow: bool = False) -> str:
    """One row of labels for many streams: NaN leaves a stream as it is."""
    place = {name: f"z[{k}, s]" for k, name in enumerate(layout.fields)}
    step = [
        *(f"{n} = float(pre_{n}[j])" for n in layout.locals),
        "s = rows[j]" if rows else "s = j",
        "y, lam = float(col_y[j]), col_lam[j]",
        "lo, hi = float(col_lower[j]), float(col_upper[j])",
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
    arguments = ["p", "z", "rows", *(f"pre_{n}" for n in layout.locals), "col_y"]
    arguments += ["col_lower", "col_upper", "col_lam", "col_leader", "out_loss"]
    return "\n".join(
        [
            f"def {'learn_rows' if rows else 'learn'}({', '.join(arguments)}):",
            *_indent(_load(layout.params, "p", ""), 1),
            "    for j in range(len(rows)):",
            *_indent(step, 2),
        ]
    )
