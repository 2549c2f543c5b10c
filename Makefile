# Everything runs in .venv, made on first use. Needs Python 3.11 or newer, git and make.
# Each stamp file says that one part is installed, so the second run installs nothing.

PYTHON ?= python3
TORCH  := 2.13.0

# What `make minimum` runs: the core, its files, its loops, its frames, its commands.
OLDEST := tests/test_stream.py tests/test_sets.py tests/test_labels.py tests/test_losses.py \
	tests/test_replay.py tests/test_fleet.py tests/test_tape.py tests/test_files.py \
	tests/test_notebooks.py tests/cli/test_pages.py::test_the_tutorial_does_what_it_says tests/models/test_sklearn.py

# What `make neighbours` runs: the adapters, their pages and doctests, the code side by side.
NEIGHBOURS := tests/neighbours docs/from-nixtla.md docs/from-darts.md docs/from-sktime.md \
	docs/from-skforecast.md docs/from-mapie.md $(addprefix src/setpoint/models/,horizons.py \
	nixtla.py darts.py sktime.py skforecast.py) \
	tests/test_beside.py \
	'tests/test_notebook_pages.py::test_a_notebook_runs_and_its_words_are_true[from_mapie]'

# numpy 1 takes a boolean for a whole number.
NEWER  := --deselect tests/test_fleet.py::test_ids_come_in_arrays_and_never_as_one_string

VENV   := .venv
PY     := $(VENV)/bin/python
PIP    := $(PY) -m pip install --quiet --disable-pip-version-check
STAMPS := $(VENV)/stamps
SPARK  := .venv-spark
BESIDE := .venv-neighbours
# Libraries at which versions `make minimum` tries: lowest, random (SEED=…) or newest.
VERSIONS ?= lowest
SEED   ?= 0
LOWEST := .venv-$(VERSIONS)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL: # one pip at a time in .venv
.PHONY: help demo test service-test faults slow spark neighbours lint docs site-test release-check minimum bench comparison clean

help:
	@echo "make demo    calibrate a drifting stream, print the certificate, write a report"
	@echo "make test    run the tests of the library and of the paper's project"
	@echo "make service-test   test the service and the report with real servers and a browser"
	@echo "make faults  kill, cut and fill it up: nothing may be lost (KILLS=2000)"
	@echo "make slow    run the long laws, left out of make test"
	@echo "make spark   run the tests that start a local Spark; needs Java 17"
	@echo "make neighbours   test the adapters with Nixtla, darts, sktime, skforecast and MAPIE (1 GB)"
	@echo "make lint    check style, types and import layers"
	@echo "make docs    build the site into site/ and check its links"
	@echo "make site-test   test the built site in a real browser"
	@echo "make release-check   build the package and try it in empty environments"
	@echo "make minimum  run a part of the tests with the oldest libraries allowed (VERSIONS=random)"
	@echo "make bench   time live steps, bulk work, models and commands"
	@echo "make comparison   run every rule beside the default (ten minutes; ARGS=--quick one)"
	@echo "make clean   remove .venv, caches and builds"

demo: $(STAMPS)/demo
	$(VENV)/bin/setpoint demo

test: $(STAMPS)/test
	$(PY) -m pytest -n auto --dist worksteal $(ARGS)

slow: $(STAMPS)/test
	HYPOTHESIS_PROFILE=long $(PY) -m pytest -n auto --dist worksteal -m slow $(ARGS)

service-test: $(STAMPS)/service
	$(PY) -m pytest -m service tests/service tests/report $(ARGS)

faults: $(STAMPS)/service
	$(PY) -m tests.faults --kills $(or $(KILLS),2000) $(ARGS)

spark: $(STAMPS)/spark
	$(SPARK)/bin/python -m pytest -m spark tests/spark $(ARGS)

# Their libraries warn of their own changes, so warnings are no errors here.
neighbours: $(STAMPS)/neighbours
	$(BESIDE)/bin/python -m pytest -W default -m "neighbours or not neighbours" $(NEIGHBOURS) $(ARGS)

lint: $(STAMPS)/lint
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports
	$(VENV)/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(VENV)/bin/zizmor --offline --quiet .github

