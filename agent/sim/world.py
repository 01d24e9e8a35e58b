"""A simulated host as data: the strict model of a world file.

A world file is YAML (or the same as a dict). Every duration under `phases` is in seconds of the simulated machine and
is divided by `speed`; token streaming is in real time, multiplied by `rates.token_speed`. Unknown keys raise
ValueError with the key's name. Everything but `name` has a default.

    name: story
    speed: 70                   # a ten minute load takes about nine seconds
    seed: 1                     # of the noise and of the generated text
    gpu: {count: 8, name: ..., compute_cap: "12.0", memory_mib: 97887, driver: ..., power_w: 600}
    topology: {nvlink: 0, numa_nodes: 2, switch_size: 2}      # nvlink: links of each pair; 0 is PCIe only
    models: [{path: models/x, shards: 64, config: {...}}]      # folders with a config.json, an index and shard files
    environments:               # the first one is installed at ~/venv; the others by `pip install` of one of `install`
      default: {version: 0.5.9, cuda: "12.8", torch: ..., flashinfer: ..., tree: sglang-0.5.9, dialect: "0.5.9",
                install: [], bar: Multi-thread loading shards, bar_newline: false, crash_settle: 0,
                dead_rank: exit}                              # or `hang`: a rank that dies while loading is not noticed
    phases: {import: 12, args: 2, dist-init: 12, load-weights: 420, repack: 20, kv-cache: 3, graph-capture: 95,
             draft-load: 20, draft-capture: 30, http-start: 1, warmup: 6, venv: 5, pip: 180, ...}
    memory: {weights_gib: 74.4, kv_gib: 9.5, graph_gib: 1.2, draft_gib: 1.0, context_gib: 0.6}     # of each rank
    rates: {tok_s: 89.5, concurrency_exponent: 0.75, prefill_tok_s: 9000, ttft: 0.045, token_speed: 1}
    noise: {launch_sd: 0.007, round_sd: 0.007}                # relative standard deviations
    max_total_tokens: 240000    # of the KV cache
    shards: 64                  # steps of the weight bar, where no folder under `models` says how many
    ranks: null                 # rank processes; null means --tp-size
    pdeathsig: true             # false: ranks outlive a killed launcher by `orphan_limit_s` real seconds
    orphan_limit_s: 120
    answers: {capital of France: Paris}                       # prompt fragment -> first words of the generated text
    error_rate: 0.02            # share of the guard's questions answered wrong: others at each drawn rate
    rules:                      # all that match apply, in order
      - when: {flags: {ep_size: 8, moe_a2a_backend: [none]}, env: {NCCL_ALGO: Tree}, environment: default}
        then: {tok_s: 101.2}

`when.flags` compares attributes of the resolved ServerArgs as text; `"*"` is any set value, null an unset one, a list
any of its members. `when.env` does so with the launcher's environment variables.

`then` may hold: `tok_s` (absolute, last wins), `factor` (multiplies), `spec_accept` (tokens of one verify pass),
`effective: {flag: value}` (the server rewrites it without a word), `garble: true` (wrong text),
`wrong: 0.3` (this share of the guard's answers is wrong, each token of a given text that many nats less probable),
`log: [{line, phase, ranks}]`, `hang: {phase, ranks}`, `jit: {phase, seconds, ranks}` (silent compiler children), and
`fail: {phase, at, ranks, exception, message, frames, cause, before, signal, exit}`: `at` is the fraction of the phase,
`frames` are `[file of the tree, function, source line]` innermost last (the line number is looked up in the tree),
`cause` is another `{exception, message, frames}` raised before, `before` are log lines ahead of the traceback, `signal`
kills the rank without a word. Phase `args` fails in the launcher (exit code `exit`), the others in the ranks.
"""

import types
import typing
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, cast

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
T = TypeVar("T")


@dataclass(frozen=True)
class Gpu:
    """The GPUs of the host; all alike.

    `memory_mib` is what nvidia-smi calls memory.total, in MiB; `cuda` the newest version that the driver runs.
    """

    count: int = 8
    name: str = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
    compute_cap: str = "12.0"
    memory_mib: int = 97887
    driver: str = "580.95.05"
    cuda: str = "13.0"
    power_w: int = 600


@dataclass(frozen=True)
class Topology:
    """How GPUs reach each other. `nvlink` is the number of links of each pair; 0 means PCIe only."""

    nvlink: int = 0
    numa_nodes: int = 2
    switch_size: int = 2


@dataclass(frozen=True)
class Model:
    """A model folder below the home of the host."""

    path: str
    shards: int = 8
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Environment:
    """One Python environment: which server version it holds and how that version words its log."""

    version: str = "0.5.9"
    cuda: str = "12.8"
    torch: str = "2.9.1"
    flashinfer: str = "0.6.3"
    tree: str = "sglang-0.5.9"
    dialect: str = "0.5.9"
    install: tuple[str, ...] = ()
    bar: str = "Multi-thread loading shards"
    bar_newline: bool = False
    crash_settle: float = 0
    dead_rank: str = "exit"


@dataclass(frozen=True)
class Memory:
    """GPU memory of one rank by purpose, in GiB."""

    weights_gib: float = 74.4
    kv_gib: float = 9.5
    graph_gib: float = 1.2
    draft_gib: float = 1.0
    context_gib: float = 0.6


