"""A simulated host as data: the strict model of a world file.

A world file is YAML (or the same as a dict). Every duration under `phases` is in seconds of the simulated machine and
is divided by `speed`; token streaming is in real time, multiplied by `rates.token_speed`. Unknown keys raise
ValueError with the key's name. Everything but `name` has a default.

    name: story
    speed: 70                   # a ten minute load takes about nine seconds
    seed: 1                     # of the noise and of the generated text
    gpu: {count: 8, name: ..., compute_cap: "12.0", memory_mib: 97887, driver: ..., power_w: 600,
          driver_options: {RegistryDwords: '"ForceP2P=0x11"'}}
    topology: {nvlink: 0, nvswitch: false, numa_nodes: 2, switch_size: 2}    # nvlink: links of each pair, 0: PCIe
    models: [{path: models/x, shards: 64, config: {...}}]      # folders with a config.json, an index and shard files
    environments:               # the first one is installed at ~/venv; the others by `pip install` of one of `install`
      default: {version: 0.5.9, cuda: "12.8", torch: ..., flashinfer: ..., nccl: 2.27.5, nvcc: "", install: [],
                packages: {deep_ep: 1.2.1}, facts: {...}, crash_settle: 0,
                dead_rank: exit}                              # or `hang`: a rank that dies while loading is not noticed
    facts: {nccl_transport: shm}                              # what laws ask for and nothing else tells
    phases: {import: 12, args: 2, dist-init: 12, load-weights: 420, repack: 20, kv-cache: 3, graph-capture: 95,
             draft-load: 20, draft-capture: 30, http-start: 1, warmup: 6, venv: 5, pip: 180, ...}
    memory: {weights_gib: 74.4, kv_gib: 9.5, graph_gib: 1.2, draft_gib: 1.0, context_gib: 0.6}     # of each rank
    rates: {tok_s: 89.5, concurrency_exponent: 0.75, prefill_tok_s: 9000, ttft: 0.045, token_speed: 1}
    step: {compute_ms: 7.8, allreduces: 122, row_bytes: 14336, draft_ms: 2.4, accept: 0.72,
           kernels: {nccl: {14336: 28, 57344: 200}}}          # instead of rates.tok_s: see parts.py and pace.py
    noise: {launch_sd: 0.007, round_sd: 0.007}                # relative standard deviations
    max_total_tokens: 240000    # of the KV cache
    shards: 64                  # steps of the weight bar, where no folder under `models` says how many
    ranks: null                 # rank processes; null means --tp-size times --pp-size
    pdeathsig: true             # false: ranks outlive a killed launcher by `orphan_limit_s` real seconds
    orphan_limit_s: 120
    answers: {capital of France: Paris}                       # prompt fragment -> first words of the generated text
    error_rate: 0.02            # share of the guard's questions answered wrong: others at each drawn rate
    laws: [sglang]              # files of agent/sim/laws, whose rules come before those of the world
    rules:                      # all that match apply, in order
      - when: {flags: {ep_size: 8, moe_a2a_backend: [none]}, env: {NCCL_ALGO: Tree}, facts: {sm: 12, nccl: ">=2.31"}}
        then: {compute: 0.83}

`graph-capture` and `draft-capture` are the seconds of as many batch sizes as a server captures that was told nothing.

`when.flags` compares attributes of the resolved ServerArgs as text; `"*"` is any set value, `a*b` a pattern, null an
unset one, a list any of its members, `">=2.31"` a version. So do `when.env` with the launcher's environment variables
and `when.facts` with what holds of the host (facts.py); `when.environment` is the name of one.

`then` may hold the effects on a decode step that effects.py describes (`compute`, `adds_ms`, `removes`, `kernel`,
`latency`, `accept`, `draft`, `exponent`, `tok_s`, `factor`), `load: {phase: factor}`, `kv: factor`,
`spec_accept` (tokens of one verify pass, where no step is described),
`effective: {flag: value}` (the server rewrites it without a word), `garble: true` (wrong text),
`wrong: 0.3` (this share of the guard's answers is wrong, each token of a given text that many nats less probable),
`log: [{line, phase, ranks}]`, `hang: {phase, ranks}`, `jit: {phase, seconds, ranks}` (silent compiler children), and
`fail: {phase, at, ranks, exception, message, frames, cause, before, signal, exit}`: `at` is the fraction of the phase,
`frames` are `[file of the tree, function, source line]` innermost last (the line number is looked up in the tree),
`cause` is another `{exception, message, frames}` raised before, `before` are log lines ahead of the traceback, `signal`
kills the rank without a word. Phase `args` fails in the launcher (exit code `exit`), the others in the ranks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.sim.effects import Fail, Rule
from agent.sim.parts import Environment, Gpu, Memory, Model, Noise, Rates, Step, Topology
from agent.sim.strict import build

LAWS = Path(__file__).resolve().parent / "laws"
RANK_PHASES = ("dist-init", "load-weights", "repack", "kv-cache", "graph-capture", "draft-load", "draft-capture")
DEFAULT_SECONDS: dict[str, float] = {
    "import": 12,
    "args": 2,
    "config": 3,
    "dist-init": 12,
    "load-weights": 420,
    "repack": 20,
    "kv-cache": 3,
    "graph-capture": 95,
    "draft-load": 20,
    "draft-capture": 30,
    "http-start": 1,
    "warmup": 6,
    "health": 1,
    "drain-poll": 5,
    "dead-poll": 5,
    "int-stop": 3,
    "venv": 5,
    "pip": 180,
}


@dataclass(frozen=True)
class World:
    """A simulated host. The module docstring says what each key means."""

    name: str
    speed: float = 1
    seed: int = 1
    gpu: Gpu = field(default_factory=Gpu)
    topology: Topology = field(default_factory=Topology)
    models: tuple[Model, ...] = ()
    environments: Mapping[str, Environment] = field(default_factory=lambda: {"default": Environment()})
    facts: Mapping[str, Any] = field(default_factory=dict)
    phases: Mapping[str, float] = field(default_factory=dict)
    memory: Memory = field(default_factory=Memory)
    rates: Rates = field(default_factory=Rates)
    step: Step | None = None
    noise: Noise = field(default_factory=Noise)
    max_total_tokens: int = 240000
    shards: int = 8
    ranks: int | None = None
    pdeathsig: bool = True
    orphan_limit_s: float = 120
    answers: Mapping[str, str] = field(default_factory=dict)
    error_rate: float = 0.02
    rules: tuple[Rule, ...] = ()

    def seconds(self, phase: str) -> float:
        """Real seconds that a phase takes in this world."""
        return self.phases.get(phase, DEFAULT_SECONDS[phase]) / self.speed

    def default_environment(self) -> str:
        """Name of the environment that is installed at ~/venv."""
        return next(iter(self.environments))


def parse_world(data: Mapping[str, Any]) -> World:
    """The world that plain data describe. Raises ValueError naming the first key or value that does not fit."""
    world = build(World, data, "world")
    unknown = set(world.phases) - set(DEFAULT_SECONDS)
    if unknown:
        raise ValueError(f"world.phases: unknown key {sorted(unknown)[0]!r}")
    if world.step and "nccl" not in world.step.kernels:
        raise ValueError("world.step.kernels: missing key 'nccl'")
    for rule in world.rules:
        for part in (rule.then.fail, rule.then.hang, rule.then.jit):
            allowed = (*RANK_PHASES, "args") if isinstance(part, Fail) else RANK_PHASES
            if part is not None and part.phase not in allowed:
                raise ValueError(f"world.rules: unknown phase {part.phase!r}")
        if lost := set(rule.then.load) - set(RANK_PHASES):
            raise ValueError(f"world.rules: unknown phase {sorted(lost)[0]!r}")
        if rule.when.environment is not None and rule.when.environment not in world.environments:
            raise ValueError(f"world.rules: unknown environment {rule.when.environment!r}")
    return world


def read_world(source: Path | Mapping[str, Any]) -> dict[str, Any]:
    """The plain data of a world file (YAML), or a copy of the given data, its laws among its rules."""
    data = _read_yaml(source) if isinstance(source, Path) else source
    if not isinstance(data, Mapping):
        raise ValueError("world: not a mapping")
    laws = [rule for name in data.get("laws", ()) for rule in _laws(name)]
    rest = {key: value for key, value in data.items() if key != "laws"}
    return {**rest, "rules": [*laws, *data.get("rules", ())]}


def _laws(name: object) -> list[Any]:
    file = LAWS / f"{name}.yaml"
    if not file.is_file():
        raise ValueError(f"world.laws: there are none called {name!r}")
    rules: list[Any] = _read_yaml(file)["rules"]
    return rules


def _read_yaml(file: Path) -> Any:
    import yaml  # the ranks and shims read JSON and must not pay for this

    return yaml.safe_load(file.read_text(encoding="utf-8"))
