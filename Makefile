# make demo: set everything up and run the main job, to results/report.html; it says what it has found, and every minute how far it is
#   (VERBOSE=1: all that Snakemake says)
# make test: set everything up and run the tests
# make test-comet: the tests of COMET, whose own environment is 1.4 GB
# make test-mtdata: the tests of mtdata, whose own environment is 60 MB
# make test-plug: whole runs that are killed at random moments and go on; half an hour
# make lint: ruff, snakefmt, import-linter, mypy and snakemake --lint, without changing anything
# make check-locks: asks the package registry whether each locked package can be had for each Python (needs uv)
# make docs: the documentation as a site, site/index.html, from the Markdown and from the code; without the network, and strictly
# make picture: docs/images/report.png, the README's picture of the report, from the sample of a real model
# make test-gpu: on a machine with a GPU, all that can use one against the CPU, and its memory against preflight's estimate; ten minutes.
#   Without a GPU it ends at once (pytest's exit status is 77 then)
# make test-slurm: the tests on a Slurm cluster of one node, stood up for them and taken down (on Debian; installs Slurm if root)
# make demo PYTHON=python3.12: with that Python, in place of the newest from 3.11 to 3.14 that is here
# make demo TORCH=cuda: with that build of PyTorch; cpu is the small one, which is taken unless an NVIDIA GPU or Slurm is here
PYTHON ?=
TORCH ?=
VENV ?= .venv
BIN := $(VENV)/bin
# in place of the shell, so that a signal to make reaches it
HERE := $(shell dirname "$$(realpath '$(strip $(MAKEFILE_LIST))')")
RUN := exec $(if $(VERBOSE),snakemake,env PYTHONSAFEPATH=1 PYTHONPATH="$(HERE)" python -m workflow_scripts.run.progress)
# where the run is: here, or what --directory in ARGS names; as a word of the shell
AT = "$$(realpath -m -- "$$(printf '%s\n' $(ARGS) | sed -n 's/^--directory=//p; /^\(-d\|--directory\)$$/ {n; p}' | tail -n 1 | grep . || echo .)")"

.PHONY: demo test test-comet test-mtdata test-slurm test-gpu test-plug lint docs check-locks picture resume setup clean FORCE

demo: setup
	. $(BIN)/activate && $(RUN) --cores all

test: setup $(VENV)/.browser $(VENV)/.docs
	# text is UTF-8 here, whatever the locale
	. $(BIN)/activate && PYTHONUTF8=1 pytest -ra -n auto --dist loadfile --no-loadscope-reorder

test-comet: setup
	. $(BIN)/activate && pytest tests/comet -ra

test-mtdata: setup
	. $(BIN)/activate && pytest tests/mtdata -ra

test-plug: setup
	. $(BIN)/activate && pytest tests/plug -ra

test-slurm: setup
	. $(BIN)/activate && pytest tests/slurm -ra

test-gpu: setup
	. $(BIN)/activate && pytest tests/gpu -ra --durations=10

lint: setup
	. $(BIN)/activate && ruff check . && ruff format --check . && snakefmt --check Snakefile rules
	. $(BIN)/activate && $(call if_configured,importlinter,lint-imports) && $(call if_configured,mypy,mypy)
	. $(BIN)/activate && snakemake --lint

# runs a checker only where pyproject.toml has a section for it
if_configured = if grep -q '^\[tool\.$(1)' pyproject.toml; then $(2); else echo "pyproject.toml has no [tool.$(1)]: $(2) was not run"; fi

docs: setup $(VENV)/.docs
	. $(BIN)/activate && python -m docs.site site
	@echo "The documentation: $(CURDIR)/site/index.html"

check-locks: setup
	. $(BIN)/activate && python envs/check.py

picture: setup $(VENV)/.browser
	. $(BIN)/activate && python tests/picture.py docs/samples/encoder.zip docs/images/report.png

# After a killed run: unless another Snakemake is at work here, stop what that run left behind (training writes a checkpoint),
# clear its lock, and go on. Only processes that write into a log under results/logs are stopped, not what somebody has started by hand.
# For a recipe: make resume ARGS="--configfile config/help-full.yaml"; on Slurm: make resume ARGS="--profile slurm";
# in another folder: make resume ARGS="--directory FOLDER".
# Like make demo it says every minute how far it is, or with VERBOSE=1 all that Snakemake says.
resume: setup
	@command -v pgrep >/dev/null || { echo "make resume looks for running programs with pgrep, which is not there; install procps"; exit 1; }
	@at=$(AT); for pid in $$(pgrep -x snakemake; pgrep -f '[p]ython[^ ]* .*-m snakemake( |$$)'); do \
	  if [ "$$(readlink /proc/$$pid/cwd)" = "$$at" ]; then echo "snakemake is at work here (process $$pid); stop it first"; exit 1; fi; \
	done
	@at=$(AT); lock=$$(ls "$$at"/.snakemake/locks/*.lock 2>/dev/null | head -n 1); [ -z "$$lock" ] || \
	for host in $$(find "$$at"/.snakemake/log -name '*.snakemake.log' -newer "$$lock" -exec sed -n '1,15s/^  Host: //p' {} \;); do \
	  if [ "$$host" != "$$(uname -n)" ]; then \
	    echo "a snakemake on $$host was at work here; give this command there, or see that it is gone and run snakemake --unlock $(ARGS)"; exit 1; \
	  fi; \
	done
	@at=$(AT); logs=$$(readlink -f "$$at/results")/logs; for pid in $$(pgrep -f '[w]orkflow_scripts\.'); do \
	  case "$$(readlink /proc/$$pid/cwd) $$(readlink /proc/$$pid/fd/1)" in "$$at $$logs"/*) \
	    echo "stopping process $$pid, which the killed run has left behind"; kill $$pid 2>/dev/null; timeout 300 tail --pid=$$pid -f /dev/null ;; \
	  esac; \
	done
	. $(BIN)/activate && snakemake --unlock $(ARGS) && \
	  $(RUN) $(if $(filter --profile% --cores% --jobs% -c% -j%,$(ARGS)),,--cores all) $(ARGS)

setup: $(VENV)/.complete

$(VENV)/.complete: envs/requirements.txt $(if $(PYTHON)$(TORCH),FORCE)
	@sh envs/setup.sh "$(VENV)" "$(PYTHON)" "$(TORCH)"

# an environment of another Python or build than is asked for is made anew, one that is right is left as it is
FORCE:

# what the tests of the report's page need beyond the pipeline; they fetch a Chromium if none is installed
$(VENV)/.browser: $(VENV)/.complete envs/browser.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement envs/browser.txt
	touch $@

# what the documentation's site is made with
$(VENV)/.docs: $(VENV)/.complete envs/docs.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --requirement envs/docs.txt
	touch $@

clean:
	rm -rf results .snakemake
