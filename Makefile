# Every target sets up what it needs first. `make demo` and `make test` are the two to know.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

# Tests start hundreds of processes: without bytecode files each of them would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE

# installs vLLM's CPU build and makes the tiny model, each only once
REAL_VLLM = vllm=$$($(PYTHON) tests/real/setup_vllm.py) && "$$(dirname "$$vllm")/python" tests/real/make_model.py

.PHONY: aa campaigns setup demo test long kimi story check worlds chaos real real-failures real-llamacpp real-sglang real-messages preflights-real flags-real recorded corpus dying proofs bench-watch bench-screen bench-replay bench-client picture reference clean help

help:  ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

setup: $(READY)  ## a virtual environment with tunebot and its tools

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'
	$(BIN)/pip install --quiet --disable-pip-version-check --editable . --group dev
	touch $@

demo: $(READY)  ## the story on a simulated host, in about two minutes
	$(BIN)/tunebot demo

test: $(READY)  ## the tests, in under five minutes on two cores
	$(BIN)/pytest -n 5 --dist loadfile --no-loadscope-reorder

long: $(READY)  ## the tests that take longest: ten thousand hostile texts, kills, broken links, relaunches
	$(BIN)/pytest -n 4 --dist worksteal -m long

kimi: $(READY)  ## the playbook of Kimi-K2.5 on eight PCIe Blackwells, whole, on the simulated host (some minutes)
	$(BIN)/pytest -m kimi tests/session/test_kimi.py

story: $(READY)  ## the story's campaign beside the same plan without looking first, and what tunebot itself takes (25 minutes)
	$(BIN)/python -m tests.story.run
	$(BIN)/python -m tests.story.overlap

worlds: $(READY)  ## fifty (or N) shuffled worlds, judged by the simulator's ledger
	$(BIN)/pytest -n 4 --dist worksteal -m long tests/session/test_worlds.py --worlds $(or $(N),50)

chaos: $(READY)  ## tunebot killed 200 times and resumed, judged by the simulator's ledger (N=1000 for more)
	$(BIN)/python -m tests.chaos.run $(or $(N),200) $(if $(SEED),--seed $(SEED)) $(if $(FIGURES),--figures $(FIGURES))

check: $(READY)  ## style, types, import contracts
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

real: $(READY)  ## a real vLLM on this machine's CPU (the first run installs it into the cache folder: 4 GB)
	$(REAL_VLLM)
	$(BIN)/python -m tests.real.run

real-failures: $(READY)  ## fourteen ways a real vLLM fails, each with its reason (about 7 minutes)
	$(REAL_VLLM)
	$(BIN)/python tests/real/failures.py

real-llamacpp: $(READY)  ## a real llama-server on this machine's CPU: every experiment of its playbook (25 minutes; the first run compiles it: 11 more)
	$(BIN)/python -m tests.real.setup_llamacpp
	$(BIN)/python -m tests.real.make_gguf
	$(BIN)/python -m tests.real.llamacpp

real-sglang: $(READY)  ## a real SGLang on this machine's GPU, by a Python that has it: SGLANG=~/venv/bin/python (about 13 minutes)
	$(BIN)/python -m tests.real.sglang_gpu $(if $(SGLANG),--python $(SGLANG))

real-messages: $(READY)  ## a question to a real vLLM's Messages API: nonsense must be no finding
	$(REAL_VLLM)
	$(BIN)/python -m tests.real.messages

flags-real: $(READY)  ## the flag resolver against the parsers of real servers (the first run installs 7 GB)
	$(BIN)/python -m tests.real.flags

preflights-real: $(READY)  ## the story's preflights on the real sources of three SGLang versions (the first run: 130 MB)
	$(BIN)/python -m tests.real.preflights

recorded: $(READY)  ## recorded loads of a real SGLang through the live engine, where ../shared is there
	$(BIN)/python -m tests.recorded.run

corpus: $(READY)  ## the diagnosis on real logs, where ../shared is there
	$(BIN)/python -m tests.corpus.run

dying: $(READY)  ## eight ranks that die at once, 200 times
	$(BIN)/python -m tests.watch.dying 200

proofs: $(READY)  ## races, old servers on a port, recycled pids, frozen links, a 1 GiB log over SSH (about 8 minutes)
	$(BIN)/python -m tests.targets.races 100
	$(BIN)/python -m tests.targets.ports_200 200
	$(BIN)/python -m tests.targets.recycled 100
	$(BIN)/python -m tests.targets.frozen 5
	$(BIN)/python -m tests.targets.big_log 1024

campaigns: $(READY)  ## verdicts of 500 simulated campaigns for each noise between launches
	$(BIN)/python -m tests.core.campaigns 500

aa: $(READY)  ## twenty pairs of equal flags on a real vLLM: at most one may be kept as a gain (about 50 minutes)
	$(REAL_VLLM)
	$(BIN)/python -m tests.real.aa 20

bench-watch: $(READY)  ## speed and memory of the watch on a 1 GiB log
	$(BIN)/python -m tests.bench_watch 1024

bench-screen: $(READY)  ## keys in a log flood, and memory after eight hours, against their limits
	$(BIN)/python -m tests.bench_screen

bench-replay: $(READY)  ## a journal of 100,000 events: how long it takes to open and to seek, against their limits
	$(BIN)/python -m tests.bench_replay

bench-client: $(READY)  ## tunebot's load generator beside four others, on an idle machine (the first run installs 8 GB; 20 minutes)
	$(REAL_VLLM)
	$(BIN)/python -m tests.bench_client

picture: $(READY)  ## the pictures of docs/, from the recorded session
	$(BIN)/python docs/picture.py

reference: $(READY)  ## playbooks/schema.json and docs/playbook.md, from the models of a playbook
	$(BIN)/python docs/reference.py

clean:  ## remove the virtual environment
	rm -rf $(VENV)
