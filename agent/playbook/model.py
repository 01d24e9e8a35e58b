"""The frozen Playbook and its parts: the format of a playbook file, as types.

The loader builds these from YAML; `tunebot schema` prints their JSON Schema; the journal keeps them whole.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Discriminator, Field, Tag, WithJsonSchema, model_validator

from agent.playbook.fields import ExperimentId, Switch, Text, VersionSpec, Whole
from agent.playbook.group import MOST_GROUPS
from agent.playbook.group import Group as Group
from agent.playbook.metrics import MetricName as MetricName
from agent.playbook.preflight_entries import PreflightEntry as PreflightEntry
from agent.playbook.smoke import Smoke
from agent.playbook.strict import Strict as Strict
from agent.playbook.strict import key_of
from agent.playbook.term import Term as Term
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
    """A name of ~/.ssh/config, or HOST, USER@HOST."""
    gpus: Whole | None = Field(default=None, ge=0)
    """How many GPUs the playbook may use; all, where it is left out."""


class Server(Strict):
    """What is tuned. `command` is the argv before the flags; `source` names the trees that research may read."""

    kind: Literal["sglang", "vllm", "llamacpp"]
    """Which server it is: how flags are written, how its log reads, when it is ready."""
    version: VersionSpec | None = None
    """The versions that the playbook is written for; not checked yet."""
    command: tuple[Text, ...] = Field(min_length=1)
    """The argv before the flags. A leading `~/` is the home on the target."""
    source: Mapping[str, str] = Field(default={})
    """Folders on the target that research may read, each under a name of its own: `sglang:srt/server_args.py`."""
    args: Args = Field(default={})
    """Flags of every experiment, without dashes."""
    env: Env = Field(default={})
    """Variables of every experiment."""
    load_timeout: Seconds = 1800.0
    """A load that takes longer is given up as hung."""


class ServerOverride(Strict):
    """What one experiment runs instead: another build, in another environment."""

    command: tuple[Text, ...] | None = Field(default=None, min_length=1)
    """Instead of the server's."""
    version: VersionSpec | None = None
    """Instead of the server's; not checked yet."""
    source: Mapping[str, str] | None = None
    """Laid over the server's."""
    env: Env = Field(default={})
    """Laid over the server's, after the experiment's own `env`."""


class Objective(Strict):
    """What counts as better: one metric of one workload, by at least `min_gain` (a fraction)."""

    workload: str
    """The name of one of `workloads`."""
    metric: MetricName = "output_throughput"
    """What is compared. Names without a percentile are medians over requests; less is better of those in ms."""
    min_gain: Fraction = 0.02
    """A smaller gain is none."""


class Guard(Strict):
    """How wrong answers are noticed."""

    answers: Literal["builtin"] | None = None
    """170 short questions, held against the baseline's answers one by one."""
    max_logprob_drop: float | None = Field(default=None, gt=0, strict=True)
    """How much less probable, in nats a token, it may find the baseline's own answers."""


class Grep(Strict):
    """Lines of the server's source that match an extended regular expression."""

    pattern: str
    """An extended regular expression, as `grep -E` takes it."""
    paths: tuple[str, ...] = Field(alias="in", min_length=1)
    """Files or folders, each `NAME:path` with a name of `server.source`. One that is missing is told."""
    max_hits: Whole = Field(default=50, ge=1, le=200)
    """Lines that are kept."""


class Read(Strict):
    """The lines around the first place where the text `around` stands."""

    file: str = Field(alias="in")
    """`NAME:path` with a name of `server.source`."""
    around: str
    """Text that stands in the file."""
    lines: Whole = Field(default=20, ge=1, le=400)
    """How many lines are read."""


class Probe(Strict):
    """A command whose exit code and output are the result. Without `gpu` it sees no GPU and runs beside the load."""

    run: tuple[Text, ...] = Field(min_length=1)
    """Its argv; no shell reads it."""
    where: Literal["target"] = "target"
    """Where it runs."""
    gpu: Switch = False
    """Whether it needs a GPU: then it runs between launches, alone."""
    timeout: Seconds = 120.0
    """It is ended then."""


class GrepEntry(Strict):
    """`- grep: {pattern: 'flashinfer.*a2a', in: [sglang:srt/server_args.py]}`"""

    task: Grep = Field(alias="grep")
    needed: Switch = False
    """Whether it must have ended before the experiment is launched."""


class ReadEntry(Strict):
    """`- read: {in: sglang:srt/server_args.py, around: 'text', lines: 26}`"""

    task: Read = Field(alias="read")
    needed: Switch = False
    """Whether it must have ended before the experiment is launched."""


class AskEntry(Strict):
    """`- ask: Can expert parallelism be combined with tp 8?`"""

    task: str = Field(alias="ask", min_length=3)
    """A question to an LLM, whose tools only read."""
    needed: Switch = False
    """Whether it must have ended before the experiment is launched."""


