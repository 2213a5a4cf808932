# Two commands for a newcomer: `make demo` and `make test`. Each sets itself up from a bare clone.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# torch is pinned here (and only here) so that a laptop or CI gets a known build; users may have any torch >= 2.6
TORCH ?= torch==2.13.0

.PHONY: demo test bench lint clean
.DEFAULT_GOAL := test

$(VENV)/.ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/pip install --quiet --disable-pip-version-check "$(TORCH)"
	$(BIN)/pip install --quiet --disable-pip-version-check --editable . --group dev
	touch $@

demo: $(VENV)/.ready  ## learns an RBM from handwritten digits, brackets its log-likelihood, writes runs/demo/report.html
	OMP_NUM_THREADS=1 $(BIN)/gibbsite run rbm-digits --out runs/demo --replace  # small matrices: more threads only wait

test: $(VENV)/.ready  ## lint, types, then every test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

bench: $(VENV)/.ready  ## the benchmarks, beside the peers (installed into .venv-bench)
	$(MAKE) -C benchmarks

clean:
	rm -rf $(VENV) .venv-bench .pytest_cache .ruff_cache build dist
