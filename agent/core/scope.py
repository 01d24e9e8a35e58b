"""What a dead end stands on, as facts by name, and what of it has changed: pure values, found in a state by `known`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from agent.core.model import Gpu, Host, LaunchConfig, Quote
from agent.playbook.model import Args, Env, VerdictWord

Facts = Mapping[str, str]
"""Values by name, such as `flashinfer` and `0.6.3`. What nobody can say is UNKNOWN, or is not there."""

UNKNOWN = "unknown"

READ = ("driver options", "PCIe link", "IOMMU", "power limit")
"""What of a host is read beside what the host itself says."""

HOST = ("GPU", "GPUs", "topology", "driver", *READ)
PACKAGES = ("flashinfer", "torch", "NCCL", "CUDA toolkit")
INSTALLED = "packages"
"""A mark of everything that is installed in an environment: what is missing there may come with any of it."""
LAUNCH = ("model", "flags")
MODEL_FLAGS = ("model-path", "model", "m", "hf-repo", "hf")

ANYTHING = "state of the host"
"""Paths, ports, room on the disk: a fact that nobody can compare later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownDeadEnd:
    """A dead end as a host's history keeps it. `at` is when it ended, in seconds since the epoch.

    `args` and `env` are what it changed against the baseline of its session (values of secret names are hidden),
    `environment` is the program that began its server's command, `scope` the facts that it stands on. Where it `lives`
    it was tried again with another end: the last that is said of it is that it is no dead end any more.
    """

    experiment: str
    word: VerdictWord
    reason: str
    at: float
    session: str
    environment: str
    args: Args
    env: Env
    scope: Facts
    evidence: tuple[Quote, ...] = ()
    lives: bool = False


@dataclass(frozen=True, slots=True)
class Change:
    """A fact that is another one now. In words: `flashinfer 0.6.3 → 0.6.17`."""

    name: str
    before: str
    after: str

    def __str__(self) -> str:
        if self.name != "flags":
            return f"{self.name} {self.before} → {self.after}"
        before, after = self.before.split("\n"), self.after.split("\n")
        gone = [f"without {flag}" for flag in before if flag and flag not in after]
        new = [f"with {flag}" for flag in after if flag and flag not in before]
        return f"flags: {', '.join([*gone, *new])}"


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a dead end still holds: what changed of that on which it stands, and what nobody can compare."""

    changed: tuple[Change, ...]
    unknown: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """As far as is known."""
        return not self.changed


def standing(scope: Facts, present: Facts) -> Standing:
    """A dead end's scope against the facts of now."""
    pairs = {name: (before, present.get(name, UNKNOWN)) for name, before in scope.items()}
    changed = (Change(name, a, b) for name, (a, b) in pairs.items() if UNKNOWN not in (a, b) and a != b)
    unknown = (name for name, pair in pairs.items() if UNKNOWN in pair)
    return Standing(tuple(changed), tuple(unknown))


def host_facts(host: Host) -> Iterator[tuple[str, str]]:
    """What the host itself says: its GPUs, how they are connected, their driver."""
    kinds = dict.fromkeys(f"{gpu.name} (SM {gpu.sm_major}.{gpu.sm_minor})" for gpu in host.gpus)
    yield "GPU", ", ".join(kinds) or UNKNOWN
    yield "GPUs", str(len(host.gpus))
    yield "topology", _topology(host)
    yield "driver", ", ".join(dict.fromkeys(gpu.driver for gpu in host.gpus)) or UNKNOWN


def _topology(host: Host) -> str:
    gpus: Sequence[Gpu] = host.gpus
    if len(gpus) == 1:
        return "one GPU"
    pairs = [row[column] for number, row in enumerate(host.links) for column in range(number + 1, len(row))]
    return _listed(sorted(pairs)) or UNKNOWN


def _listed(words: Sequence[str]) -> str:
    """`24 x SYS, 4 x PIX`: each word once, with how often it is there."""
    return ", ".join(f"{words.count(word)} x {word}" for word in dict.fromkeys(words))


def model_of(config: LaunchConfig) -> str:
    """The model that a launch loads, as its flags name it; empty where they do not."""
    named = (config.args.get(flag) for flag in MODEL_FLAGS)
    return next((value for value in named if isinstance(value, str)), "")


def launch_facts(config: LaunchConfig, flags: Sequence[str]) -> Iterator[tuple[str, str]]:
    """What a launch is given. `flags` are its flags and variables in words, without those that name the model."""
    yield "model", model_of(config) or UNKNOWN
    yield "flags", "\n".join(sorted(flags))