# Warnings are errors, and nothing is asked of a network. The notice is about a mkdocs that is not used.
docs: $(STAMPS)/docs
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict

site-test: $(STAMPS)/docs
	@test -f site/index.html || $(MAKE) docs
	$(PY) -m pytest -m site tests/test_site_browser.py $(ARGS)

release-check: $(STAMPS)/release
	rm -rf dist
	$(PY) -m build --outdir dist .
	$(PY) -m twine check --strict dist/*
	$(PY) -m tests.release dist

minimum: $(STAMPS)/minimum-$(VERSIONS)
	$(LOWEST)/bin/python -m pytest -W default $(OLDEST) $(NEWER) $(ARGS)

bench: $(STAMPS)/test
	$(PY) -m benchmarks live
	$(PY) -m benchmarks bulk
	$(PY) -m benchmarks labels
	$(PY) -m benchmarks lstm
	$(PY) -m benchmarks images
	$(PY) -m benchmarks cli
	$(PY) -m benchmarks panel
	$(PY) -m benchmarks store
	$(PY) -m benchmarks service

comparison: $(STAMPS)/test
	$(PY) -m comparison $(ARGS)

clean:
	rm -rf $(VENV) $(SPARK) $(BESIDE) .venv-lowest .venv-random .venv-newest build dist site paper/build paper/dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "setpoint needs Python 3.11 or newer; '$(PYTHON)' is: $$($(PYTHON) --version 2>&1 | head -n 1)."; \
	  echo "Name another one, for example: make $(MAKECMDGOALS) PYTHON=python3.12"; \
	  exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PIP) --upgrade 'pip>=25.1' # for dependency groups
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/demo: pyproject.toml $(STAMPS)/venv
	$(PIP) --editable '.[cli,plots]'
	@touch $@

# On its own and before the rest, so that pip settles on this version. The stamp carries the
# version: a new one is installed when the number changes, not whenever pyproject.toml does.
$(STAMPS)/torch-$(TORCH): $(STAMPS)/venv
	$(PIP) torch==$(TORCH)
	@touch $@

$(STAMPS)/test: pyproject.toml paper/pyproject.toml $(STAMPS)/torch-$(TORCH)
	$(PIP) --editable '.[torch,fast,images,data,plots,river,sklearn,cli,service,postgres]' \
	  --editable ./paper --group test --group paper/pyproject.toml:test
	@touch $@

$(STAMPS)/service: pyproject.toml $(STAMPS)/venv
	$(PIP) --editable '.[service,postgres,plots,data,cli,fast]' --group test --group service-test
	@touch $@

# The checks read the sources of the paper's project; they need none of its libraries.
$(STAMPS)/lint: pyproject.toml paper/pyproject.toml $(STAMPS)/venv
	$(PIP) --editable '.[service,postgres]' --group lint
	$(PIP) --no-deps --editable ./paper
	@touch $@

$(STAMPS)/docs: pyproject.toml $(STAMPS)/venv
	$(PIP) --editable '.[plots,sklearn,mapie]' --group docs --group test
	@touch $@

$(STAMPS)/release: pyproject.toml $(STAMPS)/venv
	$(PIP) --editable . --group release
	@touch $@

# Apart from .venv: the oldest versions that pyproject.toml allows, or others.
$(STAMPS)/minimum-$(VERSIONS): pyproject.toml tests/lowest.py $(STAMPS)/venv
	$(PYTHON) -m venv $(LOWEST)
	$(PY) -m tests.lowest $(VERSIONS) $(SEED) fast data plots cli sklearn > $(LOWEST)/requirements.txt
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --requirement $(LOWEST)/requirements.txt pytest hypothesis polars
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

# Apart from .venv: half a gigabyte that no other test needs.
$(STAMPS)/spark: pyproject.toml $(STAMPS)/venv
	$(PYTHON) -m venv $(SPARK)
	$(SPARK)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[spark]' pytest hypothesis
	@touch $@

# Apart from .venv: a gigabyte of libraries that no other test needs.
$(STAMPS)/neighbours: pyproject.toml $(STAMPS)/venv
	$(PYTHON) -m venv $(BESIDE)
	$(BESIDE)/bin/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BESIDE)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[nixtla,darts,sktime,skforecast,mapie]' --group test
	@touch $@
