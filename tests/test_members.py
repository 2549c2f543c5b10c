"""Several sets of one prediction, and risks that judge one of them: every way of running them."""

from math import nextafter
from typing import Any

import numpy as np
import pytest

import setpoint as sp
from setpoint.errors import InputError
from setpoint.losses import Miscoverage, MiscoverageCounter
from setpoint.sets import Lower, Multiplied, Nested, Scale, TwoSided, Upper, Widen
from setpoint.steps import Account, Fixed


def risk(level: float, step: Any = None, **options: Any) -> sp.Risk:
    bounds = None if isinstance(step, Account) else (-9.0, 9.0)
    return sp.Risk(Miscoverage(), level, step or Fixed(0.5), bounds=bounds, **options)


CONTROLLERS = {
    "sides": sp.Controller(TwoSided((-8.0, 8.0)), [risk(0.05), risk(0.2)]),
    "sides with accounts": sp.Controller(TwoSided(), [risk(0.1, Account()), risk(0.02, Account())]),
    "two risks on one side": sp.Controller(
        TwoSided(),
        [
            risk(0.1, member=1),
            sp.Risk(MiscoverageCounter(), 0.3, Fixed(0.4), bounds=(-9.0, 9.0), member=0),
            risk(0.05, member=0),
        ],
    ),
    "levels": sp.Controller(Nested(Widen(), 3), [risk(0.5), risk(0.2), risk(0.05)]),
    "levels with accounts, corrected": sp.Controller(
        Nested(Multiplied(), 2),
        [risk(0.2, Account()), risk(0.05, Account())],
        correction=sp.intervals(coverage=0.9).correction,
    ),
    "some levels free": sp.intervals(coverage=[0.5, 0.8, 0.9], guarded=[0.5, 0.9], period=24),
    "quantiles, two guarded": sp.quantiles([0.05, 0.25, 0.5, 0.75, 0.95], guarded=[0.25, 0.95]),
}


def data(rows: int = 400) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    centre = np.clip(np.cumsum(rng.normal(0.0, 0.3, rows)), -6.0, 6.0)
    scale = 0.5 + (np.arange(rows) > rows // 2)
    y = np.clip(centre + scale * rng.standard_t(3, rows), -7.9, 7.9)
    return np.stack([centre - 1.0, centre + 1.0], axis=1), y


@pytest.mark.parametrize("delay", [0, 4])
@pytest.mark.parametrize("name", CONTROLLERS)
def test_compiled_code_plain_code_and_a_live_stream_show_the_same(
    name: str, delay: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("numba")
    controller, (ends, y) = CONTROLLERS[name], data()
    tape = sp.Tape.from_arrays({"lower": ends[:, 0], "upper": ends[:, 1]}, y).late(delay)
    traces = []
    for plain in ("1", "0"):
        monkeypatch.setenv("SETPOINT_PLAIN", plain)
        traces.append(sp.replay(controller, tape))
    mine, other = traces
    for field in ("lower", "upper", "lam", "covered", "theta", "losses"):
        assert np.array_equal(getattr(mine, field), getattr(other, field)), field
    assert np.array_equal(mine.members, other.members)
    stream, parts = sp.Stream(controller), []
    for row in range(len(y)):
        parts.append(stream.predict(tuple(ends[row]), id=row).parts)
        if row >= delay:
            stream.update(y[row - delay], id=row - delay)
    stream.update_many([(row, y[row]) for row in range(len(y) - delay, len(y))])
    assert mine.members.lower.T.tolist() == [[part.lower for part in each] for each in parts]
    assert mine.members.upper.T.tolist() == [[part.upper for part in each] for each in parts]
    assert mine.state.position == stream.state.position
    assert repr(mine.certificate()) == repr(stream.certificate())


def test_nested_sets_have_columns_by_their_coverage() -> None:
    controller, (ends, y) = CONTROLLERS["levels"], data(50)
    tape = sp.Tape.from_arrays({"lower": ends[:, 0], "upper": ends[:, 1]}, y)
    frame = sp.replay(controller, tape).to_frame()
    levels = [f"{end}_{level}" for level in (50, 80, 95) for end in ("lower", "upper")]
    assert [name for name in frame.columns if "_" in name] == levels
    assert (frame["lower_95"] == frame["lower"]).all()
    assert (frame["lower_50"] >= frame["lower_80"]).all()
    assert (frame["upper_80"] <= frame["upper_95"]).all()


def test_a_nested_set_below_its_bound_shows_the_one_inside_it() -> None:
    """Its own set would be empty, and what is inside it cannot be larger than it."""
    inner, outer = risk(0.5, start=2.0), risk(0.4, start=-9.0)
    stream = sp.Stream(sp.Controller(Nested(Widen(), 2), [inner, outer]))
    stream.predict((0.0, 1.0))
    stream.update(0.5)
    assert stream.theta == (1.75, -9.2)
    shown = stream.predict((0.0, 1.0))
    assert shown[0] == shown[1] == sp.sets.Interval(-1.75, 2.75)
    assert stream.update(0.5) == (0.0, 0.0)
    assert stream.certificate().empty == 0


def test_a_member_is_full_where_the_one_inside_it_is() -> None:
    """And then its label cannot miss: its account is not exposed by it."""
    inner, outer = (risk(level, Account(limit=1.0)) for level in (0.2, 0.05))
    stream = sp.Stream(sp.Controller(Nested(Scale(), 2), [inner, outer]))
    shown = stream.predict((0.0, 1.0, 1.0))
    while shown[0].length < np.inf:
        stream.update(0.0 if shown[0].lower > 0.0 else nextafter(shown[0].upper, np.inf))
        shown = stream.predict((0.0, 1.0, 1.0))
    assert stream.receipt().lam == (np.inf, np.inf)
    assert shown[1].length == np.inf
    for own in stream.certificate().risks:
        assert own.worst == own.account


@pytest.mark.parametrize(
    ("family", "members", "message"),
    [
        (TwoSided(), (None,), "TwoSided needs 2 risks, one for each set, got 1"),
        (TwoSided(), (0, 0), r"their members must be 0 to 1, got \[0, 0\]"),
        (TwoSided(), (0, 2), r"their members must be 0 to 1, got \[0, 2\]"),
        (TwoSided(), (0, None), r"their members must be 0 to 1, got \[0, None\]"),
        (Widen(), (1,), r"Widen shows 1 set, .* got \[1\]"),
        (Nested(Widen(), 2), (1, 0), "the smallest set first: levels must fall"),
    ],
)
def test_a_risk_judges_a_set_that_is_shown(family: Any, members: Any, message: str) -> None:
    levels = (0.2, 0.1)
    risks = [risk(level, member=m) for level, m in zip(levels, members, strict=False)]
    with pytest.raises(InputError, match=message):
        sp.Controller(family, risks)


def test_each_side_of_two_is_the_family_of_one_end() -> None:
    assert TwoSided().member(0) == Lower()
    assert TwoSided().member(1) == Upper()
    assert TwoSided().member(0).at((1.0, 5.0), 0.5).lower == 0.5
    assert TwoSided().member(1).at((1.0, 5.0), 0.5).upper == 5.5
