# Two commands: `make train` and `make test`. Each does all the set-up there is, once.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed

.PHONY: train test lint clean help

help:  ## what there is
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

train: $(READY)  ## install, build Atlas, train, test, print the table
	$(BIN)/python train.py

test: lint  ## lint, types, tests
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

$(READY): pyproject.toml constraints.txt atlas-packages.txt
	command -v $(PYTHON) >/dev/null || { echo "Python 3.11 is needed: put python3.11 on PATH or say PYTHON=..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -r atlas-packages.txt
	@! $(BIN)/python -c 'import torchvision' 2>/dev/null || echo "note: torchvision is installed; nothing here needs it"
	@touch $@

clean:  ## remove the environment and what runs left behind
	rm -rf $(VENV) outputs multirun .mypy_cache .ruff_cache .pytest_cache
