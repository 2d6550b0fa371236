# `make help` is the map of this repository.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup check test fmt docs ui ui-check conformance sim sim-flow chaos-kernel chaos-flow chaos-turns chaos-logs crash-turns fuzz-lang bench-lang bench-kernel bench-bloat \
	bench-doorbell bench-idle bench-steps bench-flow bench-latency bench-mail bench-sse bench-turn bench-ui bench-api screenshots first-minute chaos-link lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(INSTALLED) ## Create .venv and install the locked tools and the project into it

$(INSTALLED): requirements/dev.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed: make setup PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	@touch $@

check: $(INSTALLED) ## Formatting, lint, types and import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: $(INSTALLED) ## Run all tests
	$(BIN)/pytest -n auto

fmt: $(INSTALLED) ## Format the code and apply the safe fixes of the linter
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(INSTALLED) ## Run every code block and follow every link of the documentation
	$(BIN)/pytest tests/architecture/test_docs_run.py tests/architecture/test_links.py

# The Node.js that the environment may have comes after that of the machine.
NODE := PATH="$$PATH:$(CURDIR)/$(BIN)"
UI_INSTALLED := ui/node_modules/.installed

$(UI_INSTALLED): ui/package-lock.json
# `npm ci` wants the binaries of every platform in the lock; this takes what is locked and leaves the lock alone.
	cd ui && $(NODE) npm install --no-save --no-audit --no-fund
	@touch $@

ui: $(UI_INSTALLED) ## Build the dashboard into the package (needs Node.js 20.19 or later)
	cd ui && $(NODE) npx vite build --logLevel warn

ui-check: $(UI_INSTALLED) ## Types and unit tests of the dashboard
	cd ui && $(NODE) npm run --silent check
	cd ui && $(NODE) npm run --silent test

conformance: $(INSTALLED) ## Judge the stores of the kernel and the flows that run on them
	$(BIN)/pytest tests/kernel tests/runtime/conformance -k "conformance or machine"

N ?= 10000
sim: $(INSTALLED) ## Simulate the kernel under faults; N=100000 plays more schedules
	$(BIN)/python -m tests.sim --schedules $(N)

sim-flow: $(INSTALLED) ## Simulate flows under faults; N=100000 plays more schedules
	$(BIN)/python -m tests.sim.flows --schedules $(N)

chaos-kernel: $(INSTALLED) ## Kill, stop and restart what the kernel runs on, and judge the outcome
	$(BIN)/python -m tests.chaos.kernel

STORE ?= postgres
chaos-flow: $(INSTALLED) ## Kill workers under a thousand flows, and judge the outcome; STORE=mongo loses primaries too
	$(BIN)/python -m tests.chaos.flow --store $(STORE)

chaos-link: $(INSTALLED) ## Cut the link to a worker's host, and judge when it stopped to act (needs root)
	$(BIN)/python -m tests.chaos.link

crash-turns: $(INSTALLED) ## Kill a worker at every commit of a review by a model, and judge the outcome
	$(BIN)/python -m tests.chaos.review

chaos-turns: $(INSTALLED) ## Kill workers under five hundred turns, and judge the outcome
	$(BIN)/python -m tests.chaos.turns

LINES ?= 1000000
chaos-logs: $(INSTALLED) ## Kill what log lines travel through, then a worker, and judge what is stored
	$(BIN)/python -m tests.chaos.logs --lines $(LINES)

fuzz-lang: $(INSTALLED) ## Throw generated and broken programs at the compiler
	$(BIN)/python -m tests.lang.fuzz

bench-lang: $(INSTALLED) ## Measure the compiler
	$(BIN)/python -m bench.lang

bench-kernel: $(INSTALLED) ## Compare the kernel with its database itself and with other queues; STORE=mongo for MongoDB
	$(BIN)/python -m bench.kernel --store $(STORE)

bench-bloat: $(INSTALLED) ## Measure claims among millions of finished tasks and under an open snapshot
	$(BIN)/python -m bench.bloat

bench-doorbell: $(INSTALLED) ## Measure the way from a commit to a claim in another process
	$(BIN)/python -m bench.doorbell

bench-idle: $(INSTALLED) ## Measure what idle workers cost the database
	$(BIN)/python -m bench.idle

bench-steps: $(INSTALLED) ## Measure what a step of a flow costs the kernel on PostgreSQL
	$(BIN)/python -m bench.kernel_steps

bench-flow: $(INSTALLED) ## Compare flows with other engines and with PostgreSQL itself
	$(BIN)/python -m bench.flow

bench-latency: $(INSTALLED) ## Measure the way from a submit to the start of a handler
	$(BIN)/python -m bench.latency

bench-api: $(INSTALLED) ## Measure lists of runs among a million finished ones
	$(BIN)/python -m bench.api

bench-turn: $(INSTALLED) ## Measure what a turn stores, and turns among suspended ones
	$(BIN)/python -m bench.turn

bench-sse: $(INSTALLED) ## Measure what a server costs while many watch one run
	$(BIN)/python -m bench.sse

first-minute: $(INSTALLED) ## Install the wheel as a new user does, and time the way to a green run
	$(BIN)/python -m tests.ui.first_minute

bench-ui: $(INSTALLED) ui ## Measure the page of large runs in a browser
	$(BIN)/python -m bench.ui

screenshots: $(INSTALLED) ui ## Take the pictures of the documentation anew (needs Chromium and PostgreSQL)
	$(BIN)/python -m tests.ui.pictures

bench-mail: $(INSTALLED) ## Compare mailboxes in Redis with the bare scripts and with Celery
	$(BIN)/python -m bench.mail

LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock"

lock: ## Write the hash locks anew (needs uv)
	$(LOCK) --output-file requirements/runtime.txt pyproject.toml
	$(LOCK) --output-file requirements/dev.txt pyproject.toml requirements/dev.in

clean: ## Remove .venv, caches and builds
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
