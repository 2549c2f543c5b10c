"""What the tests of both projects share: hypothesis profiles, machine code and real data."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# A worker for each core, and one thread for each worker: more of them wait for each other.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

# Laws are judged by what they find, not by how fast a busy machine draws an example.
settings.register_profile(
    "default",
    max_examples=100,
    deadline=None,
    derandomize=False,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("long", settings.get_profile("default"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))

# Compiling a loop takes seconds. All workers share what is compiled, and so does the next run.
os.environ.setdefault(
    "NUMBA_CACHE_DIR", str(Path(__file__).resolve().parent / ".pytest_cache" / "kernels")
)
# Tapes of tests are short, and machine code is what they test.
os.environ.setdefault("SETPOINT_PLAIN", "0")

collect_ignore = ["docs/sessions.py"]  # a part of the site, which needs the extra `docs`
collect_ignore_glob = ["docs/notebooks/*.py"]  # tests/test_notebook_pages.py runs them

# Adapters and their pages need the library that they are for; `make neighbours` has them all.
for library, paths in {
    "mlflow": ["examples/mlflow_intervals.py"],
    "darts": ["src/setpoint/models/darts.py", "docs/from-darts.md"],
    "sktime": ["src/setpoint/models/sktime.py", "docs/from-sktime.md"],
    "statsforecast": ["docs/from-nixtla.md"],
    "skforecast": ["docs/from-skforecast.md"],
    "mapie": ["docs/from-mapie.md"],
}.items():
    collect_ignore += [] if find_spec(library) else paths

_BESIDE_THE_PROJECT = Path(__file__).resolve().parents[1] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data: the one `SETPOINT_DATA` names, else `../shared/data`.

    Sets `SETPOINT_DATA` for the loaders when it takes the second; skips when there is neither.
    """
    named = os.environ.get("SETPOINT_DATA")
    if named:
        if not Path(named).is_dir():
            pytest.skip(f"needs real data, and SETPOINT_DATA={named!r} is not a folder")
        return Path(named)
    if not _BESIDE_THE_PROJECT.is_dir():
        pytest.skip("needs real data: name its folder in the environment variable SETPOINT_DATA")
    os.environ["SETPOINT_DATA"] = str(_BESIDE_THE_PROJECT)
    return _BESIDE_THE_PROJECT
