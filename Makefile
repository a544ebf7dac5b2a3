# The two commands of README.md are `make demo` and `make test`. Each sets up what it needs in .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO ?= --data-dir .mempersist
PYTEST := $(BIN)/pytest

.PHONY: demo test test-clients test-worker test-engine test-long check docs lock clean

demo: $(VENV)/installed  ## import the bundled sample, answer a search, serve it
	$(BIN)/mempersist demo $(DEMO)

test: check  ## style, types, and every test that takes seconds
	$(PYTEST) -m "not clients and not worker and not engine and not long"

check: $(VENV)/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test-clients: $(VENV)/installed-clients  ## the server under foreign MCP clients and the conformance suite
	$(PYTEST) -m clients

test-worker: $(VENV)/installed-worker  ## the Worker in Pyodide over real D1, R2 and queues, and its bundle
	$(PYTEST) -m "worker and not long"

test-engine: $(VENV)/installed-test  ## the Pulumi program on the real engine, over the emulator; builds it with Go if need be
	$(BIN)/python -m tests.engine.build
	$(PYTEST) -m "engine and not long"

test-long: $(VENV)/installed-worker  ## the tests that take minutes
	$(PYTEST) -m long

docs: $(VENV)/installed  ## write docs/mcp.md from the tools' schemas
	$(BIN)/python -m mempersist_ops.tool_reference docs/mcp.md

lock:  ## pin what pyproject.toml and the Worker ask for, with hashes; needs uv
	uv pip compile pyproject.toml --universal --python-version 3.11 --upgrade --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate -q -o requirements.lock
	uv pip compile pyproject.toml --extra deploy --universal --python-version 3.11 --upgrade --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate -q -o requirements-deploy.lock
	uv pip compile pyproject.toml --extra deploy --group test --universal --python-version 3.11 --upgrade --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate -q -o requirements-test.lock
	uv pip compile worker/requirements.in --python-version 3.14 --upgrade --generate-hashes \
	  --no-emit-index-url --no-header --no-annotate -q -o worker/requirements.lock

clean:  ## remove what the commands above made, the demo's archive included
	rm -rf $(VENV) .mempersist tests/clients/node_modules tests/wrangler/node_modules tests/rigs/worker/node_modules .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Python 3.11 or newer is needed; name one with: make PYTHON=/path/to/python3"; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The project itself is built in isolation, which makes the offline embedding model: about a minute, once.
MODEL_MAKERS := operations/hatch_build.py $(addprefix operations/mempersist_ops/embedding/, \
  bert.py distill.py files.py safetensors.py)

$(VENV)/installed: $(BIN)/python requirements.lock pyproject.toml $(MODEL_MAKERS)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@echo "Building mempersist with its embedding model; this takes about a minute."
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

$(VENV)/installed-test: $(VENV)/installed requirements-test.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-test.lock
	@touch $@

NPM_INSTALL := npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error

$(VENV)/installed-worker: $(VENV)/installed-test tests/rigs/worker/package-lock.json tests/wrangler/package-lock.json
	$(NPM_INSTALL) --prefix tests/rigs/worker
	$(NPM_INSTALL) --prefix tests/wrangler
	@touch $@

$(VENV)/installed-clients: $(VENV)/installed-test tests/clients/package-lock.json
	$(NPM_INSTALL) --prefix tests/clients
	@touch $@
