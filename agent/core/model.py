"""The values that events carry and the state is made of. All frozen; units are in the names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from agent.core.metrics import RoundMetrics as RoundMetrics
from agent.playbook.model import Args, ArgValue, Env, Experiment, PreflightEntry, ResearchEntry, VerdictWord


class Phase(StrEnum):
    """The phases of one launch, in the order in which a healthy start passes them."""

    LAUNCH = "launch"
    IMPORT = "import"
    ARGS = "args"
    CONFIG = "config"
    DIST_INIT = "dist-init"
    LOAD_WEIGHTS = "load-weights"
    KV_CACHE = "kv-cache"
    PROFILE = "profile"
    COMPILE = "compile"
    GRAPH_CAPTURE = "graph-capture"
    HTTP_START = "http-start"
    WARMUP = "warmup"
    READY = "ready"
    SERVING = "serving"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU as nvidia-smi describes it."""

    index: int
    name: str
    sm_major: int
    sm_minor: int
    memory_mib: int
    driver: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The machine that a target leads to. `simulated` hosts say so wherever their results are shown.

    `cuda` is the newest version that the driver runs; `links` has a row and a column for each GPU, in the words of
    `nvidia-smi topo -m` (NV18, PIX, SYS). Both are empty where nobody can say. `trees` names the sources that research
    may read there beside those of the playbook. Servers run in containers of `image`, where it is not empty.
    """

    name: str
    simulated: bool = False
    gpus: tuple[Gpu, ...] = ()
    cuda: str = ""
    links: tuple[tuple[str, ...], ...] = ()
    trees: tuple[str, ...] = ()
    image: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """One line of a file or log as evidence: where it stands and what it says (cleaned and redacted)."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One statement of an LLM, with the line that it cites and what it says stands there.

    `found`: the quote has 20 characters or more and stands within three lines of the cited one, in what the tools of
    this task returned. That is no proof of the statement.
    """

    text: str
    path: str
    line: int
    quote: str
    found: bool


Confidence = Literal["low", "medium", "high"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an LLM answered: Markdown, its claims, the risks that it sees, how sure it says it is.

    Where a limit ended the question, only `text` is there: what it said last.
    """

    text: str
    claims: tuple[Claim, ...] = ()
    risks: tuple[str, ...] = ()
    confidence: Confidence | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What a question to an LLM has used so far. `cost_usd` is None where the model's prices are not known."""

    calls: int = 0
    read_bytes: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = 0.0


PreflightOutcome = Literal["fails", "no-effect", "fine", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a background task found.

    `summary` is one line for the board. `requires` are flags that the source demands beside those of the experiment.
    `outcome` is set by checks only; the first two values rule the experiment out. `answer` and `proposal` are an
    LLM's; a proposal is an experiment that waits for a person. `calls_s` are seconds of one call of a term of the cost
    model, by the bytes of its message; `calls` those of a step, None where they were not counted.
    """

    summary: str
    quotes: tuple[Quote, ...] = ()
    requires: Args = field(default_factory=dict)
    outcome: PreflightOutcome | None = None
    answer: Answer | None = None
    proposal: Experiment | None = None
    calls_s: Mapping[str, float] = field(default_factory=dict)
    calls: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTimes:
    """What a term of the cost model wants measured: all-reduces of messages of these sizes, in bytes.

    `run` is the Python that does it; empty: the server's own. With `per_layer` of them in each layer of the model those
    of a step are counted too.
    """

    sizes: tuple[int, ...]
    run: tuple[str, ...] = ()
    per_layer: int | None = None


TaskKind = Literal["flags", "preflight", "grep", "read", "ask", "probe"]
TaskStatus = Literal["done", "failed", "timeout", "needs-key", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """One piece of background work for an experiment.

    `entry` is None where no playbook asks for it: the flags of every experiment are held against the server's source.
    One with CallTimes measures a term of the cost model.
    `config` is the launch configuration that the experiment would have: preflights and research are about it.
    `board` is what is known so far, for a question to an LLM.
    """

    id: str
    experiment: str
    kind: TaskKind
    title: str
    entry: PreflightEntry | ResearchEntry | CallTimes | None
    config: "LaunchConfig"
    needed: bool
    gpu: bool = False
    board: str = ""

    @property
    def is_check(self) -> bool:
        """Whether its outcome can rule the experiment out."""
        return self.kind in ("flags", "preflight")


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchConfig:
    """Everything that decides what a launch runs, before a port is chosen. Paths may begin with `~/`."""

    kind: str
    command: tuple[str, ...]
    args: Args
    env: Env
    source: Mapping[str, str]
    version: str | None
    load_timeout_s: float


FlagStatus = Literal["equal", "rewritten", "contradicted", "not-reported"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagCheck:
    """A requested flag against what the running server says it uses."""

    flag: str
    requested: ArgValue
    effective: str | None
    status: FlagStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchNoise:
    """How much the values of launches of one flag set differ: a relative standard deviation (0.015 = 1.5 %).

    `degrees` of freedom say how well it is known, `launches` over how many it was measured; 0 means that it is assumed.
    """

    sd: float
    degrees: float
    launches: int = 0


BARREN: frozenset[VerdictWord] = frozenset({"failed", "ruled-out", "not-reached"})
"""Verdicts of what could not run."""

DEAD: frozenset[VerdictWord] = frozenset({"failed", "ruled-out", "worse"})
"""Verdicts of an idea that is not to be pursued."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A judgement against one reference. `gain` is a fraction (0.13 = 13 % better), `low` and `high` are its bounds.

    Each bound holds with 95 %; while further launches may still decide, `low` with 99.8 % and `high` with 99 %. Where
    one launch is granted they are the 95 % interval.
    """

    word: VerdictWord
    against: str
    reason: str
    gain: float | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """How an experiment of a strategy ended, in the words of its verdict against its parent."""

    experiment: str
    word: VerdictWord
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a launch failed: one line for the board, and the log lines that show it."""

    phase: Phase
    reason: str
    category: str
    evidence: tuple[Quote, ...] = ()
    rank: int | None = None
    exit_code: int | None = None
