# Every target that runs something makes .venv first when it is missing or out of date.
#   make test PYTHON=python3.12
#   make demo TORCH='torch==2.13.0 --index-url https://download.pytorch.org/whl/cpu'    (a smaller download)

PYTHON ?= python3
TORCH ?= $(shell sed -n 's/^\(torch==[^ ;]*\).*/\1/p' constraints.txt)
JOBS ?= 2
ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.complete
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
CHECKED := fix_compile.py fix_compile_pytest.py patcher rules tests benchmarks docs examples

.DEFAULT_GOAL := help
.PHONY: help venv demo test fuzz lint format docs site bench claims gains clean

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

$(STAMP): pyproject.toml constraints.txt tests/gains/requirements.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) -c constraints.txt -e '.[dev]'
	$(PIP) $(TORCH)
	@$(BIN)/python -m compileall -qq -j $(JOBS) $(VENV)/lib || true  # what pip does with one core; some files are no Python 3
	$(PIP) --no-deps -r tests/gains/requirements.txt
	@touch $@

venv: $(STAMP)  ## create .venv with the development tools and torch

demo: $(STAMP)  ## make a small program faster, measured against eager (ARGS=...)
	@$(BIN)/python benchmarks/demo.py $(ARGS)

test: $(STAMP)  ## run the tests (ARGS='-k FC101' passes options to pytest)
	@$(BIN)/python -m compileall -q -j $(JOBS) patcher rules  # once, and not by each process that a test starts
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)

fuzz: $(STAMP)  ## hazards in the rules' examples (ARGS='--seed 1 --mutants 20000 --rule FC401')
	@$(BIN)/python -m tests.fuzz $(ARGS)

lint: $(STAMP)  ## ruff, formatting, mypy --strict, generated documentation
	$(BIN)/ruff check $(CHECKED)
	$(BIN)/ruff format --check $(CHECKED)
	$(BIN)/mypy
	$(BIN)/python docs/generate.py --check

format: $(STAMP)  ## let ruff sort imports and format
	$(BIN)/ruff check --fix $(CHECKED)
	$(BIN)/ruff format $(CHECKED)

docs: $(STAMP)  ## write the rules' pages, docs/rules.md, docs/facts.md and the README's table
	$(BIN)/python docs/generate.py

site: $(STAMP)  ## build the documentation as a site, into build/site
	@$(BIN)/python -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("material") is None)' \
		|| $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[site]'
	$(BIN)/python docs/site/build.py

bench: $(STAMP)  ## CPU seconds of a scan (ARGS='--python-lint PATH' adds other tools)
	@$(BIN)/python -c 'import importlib.util, sys; sys.exit(importlib.util.find_spec("transformers") is None)' \
		|| $(BIN)/python -m pip install --quiet --disable-pip-version-check transformers
	$(BIN)/python benchmarks/scan.py $(ARGS)

gains: $(STAMP)  ## record anew what fixes do to real models (tests/test_gains.py holds it)
	$(BIN)/python -m tests.test_gains

claims: $(STAMP)  ## measure README's figures again (ARGS=demo: one part; 20 minutes each)
	$(BIN)/python benchmarks/claims.py $(ARGS)
	$(BIN)/python docs/generate.py

clean:  ## remove .venv, caches and build output
	rm -rf $(VENV) .cache build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .coverage .coverage.* htmlcov
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
