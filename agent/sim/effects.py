"""The laws of a simulated world: when one applies, and what follows of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class When:
    """What must hold of a launch for a rule to apply."""

    flags: Mapping[str, Any] = field(default_factory=dict)
    env: Mapping[str, Any] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
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
    """What follows from a rule.

    Of the decode step: `compute` multiplies what is no communication, `adds_ms` comes on top, `removes` is the share
    of the all-reduces that vanishes, `kernel` does them from now on, `latency` multiplies NCCL's, `accept` and `draft`
    the probability and the cost of a drafted token, `exponent` replaces that of concurrency. `tok_s` (absolute) and
    `factor` overrule all that. `load` multiplies phases of the load, `kv` the tokens of the KV cache.
    """

    compute: float = 1
    adds_ms: float = 0
    removes: float = 0
    kernel: str | None = None
    latency: float = 1
    accept: float = 1
    draft: float = 1
    exponent: float | None = None
    tok_s: float | None = None
    factor: float = 1
    spec_accept: float | None = None
    load: Mapping[str, float] = field(default_factory=dict)
    kv: float = 1
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
