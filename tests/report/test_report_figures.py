"""The figures: their points beside slow loops, long traces, odd traces."""

import html
import json
import math
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint import Tape, Trace, replay, report
from setpoint.errors import InputError

FIGURES = [
    report.intervals,
    report.lengths,
    report.windows,
    report.groups,
]


def named(figure: Any, name: str) -> Any:
    """The last curve of that name; of a band, that is the lower end."""
    return [each for each in figure.data if each.name == name][-1]


def test_crosses_are_the_misses_and_bands_the_sets(single: Trace) -> None:
    figure = report.intervals(single, start=100, stop=350)
    rows = range(100, 350)
    y = single.tape.y
    missed = [r for r in rows if not math.isnan(y[r]) and not single.covered[r]]
    assert missed
    assert np.allclose(named(figure, "miss").y, y[missed])
    assert list(named(figure, "miss").x) == [str(single.tape.time[r])[:16] for r in missed]
    upper, lower = (each.y for each in figure.data if each.name.endswith("interval"))
    assert np.allclose(lower, single.lower[100:350])
    assert np.allclose(upper, single.upper[100:350])


def test_full_and_empty_sets_can_be_drawn() -> None:
    rows = 60
    tape = Tape.from_arrays(
        {"lower": [-9.0] * rows, "upper": [9.0] * rows}, [50.0] * 30 + [0.0] * 30
    )
    risk = sp.Risk(sp.losses.Miscoverage(), 0.5, sp.steps.Fixed(1.0), bounds=(-2, 2))
    trace = replay(sp.Controller(sp.sets.Widen(), risk), tape)
    assert trace.full.any()
    assert trace.empty.any()
    figure = report.intervals(trace)
    upper, lower = (each.y for each in figure.data if each.name.endswith("interval"))
    assert np.isfinite(upper).all()
    assert np.isfinite(lower).all()
    low, high = figure.layout.yaxis.range
    assert (upper[trace.full] > high).all()
    assert (lower[trace.full] < low).all()
    assert (upper[trace.empty] == lower[trace.empty]).all()
    told = f"Of the 60 sets, {trace.full.sum()} are full and {trace.empty.sum()} are empty"
    assert told in figure.layout.meta["caption"]


def test_ends_that_crossed_without_the_safeguard_are_counted_as_empty() -> None:
    tape = Tape.from_arrays({"lower": [-1.0] * 40, "upper": [1.0] * 40}, [0.0] * 40)
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(1.0), bounds=(-50, 50))
    trace = replay(sp.Controller(sp.sets.Widen(), risk), tape)
    crossed = sum(low > high for low, high in zip(trace.lower, trace.upper, strict=True))
    assert crossed > 0
    assert not trace.empty.any()
    told = report.intervals(trace).layout.meta["caption"]
    assert f"Of the 40 sets, 0 are full and {crossed} are empty" in told
    assert report.metrics(trace)["empty"] == crossed / 40


def test_long_traces_keep_every_peak_in_few_points() -> None:
    rows = 60_000
    world = np.random.default_rng(2)
    y = world.normal(size=rows)
    y[12_345], y[23_456] = 40.0, -30.0
    tape = Tape.from_arrays({"lower": [-1.5] * rows, "upper": [1.5] * rows}, y)
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.05), bounds=(-9, 9))
    trace = replay(sp.Controller(sp.sets.Widen(), risk), tape)
    figure = report.intervals(trace)
    label, miss = named(figure, "actual value"), named(figure, "miss")
    assert len(label.y) < 8_000
    assert (label.y.max(), label.y.min()) == (40.0, -30.0)
    upper = next(each for each in figure.data if each.name.endswith("interval"))
    assert upper.y.max() == pytest.approx(trace.upper.max())
    assert np.allclose(label.y[-5_000:], y[-5_000:], atol=1e-6)
    late = np.flatnonzero(~trace.covered[-5_000:]) + rows - 5_000
    assert np.isin(late, miss.x).all()
    assert "The last 5,000 rows and those seen first" in figure.layout.meta["caption"]
    worst = report.metrics(trace)["risks"][0]["windows"][0]["coverage"]
    drawn = named(report.windows(trace), "window").y
    assert np.isclose(drawn, worst, atol=1e-6).any()
    assert len(drawn) < 3_000


