# Everything here works on a fresh machine that has only make and Python 3.11 or newer.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed

.PHONY: demo test lint types layers unit bench clean

demo: $(INSTALLED)
	$(BIN)/python examples/digits.py

test: lint types layers unit

lint: $(INSTALLED)
	$(BIN)/ruff check .

types: $(INSTALLED)
	$(BIN)/mypy

layers: $(INSTALLED)
	$(BIN)/lint-imports --no-logo

unit: $(INSTALLED)
	$(BIN)/pytest -n 2 -q

bench: $(INSTALLED) .venv-tensorflow/installed
	$(BIN)/python -m benchmarks --tensorflow .venv-tensorflow/bin/python

$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

.venv-tensorflow/installed:
	$(PYTHON) -m venv .venv-tensorflow
	.venv-tensorflow/bin/python -m pip install --quiet tensorflow-cpu
	touch $@

clean:
	rm -rf .venv .venv-tensorflow .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist
