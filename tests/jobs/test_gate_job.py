"""`setpoint gate`: what a gate would have done on a log, from the command to the page."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import setpoint as sp
from setpoint import jobs
from setpoint.decisions import Terms, replay
from setpoint.errors import DataError, InputError

pytest.importorskip("typer")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Requests of two customers; the model is worse than it says from the middle on."""
    rng, rows = np.random.default_rng(0), 4000
    score = rng.random(rows).round(3)
    truth = np.where(np.arange(rows) < rows // 2, score, 0.6 * score)
    frame = pd.DataFrame({
        "at": pd.date_range("2026-01-01", periods=rows, freq="min"),
        "customer": rng.choice(["acme", "zenith"], rows),
        "score": score, "bad": np.where(rng.random(rows) > truth, "yes", "no"),
        "sent": (score > 0.6).astype(int),
    })  # fmt: skip
    frame["known"] = frame["at"] + pd.Timedelta("25min")
    path = tmp_path / "log.csv"
    frame.to_csv(path, index=False)
    return path


def test_a_job_is_the_replay_of_its_columns(log: Path) -> None:
    frame = pd.read_csv(log)
    wrong = (frame["bad"] == "yes").to_numpy(float)
    done = jobs.gate(log, "score", "bad", 0.05, delay=25, acted="sent")
    alone = replay(Terms(0.05), frame["score"].to_numpy(), wrong, delay=25)
    assert (done.replay.codes == alone.codes).all()
    ((gate, today),) = done.outcomes.values()
    assert gate == alone.outcomes["errors"]
    assert today == alone.beside(frame["sent"] == 1)["errors"]
    known = jobs.gate(log, "score", "bad", 0.05, time="at", known="known")
    late = replay(Terms(0.05), frame["score"].to_numpy(), wrong, delay=24)
    assert (known.replay.codes == late.codes).all()
    by_customer = jobs.gate(log, "score", "bad", 0.05, series="customer")
    assert set(by_customer.metrics()["certificates"]) == {"acme", "zenith"}
    assert "2 series, each with a budget of its own" in str(by_customer)


def test_a_threshold_of_the_first_rows_is_judged_on_the_others(log: Path) -> None:
    frame = pd.read_csv(log)
    done = jobs.gate(log, "score", "bad", 0.05)
    assert done.skipped.sum() == 1000
    early = frame[:1000]
    acted = early["score"] >= early["score"][done.today[:1000]].min()
    assert ((early["bad"] == "yes") & acted).sum() <= 50
    ((gate, today),) = done.outcomes.values()
    assert today.most_above > 3 * gate.most_above  # it drifts


def test_files_and_page_say_the_numbers(log: Path, tmp_path: Path) -> None:
    done = jobs.gate(log, "score", "bad", 0.05, audits=0.5, threshold=0.7)
    files = done.write(tmp_path / "out")
    assert set(files) == {"rows.csv", "metrics.json", "report.html"}
    numbers = json.loads(files["metrics.json"].read_text())
    gate, today = done.outcomes["errors"]
    assert numbers["limits"]["errors"] == {"gate": gate._asdict(), "today": today._asdict()}
    assert set(done.write(tmp_path / "out")) == set(files)  # its own files are replaced
    rows = pd.read_csv(files["rows.csv"])
    assert (rows["act"].to_numpy() == done.replay.act).all()
    assert (rows["audit"].to_numpy() == done.replay.audit).all()
    assert set(rows["reason"]) <= {"score", "budget", "pending"}
    page = files["report.html"].read_text()
    for said in ("Guaranteed, whatever the data", f"{100 * gate.acted:.1f} %", "0.7 on",
                 "with probability 0.95 over the gate", "Share acted on"):  # fmt: skip
        assert said in page


def test_several_limits_are_columns_of_the_log(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the command to the page, equal to a replay of the same losses; today keeps all."""
    from setpoint.cli import main

    frame = pd.read_csv(log)
    frame["unsafe"] = ((frame["bad"] == "yes") & (frame["score"] < 0.5)).astype(float)
    frame.loc[::50, "unsafe"] = np.nan
    frame = frame.sample(frac=1.0, random_state=2)
    frame.to_csv(log, index=False)
    done = jobs.gate(log, "score", ["bad", "unsafe"], [0.1, 0.02], time="at")
    frame = frame.sort_values("at")
    bad = (frame["bad"] == "yes").to_numpy(float)
    alone = replay(
        Terms({"bad": 0.1, "unsafe": 0.02}), frame["score"].to_numpy(),
        {"bad": bad, "unsafe": frame["unsafe"].to_numpy()},
    )  # fmt: skip
    assert (done.replay.codes == alone.codes).all()
    assert done.replay.certificate() == alone.certificate()
    assert alone.certificate().dropped > 0  # a row that lacks one label has none
    early = slice(0, 1000)
    for column, share in ((bad, 0.1), (frame["unsafe"].to_numpy(), 0.02)):
        assert np.nansum(column[early] * done.today[early]) <= share * 1000
    page = done.write(tmp_path / "out")["report.html"].read_text()
    for said in (
        "wrong, of all requests (unsafe)",
        "2 % of all requests acted on wrongly (unsafe)",
    ):
        assert said in page
    assert page.count('class="plot"') == 3
    command = ["setpoint", "gate", str(log), "--score", "score", "--wrong", "bad,unsafe"]
    command += ["--out", str(tmp_path / "two"), "--time", "at"]
    monkeypatch.setattr("sys.argv", [*command, "--errors", "0.1,0.02"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code in (0, None)
    assert "errors unsafe" in capsys.readouterr().out
    monkeypatch.setattr("sys.argv", [*command, "--errors", "0.1"])
    with pytest.raises(SystemExit, match="a share for each column of --wrong, bad, unsafe"):
        main()


def test_rows_out_of_order_come_back_in_theirs(log: Path, tmp_path: Path) -> None:
    frame = pd.read_csv(log)
    mixed = frame.sample(frac=1.0, random_state=1)
    mixed.to_csv(tmp_path / "mixed.csv", index=False)
    straight = jobs.gate(log, "score", "bad", time="at").write(tmp_path / "a")["rows.csv"]
    crooked = jobs.gate(tmp_path / "mixed.csv", "score", "bad", time="at")
    back = pd.read_csv(crooked.write(tmp_path / "b")["rows.csv"])
    assert (back["act"].to_numpy() == pd.read_csv(straight)["act"][mixed.index].to_numpy()).all()


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"wrong": "score2"}, DataError, "score2"),
        ({"wrong": "customer"}, DataError, "wrong must hold 0 and 1, .* holds (acme|zenith) in"),
        ({"acted": "customer"}, DataError, "acted must hold 0 and 1, yes and no"),
        ({"threshold": 0.5, "acted": "sent"}, InputError, "threshold or acted, not both"),
        ({"wrong": ["bad", "sent"]}, InputError, "must have a share for each column of wrong"),
        ({"errors": 5}, InputError, "write 5 % as 0.05"),
        ({"sure": 0.9}, InputError, "is about audits"),
    ],
)
def test_what_makes_no_sense_is_refused(
    log: Path, options: dict[str, Any], kind: type[Exception], says: str
) -> None:
    given = {"score": "score", "wrong": "bad", **options}
    with pytest.raises(kind, match=says):
        jobs.gate(log, **given)


def test_a_saved_gate_and_a_store_with_gates_can_be_inspected(tmp_path: Path) -> None:
    gates = sp.decisions.Gates(sp.gate(errors={"wrong": 0.1, "unsafe": 0.05}))
    for name in ("acme", "zenith"):
        gates.decide([name], [0.9], ids=[1])
        gates[name].update(loss={"wrong": 1.0, "unsafe": 0.5}, id=1)
    gates.save(tmp_path / "gates.zip")
    gates["acme"].save(tmp_path / "gate.zip")
    with sp.Store(tmp_path / "store.sqlite") as store:
        mail = store.stream("mail", sp.decisions.Terms(0.05, audits=0.5))
        for t in range(20):
            mail.decide(t / 20, t)
        demand = store.stream("demand", sp.intervals(coverage=0.9))
        demand.predict(3.0, "a")
    alone, many, mixed = (
        jobs.inspect(tmp_path / name) for name in ("gate.zip", "gates.zip", "store.sqlite")
    )
    assert (alone.kind, many.kind, mixed.kind) == ("gate", "gates", "store")
    assert str(alone) == f"gate\n{gates['acme'].certificate()}"
    assert alone.as_dict()["streams"][""]["limits"][1]["errors"] == 0.5
    assert many.certificates == gates.certificates()
    assert "2 gates" in str(many)
    assert "  zenith           1    100.0 %  50.00 %  ≤ 5 % of requests unsafe" in str(many)
    assert set(mixed.certificates) == {"mail", "demand"}
    assert "≤ 5 % of requests" in str(mixed)
    assert "verdict" in str(mixed)
    assert mixed.only("mail").as_dict()["controller"].startswith("[gate]")