def test_lengths_are_those_of_a_loop(labelled: Trace) -> None:
    figure = report.lengths(labelled)
    sizes = [len(each) for each in labelled.shown or ()]
    means = [np.mean(sizes[i : i + 20]) for i in range(0, 500, 20)]
    assert np.allclose(named(figure, "mean").y, means, atol=1e-6)
    drawn = report.intervals(labelled)
    assert np.allclose(named(drawn, "size of the set").y, sizes)
    assert len(named(drawn, "miss").x) == int((~labelled.covered).sum())


@pytest.mark.parametrize(("name", "by", "keys"), [
    ("several", "group", [0, 1, 2]),
    ("several", "size", ["narrowest", "2nd fifth", "3rd fifth", "4th fifth", "widest"]),
    ("single", "hour", list(range(24))),
    ("labelled", "size", [1, 2, 3, 4]),
])  # fmt: skip
def test_groups_are_dots_beside_what_was_asked(
    name: str, by: str, keys: list[Any], request: pytest.FixtureRequest
) -> None:
    trace = request.getfixturevalue(name)
    figure, rows = report.groups(trace, by=by), report.metrics(trace)["groups"][by]["rows"]
    assert [row["key"] for row in rows] == keys
    assert list(named(figure, "coverage").x) == list(map(str, keys))
    assert list(named(figure, "coverage").y) == [each["coverage"] for each in rows]
    assert figure.layout.shapes[0].y0 == pytest.approx(1.0 - trace.controller.risks[0].level)
    if by == "hour":
        hours = trace.tape.time.astype("datetime64[h]").astype(int) % 24
        assert rows[7]["coverage"] == trace.covered[(hours == 7) & trace.observed].mean()
    if by == "size" and name == "several":
        widths = trace.upper - trace.lower
        parts = [trace.tape.rows(stream) for stream in trace.tape.streams]
        share = np.empty(len(widths))
        for part in parts:  # series may have unlike units
            share[part] = widths[part] / widths[part][np.isfinite(widths[part])].mean()
        narrow = share <= np.quantile(share[np.isfinite(share)], 0.2)
        assert rows[0]["coverage"] == trace.covered[narrow & trace.observed].mean()


def test_several_risks_and_nested_levels_are_drawn() -> None:
    world = np.random.default_rng(3)
    tape = Tape.from_arrays({"lower": [-1.0] * 700, "upper": [1.0] * 700}, world.normal(size=700))

    def risk(level: float) -> sp.Risk:
        step = sp.steps.Fixed(0.1)
        return sp.Risk(sp.losses.Miscoverage(), level, step, bounds=(-9, 9))

    nested = sp.Controller(sp.sets.Nested(sp.sets.Widen(), 2), [risk(0.2), risk(0.05)])
    trace = replay(nested, tape)
    figure = report.intervals(trace)
    inner, outer = (
        next(each for each in figure.data if each.name == name) for name in ("level 1", "level 2")
    )
    assert np.allclose(inner.y, trace.levels.upper[0])
    assert np.allclose(outer.y, trace.levels.upper[1])
    for index, level in enumerate((0.2, 0.05)):
        told = report.windows(trace, risk=index).layout.meta["caption"]
        assert f"the target, {100 * (1 - level):.2f} %" in told
        assert report.metrics(trace)["risks"][index]["level"] == level
    with pytest.raises(InputError, match="risk must be the number of a risk, from 0 to 1, got 2"):
        report.windows(trace, risk=2)


@pytest.mark.parametrize("draw", FIGURES, ids=lambda draw: draw.__name__)
def test_every_figure_has_a_title_and_a_caption(draw: Any, single: Trace, several: Trace) -> None:
    for trace in (single, several):
        figure = draw(trace)
        assert figure.layout.title.text
        assert figure.layout.meta["caption"].endswith(".")
    assert "series" in figure.layout.title.text
    assert "north" in draw(several, "north").layout.title.text
    with pytest.raises(InputError, match="no stream 'east'"):
        draw(several, "east")


@pytest.mark.parametrize("draw", FIGURES[:-1], ids=lambda draw: draw.__name__)
def test_figures_of_little_or_nothing(draw: Any) -> None:
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.01))
    controller = sp.Controller(sp.sets.Widen(), risk)
    for y in ([math.nan] * 3, [0.5]):
        ends = {"lower": [0.0] * len(y), "upper": [1.0] * len(y)}
        trace = replay(controller, Tape.from_arrays(ends, y))
        draw(trace)
    with pytest.raises(InputError, match="told apart by none: they need groups or times that are"):
        report.groups(trace)
    with pytest.raises(InputError, match="a report needs rows, the trace has none"):
        draw(replay(controller, trace.tape[:0]))


