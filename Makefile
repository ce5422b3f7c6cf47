# Everything here works on a fresh machine that has only make and Python 3.11 or newer.

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/installed

.PHONY: demo test lint types layers unit bench protos clean

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

# An old grpcio-tools: what it writes runs with every protobuf that pyproject.toml allows.
protos: .venv-protos/installed
	.venv-protos/bin/python src/thalweg/formats/protos/generate.py

.venv-protos/installed:
	$(PYTHON) -m venv .venv-protos
	.venv-protos/bin/python -m pip install --quiet 'grpcio-tools==1.74.*' numpy tensorboard
	touch $@

$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

.venv-tensorflow/installed:
	$(PYTHON) -m venv .venv-tensorflow
	.venv-tensorflow/bin/python -m pip install --quiet tensorflow-cpu
	touch $@

clean:
	rm -rf .venv .venv-protos .venv-tensorflow .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist
