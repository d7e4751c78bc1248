# make demo: set everything up and run the main job, to results/report.html
# make test: set everything up and run the tests
# make test-slurm: the tests on a Slurm cluster of one node, stood up for them and taken down (on Debian; installs Slurm if root)
PYTHON ?= python3.11
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test test-slurm lint resume setup clean

demo: setup
	. $(BIN)/activate && snakemake --cores all
	@echo "The report: $(CURDIR)/results/report.html"

test: setup
	. $(BIN)/activate && pytest tests/workflow tests -ra -n 2 --dist loadfile --no-loadscope-reorder

test-slurm: setup
	. $(BIN)/activate && pytest tests/slurm -ra

lint: setup
	. $(BIN)/activate && ruff check . && ruff format --check . && snakefmt --check Snakefile rules && snakemake --lint

# After a killed run: clear a stale lock, unless another Snakemake is at work here, and go on.
resume: setup
	@for pid in $$(pgrep -x snakemake); do \
	  if [ "$$(readlink /proc/$$pid/cwd)" = "$(CURDIR)" ]; then echo "snakemake is at work here (process $$pid); stop it first"; exit 1; fi; \
	done
	. $(BIN)/activate && snakemake --unlock && snakemake --cores all

setup: $(VENV)/.complete

$(VENV)/.complete: envs/requirements.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement envs/requirements.txt
	touch $@

clean:
	rm -rf results .snakemake
