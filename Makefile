# Every target sets up all it needs: Python 3.11 or newer, pip and make are enough.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: setup demo paper quick test fuzz tools check bench wheel lock clean

setup: $(READY)

$(READY): requirements/dev.txt requirements/uv.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	$(BIN)/uv pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes requirements/dev.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	$(BIN)/evenly simulate --pools 2 --load 1 --horizon 1 --json > /dev/null # compiles the kernel, once and for all
	touch $@

demo: setup
	$(BIN)/evenly demo

paper: setup
	$(BIN)/evenly paper --out out/paper

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The guides use curl, and the tests follow the guides.
tools:
	command -v curl > /dev/null || { apt-get update -qq && apt-get install -y -qq curl; }

PYTEST := $(BIN)/python -m pytest --numprocesses auto --dist worksteal
MINUTES ?= 30

# No Envoy, no long statistics: under a minute on two cores.
quick: setup
	$(BIN)/ruff check .
	$(PYTEST) -m "not envoy and not slow"

# Everything that must hold, with the same examples every time.
test: check tools
	$(PYTEST)

# Other examples every time: at least one round, then until the minutes are over or something fails.
fuzz: setup
	$(BIN)/python -m tests.fuzz explore --minutes $(MINUTES)

bench: setup
	$(BIN)/python -m bench --write docs/benchmarks.md

wheel: setup
	$(BIN)/uv build --quiet --python $(BIN)/python --no-build-isolation --wheel --out-dir dist

# Renew the pins after a change of the dependencies in pyproject.toml.
lock: setup
	$(BIN)/uv pip compile --quiet --universal --no-header --python-version 3.11 --generate-hashes \
		--extra live --group dev pyproject.toml -o requirements/dev.txt
	grep -A1000 '^uv==' requirements/dev.txt | awk 'NR > 1 && !/^ /{exit} {print}' > requirements/uv.txt

clean:
	rm -rf $(VENV) dist out
