"""The command line: what it prints, its exit codes, its errors, and files that are whole."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import setpoint as sp
from setpoint.cli import main

pytest.importorskip("typer")
pytest.importorskip("pyarrow")


def call(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: object
) -> tuple[int, str, str]:
    """The exit code, standard output and standard error of a command in this process."""
    monkeypatch.setattr(sys, "argv", ["setpoint", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    code = ended.value.code
    if isinstance(code, str):
        return 1, printed.out, code
    return int(code or 0), printed.out, printed.err


def process(
    *words: object, cwd: Path, limit: int | None = None
) -> subprocess.CompletedProcess[str]:
    """The same as a process of its own; `limit` is the largest file it may write."""

    def limited() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    return subprocess.run(
        [sys.executable, "-m", "setpoint.cli", *map(str, words)],
        cwd=cwd,
        capture_output=True,
        text=True,
        preexec_fn=limited,
        env={**os.environ, "COLUMNS": "100"},
        check=False,
    )


@pytest.fixture
def forecast(tmp_path: Path) -> Path:
    """A file of predictions whose noise grows."""
    random = np.random.default_rng(0)
    path = tmp_path / "forecast.csv"
    lines = ["when,site,low,high,y,word"]
    for i in range(400):
        y = 10.0 + (1.0 + i / 200.0) * random.standard_normal()
        day = np.datetime64("2024-01-01") + i
        lines.append(f"{day},{'north' if i % 2 else 'south'},9,11,{y:.3f},w{i % 3}")
    path.write_text("\n".join(lines) + "\n")
    return path


ENDS = ("--target", "y", "--lower", "low", "--upper", "high")


def test_calibrate_prints_the_certificate_and_writes_every_file(
    forecast: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("plotly")
    monkeypatch.chdir(forecast.parent)
    code, out, err = call(capsys, monkeypatch, "calibrate", forecast, *ENDS, "--time", "when")
    assert (code, err) == (0, "")
    assert "1. Miscoverage at level 0.1: guaranteed" in out
    assert "wrote forecast-calibrated/: controller.toml, metrics.json, report.html, rows.csv" in out
    page = (forecast.parent / "forecast-calibrated" / "report.html").read_text("utf-8")
    told = json.loads((forecast.parent / "forecast-calibrated" / "metrics.json").read_text("utf-8"))
    assert f"{100 * told['coverage']:.2f} % of 400 actual values lay inside their intervals" in out
    assert "<html" in page


def test_json_is_one_object(
    forecast: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = ("calibrate", forecast, *ENDS, "--no-report", "--out", forecast.parent / "out")
    code, out, err = call(capsys, monkeypatch, *words, "--json")
    told = json.loads(out)
    assert (code, err) == (0, "")
    assert sorted(told["files"]) == ["controller.toml", "metrics.json", "rows.csv", "state.zip"]
    assert (
        told["coverage"] == json.loads(Path(told["files"]["metrics.json"]).read_text())["coverage"]
    )


def test_forecast_calibrate_and_inspect_work_one_after_the_other(
    forecast: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("plotly")
    folder = forecast.parent
    words = ("forecast", forecast, "--target", "y", "--without", "low,high", "--coverage", "0.9")
    code, out, _ = call(
        capsys, monkeypatch, *words, "--steps", "2", "--out", folder / "ahead", "--no-report",
        "--support", "-1000,inf",
    )  # fmt: skip
    assert code == 0
    assert "the model's inputs: when, site, word" in out
    words = ("calibrate", folder / "ahead" / "past.csv", "--target", "y", "--point", "point_h*")
    code, out, _ = call(capsys, monkeypatch, *words, "--out", folder / "ran", "--no-report")
    assert code == 0
    assert "each horizon (1, 2) is calibrated separately" in out
    first = json.loads((folder / "ran" / "metrics.json").read_text("utf-8"))
    code, out, _ = call(capsys, monkeypatch, "inspect", folder / "ran", "--json")
    held = [stream["risks"][0] for stream in json.loads(out)["streams"].values()]
    counts = [one["judged"] for one in held]
    mean = sum(one["mean"] * count for one, count in zip(held, counts, strict=True)) / sum(counts)
    assert (code, mean) == (0, pytest.approx(first["risk"]))


def test_the_demo_ends_with_a_certificate_and_a_report(tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    found = process("demo", "--out", "shown", cwd=tmp_path)
    assert (found.returncode, found.stderr) == (0, "")
    assert "1. Miscoverage at level 0.1: guaranteed" in found.stdout
    assert {path.name for path in (tmp_path / "shown").iterdir()} == {
        "controller.toml", "demand.csv", "metrics.json", "report.html", "state.zip",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["forecast", "forecast.csv", "--target", "z"], "has no column 'z' for --target"),
        (
            ["forecast", "forecast.csv", "--target", "word"],
            "--target must name a column of numbers",
        ),
        (["forecast", "odd.csv", "--target", "y", "--time", "when"], "holds 'soon' in line 401"),
        (["forecast", "empty.csv", "--target", "y"], "empty.csv is empty"),
        (
            ["forecast", "forecast.csv", "--target", "y", "--known-ahead", "word,low"],
            "--known-ahead names 'word', which is empty in 1 of the future rows",
        ),
        (["forecast", "nowhere.csv", "--target", "y"], "nowhere.csv does not exist"),
        (
            ["forecast", "forecast.csv", "--target", "y", "--coverage", "5"],
            "coverage must lie strictly between 0 and 1",
        ),
        (["forecast", "forecast.csv", "--target", "y", "--support", "1"], "as in 0,inf; got '1'"),
        (
            ["calibrate", "forecast.csv", "--target", "y"],
            "name the columns of the predictions, by --lower and --upper",
        ),
        (["calibrate", "forecast.csv", *ENDS, "--controller", "bad.toml"], "bad.toml: unknown key"),
        (
            ["calibrate", "forecast.csv", *ENDS, "--controller", "best.toml", "--coverage", "0.9"],
            "--coverage together with --controller: the controller already says",
        ),
        (
            ["calibrate", "forecast.csv", *ENDS, "--controller=best.toml", "--coverage=0.5"],
            "--coverage together with --controller: the controller already says",
        ),
        (["calibrate", "forecast.csv", *ENDS, "--controller", "no.toml"], "no.toml does not exist"),
        (["calibrate", "forecast.csv", *ENDS, "--out", "empty.csv"], "empty.csv is a file"),
        (
            ["stream", "--store", "new", "--controller", "bad.toml"],
            "bad.toml: unknown key 'nonsense'",
        ),
        (["forecast", "forecast.csv", "--target", "y", "--total", "a"], "separated by commas"),
        (["serve", "--limits", "batch=a"], "limits are named numbers, as in batch=500"),
        (["serve", "--limits", "pace=5"], "limits are body, batch, waiting, metrics, pages"),
        (["inspect", "newer.zip"], "version 99; this setpoint reads up to"),
        (["inspect", "forecast.csv"], "not a saved state"),
        (["inspect", "nowhere"], "nowhere does not exist"),
        (["stream", "--store", "new", "--coverage", "2"], "coverage must lie strictly between"),
    ],
)
def test_a_mistake_is_answered_by_one_sentence_and_exit_code_1(
    forecast: Path,
    words: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = forecast.parent
    monkeypatch.chdir(folder)
    text = forecast.read_text()
    (folder / "odd.csv").write_text(text.replace("2025-02-03,", "soon,"))
    (folder / "empty.csv").write_text("")
    (folder / "bad.toml").write_text("nonsense = 1\n")
    (folder / "best.toml").write_text(sp.spec.to_toml(sp.intervals(0.5)))
    _newer(folder / "newer.zip")
    before = sorted(folder.iterdir())
    code, out, err = call(capsys, monkeypatch, *words)
    assert (code, out) == (1, "")
    assert said in err
    assert err.startswith("setpoint: ")
    assert "\n" not in err.strip()
    assert sorted(folder.iterdir()) == before


def _newer(path: Path) -> None:
    """A stream that a later version saved."""
    import zipfile

    risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.5), bounds=(-20, 20))
    sp.Stream(sp.Controller(sp.sets.Widen(), risk)).save(path)
    with zipfile.ZipFile(path) as archive:
        held = {name: archive.read(name) for name in archive.namelist()}
    header = json.loads(held["header.json"])
    held["header.json"] = json.dumps({**header, "version": 99}).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in held.items():
            archive.writestr(name, data)


@pytest.mark.parametrize(
    "words",
    [["calibrate"], ["forecast", "a.csv", "--steps", "few"], ["walk"]],
)
def test_a_command_that_is_not_understood_ends_with_2(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = call(capsys, monkeypatch, *words)
    assert (code, out) == (2, "")
    assert "Usage: setpoint" in err


def test_a_disk_that_takes_no_more_leaves_everything_as_it_was(forecast: Path) -> None:
    folder = forecast.parent
    words = ("calibrate", "forecast.csv", *ENDS, "--no-report", "--out", "out")
    assert process(*words, cwd=folder).returncode == 0
    before = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}
    forecast.write_text(forecast.read_text().replace(",9,", ",8,"))
    found = process(*words, cwd=folder, limit=10_000)
    assert (found.returncode, found.stdout) == (1, "")
    assert found.stderr.count("\n") == 1
    assert found.stderr.startswith("setpoint: out cannot be written: File too large; ")
    assert {path.name: path.read_bytes() for path in (folder / "out").iterdir()} == before
    assert {path.name for path in folder.iterdir()} == {"forecast.csv", "out"}


def test_nothing_but_the_result_is_printed_where_nobody_watches(forecast: Path) -> None:
    found = process(
        "forecast", "forecast.csv", "--target", "y", "--no-report", "--json", cwd=forecast.parent
    )
    assert found.stderr == ""
    assert json.loads(found.stdout)["uses"]["model"] == "auto"


def test_the_shell_completes_commands() -> None:
    asked = {"_SETPOINT_COMPLETE": "complete_bash", "COMP_WORDS": "setpoint cal", "COMP_CWORD": "1"}
    found = subprocess.run(
        [sys.executable, "-c", "from setpoint.cli import main; main()"],
        env={**os.environ, **asked},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.stdout.split() == ["calibrate"]


def test_the_command_line_imports_no_heavy_library_before_it_needs_one() -> None:
    code = (
        "import sys; from setpoint.cli import app; "
        "print([m for m in ('numba', 'pandas', 'plotly', 'pyarrow', 'torch') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


@pytest.mark.parametrize(("command", "extra"), [("calibrate", "cli"), ("serve", "service")])
def test_a_bare_install_names_the_extra_of_the_command(command: str, extra: str) -> None:
    argv = f"import sys; sys.modules['typer'] = None; sys.argv[1:] = ['{command}']"
    code = f"{argv}; import setpoint.cli"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False
    )
    wanted = f"setpoint: the command line needs typer: pip install 'setpoint[{extra}]'"
    assert (found.returncode, found.stderr.strip()) == (1, wanted)