class ProbeEntry(Strict):
    """`- probe: {run: [python3, -c, import deep_ep], timeout: 1m}`"""

    task: Probe = Field(alias="probe")
    needed: Switch = False
    """Whether it must have ended before the experiment is launched."""


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
    """Experiments, all of which must have ended so."""
    any_of: tuple[str, ...] = Field(default=(), alias="any")
    """Experiments, one of which must have ended so."""
    are: tuple[VerdictWord, ...] = Field(min_length=1)
    """The verdicts against the parent that count."""

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if bool(self.all_of) == bool(self.any_of):
            raise ValueError("needs either 'all' or 'any', with at least one experiment")
        return self


class PrepareStep(Strict):
    """A command that changes the host; it always needs approval. Skipped where `creates` exists."""

    run: tuple[Text, ...] = Field(min_length=1)
    """Its argv; no shell reads it."""
    creates: str | None = None
    """A path. Where it exists on the target, the step is skipped."""
    timeout: Seconds = 3600.0
    """It is ended then, and the experiment has failed."""


class Experiment(Strict):
    """One change to try. `args` and `env` are laid over those of `based_on`.

    `baseline: attach` measures a server that runs already at `args.port` instead of launching one.
    """

    id: ExperimentId
    """A name that no other experiment has."""
    why: str = ""
    """For people, and for an LLM that is asked."""
    based_on: str | None = None
    """Its parent: the one whose flags it changes, and that it is compared with. By default the baseline."""
    baseline: Literal[True, False, "attach"] = False
    """Exactly one experiment has this. It runs first, and all changes are told against it."""
    args: Args = Field(default={})
    """Flags that differ from the parent's; `null` takes an inherited one away."""
    env: Env = Field(default={})
    """Variables that differ from the parent's; `null` takes an inherited one away."""
    server: ServerOverride | None = None
    """Another build, in another environment."""
    preflight: tuple[PreflightEntry, ...] = ()
    """Looked at during an earlier load: where one says *fails* or *no effect*, it is never launched."""
    research: tuple[ResearchEntry, ...] = ()
    """Done during an earlier load; what it finds stands on the board."""
    when: When | None = None
    """Without it, it runs in its turn."""
    use: str | None = None
    """A fragment of `playbooks/fragments/`, laid under this experiment while the file is read: its lists come first,
    and what the experiment says itself goes before its values. What runs, and what is kept, is the whole of both."""
    parameters: Mapping[str, Text] = Field(default={}, alias="with")
    """What the fragment is told, by the names of its parameters."""
    prepare: tuple[PrepareStep, ...] = ()
    """Steps that change the host before it is launched. Each is approved by the hash of its bytes, or all by that of
    them all."""
    revisit: tuple[str, ...] = ()
    """Dead ends to try again on top of this one, once it is measured, as `ID@THIS`."""
    removes: Mapping[str, Annotated[Whole, Field(ge=1)]] = Field(default={})
    """How many calls of which `terms` it takes off a step, at best. What could not gain enough is not launched."""
    smoke: Smoke | None = None
    """Instead of the playbook's: `dummy`, or `false` for none."""


def _target_form(value: Any) -> str:
    return "remote" if isinstance(value, Mapping | RemoteTarget) else "name"


TargetEntry = Annotated[
    Annotated[str, Field(min_length=1), Tag("name")] | Annotated[RemoteTarget, Tag("remote")],
    Discriminator(_target_form),
]


class Playbook(Strict):
    """A whole playbook file."""

    tunebot: Annotated[Whole, Field(ge=1, le=1), WithJsonSchema({"const": 1})]
    """The version of the format."""
    name: str = Field(min_length=1, max_length=100)
    """Names the session."""
    target: TargetEntry
    """`local`, `simulated`, a name of targets.yaml, or a host. `--target` goes before it."""
    server: Server
    """What is tuned."""
    objective: Objective
    """What counts as better."""
    guard: Guard | None = None
    """How it is noticed that a faster server answers wrongly."""
    workloads: tuple[Workload, ...] = Field(min_length=1)
    """What is measured on each launch, one after the other."""
    launches: Whole = Field(default=3, ge=1, le=20)
    """The most launches of one flag set. With 1 the noise between launches is not counted."""
    smoke: Smoke = False
    """With `dummy`, every experiment is first loaded with dummy weights (sglang, vllm): that reads no weights, and is
    never measured. What does not start so has failed, and its real load is not paid; tried again by hand, it is loaded
    for real. Such a load cannot show wrong or missing weights, wrong answers or speed. A GGUF file and a model in
    object storage have none."""
    accept: Literal["resolver"] | None = None
    """With `resolver`, what the server's source demands is added to an experiment without asking."""
    at_end: Literal["serve-best", "baseline", "stop", "keep"] = "serve-best"
    """What runs after the last experiment: the best kept one, the baseline, nothing, or what runs then."""
    experiments: tuple[Experiment, ...] = Field(min_length=1, max_length=MOST_EXPERIMENTS)
    """In the order in which they run, as far as parents, `when` and `groups` let them."""
    terms: Mapping[str, Term] = Field(default={})
    """What a step of the server is made of: with it, what an experiment could gain at best is known before it runs."""
    groups: tuple[Group, ...] = Field(default=(), max_length=MOST_GROUPS)
    """Strategies: which experiments are one, and what is tried when none of them works."""
