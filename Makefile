# The commands of this repository. Each prepares .venv as needed, so only the first run is slow.
PYTHON ?= python3
VENV := .venv
ARGS ?=
SERVER ?= http://127.0.0.1:8000
# More processes than cores: tests spend much of their time waiting for leases and signals.
TEST_PROCESSES ?= 4
DEPLOY_PROCESSES ?= 3
# Failed tests are not repeated. RERUNS=1 repeats each once, to find out whether it is flaky.
RERUNS ?= 0
# For `make chaos`. SEED=0 picks a seed and prints it.
MINUTES ?= 5
SEED ?= 0
RATE ?= 300
RUNTIME_READY := $(VENV)/.runtime-ready
DEV_READY := $(VENV)/.dev-ready

.DEFAULT_GOAL := help
.PHONY: help up ui ui-dev ui-types ui-budgets screenshots test test-deploy packages manifests check format bench chaos deaths lock schema docs site clean

help: ## list the commands
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 16

up: $(RUNTIME_READY) ## run everything on http://127.0.0.1:8000 with an embedded PostgreSQL; ARGS="--port 8123 --data DIR"
	@$(VENV)/bin/python tools/build_ui.py --if-possible
	@exec $(VENV)/bin/foliot up --data .foliot $(ARGS)

ui: $(DEV_READY) ## build the web UI; `make up` does so, too
	@$(VENV)/bin/python tools/build_ui.py

ui-dev: ui-types ## serve the web UI from its sources, for a Foliot on port 8000; SERVER=http://127.0.0.1:8123
	@cd ui && FOLIOT_URL=$(SERVER) npm run --silent dev

ui-types: $(DEV_READY) ## write the types of the API that the web UI is compiled with
	@$(VENV)/bin/python tools/build_ui.py --with-tests
	@$(VENV)/bin/python -m tools.document
	@cd ui && npm run --silent types

ui-budgets: $(DEV_READY) ## measure the web UI with 1,000,000 runs and 5,000 steps
	@$(VENV)/bin/python tools/build_ui.py --with-tests
	@BUDGET_RUNS=1000000 BUDGET_STEPS=5000 BUDGET_LINES=1000000 JOURNEYS=budgets $(VENV)/bin/python -m pytest tests/ui/test_journeys.py -q -s

screenshots: $(DEV_READY) ## take the screenshots of README and docs from a demo, in ten minutes; ARGS="--url http://127.0.0.1:8000" for a running one
	@$(VENV)/bin/python tools/build_ui.py --with-tests
	@$(VENV)/bin/python -m tools.screenshots $(ARGS)

# Where the environment forbids to keep bytecode, each of the hundreds of processes that tests start would compile all of Foliot again.
test: export PYTHONDONTWRITEBYTECODE :=
test: $(DEV_READY) ## run the tests on real PostgreSQL, except those of test-deploy
	@$(VENV)/bin/python tools/build_ui.py --if-possible --with-tests
	@$(VENV)/bin/python -m pytest --numprocesses $(TEST_PROCESSES) --dist worksteal --reruns $(RERUNS) --durations 15 --durations-min 15 -m "not deploy and not slow" $(ARGS)

test-deploy: export PYTHONDONTWRITEBYTECODE :=
test-deploy: $(DEV_READY) ## build, install and start the packages, the image, the guides and the examples; run the tests that take long
	@$(VENV)/bin/python tools/build_ui.py --if-possible
	@$(VENV)/bin/python -m pytest --numprocesses $(DEPLOY_PROCESSES) --dist worksteal --reruns $(RERUNS) -m "deploy or slow" $(ARGS)

packages: $(DEV_READY) ## build the wheel, the sdist and the list of their components into dist/
	@rm -rf dist
	@$(VENV)/bin/hatchling build --directory dist --target sdist --target wheel
	@$(VENV)/bin/python -m tools.bill_of_materials dist/sbom.cdx.json

manifests: ## render deploy/kubernetes/foliot.yaml from the Helm chart; needs Helm 3
	@{ echo "# Made by \`make manifests\` from deploy/helm/foliot. Do not edit."; helm template foliot deploy/helm/foliot --kube-version 1.31.0; } > deploy/kubernetes/foliot.yaml

check: $(DEV_READY) ## format, lint, types, layers, spelling, plain English
	@$(VENV)/bin/ruff format --check --quiet .
	@$(VENV)/bin/ruff check --quiet .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports --no-cache
	@$(VENV)/bin/codespell src tests docs examples benchmarks tools *.md
	@$(VENV)/bin/python -m tools.prose

format: $(DEV_READY) ## rewrite the sources in the house format
	@$(VENV)/bin/ruff check --fix --quiet . ; $(VENV)/bin/ruff format .

bench: $(DEV_READY) ## measure this checkout, compared with plain SQL, in under ten minutes; ARGS="--only drain" or "--full" or "--rivals"
	@$(VENV)/bin/python -m benchmarks $(ARGS)

chaos: $(DEV_READY) ## run a cluster under faults and check that nothing is lost; MINUTES=60 SEED=7 RATE=300
	@$(VENV)/bin/python -m tests.chaos run --minutes $(MINUTES) --seed $(SEED) --rate $(RATE) $(ARGS)

deaths: $(DEV_READY) ## kill workers and scheduler nodes of a large cluster and measure each recovery, in half an hour; ARGS="--workers 30 --schedulers 6"
	@$(VENV)/bin/python -m tests.chaos deaths --seed $(SEED) $(ARGS)

schema: $(DEV_READY) ## dump the migrated schema into src/foliot/store/schema.sql
	@$(VENV)/bin/python -m tools.dump_schema

docs: $(DEV_READY) ## write the reference pages that are generated from code
	@$(VENV)/bin/python -m tools.document

site: $(DEV_READY) ## build the documentation site into build/site; ARGS="serve" shows it on port 8800
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs $(if $(ARGS),$(ARGS) --dev-addr 127.0.0.1:8800,build)

lock: $(DEV_READY) ## pin the dependencies to their current versions
	@$(VENV)/bin/python -m tools.lock

clean: ## remove everything that make has built; data in .foliot stays
	@rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis dist build
	@rm -rf ui/node_modules ui/src/api/schema.d.ts src/foliot/ui/dist
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# --without-pip, and the machine's own pip pointed at the environment: works where ensurepip is missing (Debian's python3).
$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Foliot needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Set PYTHON=/path/to/python3.11")'
	@$(PYTHON) -m venv --without-pip $(VENV)

# A terminal whose PATH begins with .venv/bin would find the environment's own python, which has no pip.
$(RUNTIME_READY) $(DEV_READY): export PATH := $(subst $(CURDIR)/$(VENV)/bin:,,$(PATH))

$(RUNTIME_READY): requirements/runtime.txt pyproject.toml | $(VENV)/bin/python
	@echo "Installing Foliot into $(VENV) ..."
	@$(PYTHON) -m pip --python $(VENV)/bin/python install -qq --disable-pip-version-check --require-hashes -r requirements/runtime.txt
	@$(PYTHON) -m pip --python $(VENV)/bin/python install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV_READY): requirements/dev.txt $(RUNTIME_READY)
	@echo "Installing the tools for tests and checks into $(VENV) ..."
	@$(PYTHON) -m pip --python $(VENV)/bin/python install -qq --disable-pip-version-check --require-hashes -r requirements/dev.txt
	@touch $@
