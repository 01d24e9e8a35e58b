"""The state of a session: what is known of each experiment, task and launch. Frozen; only `reduce` makes new ones."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from agent.core.events import Ending, LaunchPlanned, PivotReached, Purpose
from agent.core.guard import GuardResult
from agent.core.model import (
    Failure,
    Finding,
    FlagCheck,
    Host,
    LaunchConfig,
    LaunchNoise,
    Phase,
    Quote,
    RoundMetrics,
    Spent,
    Task,
    TaskStatus,
    Verdict,
)
from agent.core.scope import Facts, KnownDeadEnd
from agent.playbook.model import Args, Experiment, Playbook, ResearchEntry


class Stage(StrEnum):
    """Where an experiment stands. A proposed one waits for a person and is nothing to be done yet.

    NEAR: it was measured, and its verdict waits for another launch.
    """

    PROPOSED = "proposed"
    TODO = "todo"
    PREPARING = "preparing"
    RUNNING = "running"
    NEAR = "near"
    ENDED = "ended"


class LaunchStage(StrEnum):
    """Where a launch stands. FAILED and STOPPED are apart: a failed one may still have processes to stop."""

    REQUESTED = "requested"
    LOADING = "loading"
    READY = "ready"
    MEASURING = "measuring"
    FAILED = "failed"
    STOPPING = "stopping"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskState:
    """A background task that was started; `status` is None while it runs.

    `spent` is what a question to an LLM has used. `stale`: its experiment runs other flags by now, it decides nothing.
    """

    task: Task
    started_at: float
    action: str = ""
    status: TaskStatus | None = None
    ended_at: float | None = None
    finding: Finding | None = None
    spent: Spent | None = None
    stale: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """A measured round of a launch. Only rounds of one `contract` are ever compared."""

    workload: str
    index: int
    metrics: RoundMetrics
    contract: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """One start of the server, from its intent to its end. A `void` one was cut off before anything was started.

    `usual_s` are the seconds of each phase of earlier loads of its kind. Nobody saw all of an `unwatched` load, since
    tunebot was not there or could not reach the target: the times of its phases are not to be compared. `rounds` are
    in the order in which they were measured; those that something passing spoilt, and that are repeated, are in
    `spoilt`.
    """

    id: str
    experiment: str
    purpose: Purpose
    config: LaunchConfig
    requested_at: float
    stage: LaunchStage = LaunchStage.REQUESTED
    pid: int | None = None
    port: int | None = None
    argv: tuple[str, ...] = ()
    phases: tuple[tuple[Phase, float], ...] = ()
    done: int | None = None
    total: int | None = None
    fraction: float | None = None
    remaining_s: float | None = None
    doubt: str = ""
    load_s: float | None = None
    flags: tuple[FlagCheck, ...] = ()
    rounds: tuple[Round, ...] = ()
    spoilt: tuple[Round, ...] = ()
    measuring: tuple[str, int] | None = None
    guarding: bool = False
    guard: GuardResult | None = None
    guard_error: str = ""
    failure: Failure | None = None
    round_error: str | None = None
    exit_code: int | None = None
    left: tuple[int, ...] = ()
    ended_at: float | None = None
    void: bool = False
    usual_s: Mapping[Phase, float] = field(default_factory=dict)
    unwatched: bool = False

    @property
    def phase(self) -> Phase:
        """The phase that the load is in now."""
        return self.phases[-1][0] if self.phases else Phase.LAUNCH

    @property
    def repeats(self) -> Round | None:
        """The spoilt round that is measured again now, as it was last, or None."""
        return next((r for r in reversed(self.spoilt) if (r.workload, r.index) == self.measuring), None)

    @property
    def is_up(self) -> bool:
        """Whether something of it may still live on the target."""
        return self.stage is not LaunchStage.STOPPED


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a person noted, and when (seconds since the epoch)."""

    at: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Todo:
    """Something to do in words, which only a person can tick off."""

    text: str
    done: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentState:
    """An experiment and all that became of it.

    `asked` is research that a person added. `overruled` experiments run whatever preflights and `when` say.
    `proposed_by` is the task of the LLM that proposed it. `planned` is the launch that its verdict waits (or waited)
    for. Its launches from index `since` on are of its present flags, and count. One that ended did so at `ended_at`,
    and its end stands on the facts in `scope`. `given_up` is why a person made it a dead end; its verdict stays.
    `revision` counts the changes of what it would run: checks and research of before are no answer to it.
    """

    spec: Experiment
    stage: Stage = Stage.TODO
    added: Args = field(default_factory=dict)
    prepared: int = 0
    launches: tuple[str, ...] = ()
    parent: Verdict | None = None
    incumbent: Verdict | None = None
    reason: str = ""
    evidence: tuple[Quote, ...] = ()
    reopened_as: str | None = None
    asked: tuple[ResearchEntry, ...] = ()
    overruled: bool = False
    proposed_by: str | None = None
    planned: LaunchPlanned | None = None
    since: int = 0
    given_up: str = ""
    revision: int = 0
    notes: tuple[Note, ...] = ()
    scope: Facts = field(default_factory=dict)
    ended_at: float | None = None

    @property
    def id(self) -> str:
        """The id that the playbook gives it."""
        return self.spec.id

    @property
    def verdict(self) -> Verdict | None:
        """The verdict against the parent, once it has one."""
        return self.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A whole session. `now` is the time of the last event; `story` the last events of each experiment, for errors.

    `resumes` and `prepares` count how often it was gone on with, and how many prepare steps were begun. `client` is the
    version of tunebot that measures, `noise` between launches what earlier sessions measured. `known` are dead ends of
    earlier sessions, `facts` what was read of each environment, and of the host under an empty name. `pivots` are the
    strategies that were given up, in their order.
    """

    session: str
    playbook: Playbook
    host: Host
    approved: tuple[str, ...]
    keep: bool
    attended: bool
    seed: int
    started_at: float
    now: float
    experiments: Mapping[str, ExperimentState]
    tasks: Mapping[str, TaskState] = field(default_factory=dict)
    launches: Mapping[str, Launch] = field(default_factory=dict)
    incumbent: str | None = None
    paused: bool = False
    interrupted: bool = False
    lost: str | None = None
    unreachable_since: float | None = None
    ending: Ending | None = None
    resumes: int = 0
    prepares: int = 0
    target: str | None = None
    client: str = ""
    noise: LaunchNoise | None = None
    known: tuple[KnownDeadEnd, ...] = ()
    facts: Mapping[str, Facts] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    todos: tuple[Todo, ...] = ()
    pivots: tuple[PivotReached, ...] = ()
    story: tuple[tuple[str, str], ...] = ()

    @property
    def current(self) -> Launch | None:
        """The launch that holds the server lane, if any."""
        return next((launch for launch in reversed(tuple(self.launches.values())) if launch.is_up), None)

    @property
    def baseline(self) -> ExperimentState:
        """The experiment that all others are compared with; a playbook has exactly one."""
        return next(experiment for experiment in self.experiments.values() if experiment.spec.baseline)

    @property
    def finished(self) -> bool:
        """Whether every experiment of the plan has ended; a proposed one is none of it."""
        return all(experiment.stage in (Stage.ENDED, Stage.PROPOSED) for experiment in self.experiments.values())

    @property
    def measuring(self) -> bool:
        """Whether background work has to be quiet on the target."""
        current = self.current
        return current is not None and current.stage is LaunchStage.MEASURING

    def with_experiment(self, experiment: str, **changes: Any) -> "State":
        """The state with fields of one experiment changed."""
        updated = replace(self.experiments[experiment], **changes)
        return replace(self, experiments={**self.experiments, experiment: updated})

    def with_launch(self, launch: str, **changes: Any) -> "State":
        """The state with fields of one launch changed."""
        return replace(self, launches={**self.launches, launch: replace(self.launches[launch], **changes)})

    def with_task(self, task: str, **changes: Any) -> "State":
        """The state with fields of one task changed."""
        return replace(self, tasks={**self.tasks, task: replace(self.tasks[task], **changes)})