def test_a_long_history_opens_at_its_worst_window_and_an_axis_that_shows_the_band() -> None:
    world = np.random.default_rng(3)
    level = np.linspace(0.0, 1_000.0, 9_000)
    y = level + world.normal(size=9_000)
    y[1_000:1_020] += 9.0
    tape = Tape.from_arrays({"point": level}, y)
    trace = replay(sp.intervals(0.9), tape)
    worst = report.metrics(trace)["risks"][0]["windows"][0]
    figure = report.intervals(trace)
    axis, (low, high) = figure.layout.xaxis, figure.layout.yaxis.range
    assert axis.range[0] <= worst["start"] < worst["stop"] <= axis.range[1]
    assert tuple(axis.rangeslider.range) == (0, 8_999)
    assert high - low < 100.0
    drawn = named(figure, "actual value")
    seen = (drawn.x >= worst["start"]) & (drawn.x <= worst["stop"])
    assert np.allclose(drawn.y[seen], y[worst["start"] : worst["stop"] + 1])  # row by row


def texts(value: Any) -> list[str]:
    """Every string of a figure that plotly may show."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for key in value if key != "meta" for text in texts(value[key])]
    return [text for each in value for text in texts(each)] if isinstance(value, list) else []


@pytest.mark.parametrize("draw", FIGURES, ids=lambda draw: draw.__name__)
def test_no_text_of_a_user_is_markup_for_plotly(draw: Any, hostile: Trace) -> None:
    for stream in (None, *hostile.tape.streams):
        for text in texts(json.loads(draw(hostile, stream).to_json())):
            shown = text.removesuffix("<extra></extra>")
            assert "<" not in shown, text
            assert "$" not in shown, text
            assert "%{meta" not in shown, text
    names = [html.unescape(name) for name in named(report.groups(hostile), "coverage").x]
    assert sorted(names) == sorted(set(hostile.tape.group.tolist()))


def test_no_line_and_no_band_crosses_time_without_rows() -> None:
    """A third of 6,000 hourly rows, a year of nothing, the rest; old rows are drawn together."""
    random = np.random.default_rng(0)
    hours = np.datetime64("2020-01-01T00", "m") + 60 * np.arange(6_000)
    hours[2_000:] += np.timedelta64(365, "D")
    y = random.standard_normal(6_000)
    ends = {"lower": np.full(6_000, -1.0), "upper": np.full(6_000, 1.0)}
    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.1), bounds=(-9.0, 9.0))
    tape = sp.Tape.from_arrays(ends, y, time=hours)
    trace = sp.replay(sp.Controller(sp.sets.Widen(), risk), tape)
    before, after = str(hours[1_999]), str(hours[2_000])
    for draw in (report.intervals, report.lengths, report.windows):
        lines = [each for each in draw(trace).data if each.mode == "lines"]
        assert lines
        for line in lines:
            x = [str(each) for each in line.x]
            crossing = [
                (one, two)
                for one, two, a, b in zip(x, x[1:], line.y, line.y[1:], strict=False)
                if one <= before and two >= after and a == a and b == b
            ]
            assert not crossing, (draw.__name__, line.name)
            assert np.isfinite(line.y).sum() > len(line.y) - 3
    bands = [each for each in report.lengths(trace).data if each.name == "10 to 90 %"]
    assert [each.showlegend for each in bands] == [False, True, False, False]


def test_the_price_of_a_model_that_dies_is_drawn_with_its_alarms() -> None:
    rng = np.random.default_rng(2)
    y = rng.normal(size=1500)
    wrong = rng.normal(size=1500) * np.where(np.arange(1500) < 1000, 0.2, 6.0)
    trace = sp.replay(sp.intervals(), sp.Tape.from_arrays({"point": y + wrong}, y))
    figure = report.price(trace)
    drawn = {curve.name: curve for curve in figure.data}
    model = np.array(drawn["model"].y, float)
    assert np.nanmax(model[:-1]) > 4.0 > 2.0 > np.nanmin(model)
    assert min(drawn["alarm"].x) > 1000
    assert "model" in drawn["alarm"].text
    assert "Alarms: " in figure.layout.meta["caption"]
    assert figure.layout.yaxis.type == "log"
    assert len(figure.layout.shapes) == 1  # the reference
