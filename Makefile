# troth: every command a user or contributor needs. `make help` prints them.
SHELL := /bin/bash
VENV  := .venv
BIN   := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
# A file stays on one worker. Tests with processes wait much, so four workers keep two cores busy;
# long ones are whole runs, and would keep each other waiting.
WORKERS ?= 4
LONG_WORKERS ?= 3
SHARED := --dist loadfile --no-loadscope-reorder
# What runs side by side says all that it has to say when it ends.
SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)
# Every test process, and every process that a test starts, would compile all sources again.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo audit test long judge check setup format lint types layers budgets docs notebooks site rust bench gpu nightly clean

help: ## print this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sort | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

demo: $(VENV)/.train ## set everything up, then train a small model on an embedded chain and convict a cheat
	$(BIN)/troth demo

# The newest folder of `make demo`; another one with `make audit DEMO=DIR`. Its chain is gone,
# and an RPC node that the user has exported knows another one.
DEMO ?= $(lastword $(sort $(wildcard runs/demo-*)))
audit: $(VENV)/.train ## check the run of the newest demo from its archive: every root, draw and lamport
	@test -n "$(DEMO)" || { echo "make audit: expected a demo's folder in runs, found none. Run make demo first." >&2; exit 2; }
	$(BIN)/troth audit --offline --archive $(DEMO)/archive

test: $(VENV)/.dev kernels judge ## set everything up, then run the tests
	$(PYTEST) -n $(WORKERS) $(SHARED) -m "not nightly and not long and not validator" $(JUDGE_TESTS:%=--ignore=%)

# Workers that find no compiled kernels would each compile them, for half a minute of its core.
.PHONY: kernels
kernels: $(VENV)/.dev
	@$(BIN)/python -c 'from troth_client.compression.known_answer import COMPILED_FROM_TILES as many, choose_path; choose_path("cpu", num_tiles=many)'

# Slots of real processes are wall time: these tests are played by themselves. Runs with a clock of their own
# took up to 25 times as long beside them. Only files with such tests are read, for all take each worker some 15 s.
LONG := $(PYTEST) -n $(LONG_WORKERS) $(SHARED)
LONG_FILES = $(shell grep -rlE "mark\.(long|validator)" tests --include="test_*.py")
.PHONY: long-processes long-computing
long: $(VENV)/.dev ## the tests that make test leaves to make check: on a real validator, or marked with a reason
	$(MAKE) --no-print-directory long-processes
	$(MAKE) --no-print-directory long-computing
long-processes:
	@$(LONG) -m "not nightly and (validator or long and processes)" $(LONG_FILES)
long-computing:
	@$(LONG) -m "long and not nightly and not processes and not validator" $(LONG_FILES)

# Who loses a stake is decided here: no line or branch without a test. What may be contested is
# what the program accepts, so that test needs the program.
JUDGE_TESTS := tests/unit/attestation tests/program/test_case_contestable.py
judge: $(VENV)/.dev ## the judge's tests, which must cover all of it
	$(PYTEST) -q -n 2 $(JUDGE_TESTS) -m "not long and not nightly" --cov=troth_attestation --cov-branch --cov-fail-under=100 \
		--cov-report=term-missing:skip-covered

# The compiler does not keep two cores busy, and what reads the sources takes one. Tests come later: slots are wall time.
# Rust's tests come last of these: they use the crates that program-check has built.
STATIC := program-check kernels lint types layers budgets docs notebooks rust
check: $(VENV)/.dev ## all that CI runs
	$(MAKE) --jobs=2 $(SYNC) $(STATIC)
	$(MAKE) --no-print-directory test long

setup: $(VENV)/.dev ## create .venv with everything a contributor needs

# One environment: the demo needs the train extra, the tests the dev extra on top of it. Most of what pip
# installs is never imported: Python compiles a file when it first imports it, and the last line of the first
# part what every participant imports.
PIP := $(BIN)/python -m pip install --quiet --progress-bar on --no-compile
$(VENV)/bin/python:
	scripts/create_venv.sh $(VENV)
$(VENV)/.train: pyproject.toml | $(VENV)/bin/python
	@echo "troth: installing (PyTorch is about 3 GB with its CUDA libraries; once)" >&2
	$(PIP) -e '.[train,localnet,plot]'
	@$(BIN)/python -c 'import troth_client.participant.process, troth_localnet.embedded'
	@touch $@
$(VENV)/.dev: pyproject.toml | $(VENV)/.train
	$(PIP) -e '.[dev]'
	@touch $@

format: $(VENV)/.dev ## rewrite the sources in house style
	$(BIN)/ruff format . && $(BIN)/ruff check --fix .

lint: $(VENV)/.dev ## formatting and lint, Python
	$(BIN)/ruff format --check . && $(BIN)/ruff check .

types: $(VENV)/.dev ## strict type check, test support included
	$(BIN)/mypy

layers: $(VENV)/.dev ## imports only point down
	$(BIN)/lint-imports --no-cache

budgets: $(VENV)/.dev ## sizes of files and functions; tests that name what they compare
	$(BIN)/python scripts/check_budgets.py
	$(BIN)/python scripts/check_tests.py

docs: $(VENV)/.dev ## links, generated references, threat model, words and prose hold
	$(BIN)/python scripts/check_docs.py
	$(BIN)/python scripts/check_words.py --identifiers

notebooks: $(VENV)/.dev ## the notebooks run, and print what is committed
	$(BIN)/python scripts/check_notebooks.py

site: $(VENV)/.dev ## the documents as a site in build/site, without a warning and without a network
	$(BIN)/python scripts/build_site.py

# Files with a test that names a CUDA device; scripts/check_tests.py refuses one without the mark.
# Another Python than that of .venv, where there is no network: scripts/gpu/README.md.
GPU_PYTHON := $(BIN)/python
GPU_TESTS = $(shell grep -rl "pytest\.mark\.cuda" tests --include="test_*.py")
gpu: $(VENV)/.dev ## on a machine with a GPU: its kernels and its arithmetic against the processor's
	TRITON_INTERPRET=0 $(GPU_PYTHON) scripts/gpu/equality.py; table=$$?; \
	test $$table = 2 || TRITON_INTERPRET=0 $(GPU_PYTHON) -m pytest -m cuda $(GPU_TESTS) && exit $$table

nightly: $(VENV)/.dev ## the long runs, each marked with the reason
	$(PYTEST) -m nightly --timeout=7200

bench: $(VENV)/.dev ## benchmarks behind docs/results.md
	for script in $$(grep -l __main__ scripts/bench/*.py); do echo "== $$script"; $(BIN)/python $$script || exit 1; done

clean: ## remove what the build made (keeps .venv)
	rm -rf target programs/*/target build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

include programs/toolchain/toolchain.mk