@dataclass(frozen=True)
class Rates:
    """Speed of generation: tokens/s at concurrency 1, prefill tokens/s, and the fixed part of a TTFT in seconds."""

    tok_s: float = 89.5
    concurrency_exponent: float = 0.75
    prefill_tok_s: float = 9000
    ttft: float = 0.045
    token_speed: float = 1


@dataclass(frozen=True)
class Noise:
    """Relative standard deviations between launches, and between rounds on one launch."""

    launch_sd: float = 0
    round_sd: float = 0


@dataclass(frozen=True)
class When:
    """What must hold of a launch for a rule to apply."""

    flags: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, Any] = field(default_factory=dict)
    environment: str | None = None


@dataclass(frozen=True)
class Raised:
    """One exception: its class name, its text, and its innermost frames."""

    exception: str
    message: str = ""
    frames: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True)
class Fail:
    """How a launch dies. `ranks` None means all of them."""

    phase: str
    at: float = 0.5
    ranks: tuple[int, ...] | None = None
    exception: str = "RuntimeError"
    message: str = ""
    frames: tuple[tuple[str, ...], ...] = ()
    cause: Raised | None = None
    before: tuple[str, ...] = ()
    signal: int | None = None
    exit: int = 1


@dataclass(frozen=True)
class Hang:
    """A phase that never ends on these ranks (None: all)."""

    phase: str
    ranks: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Jit:
    """Compiler children of these ranks (None: all), silent, for `seconds` of the simulated machine."""

    phase: str
    seconds: float
    ranks: tuple[int, ...] | None = None


@dataclass(frozen=True)
class LogLine:
    """An extra log line. In phase `args` the launcher prints it, in others their begin on `ranks` (None: all)."""

    line: str
    phase: str = "args"
    ranks: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Then:
    """What follows from a rule."""

    tok_s: float | None = None
    factor: float = 1
    spec_accept: float | None = None
    garble: bool = False
    wrong: float = 0
    effective: Mapping[str, Any] = field(default_factory=dict)
    log: tuple[LogLine, ...] = ()
    fail: Fail | None = None
    hang: Hang | None = None
    jit: Jit | None = None


@dataclass(frozen=True)
class Rule:
    """One law of the world: when it applies, what follows."""

    when: When
    then: Then


@dataclass(frozen=True)
class World:
    """A simulated host. The module docstring says what each key means."""

    name: str
    speed: float = 1
    seed: int = 1
    gpu: Gpu = Gpu()
    topology: Topology = Topology()
    models: tuple[Model, ...] = ()
    environments: Mapping[str, Environment] = field(default_factory=lambda: {"default": Environment()})
    phases: Mapping[str, float] = field(default_factory=dict)
    memory: Memory = Memory()
    rates: Rates = Rates()
    noise: Noise = Noise()
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
    world = _build(World, data, "world")
    unknown = set(world.phases) - set(DEFAULT_SECONDS)
    if unknown:
        raise ValueError(f"world.phases: unknown key {sorted(unknown)[0]!r}")
    for rule in world.rules:
        for part in (rule.then.fail, rule.then.hang, rule.then.jit):
            allowed = (*RANK_PHASES, "args") if isinstance(part, Fail) else RANK_PHASES
            if part is not None and part.phase not in allowed:
                raise ValueError(f"world.rules: unknown phase {part.phase!r}")
        if rule.when.environment is not None and rule.when.environment not in world.environments:
            raise ValueError(f"world.rules: unknown environment {rule.when.environment!r}")
    return world


def read_world(source: Path | Mapping[str, Any]) -> dict[str, Any]:
    """The plain data of a world file (YAML), or a copy of the given data."""
    if isinstance(source, Path):
        import yaml  # the ranks and shims read JSON and must not pay for this

        source = yaml.safe_load(source.read_text(encoding="utf-8"))
    if not isinstance(source, Mapping):
        raise ValueError("world: not a mapping")
    return dict(source)


def _build(cls: type[T], data: object, where: str) -> T:
    if not isinstance(data, Mapping):
        raise ValueError(f"{where}: expected a mapping")
    hints = typing.get_type_hints(cls)
    known = {item.name: item for item in fields(cast(Any, cls))}
    for key in data:
        if key not in known:
            raise ValueError(f"{where}: unknown key {key!r}")
    for name, item in known.items():
        if name not in data and item.default is MISSING and item.default_factory is MISSING:
            raise ValueError(f"{where}: missing key {name!r}")
    return cls(**{key: _convert(hints[key], value, f"{where}.{key}") for key, value in data.items()})


def _convert(hint: Any, value: Any, where: str) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is types.UnionType:
        if value is None and type(None) in arguments:
            return None
        return _convert(next(item for item in arguments if item is not type(None)), value, where)
    if is_dataclass(hint):
        return _build(cast(type[Any], hint), value, where)
    if origin is tuple:
        if not isinstance(value, list | tuple):
            raise ValueError(f"{where}: expected a list")
        return tuple(_convert(arguments[0], item, f"{where}[{index}]") for index, item in enumerate(value))
    if origin is Mapping:
        if not isinstance(value, Mapping):
            raise ValueError(f"{where}: expected a mapping")
        return {str(key): _convert(arguments[1], item, f"{where}.{key}") for key, item in value.items()}
    return _scalar(hint, value, where)


def _scalar(hint: Any, value: Any, where: str) -> Any:
    if hint is Any:
        return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is int and isinstance(value, bool):
        raise ValueError(f"{where}: expected int, not {value!r}")
    if not isinstance(value, hint):
        raise ValueError(f"{where}: expected {hint.__name__}, not {value!r}")
    return value
