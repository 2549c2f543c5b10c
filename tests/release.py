"""A wheel tried as users meet it: `python -m tests.release dist` installs it in empty environments.

First the core alone, then each light extra. In each an import and a step of what the extra is for
must run, and the typed client must pass a strict type checker. Last comes a new user, who installs
what the front page says and tries a file of an own; the seconds that this took are printed.
"""

import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from tests import new_user

HEAVY = {"darts", "images", "mapie", "nixtla", "skforecast", "sktime", "spark", "torch"}
"""Extras of hundreds of megabytes; `make test`, `make spark` and `make neighbours` run them."""

_STREAM = """
import setpoint as sp
stream = sp.Stream(sp.intervals(coverage=0.9))
stream.predict((10.0, 14.0)); stream.update(15.0)
"""
_TAPE = """
import numpy as np, setpoint as sp
ends = {"lower": np.zeros(300), "upper": np.ones(300)}
tape = sp.Tape.from_arrays(ends, np.random.default_rng(0).normal(size=300))
trace = sp.replay(sp.intervals(coverage=0.9), tape)
"""
STEPS = {
    "": _STREAM + """
from importlib.metadata import distributions
stream.save("state.zip"); sp.Stream.load("state.zip"); str(stream.certificate())
found = {each.metadata["Name"].lower() for each in distributions()}
assert found <= {"setpoint", "numpy", "pip", "setuptools"}, found
""",
    "fast": _TAPE + "import numba; assert 0.8 < trace.coverage < 1.0",
    "data": _TAPE + """
tape.write("rows.parquet"); assert len(sp.Tape.read("rows.parquet")) == 300
assert len(sp.replay(sp.intervals(), trace.to_frame()[["lower", "upper", "y"]]).lam) == 300
""",
    "plots": _TAPE + """
sp.report.write(trace, "report.html"); trace.plot()
""",
    "river": """
from river import linear_model
from setpoint.models.river import IntervalRegressor
model = IntervalRegressor(linear_model.LinearRegression(), coverage=0.9)
model.predict_one({"x": 1.0}, with_interval=True); model.learn_one({"x": 1.0}, 2.0)
""",
    "sklearn": """
import numpy as np
from sklearn.linear_model import LinearRegression
from setpoint.models.sklearn import IntervalRegressor
x = np.arange(40.0)[:, None]
assert IntervalRegressor(LinearRegression()).fit(x, x[:, 0]).predict_interval(x).shape == (40, 2)
""",
    "cli": """
import subprocess, sys
from pathlib import Path
command = Path(sys.executable).with_name("setpoint")
Path("rows.csv").write_text("p,y\\n" + "".join(f"{row},{row + row % 7}\\n" for row in range(99)))
subprocess.run([command, "--version"], check=True)
subprocess.run([command, "calibrate", "rows.csv", "--point", "p", "--target", "y", "--no-report"],
               check=True)
""",
    "postgres": "import psycopg, setpoint.store.postgres",
    "telemetry": "import opentelemetry.trace, setpoint",
    "client": "from setpoint.client import Client; Client('http://localhost:1').close()",
    "service": "from setpoint.service.app import *; import starlette, uvicorn",
}  # fmt: skip
"""What is tried with each extra; the empty name is the core alone."""


def main(dist: Path) -> None:
    """Tries the one wheel of a folder."""
    (wheel,) = dist.resolve().glob("*.whl")
    client = Path(__file__).with_name("typed_client.py")
    for extra, step in STEPS.items():
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            python = installed(folder, wheel, extra)
            subprocess.run([python, "-W", "error", "-c", step], check=True, cwd=folder)
            if not extra:
                shutil.copy(client, folder / "client.py")
                strict = [sys.executable, "-m", "mypy", "--strict", "--config-file="]
                checked = [*strict, f"--python-executable={python}", "client.py"]
                subprocess.run(checked, check=True, cwd=folder)
                subprocess.run([python, "client.py"], check=True, cwd=folder)
            print(f"setpoint{f'[{extra}]' if extra else ''}: installs and runs", flush=True)
    new_user.main(lambda folder: str(installed(folder, wheel, "cli,data,plots,fast")))


def installed(folder: Path, wheel: Path, extra: str) -> Path:
    """The Python of a new environment that has the wheel with some extras, and nothing else."""
    venv.create(folder / "venv", with_pip=True)
    python = folder / "venv" / "bin" / "python"
    what = f"{wheel}[{extra}]" if extra else str(wheel)
    install = ["-m", "pip", "install", "--disable-pip-version-check", what]
    subprocess.run([python, *install], check=True)
    return python


if __name__ == "__main__":
    main(Path(sys.argv[1]))
