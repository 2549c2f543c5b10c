"""The folder of a ledger: whose it is, and under which options it goes on."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import setpoint as sp
from setpoint.errors import PendingFull, StateError
from tests.ledgers import CONTROLLER, RISK, events, reference, same


def test_a_folder_keeps_its_options_and_is_read_under_them(tmp_path: Path) -> None:
    with sp.Ledger(tmp_path, CONTROLLER, max_pending=2, overflow="expire") as ledger:
        ledger.handle([{"id": n, "prediction": [0, 1]} for n in range(6)])
        ledger.handle([{"id": 5, "y": None}])
    with sp.Ledger(tmp_path) as ledger:
        stream = ledger.streams[""]
        assert list(stream.pending) == [4]
        assert (stream.state.expired, stream.state.missing) == (4, 1)


@pytest.mark.parametrize("options", [{"max_pending": 4}, {"overflow": "expire"}])
@pytest.mark.parametrize("damaged", [False, True])
def test_other_options_hold_for_all_that_comes_after(
    tmp_path: Path, options: dict[str, Any], damaged: bool
) -> None:
    def predictions(stream: str, start: int) -> list[dict[str, Any]]:
        ids = range(start, start + 6)
        return [{"stream": stream, "id": id, "prediction": [0, 1]} for id in ids]

    with sp.Ledger(tmp_path, CONTROLLER, max_pending=2) as ledger:
        told = ledger.handle(predictions("a", 0))
        assert sum("error" in answer for answer in told) == 4
    plain = {name: sp.Stream(CONTROLLER, **{"max_pending": 2, **options}) for name in "ab"}
    for event in predictions("a", 0)[:2]:
        plain["a"].predict(event["prediction"], event["id"])
    for opening in ({**options}, {}, {**options}):
        with sp.Ledger(tmp_path, **opening) as ledger:
            start = 10 * ledger._serial
            for event in predictions("a", start) + predictions("b", start):
                (answer,) = ledger.handle([event])
                try:
                    plain[event["stream"]].predict(event["prediction"], event["id"])
                    assert "error" not in answer
                except PendingFull:
                    assert "as many as max_pending allows" in answer["error"]
            same(ledger, plain)
    if damaged:  # then it is read from the beginning, under the options of each event
        (whole,) = tmp_path.glob("streams-*")
        whole.write_bytes(b"")
        with pytest.warns(RuntimeWarning, match="nothing is lost"):
            ledger = sp.Ledger(tmp_path)
    else:
        ledger = sp.Ledger(tmp_path)
    with ledger:
        same(ledger, plain)


def test_fewer_may_wait_only_if_no_more_do(tmp_path: Path) -> None:
    with sp.Ledger(tmp_path, CONTROLLER) as ledger:
        ledger.handle([{"stream": "a", "id": n, "prediction": [0, 1]} for n in range(3)])
    told = r'3 predictions wait in .*, stream "a", and max_pending = 2 is less: answer or drop'
    with pytest.raises(StateError, match=told):
        sp.Ledger(tmp_path, max_pending=2)
    with sp.Ledger(tmp_path) as ledger:
        ledger.handle([{"stream": "a", "id": 1, "y": 0.5}])
    with sp.Ledger(tmp_path, max_pending=2) as ledger:
        answers = ledger.handle([{"stream": name, "prediction": [0, 1]} for name in "aabbb"])
    assert ["error" in answer for answer in answers] == [True, True, False, False, True]


@pytest.mark.parametrize("given", [False, True])
def test_a_controller_that_was_changed_in_the_folder_is_refused(
    tmp_path: Path, given: bool
) -> None:
    made = events(10)
    with sp.Ledger(tmp_path, CONTROLLER) as ledger:
        ledger.handle(made)
    file = tmp_path / "controller.toml"
    before = file.read_text()
    file.write_text(before.replace("gamma = 0.05", "gamma = 5.0"))
    told = (
        r"controller.toml was changed, .*: its risks\[0\].step.gamma is 5.0 and was 0.05; set it "
        "back, or begin another folder"
    )
    with pytest.raises(StateError, match=told):
        sp.Ledger(tmp_path, CONTROLLER if given else None)
    file.write_text(f"# what is held\n{before}")  # it says the same
    with sp.Ledger(tmp_path, CONTROLLER if given else None) as ledger:
        same(ledger, reference(made))
    file.unlink()
    with pytest.raises(StateError, match=r"belongs to another controller: its risks\[0\].level"):
        sp.Ledger(tmp_path, replace(CONTROLLER, risks=replace(RISK, level=0.2)))
    with sp.Ledger(tmp_path, CONTROLLER) as ledger:
        same(ledger, reference(made))


def test_a_folder_without_its_options_is_refused_once_it_holds_something(tmp_path: Path) -> None:
    made = events(10)
    with sp.Ledger(tmp_path, CONTROLLER, max_pending=7) as ledger:
        ledger.handle(made)
    kept = (tmp_path / "options.json").read_bytes()
    (tmp_path / "options.json").unlink()
    for given in (None, CONTROLLER):
        with pytest.raises(StateError, match=r"lacks options.json, .*restore it from a copy"):
            sp.Ledger(tmp_path, given)
    (tmp_path / "options.json").write_bytes(kept)
    (tmp_path / "controller.toml").unlink()  # the options know the controller too
    with sp.Ledger(tmp_path) as ledger:
        same(ledger, reference(made))


def test_the_folder_of_a_job_does_not_become_a_ledger(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text("{}")
    (tmp_path / "controller.toml").write_text(sp.spec.to_toml(CONTROLLER))
    for controller in (None, CONTROLLER):
        with pytest.raises(StateError, match=r"results of a job .*: name another, and .*toml as"):
            sp.Ledger(tmp_path, controller)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["controller.toml", "metrics.json"]
    sp.Ledger(tmp_path / "own", CONTROLLER).close()
    (tmp_path / "own" / "metrics.json").write_text("{}")
    with pytest.raises(StateError, match=r"results of a job .*: move what the job wrote out of it"):
        sp.Ledger(tmp_path / "own")


def test_a_folder_belongs_to_one_controller_and_one_process(tmp_path: Path) -> None:
    with pytest.raises(StateError, match="holds no ledger yet"):
        sp.Ledger(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    with sp.Ledger(tmp_path, CONTROLLER) as ledger:
        with pytest.raises(StateError, match="another process works on the ledger"):
            sp.Ledger(tmp_path)
        ledger.handle([{"id": 1, "prediction": [0, 1]}])
    with pytest.raises(StateError, match="is closed"):
        ledger.handle([{"id": 2, "prediction": [0, 1]}])
    custom = sp.Controller(sp.sets.Widen(), sp.Risk(sp.losses.Custom(lambda s, y: 0.0), 0.1))
    with pytest.raises(StateError, match="a ledger keeps its controller as text"):
        sp.Ledger(tmp_path / "custom", custom)


@pytest.mark.parametrize(
    ("other", "told"),
    [
        (
            sp.Controller(sp.sets.Widen(), replace(RISK, level=0.2), CONTROLLER.stretch),
            r"its risks\[0\].level is 0.1, that of the controller given is 0.2",
        ),
        (
            sp.Controller(sp.sets.Widen(), RISK),
            r'its stretch is "ErrorAdaptive", that of the controller given is "Identity"',
        ),
        (
            sp.Controller(sp.sets.Widen(), RISK, replace(CONTROLLER.stretch, low=-2.0)),
            r"its stretch.low is -1.0, that of the controller given is -2.0",
        ),
        (
            sp.Controller(sp.sets.Widen((0.0, 9.0)), RISK, CONTROLLER.stretch),
            r"its sets.support\[0\] is -Infinity, that of the controller given is 0.0",
        ),
    ],
)
def test_the_first_field_in_which_another_controller_differs_is_named(
    tmp_path: Path, other: sp.Controller, told: str
) -> None:
    sp.Ledger(tmp_path, CONTROLLER).close()
    with pytest.raises(StateError, match=told):
        sp.Ledger(tmp_path, other)
