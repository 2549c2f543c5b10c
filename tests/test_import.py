"""What `import setpoint` loads, what it exports, and what a wheel must carry."""

import importlib
import inspect
import pkgutil
import runpy
import subprocess
import sys
import tomllib
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

import setpoint

ROOT = Path(__file__).resolve().parents[1]
OPTIONAL = (
    "PIL", "cv2", "darts", "hypothesis", "mapie", "matplotlib", "mlforecast", "numba", "pandas",
    "plotly", "polars", "pooch", "pyarrow", "pytest", "rich", "river", "scipy", "skforecast",
    "skimage", "sklearn", "sktime", "statsforecast", "torch", "typer",
)  # fmt: skip

ABSENT = {f"setpoint.models.{name}" for name in ("darts", "sktime") if not find_spec(name)}
"""Modules whose library is not here: `make neighbours` has it, and names them to these tests."""
PUBLIC = runpy.run_path(str(ROOT / "docs" / "architecture.py"))
MODULES = sorted(
    found.name
    for found in pkgutil.walk_packages(setpoint.__path__, "setpoint.")
    if not any(part.startswith("_") for part in found.name.split("."))
    if found.name not in ABSENT
)
FACES = [name for name in MODULES if hasattr(importlib.import_module(name), "__all__")]
"""The packages, and the modules that have a role of their own."""


def loaded_by(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter holds after a statement."""
    script = f"import sys; {statement}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    command = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_loads_numpy_and_the_standard_library_and_nothing_else() -> None:
    # What an interpreter of this environment loads by itself (.pth files, site) is not ours.
    alone = loaded_by("pass")
    assert loaded_by("import setpoint") - alone - sys.stdlib_module_names == {"setpoint"}
    found = loaded_by("import setpoint; setpoint.Stream, setpoint.losses") - alone
    assert found - sys.stdlib_module_names == {"numpy", "setpoint"}


def test_importing_the_conformance_checks_loads_no_test_library() -> None:
    assert not loaded_by("import setpoint.testing") & set(OPTIONAL)


def test_a_step_and_a_saved_state_load_nothing_more() -> None:
    found = loaded_by(
        "import setpoint as sp, tempfile, pathlib;"
        "risk = sp.Risk(sp.losses.Miscoverage(), 0.1, sp.steps.Fixed(0.1));"
        "stream = sp.Stream(sp.Controller(sp.sets.Widen(), risk));"
        "stream.predict((0.0, 1.0)); stream.update(2.0);"
        "path = pathlib.Path(tempfile.mkdtemp()) / 'state'; stream.save(path);"
        "sp.Stream.load(path); str(stream.certificate())"
    )
    assert not found & set(OPTIONAL)


def test_no_optional_library_is_imported() -> None:
    assert not loaded_by("import setpoint") & set(OPTIONAL)


@pytest.mark.parametrize("name", FACES)
def test_what_a_face_exports_is_in_order_and_there(name: str) -> None:
    module = importlib.import_module(name)
    exported = list(module.__all__)
    ordered = sorted(set(exported), key=lambda n: (not n.isupper(), not n[0].isupper(), n))
    assert exported == ordered, "constants, classes, functions: each in order, each name once"
    assert all(hasattr(module, each) and not each.startswith("_") for each in exported)


def test_names_are_exported_by_packages_and_few_modules_and_are_few() -> None:
    modules = {name for name in PUBLIC["exported"]() if not name.endswith("__init__.py")}
    adapters = {name for name in modules if name.startswith("models/")}
    assert {name for name in modules - adapters if "/" in name} == {"bulk/search.py"}
    assert PUBLIC["names"]()[0] <= 240


def test_all_of_the_package_equals_its_public_names() -> None:
    exported = list(setpoint.__all__)
    assert exported == sorted(set(exported))
    later = {name for name in exported if getattr(setpoint, name) is not None}
    assert later == set(exported)  # asking for a name imports what it needs
    held = {name for name in vars(setpoint) if not name.startswith("_")}
    # A submodule is an attribute of its package once it is imported, exported or not.
    inner = {
        name
        for name in held
        if isinstance(getattr(setpoint, name), ModuleType) and name not in exported
    }
    assert held - inner == set(exported)
    assert all(f"setpoint.{name}" in sys.modules for name in inner)


def test_every_public_name_has_a_docstring() -> None:
    bare = [
        f"{module}.{name}"
        for module in FACES
        for name in importlib.import_module(module).__all__
        if inspect.isclass(value := getattr(importlib.import_module(module), name))
        or inspect.isfunction(value)
        if not value.__doc__
    ]
    assert not bare


def test_every_module_tells_its_purpose_in_its_first_line() -> None:
    for path in sorted((ROOT / "src").rglob("*.py")):
        assert path.read_text(encoding="utf-8").startswith('"""'), path


def test_types_are_shipped() -> None:
    assert Path(setpoint.__file__).with_name("py.typed").is_file()


def test_the_version_is_the_same_everywhere() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["project"]["dynamic"] == ["version"]
    source = ROOT / settings["tool"]["hatch"]["version"]["path"]
    assert f'__version__ = "{setpoint.__version__}"' in source.read_text(encoding="utf-8")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {setpoint.__version__}\n" in citation
    assert metadata.version("setpoint") == setpoint.__version__


def test_the_core_depends_on_numpy_alone() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert [each.partition(">")[0] for each in project["dependencies"]] == ["numpy"]


@pytest.mark.parametrize("name", ["sklearn", "river", "torch"])
def test_a_missing_library_is_named_with_its_extra(name: str) -> None:
    script = f"import sys; sys.modules[{name!r}] = None; import setpoint.models.{name}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert f"pip install 'setpoint[{name}]'" in done.stderr
