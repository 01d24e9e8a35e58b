"""What a simulated machine is made of: its GPUs and driver, its models, its environments, its speed."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from agent.sim.facts import numbers


@dataclass(frozen=True)
class Gpu:
    """The GPUs of the host, all alike, and their driver.

    `memory_mib` is what nvidia-smi calls memory.total, in MiB; `cuda` the newest version that the driver runs;
    `driver_options` the lines of /proc/driver/nvidia/params that differ from a stock driver's.
    """

    count: int = 8
    name: str = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
    compute_cap: str = "12.0"
    memory_mib: int = 97887
    driver: str = "580.95.05"
    cuda: str = "13.0"
    power_w: int = 600
    driver_options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Topology:
    """How GPUs reach each other. `nvlink` is the number of links of each pair; 0 means PCIe only.

    With `nvswitch` the links go through switches, which can multicast.
    """

    nvlink: int = 0
    numa_nodes: int = 2
    switch_size: int = 2
    nvswitch: bool = False


@dataclass(frozen=True)
class Model:
    """A model folder below the home of the host."""

    path: str
    shards: int = 8
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Environment:
    """One Python environment: the versions in it, what pip must be asked for to get it, how its server meets a death.

    `nvcc` is the version of a compiler that comes with it as a package, "" for none. `packages` are further ones, by
    name and version, empty modules. `crash_settle` are seconds before a failed server ends; with `dead_rank: hang` a
    rank that dies while loading is not noticed. `facts` are added to those of the host.
    """

    version: str = "0.5.9"
    cuda: str = "12.8"
    torch: str = "2.9.1"
    flashinfer: str = "0.6.3"
    nccl: str = "2.27.5"
    nvcc: str = ""
    packages: Mapping[str, str] = field(default_factory=dict)
    install: tuple[str, ...] = ()
    crash_settle: float = 0
    dead_rank: str = "exit"
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def generation(self) -> Literal["0.5.9", "0.5.23"]:
        """Which of two versions of SGLang this one is like: its source tree and the words of its log."""
        return "0.5.9" if numbers(self.version) < (0, 5, 11) else "0.5.23"


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
    """Speed of generation: tokens/s at concurrency 1, prefill tokens/s, and the fixed part of a TTFT in seconds.

    `tok_s` is not used in a world that says what a decode step is made of.
    """

    tok_s: float = 89.5
    concurrency_exponent: float = 0.75
    prefill_tok_s: float = 9000
    ttft: float = 0.045
    token_speed: float = 1


@dataclass(frozen=True)
class Step:
    """What a decode step of one request is made of: hidden from every playbook, and measured by it.

    `compute_ms` is what is no communication; `allreduces` how often a step reduces messages of `row_bytes` a token;
    `kernels` the latency of one in microseconds, by kernel and message size in bytes (one that is not listed is as slow
    as `nccl`). Under speculation one draft step takes `draft_ms`, and a drafted token is right with the probability
    `accept` where all before it were; `ngram_accept` is the mean number of tokens of a pass with NGRAM.
    """

    compute_ms: float
    allreduces: int
    row_bytes: int
    kernels: Mapping[str, Mapping[str, float]]
    draft_ms: float = 2.0
    accept: float = 0.7
    ngram_accept: float = 1.6


@dataclass(frozen=True)
class Noise:
    """Relative standard deviations between launches, and between rounds on one launch."""

    launch_sd: float = 0
    round_sd: float = 0
