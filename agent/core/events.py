"""Everything that can happen in a session. An event is journalled, then reduced; nothing else changes the state.

Facts come from effects (a phase began, a round was measured) and from a person; decisions (a launch is requested, a
verdict is reached) come from `schedule`. Both are events, so a journal alone rebuilds the state.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Literal

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
    Tried,
    Verdict,
)
from agent.core.scope import Facts, KnownDeadEnd
from agent.playbook.model import Args, Env, Experiment, Playbook, ResearchEntry

# measure: launched for an experiment; serve: left running at the end; attach: somebody else's, only measured;
# smoke: launched with dummy weights before the real load, never measured.
Purpose = Literal["measure", "serve", "attach", "smoke"]
Ending = Literal["completed", "interrupted", "target-lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """`at` is wall-clock time in seconds since the epoch. Decisions carry the time of the event they follow."""

    at: float
    kinds: ClassVar[dict[str, type["Event"]]] = {}

    def __init_subclass__(cls) -> None:
        # A slotted dataclass is created twice; the second, final class replaces the first under the same name.
        Event.kinds[cls.__name__] = cls


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStarted(Event):
    """A session began. `approved` holds the `ID@HASH` texts given on the command line.

    `keep` leaves the server running at an interruption. `seed` decides the prompts of every round. In an `attended`
    session a person is at the screen: what needs one waits, and the session ends when the person leaves. `target` is
    the one that was named in place of the playbook's. `noise` between launches is what earlier sessions there measured,
    `known` are the dead ends that they left.
    """

    session: str
    playbook: Playbook
    host: Host
    approved: tuple[str, ...]
    keep: bool
    seed: int
    version: str
    attended: bool = False
    target: str | None = None
    noise: LaunchNoise | None = None
    known: tuple[KnownDeadEnd, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionResumed(Event):
    """tunebot goes on with a session that it left, or that was cut off. `approved` comes on top of what was before.

    What ran then is asked for or done again: a launch is rejoined, a round that was cut off gets a new seed.
    """

    host: Host
    approved: tuple[str, ...]
    keep: bool
    attended: bool
    version: str
    noise: LaunchNoise | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Noted(Event):
    """Something a person should know that changes nothing."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FactsRead(Event):
    """Versions and settings were read on which dead ends may stand; what could not be read is not among them.

    They are those of the `environment` whose servers' command begins with that program, or of the host where it is
    empty.
    """

    environment: str
    facts: Facts


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRequested(Event):
    """A background task is to start now."""

    task: Task


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskProgressed(Event):
    """What a running task does at the moment."""

    task: str
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUsed(Event):
    """An LLM's call of a tool that only reads: what it asked for (as JSON, redacted), and how many bytes it got.

    `refused` says why nothing was read, if so.
    """

    task: str
    tool: str
    asked: str
    bytes: int
    refused: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmSpent(Event):
    """What a question has used, after each turn of the LLM."""

    task: str
    spent: Spent


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFinished(Event):
    """A task ended, one way or another."""

    task: str
    status: TaskStatus
    finding: Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentRuledOut(Event):
    """A preflight showed that this launch would fail or would have no effect; its load is never paid."""

    experiment: str
    task: str
    reason: str
    evidence: tuple[Quote, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentNotReached(Event):
    """An experiment ends without a launch, for a reason that lies outside of it."""

    experiment: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentCompleted(Event):
    """Flags that the source demands are added to an experiment before its launch, by a rule or by a person."""

    experiment: str
    adds: Args
    task: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentReopened(Event):
    """A dead end is tried again on top of another experiment, as a new experiment."""

    experiment: str
    spec: Experiment


@dataclass(frozen=True, slots=True, kw_only=True)
class PivotReached(Event):
    """A strategy is given up: every member of the `group` has ended and none is kept, as the `trail` tells.

    The group `to` is tried from here on; empty where none comes after it.
    """

    group: str
    to: str
    trail: tuple[Tried, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareRequested(Event):
    """An approved step that changes the host is to run now. `step` counts from zero."""

    experiment: str
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareFinished(Event):
    """A prepare step ended; `ok` also where its result existed already."""

    experiment: str
    step: int
    ok: bool
    summary: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRequested(Event):
    """The intent to start a server, journalled before anything is done."""

    launch: str
    experiment: str
    purpose: Purpose
    config: LaunchConfig


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchStarted(Event):
    """The server's process exists. `argv` is the command line (redacted).

    An attached server is not ours: its pid is None and its argv empty. `usual_s` are the seconds of each phase of the
    latest loads of its kind, as the history of the host has them.
    """

    launch: str
    pid: int | None
    port: int
    argv: tuple[str, ...]
    usual_s: Mapping[Phase, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchVoid(Event):
    """The host proved that nothing was ever started under this id, and never will be: its start was cut off."""

    launch: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEntered(Event):
    """A load came to another phase. `remaining_s` is the estimate until ready, None where there is no basis."""

    launch: str
    phase: Phase
    remaining_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseProgressed(Event):
    """How far a load is: `done` of `total` units of the phase, `fraction` of the whole load; at most once a second."""

    launch: str
    phase: Phase
    done: int | None
    total: int | None
    fraction: float | None
    remaining_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadDoubted(Event):
    """Something makes a load suspect: a traceback, a rank that stays behind, silence. An empty `text` takes it back."""

    launch: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerReady(Event):
    """Our process is alive, the port is ours alone, one real generation came back. `load_s` counts from its start."""

    launch: str
    load_s: float
    flags: tuple[FlagCheck, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFailed(Event):
    """A launch did not get ready, or died later."""

    launch: str
    failure: Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRequested(Event):
    """A round of a workload is to be measured now; the first one is preceded by a warm-up."""

    launch: str
    workload: str
    index: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundMeasured(Event):
    """A round's numbers."""

    launch: str
    workload: str
    index: int
    metrics: RoundMetrics


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundFailed(Event):
    """A round could not be measured."""

    launch: str
    workload: str
    index: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundSpoilt(Event):
    """A measured round is worth nothing for a `reason` that may pass: it counts no more, and is repeated."""

    launch: str
    workload: str
    index: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictReached(Event):
    """A launched experiment is judged: against its parent (did the idea work?) and the incumbent (ship it?)."""

    experiment: str
    parent: Verdict
    incumbent: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRequested(Event):
    """A launch whose rounds are measured is to answer the questions of the guard."""

    launch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardEnded(Event):
    """What the launch answered, or the `error` because of which nobody can say."""

    launch: str
    result: GuardResult | None = None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchPlanned(Event):
    """A measured experiment is near: another launch of the flag set `of`, its own or its reference's, may decide it.

    It would be launch `number` of that flag set and take about `cost_s`. The verdicts are as they stand.
    """

    experiment: str
    of: str
    number: int
    cost_s: float
    parent: Verdict
    incumbent: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class StopRequested(Event):
    """The server of a launch is to be stopped and verified gone."""

    launch: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStopped(Event):
    """A stop came to its end. `left` are pids that could not be ended."""

    launch: str
    exit_code: int | None
    left: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish(Event):
    """What a person wants. One that comes too late (the experiment just began, say) is noted and changes nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalGiven(Wish):
    """A person approved exactly these bytes: `needed` is `ID@HASH` of a step that changes the host."""

    needed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentAdded(Wish):
    """A person added an experiment to the plan."""

    spec: Experiment


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposalApproved(Wish):
    """A person approved a proposed experiment: exactly what `digest` stands for would run."""

    experiment: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentSkipped(Wish):
    """A person does not want this experiment to run."""

    experiment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentRetried(Wish):
    """A person wants an ended experiment to run (again), whatever its preflights or its `when` said."""

    experiment: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadEndReopened(Wish):
    """A person wants a dead end to be tried again on top of `base`, in whose environment it may not hold."""

    experiment: str
    base: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentMoved(Wish):
    """A person moves an experiment in line past the next one, or the one before: the two change places."""

    experiment: str
    past: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentChanged(Wish):
    """A person changes an experiment that has not begun: `args`, `env` and `why` take the place of those it had."""

    experiment: str
    args: Args
    env: Env
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadEndMarked(Wish):
    """A person does not want an idea to be pursued, measured or not, and says why."""

    experiment: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteWritten(Wish):
    """A person notes something about an experiment."""

    experiment: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteTakenBack(Wish):
    """A person takes back the note that was written at `written_at` (seconds since the epoch)."""

    experiment: str
    written_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class TodoAdded(Wish):
    """A person writes down something to do. It is no experiment: nothing runs, and nothing waits for it."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TodoTicked(Wish):
    """A person ticks off what was to do, or takes that back. `todo` counts from zero."""

    todo: int
    done: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchAbandoned(Wish):
    """A person ends a launch; its experiment counts as failed."""

    launch: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchAdded(Wish):
    """A person wants something looked up about an experiment."""

    experiment: str
    entry: ResearchEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAbandoned(Wish):
    """A person cancels a running background task."""

    task: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseSet(Wish):
    """While paused nothing new is launched; what runs is measured to its end."""

    on: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class InterruptRequested(Event):
    """A person (or a signal) wants the session to end now. `keep` leaves the server running."""

    keep: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkLost(Event):
    """The target cannot be reached. What runs there goes on; nothing is ended by it."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRestored(Event):
    """The target can be reached again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetLost(Event):
    """The target cannot be used any more."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnded(Event):
    """The last event of a session. `serving` names the launch that was left running, if any."""

    ending: Ending
    serving: str | None
