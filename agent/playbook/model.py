"""The frozen Playbook and its parts: the format of a playbook file, as types.

The loader builds these from YAML; `tunebot schema` prints their JSON Schema; the journal keeps them whole.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, WithJsonSchema, model_validator

from agent.playbook.fields import ExperimentId, Switch, Text, VersionSpec, Whole
from agent.playbook.metrics import MetricName as MetricName
from agent.playbook.preflight_entries import PreflightEntry as PreflightEntry
from agent.playbook.strict import Strict as Strict
from agent.playbook.strict import key_of
from agent.playbook.units import Fraction, Seconds
from agent.playbook.workload import Workload as Workload

ArgValue = str | bool | None | tuple[str, ...]
"""Text as written, True for a switch, False for its absence, None to take an inherited flag away, or several values."""

_SCALAR: dict[str, Any] = {"type": ["string", "number", "boolean"]}
_SCALAR_OR_NULL: dict[str, Any] = {"type": ["string", "number", "boolean", "null"]}
_ARG: dict[str, Any] = {"anyOf": [_SCALAR_OR_NULL, {"type": "array", "items": _SCALAR, "minItems": 1}]}

# The JSON Schemas say what an editor sees in the YAML, where `0.10` is a number; the loader keeps the text as written.
Args = Annotated[Mapping[str, ArgValue], WithJsonSchema({"type": "object", "additionalProperties": _ARG})]
Env = Annotated[Mapping[str, str | None], WithJsonSchema({"type": "object", "additionalProperties": _SCALAR_OR_NULL})]
MOST_EXPERIMENTS = 500


class RemoteTarget(Strict):
    """A host reached over SSH: its name in ~/.ssh/config, and how many GPUs the playbook may use."""

    ssh: str = Field(pattern=r"^[A-Za-z0-9_][A-Za-z0-9._@:-]*$")
    gpus: Whole | None = Field(default=None, ge=0)


class Server(Strict):
    """What is tuned. `command` is the argv before the flags; `source` names the trees that research may read."""

    kind: Literal["sglang", "vllm", "llamacpp"]
    version: VersionSpec | None = None
    command: tuple[Text, ...] = Field(min_length=1)
    source: Mapping[str, str] = Field(default={})
    args: Args = Field(default={})
    env: Env = Field(default={})
    load_timeout: Seconds = 1800.0


class ServerOverride(Strict):
    """What one experiment runs instead: another build, in another environment."""

    command: tuple[Text, ...] | None = Field(default=None, min_length=1)
    version: VersionSpec | None = None
    source: Mapping[str, str] | None = None
    env: Env = Field(default={})


class Objective(Strict):
    """What counts as better: one metric of one workload, by at least `min_gain` (a fraction)."""

    workload: str
    metric: MetricName = "output_throughput"
    min_gain: Fraction = 0.02


class Guard(Strict):
    """How wrong answers are noticed."""

    answers: Literal["builtin"] | None = None
    max_logprob_drop: float | None = Field(default=None, gt=0, strict=True)


class Grep(Strict):
    """Lines of the server's source that match an extended regular expression."""

    pattern: str
    paths: tuple[str, ...] = Field(alias="in", min_length=1)
    max_hits: Whole = Field(default=50, ge=1, le=200)


class Read(Strict):
    """The lines around the first place where the text `around` stands."""

    file: str = Field(alias="in")
    around: str
    lines: Whole = Field(default=20, ge=1, le=400)


class Probe(Strict):
    """A command whose exit code and output are the result. Without `gpu` it sees no GPU and runs beside the load."""

    run: tuple[Text, ...] = Field(min_length=1)
    where: Literal["target"] = "target"
    gpu: Switch = False
    timeout: Seconds = 120.0


class GrepEntry(Strict):
    """`- grep: {pattern: 'flashinfer.*a2a', in: [sglang:srt/server_args.py]}`"""

    task: Grep = Field(alias="grep")
    needed: Switch = False


class ReadEntry(Strict):
    """`- read: {in: sglang:srt/server_args.py, around: 'text', lines: 26}`"""

    task: Read = Field(alias="read")
    needed: Switch = False


class AskEntry(Strict):
    """`- ask: Can expert parallelism be combined with tp 8?`"""

    task: str = Field(alias="ask", min_length=3)
    needed: Switch = False


class ProbeEntry(Strict):
    """`- probe: {run: [python3, -c, import deep_ep], timeout: 1m}`"""

    task: Probe = Field(alias="probe")
    needed: Switch = False


ResearchEntry = Annotated[
    Annotated[GrepEntry, Tag("grep")]
    | Annotated[ReadEntry, Tag("read")]
    | Annotated[AskEntry, Tag("ask")]
    | Annotated[ProbeEntry, Tag("probe")],
    key_of("grep", "read", "ask", "probe"),
]

VerdictWord = Literal["keep", "worse", "no-gain", "inconclusive", "invalid", "failed", "ruled-out", "not-reached"]


class When(Strict):
    """The experiment runs only if all (or any) of the named ones ended with one of the verdicts in `are`."""

    all_of: tuple[str, ...] = Field(default=(), alias="all")
    any_of: tuple[str, ...] = Field(default=(), alias="any")
    are: tuple[VerdictWord, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if bool(self.all_of) == bool(self.any_of):
            raise ValueError("needs either 'all' or 'any', with at least one experiment")
        return self


class PrepareStep(Strict):
    """A command that changes the host; it always needs approval. Skipped where `creates` exists."""

    run: tuple[Text, ...] = Field(min_length=1)
    creates: str | None = None
    timeout: Seconds = 3600.0


class Experiment(Strict):
    """One change to try. `args` and `env` are laid over those of `based_on`.

    `baseline: attach` measures a server that runs already at `args.port` instead of launching one.
    """

    id: ExperimentId
    why: str = ""
    based_on: str | None = None
    baseline: Literal[True, False, "attach"] = False
    args: Args = Field(default={})
    env: Env = Field(default={})
    server: ServerOverride | None = None
    preflight: tuple[PreflightEntry, ...] = ()
    research: tuple[ResearchEntry, ...] = ()
    when: When | None = None
    prepare: tuple[PrepareStep, ...] = ()
    revisit: tuple[str, ...] = ()


def _target_form(value: Any) -> str:
    return "remote" if isinstance(value, Mapping | RemoteTarget) else "name"


TargetEntry = Annotated[
    Annotated[str, Field(min_length=1), Tag("name")] | Annotated[RemoteTarget, Tag("remote")],
    Discriminator(_target_form),
]


class Playbook(Strict):
    """A whole playbook file."""

    tunebot: Annotated[Whole, Field(ge=1, le=1), WithJsonSchema({"const": 1})]
    name: str = Field(min_length=1, max_length=100)
    target: TargetEntry
    server: Server
    objective: Objective
    guard: Guard | None = None
    workloads: tuple[Workload, ...] = Field(min_length=1)
    launches: Whole = Field(default=3, ge=1, le=20)
    accept: Literal["resolver"] | None = None
    at_end: Literal["serve-best", "baseline", "stop", "keep"] = "serve-best"
    experiments: tuple[Experiment, ...] = Field(min_length=1, max_length=MOST_EXPERIMENTS)
