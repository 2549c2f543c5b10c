"""Controllers that are given to a job: for the predictions named, and the only word on the goal."""

from pathlib import Path

import numpy as np
import pytest

import setpoint as sp
from setpoint import jobs
from setpoint.errors import InputError


def controller(family: object, level: float = 0.1) -> sp.Controller:
    risk = sp.Risk(sp.losses.Miscoverage(), level, sp.steps.Fixed(0.1), bounds=(-20.0, 20.0))
    return sp.Controller(family, risk)


@pytest.fixture
def numbers(tmp_path: Path) -> Path:
    y = np.random.default_rng(0).normal(size=200)
    lines = [f"-1.0,1.0,0.0,{each:.3f}" for each in y]
    path = tmp_path / "numbers.csv"
    path.write_text("\n".join(["lo,hi,p,y", *lines]))
    return path


@pytest.mark.parametrize(
    ("family", "columns", "told"),
    [
        (sp.sets.Lower(), {"upper": "hi"}, "lower bounds alone.*upper bounds alone"),
        (sp.sets.Upper(), {"lower": "lo"}, "upper bounds alone.*lower bounds alone"),
        (sp.sets.Lower(), {"point": "p"}, "lower bounds alone.*both ends or a point"),
        (sp.sets.Widen(), {"lower": "lo"}, "both ends or a point.*lower bounds alone"),
    ],
)
def test_a_controller_of_another_side_is_refused(
    numbers: Path, family: object, columns: dict[str, str], told: str
) -> None:
    asked = jobs.Columns("y", **columns)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=told):
        jobs.calibrate(numbers, asked, controller=controller(family))
    with pytest.raises(InputError, match=told):
        jobs.report(numbers, asked, controller=controller(family))


def test_classes_in_another_order_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "classes.csv"
    path.write_text("\n".join(["p_cat,p_dog,y", *["0.7,0.3,cat", "0.2,0.8,dog"] * 50]))
    held = controller(sp.sets.Threshold(classes=("cat", "dog")))
    asked = jobs.Columns("y", probabilities=("p_dog", "p_cat"))
    with pytest.raises(InputError, match=r"cat, dog in this order.*dog, cat"):
        jobs.calibrate(path, asked, controller=held)
    found = jobs.calibrate(
        path, jobs.Columns("y", probabilities=("p_cat", "p_dog")), controller=held
    )
    assert found.trace.tape.y[:2].tolist() == [0.0, 1.0]


def test_a_goal_beside_a_controller_is_refused_and_the_job_tells_the_controllers(
    numbers: Path,
) -> None:
    columns, held = jobs.Columns("y", lower="lo", upper="hi"), controller(sp.sets.Widen(), 0.2)
    with pytest.raises(InputError, match="leave out level, or the controller"):
        jobs.calibrate(numbers, columns, jobs.Goal(level=0.3), controller=held)
    with pytest.raises(InputError, match="leave out risk, gamma"):
        jobs.run(numbers, "y", jobs.Goal("mc", gamma=3.0), controller=held)
    assert (
        jobs.calibrate(numbers, columns, controller=held).metrics()["job"]["goal"]["level"] == 0.2
    )
