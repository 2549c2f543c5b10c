# Everything runs in .venv, made on first use. Needs Python 3.11 or newer, git and make.
# Each stamp file says that one part is installed, so the second run installs nothing.

PYTHON ?= python3
TORCH  := 2.13.0

VENV   := .venv
PY     := $(VENV)/bin/python
PIP    := $(PY) -m pip install --quiet --disable-pip-version-check
STAMPS := $(VENV)/stamps
SPARK  := .venv-spark

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL: # one pip at a time in .venv
.PHONY: help demo test service-test faults slow spark lint bench clean

help:
	@echo "make demo    calibrate a drifting stream, print the certificate, write a report"
	@echo "make test    run the tests of the library and of the paper's project"
	@echo "make service-test   test the service with real servers and a browser"
	@echo "make faults  kill, cut and fill it up: nothing may be lost (KILLS=2000)"
	@echo "make slow    run the long laws, left out of make test"
	@echo "make spark   run the tests that start a local Spark; needs Java 17"
	@echo "make lint    check style, types and import layers"
	@echo "make bench   time live steps, bulk work, models and commands"
	@echo "make clean   remove .venv, caches and builds"

demo: $(STAMPS)/demo
	$(VENV)/bin/setpoint demo

test: $(STAMPS)/test
	$(PY) -m pytest -n auto --dist worksteal $(ARGS)

slow: $(STAMPS)/test
	HYPOTHESIS_PROFILE=long $(PY) -m pytest -n auto --dist worksteal -m slow $(ARGS)

service-test: $(STAMPS)/service
	$(PY) -m pytest -m service tests/service $(ARGS)

faults: $(STAMPS)/service
	$(PY) -m tests.faults --kills $(or $(KILLS),2000) $(ARGS)

spark: $(STAMPS)/spark
	$(SPARK)/bin/python -m pytest -m spark tests/spark $(ARGS)

lint: $(STAMPS)/lint
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy
	$(VENV)/bin/lint-imports

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

clean:
	rm -rf $(VENV) $(SPARK) build dist paper/build paper/dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMPS)/venv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo "setpoint needs Python 3.11 or newer; '$(PYTHON)' is: $$($(PYTHON) --version 2>&1 | head -n 1)."; \
	  echo "Name another one, for example: make $(MAKECMDGOALS) PYTHON=python3.12"; \
	  exit 1; }
	$(PYTHON) -m venv $(VENV)
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
	$(PIP) --editable '.[test,torch,fast,images,data,plots,river,sklearn,cli,service,postgres]' --editable './paper[test]'
	@touch $@

$(STAMPS)/service: pyproject.toml $(STAMPS)/venv
	$(PIP) --editable '.[test,service-test]'
	@touch $@

# The checks read the sources of the paper's project; they need none of its libraries.
$(STAMPS)/lint: pyproject.toml paper/pyproject.toml $(STAMPS)/venv
	$(PIP) --editable '.[lint]'
	$(PIP) --no-deps --editable ./paper
	@touch $@

# Apart from .venv: half a gigabyte that no other test needs.
$(STAMPS)/spark: pyproject.toml $(STAMPS)/venv
	$(PYTHON) -m venv $(SPARK)
	$(SPARK)/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[spark]' pytest hypothesis
	@touch $@
