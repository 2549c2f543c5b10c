"""Controllers as dicts and TOML: every part comes back, and errors name the key."""

import json
import math
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

import setpoint as sp
from setpoint import losses, regions, sets, spec, steps, stretches
from setpoint.errors import SpecError
from setpoint.sets.family import Members
from tests.test_conformance import EXAMPLES

INF = math.inf


pytestmark = pytest.mark.usefixtures("own_registry")


def risk(loss: Any = None, step: Any = None, **options: Any) -> sp.Risk:
    return sp.Risk(loss or losses.Miscoverage(), 0.1, step or steps.Fixed(0.05), **options)


PARTS: dict[str, list[Any]] = {
    role: [part for cls in spec._PARTS[role] for part in EXAMPLES[cls]]
    for role in ("sets", "losses", "steps", "stretches", "combine")
}
PARTS["losses"] = [loss for loss in PARTS["losses"] if not isinstance(loss, losses.Custom)]
PARTS["losses"].append(losses.ImageMiscoverage(regions.Mask(np.eye(3, 5, dtype=bool))))
PARTS["sets"] += [
    sets.QuantileScale((0.1, 0.5, 0.9), "open", (0.0, 1e300)),
    sets.Threshold(classes=("cat", 'a "quoted" dog', "")),
    sets.Threshold(classes=(3, 1, 2)),
    sets.Paths(24, totals=(6, 24), maximum=True, support=(0.0, INF)),
]
PARTS["steps"] += [steps.Fixed(1e-300), steps.Fixed(1 / 3)]
PARTS["stretches"] += [stretches.ScoreAdaptive(0.1), stretches.ErrorAdaptive(0.1, 0.0)]


def controllers() -> Iterator[sp.Controller]:
    widen = sets.Widen()
    for part in PARTS["sets"]:
        free = part.free if isinstance(part, Members) else (False,)
        held = steps.Account() if isinstance(part, sets.Fan) else None
        yield sp.Controller(part, [risk(step=steps.Measure() if own else held) for own in free])
    families = (widen, sets.Multilabel(), sets.PixelScale())
    for part in PARTS["losses"]:
        family = next(family for family in families if losses.fits(family, part) is None)
        yield sp.Controller(family, risk(part))
    yield from (sp.Controller(widen, risk(step=part)) for part in PARTS["steps"])
    yield from (sp.Controller(widen, risk(), part) for part in PARTS["stretches"])
    yield from (sp.Controller(widen, [risk(), risk()], None, part) for part in PARTS["combine"])
    yield sp.Controller(widen, sp.Risk(losses.Miscoverage(), 0.1))
    yield sp.intervals(0.8, recentre=False, period=24, support=(0.0, INF))
    yield sp.intervals(
        features=["hour", "sky"],
        categories={"sky": ["rain", "sun"]},
        support=None,
        whole_numbers=True,
    )
    yield sp.Controller(
        widen,
        [
            risk(start=1.25, bounds=(-2.0, INF), unjudged="zero"),
            risk(losses.MiscoverageCounter(3), bounds=(-1e-12, 1e300)),
        ],
    )


CONTROLLERS = list(controllers())


SCHEMA = Draft202012Validator(spec.schema())


def test_the_schema_is_one_and_takes_what_can_be_written() -> None:
    Draft202012Validator.check_schema(SCHEMA.schema)
    for controller in CONTROLLERS:
        SCHEMA.validate(tomllib.loads(spec.to_toml(controller)))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('part = "Widen"', 'part = "Widens"'),
        ('part = "Widen"', 'part = "Widen"\nwidth = 1.0'),
        ("level = 0.1", 'level = "0.1"'),
        ("level = 0.1", ""),
        ("gamma = 0.05", ""),
        ("bounds = [-20.0, 20.0]", "bounds = [-20.0]"),
    ],
)
def test_the_schema_refuses_what_from_toml_refuses(old: str, new: str) -> None:
    held = sp.Risk(losses.Miscoverage(), 0.1, steps.Fixed(0.05), bounds=(-20.0, 20.0))
    text = spec.to_toml(sp.Controller(sets.Widen(), held))
    assert old in text
    with pytest.raises(SpecError):
        spec.from_toml(text.replace(old, new))
    assert not SCHEMA.is_valid(tomllib.loads(text.replace(old, new)))


