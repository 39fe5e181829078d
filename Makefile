# Everything starts here: `make demo` and `make test` set themselves up in .venv, from requirements.lock.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-slow soak lint format docs bench lock clean

BIN := .venv/bin
READY := .venv/.ready
# Spark looks for Java in JAVA_HOME; the script finds one, or says in one sentence what to install.
WITH_JAVA := JAVA_HOME="$$(scripts/java.sh)" && export JAVA_HOME &&
# Two processes: tests/conftest.py keeps the tests that share a Spark session in one of them.
PYTEST := PENSTOCK_ENGINES=local,spark $(BIN)/python -m pytest -n 2 --dist loadgroup

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

$(READY): pyproject.toml requirements.lock scripts/setup.sh
	@scripts/setup.sh
	@touch $@

setup: $(READY) ## make .venv and install the locked packages (the other targets call it)

demo: $(READY) ## Linear Road end to end: a small city, all five answers on Spark, validated; see out/demo
	@$(WITH_JAVA) $(BIN)/penstock demo --out out/demo

test: lint ## lint, types, layers, then all tests but the slow ones, on both engines
	@$(WITH_JAVA) $(PYTEST) $(ARGS)

test-slow: $(READY) ## the slow tests: kills, long random runs, large inputs
	@$(WITH_JAVA) $(PYTEST) -m slow --timeout 900 --durations 15 $(ARGS)

soak: $(READY) ## the long tests at full counts, in pieces (ARGS=--list); see benchmarks/results/<date>
	@$(WITH_JAVA) $(BIN)/python scripts/soak.py $(ARGS)

lint: $(READY) ## ruff (rules and format), mypy --strict, import-linter, figures in the documents
	@$(BIN)/ruff check --quiet
	@$(BIN)/ruff format --check --quiet || { echo "not formatted as above: run 'make format'"; exit 1; }
	@$(BIN)/mypy --num-workers 2 --no-error-summary
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python -m benchmarks.check_figures

format: $(READY) ## put every file into our form
	@$(BIN)/ruff check --quiet --fix-only
	@$(BIN)/ruff format

docs: $(READY) ## build the docs site, with the API reference, into out/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open out/site/index.html"

bench: $(READY) ## the quick benchmarks; `make bench NAME=engine/overhead` runs one in full
	@$(WITH_JAVA) NAME="$(NAME)" scripts/bench.sh $(ARGS)

lock: $(READY) ## write requirements.lock from pyproject.toml (newest versions: scripts/lock.sh --upgrade)
	@scripts/lock.sh

clean: ## remove what can be made again: .venv, caches, out
	@rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache out spark-warehouse
	@find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +
