# Inklab: predict in ink, measure, publish both. `make help` lists what there is.
# Works with GNU make 3.81, the one macOS has.

# What a user may set, on the command line or in the environment. Values reach the programs
# through the environment and are never pasted into a command, so quotes, spaces and $ are safe;
# $(value) keeps make itself from expanding them.
PASSED := PROFILE MODEL SHAPE DEPTHS REPS THREADS NGL MACHINE CHIP BACKEND PYTHON INSTRUMENT LLAMA_BENCH QUIET PAIRS \
	PROMPT TOKENS LENGTHS SECONDS_EACH N TITLE QUESTION INK CLOSE FILE BECAUSE DAY RUN POLISH SITE_URL REPO_URL DEST DELETE SIZES RECORD BASE HOSTS

define pass
ifneq ($$(origin $(1)),undefined)
override $(1) := $$(value $(1))
export $(1)
endif
endef
$(foreach name,$(PASSED),$(eval $(call pass,$(name))))

SETUP := "$${PYTHON:-python3}" bench/setup.py
VENV_PYTHON := .venv/bin/python
LOCK := .venv/bin/python -m uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-annotate --no-header -q

export PYTHONNOUSERSITE := 1
# The names of folders too, whatever the locale.
export PYTHONUTF8 := 1
# Byte code is the set-up's to write: a program that does so on a full disk leaves half a file, on
# which every later start fails (Python before 3.12.8).
export PYTHONDONTWRITEBYTECODE := 1
# Material for MkDocs advertises its successor before every build.
export NO_MKDOCS_2_WARNING := 1

.PHONY: all bench import day ink withdraw parity probe chat ttft site publish zensical serve host post check-post check test perf lighthouse lock sbom review share fonts fit schema fuzz faults fleet clean clean-all help
.NOTPARALLEL:
.DEFAULT_GOAL := all

all: bench site ## bench this machine, build the site, show predicted against measured (the default)
	@$(VENV_PYTHON) -m bench report
	@echo "The report: site/index.html. To read it in a browser: make serve"

bench: ## measure this machine: PROFILE=quick|day1 MODEL= SHAPE= DEPTHS= REPS= THREADS= NGL= MACHINE= CHIP= BACKEND=
	@$(SETUP) bench
	@$(VENV_PYTHON) -m bench run

import: ## take in a log of llama-bench, llama-server, Ollama or LM Studio: FILE= (or a pipe) MACHINE= CHIP= MODEL=
	@$(SETUP) site
	@$(VENV_PYTHON) -m bench import

day: ## a day from nothing, its page, post, plan and open ink: N=2 TITLE="…" QUESTION="…" MACHINE=
	@$(SETUP) bench
	@$(VENV_PYTHON) -m bench day

ink: ## open the ink of a plan for your guesses, or seal it with CLOSE=1: PROFILE= MACHINE= INK= and the bench's own
	@$(SETUP) bench
	@$(VENV_PYTHON) -m bench ink

withdraw: ## take a wrong run or ink back, it stays and counts no more: FILE=labdata/runs/… BECAUSE="…"
	@$(SETUP) site
	@$(VENV_PYTHON) -m bench withdraw

parity: ## the in-process engine against a real llama-bench (LLAMA_BENCH=, PATH, or built here): PAIRS=8 REPS=3 MODEL= SHAPE= THREADS= NGL=
	@$(SETUP) test
	@$(VENV_PYTHON) -m bench parity

probe: ## what the CPU can pull: read bandwidth by threads, against a C loop, and a matrix product: PAIRS=4
	@$(SETUP) test
	@$(VENV_PYTHON) -m bench probe

chat: ## talk to the model once, time to first token and stream rate live: MODEL= PROMPT= TOKENS=128 SHAPE= THREADS= NGL=
	@$(SETUP) bench
	@$(VENV_PYTHON) -m bench chat

ttft: ## record time to first token for LENGTHS=16,128,512,2048 of prompt: MODEL= REPS= SHAPE= THREADS= NGL= MACHINE=
	@$(SETUP) test
	@$(VENV_PYTHON) -m bench ttft

site: ## build the site into site/ (needs no compiler and no engine)
	@$(SETUP) site
	@echo "Building the site, a few seconds"; $(VENV_PYTHON) -m mkdocs build -q && echo "Built: site/index.html"

publish: ## build the site and put it on any static host: DEST=folder or host:path (rsync; DELETE=1 removes what is old) SITE_URL=https://…
	@$(SETUP) site
	@$(VENV_PYTHON) -m bench.publish

zensical: ## build the same pages with MkDocs' successor and list what differs (may fail)
	@$(SETUP) successor
	@$(VENV_PYTHON) -m bench.successor

serve: ## build the site and serve it on this machine, rebuilt at every change
	@$(SETUP) site
	@$(VENV_PYTHON) -m mkdocs serve

host: ## what the bench sees of this machine, and its row of the hardware table
	@$(SETUP) site
	@$(VENV_PYTHON) -m bench host

post: ## drafts of a post for each place, every number the page's: DAY=1 or RUN=<machine or run>, POLISH=model.gguf
	@$(SETUP) site
	@test -z "$$POLISH" || $(SETUP) bench
	@$(VENV_PYTHON) -m bench post

check-post: ## a draft edited by hand against the summary of today: FILE=drafts/day-01/x.txt
	@$(SETUP) site
	@$(VENV_PYTHON) -m bench check-post

check: ## check all of labdata/, its seals against git, that docs/ types no result by hand, and site/ where it was built
	@$(SETUP) site
	@$(VENV_PYTHON) -m bench check
	@if [ -f site/index.html ]; then $(VENV_PYTHON) -m macros.built; fi

test: ## run the whole test suite
	@$(SETUP) test
	@PYTHONDONTWRITEBYTECODE= $(VENV_PYTHON) -m pytest -n auto --maxprocesses 4 --dist loadfile

perf: ## time and memory of load, check, build, import and predictions on generated labs: SIZES=20,200,1000 RECORD=1
	@$(SETUP) test
	@$(VENV_PYTHON) -m tests.perf

lighthouse: site ## Lighthouse over the built site, mobile and desktop; needs npx and Chromium
	@$(SETUP) test
	@$(VENV_PYTHON) -m tests.lighthouse

lock: ## pin the newest versions of all packages, with hashes, into lock/
	@$(SETUP) lock
	@rm -rf .cache/lock && mkdir -p .cache/lock
	@$(LOCK) --all-extras -o .cache/all.txt
	@set -e; for part in site bench fit dev successor fuzz supply fleet lock; do $(LOCK) --extra $$part -c .cache/all.txt -o .cache/lock/$$part.txt; done
	@mv .cache/lock/*.txt lock/

sbom: ## bill of materials of all that is installed (CycloneDX), and its licences: sbom.cdx.json, LICENCES.md
	@$(SETUP) supply
	@$(VENV_PYTHON) -m cyclonedx_py environment --output-reproducible --of JSON -o sbom.cdx.json .venv/bin/python
	@$(VENV_PYTHON) -m bench.supply

review: ## what this branch brings, and what is odd about it: BASE=origin/main
	@$(SETUP) site
	@$(VENV_PYTHON) -m bench review

share: ## one file to send for those without git: RUN=<machine> or <machine>/<run>; make import FILE= takes it in
	@$(SETUP) site
	@$(VENV_PYTHON) -m bench share

fonts: ## cut the typefaces to the characters of macros/fonts.py: macros/theme/assets/fonts/, macros/faces/
	@$(SETUP) test
	@$(VENV_PYTHON) -m macros.fonts

fleet: ## bench the machines of HOSTS=hosts.yml, an Ansible inventory, over SSH, and take their runs in: the bench's own settings
	@$(SETUP) fleet
	@$(VENV_PYTHON) -m bench.fleet

fit: ## learn the predictor from labdata/corpus/ anew: labdata/corpus/fit.json, a few minutes
	@$(SETUP) fit
	@OMP_NUM_THREADS=1 $(VENV_PYTHON) -m macros.fit

fuzz: ## strangers' bytes at every door for SECONDS_EACH=600 (RECORD=1), guided by coverage where atheris has a wheel
	@$(SETUP) fuzz
	@$(VENV_PYTHON) -m tests.fuzz "$${SECONDS_EACH:-600}" $${RECORD:+--record}

faults: ## kill -9, full disks, clocks and sleep: labdata/trials/faults.yml, an hour; broken off, it goes on
	@$(SETUP) test
	@$(VENV_PYTHON) -m tests.faults 1 --record

schema: ## write what documents labdata/: JSON Schema for editors, its README, and README's table
	@$(SETUP) site
	@$(VENV_PYTHON) -m macros.schema_docs && $(VENV_PYTHON) -m macros.plain

clean: ## remove what was built: site/ and .cache/
	@rm -rf site .cache

clean-all: clean ## remove .venv too (built engines stay in the user's cache)
	@rm -rf .venv

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