@pytest.mark.parametrize("works", [True, False])
def test_parts_of_an_installed_package_are_known_by_name(works: bool, tmp_path: Path) -> None:
    """A package on the path, with entry points as any build tool writes them."""
    info = tmp_path / "shop-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 1.0\n", "utf-8")
    name = "Shortfall" if works else "Missing"
    (info / "entry_points.txt").write_text(
        f"[setpoint.parts]\nlosses.Shortfall = shop:{name}\n", "utf-8"
    )
    (tmp_path / "shop.py").write_text(
        "from dataclasses import dataclass\n\n@dataclass(frozen=True)\nclass Shortfall:\n"
        "    scale: float\n    low, high = 0.0, 1.0\n"
        "    def __call__(self, shown, y):\n"
        "        return min(max(y - shown.upper, 0.0) / self.scale, 1.0)\n",
        "utf-8",
    )
    program = (
        "from setpoint import spec\n"
        "risk = {'loss': {'part': 'Shortfall', 'scale': 2.0}, 'level': 0.1}\n"
        "held = spec.from_dict({'sets': {'part': 'Widen'}, 'risks': [risk]})\n"
        "assert spec.from_toml(spec.to_toml(held)) == held\n"
        "assert 'Shortfall' in str(spec.schema())\n"
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": path},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (done.returncode == 0) is works, done.stderr
    assert works or "the part 'losses.Shortfall' of shop cannot be taken in" in done.stderr


def plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(type(k) is str and plain(v) for k, v in value.items())
    return all(map(plain, value)) if isinstance(value, list) else type(value) in PLAIN


PLAIN = (bool, int, float, str)


@pytest.mark.parametrize("controller", CONTROLLERS, ids=repr)
def test_a_controller_is_plain_and_comes_back_from_dicts_json_and_toml(
    controller: sp.Controller,
) -> None:
    described, text = spec.to_dict(controller), spec.to_toml(controller)
    assert plain(described)
    assert spec.from_dict(described) == spec.from_toml(text) == controller
    assert spec.from_dict(json.loads(json.dumps(described))) == controller
    assert tomllib.loads(text) == described


def test_reading_a_dict_leaves_it_as_it_is() -> None:
    described = spec.to_dict(CONTROLLERS[-1])
    kept = json.loads(json.dumps(described))
    spec.from_dict(described)
    assert described == kept


def test_the_shape_of_a_dict() -> None:
    stretch = stretches.ScoreAdaptive(0.1, -1.0, 1.0)
    assert spec.to_dict(sp.Controller(sets.Widen(), risk(bounds=(-2, 2)), stretch)) == {
        "sets": {"part": "Widen", "support": [-INF, INF]},
        "stretch": {
            "part": "ScoreAdaptive",
            "score": 0.1,
            "low": -1.0,
            "high": 1.0,
            "inner": {"part": "Identity"},
            "reading": "paper",
        },
        "combine": {"part": "Max", "empty_if": "every"},
        "risks": [
            {
                "loss": {"part": "Miscoverage"},
                "level": 0.1,
                "step": {"part": "Fixed", "gamma": 0.05},
                "bounds": [-2.0, 2.0],
                "unjudged": "skip",
            }
        ],
    }


def test_hand_written_toml_may_leave_out_what_has_a_default() -> None:
    text = """
    sets = { part = "Widen" }

    [[risks]]
    level = 0.1
    loss = { part = "Miscoverage" }
    step = { part = "Fixed", gamma = 1 }
    """
    assert spec.from_toml(text) == sp.Controller(
        sets.Widen(), sp.Risk(losses.Miscoverage(), 0.1, steps.Fixed(1.0))
    )


# Errors name the wrong key and the allowed ones


def described(**changes: Any) -> dict[str, Any]:
    return {
        "sets": {"part": "Widen"},
        "risks": [
            {
                "loss": {"part": "Miscoverage"},
                "level": 0.1,
                "step": {"part": "Fixed", "gamma": 0.1},
            }
        ],
        **changes,
    }


def one_risk(**changes: Any) -> dict[str, Any]:
    plain = described()
    plain["risks"][0].update(changes)
    return plain


@pytest.mark.parametrize(
    ("plain", "message"),
    [
        (
            described(set={}),
            "unknown key 'set' in the controller; allowed are 'combine', 'correction', 'risks', 's",
        ),
        ({"sets": {"part": "Widen"}}, "the controller lacks the key 'risks'; allowed are"),
        ({"risks": []}, "the controller lacks the key 'sets'; allowed are"),
        ("Widen", "the controller must be a table, got 'Widen'"),
        (described(risks={}), "risks must be a list of tables, got {}"),
        (described(risks=[]), r"the controller: risks must be a Risk or several of them, got \(\)"),
        (described(risks=[3]), r"risks\[0\] must be a table, got 3"),
        (described(sets="Widen"), "sets must be a table with a `part`, got 'Widen'"),
        (described(sets={}), "sets must be a table with a `part`, got {}"),
        (
            described(sets={"part": "Wide"}),
            r"sets.part must be one of .*'Widen'.*, got 'Wide'",
        ),
        (
            described(sets={"part": "Identity"}),
            r"sets.part must be one of .*'Widen'.*, got 'Identity'",
        ),
        (
            described(sets={"part": "setpoint.sets.Widen"}),
            r"sets.part must be one of .*'Widen'.*, got 'setpoint.sets.Widen'",
        ),
        (described(sets={"part": ["Widen"]}), r"sets.part must be one of .*, got \['Widen'\]"),
        (
            described(sets={"part": "Widen", "suport": [0, 1]}),
            "unknown key 'suport' in sets; allowed are 'part', 'support'",
        ),
        (
            described(sets={"part": "Widen", "support": [1, 0]}),
            r"sets: support must have low < high, got \(1.0, 0.0\)",
        ),
        (
            one_risk(levle=0.1),
            r"unknown key 'levle' in risks\[0\]; allowed are 'bounds', 'level', 'loss', 'member'",
        ),
        (
            described(risks=[{"loss": {"part": "Miscoverage"}}]),
            r"risks\[0\] lacks the key 'level'; allowed are",
        ),
        (one_risk(level=1.5), r"risks\[0\]: level must lie in the range of Miscoverage"),
        (one_risk(level="0.1"), r"risks\[0\]: level must be a number, got '0.1'"),
        (one_risk(bounds=[1.0]), r"risks\[0\]: bounds must be a pair"),
        (one_risk(bounds="wide"), r"risks\[0\]: bounds must be a pair"),
        (
            one_risk(step={"part": "Fixed", "gama": 1}),
            r"unknown key 'gama' in risks\[0\].step; allowed are 'gamma', 'part'",
        ),
        (one_risk(step={"part": "Fixed"}), r"risks\[0\].step lacks an option: .*'gamma'"),
        (one_risk(step={"part": "Fixed", "gamma": 0}), r"risks\[0\].step: gamma must be greater"),
        (
            one_risk(loss={"part": "Loss"}),
            r"risks\[0\].loss.part must be one of 'CentreFailure', 'C",
        ),
        (
            one_risk(loss={"part": "ImageMiscoverage", "region": {"part": "Corner"}}),
            r"loss.region.part must be one of 'Centre', 'Mask', 'Whole', got 'Corner'",
        ),
        (
            one_risk(loss={"part": "CentreFailure", "region": {"part": "Mask", "mask": []}}),
            r"loss.region: a mask must be a boolean array with height and width, got .* shape",
        ),
        (
            one_risk(loss={"part": "CentreFailure", "region": {"part": "Centre", "height": 2}}),
            r"loss.region: height is a share of the side, at most 1, got 2",
        ),
        (
            described(stretch={"part": "ScoreAdaptive", "score": 1, "inner": {"part": "Cube"}}),
            "stretch.inner.part must be one of .*'Identity', 'ScoreAdaptive', .*got 'Cube'",
        ),
        (
            described(stretch={"part": "ScoreAdaptive", "score": 1, "inner": "Identity"}),
            r"stretch: ScoreAdaptive.inner must be Identity\(\) or Exponential\(\)",
        ),
        (described(combine={"part": "Max", "empty_if": "any"}), "combine: empty_if must be one of"),
        (
            one_risk(start=5.0, bounds=[-1.0, 1.0]),
            r"the controller: the start of Miscoverage must lie in its bounds \[-1, 1\], got 5",
        ),
    ],
    ids=lambda value: None if isinstance(value, str) else repr(value)[:30],
)
def test_a_wrong_description_is_told_by_its_key(plain: Any, message: str) -> None:
    with pytest.raises(SpecError, match=message):
        spec.from_dict(plain)


def test_what_is_not_toml_is_refused_in_words() -> None:
    with pytest.raises(SpecError, match="not TOML: "):
        spec.from_toml("sets = {")


def test_a_function_cannot_be_written_down() -> None:
    controller = sp.Controller(sets.Widen(), risk(losses.Custom(max)))
    with pytest.raises(SpecError, match=r"Custom.function cannot be written down: got <built-in"):
        spec.to_dict(controller)


# Users' parts


@dataclass(frozen=True)
class Late:
    """A user's loss."""

    scale: float = 1.0
    unit: str = "days"
    window: tuple[float, float] = (0.0, INF)
    low, high = 0.0, 1.0

    def __call__(self, shown: Any, y: Any) -> float:
        return float(y > shown.upper)


def with_loss(loss: Any) -> sp.Controller:
    return sp.Controller(sets.Widen(), risk(loss))


def test_a_users_part_is_known_only_after_registration() -> None:
    controller = with_loss(Late())
    with pytest.raises(SpecError, match=r"make it known by spec.register\('losses', Late\)"):
        spec.to_dict(controller)
    with pytest.raises(SpecError, match=r"must be one of .*, got 'Late'"):
        spec.from_dict(one_risk(loss={"part": "Late"}))
    assert spec.register("losses", Late) is Late
    assert spec.from_toml(spec.to_toml(controller)) == controller


def test_a_wrong_registration_is_refused() -> None:
    with pytest.raises(SpecError, match=r"role must be one of .*'losses'.*, got 'loss'"):
        spec.register("loss", Late)
    with pytest.raises(SpecError, match="must be a dataclass, got <class 'object'>"):
        spec.register("losses", object)

    @dataclass(frozen=True)
    class Miscoverage:
        low, high = 0.0, 1.0

    with pytest.raises(SpecError, match="the name 'Miscoverage' in losses is taken by"):
        spec.register("losses", Miscoverage)
    spec.register("losses", Late)
    spec.register("losses", Late)  # again, as a notebook does


@given(st.text(st.characters(exclude_categories=["Cs"])), st.floats(allow_nan=False))
def test_any_text_and_any_number_come_back_from_toml(text: str, value: float) -> None:
    spec._known["losses"]["Late"] = Late
    controller = with_loss(Late(scale=value, unit=text, window=(value, INF)))
    written = spec.to_toml(controller)
    assert spec.from_toml(written) == controller
    assert tomllib.loads(written) == spec.to_dict(controller)


def test_numpy_numbers_are_written_as_plain_ones() -> None:
    spec.register("losses", Late)
    controller = with_loss(Late(scale=np.float64(0.5)))
    plain = spec.to_dict(controller)["risks"][0]["loss"]["scale"]
    assert type(plain) is float
    assert spec.from_toml(spec.to_toml(controller)) == controller


def test_an_option_may_have_a_greek_name() -> None:
    @dataclass(frozen=True)
    class Greek:
        β: float = 0.1
        low, high = 0.0, 1.0

        def __call__(self, shown: Any, y: Any) -> float:
            return 0.0

    spec.register("losses", Greek)
    controller = with_loss(Greek(0.3))
    assert spec.from_dict(spec.to_dict(controller)) == controller
    assert spec.from_toml(spec.to_toml(controller)) == controller


def test_parts_within_parts_come_back() -> None:
    @dataclass(frozen=True)
    class Twice:
        inner: Any
        low, high = 0.0, 1.0

        def __call__(self, shown: Any, y: Any) -> float:
            return float(self.inner(shown, y))

    spec.register("losses", Twice)
    controller = with_loss(Twice(Twice(losses.Miscoverage())))
    assert spec.from_toml(spec.to_toml(controller)) == controller
