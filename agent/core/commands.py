"""What the core wants done. Each command ends in at least one event; a lost one shows as a state without its end."""

from dataclasses import dataclass

from agent.core.events import Ending
from agent.core.guard import GuardResult
from agent.core.model import LaunchConfig, Task
from agent.core.state import Launch
from agent.playbook.model import PrepareStep, Workload


@dataclass(frozen=True, slots=True)
class RunTask:
    """Run a background task; ends in TaskFinished."""

    task: Task


@dataclass(frozen=True, slots=True)
class CancelTask:
    """Cancel a background task; ends in TaskFinished."""

    task: str


@dataclass(frozen=True, slots=True)
class SetQuiet:
    """Suspend background work on the target (or let it go on)."""

    on: bool


@dataclass(frozen=True, slots=True)
class Prepare:
    """Run one approved step, at most once under its `job` id; ends in PrepareFinished."""

    experiment: str
    index: int
    step: PrepareStep
    job: str


@dataclass(frozen=True, slots=True)
class StartServer:
    """Start and watch a server; ends in ServerReady or ServerFailed, and in ServerFailed when it dies later."""

    launch: str
    config: LaunchConfig


@dataclass(frozen=True, slots=True)
class RejoinServer:
    """Go on with a launch that tunebot left, or was cut off from, at the stage that `seen` has; ends as StartServer.

    `away_s`: for how long nobody watched. Ends in LaunchVoid where nothing was started.
    """

    launch: str
    config: LaunchConfig
    seen: Launch
    away_s: float


@dataclass(frozen=True, slots=True)
class AttachServer:
    """Check and watch a server that is not ours; ends as StartServer does. `seen` is set where it was before."""

    launch: str
    config: LaunchConfig
    seen: Launch | None = None


@dataclass(frozen=True, slots=True)
class DetachServer:
    """Let go of an attached server without touching it; ends in ServerStopped."""

    launch: str


@dataclass(frozen=True, slots=True)
class MeasureRound:
    """Measure one round (after a warm-up, if it is the first); ends in RoundMeasured or RoundFailed."""

    launch: str
    port: int
    workload: Workload
    index: int
    seed: int


@dataclass(frozen=True, slots=True)
class AskGuard:
    """Put the questions of the guard to a launch; ends in GuardEnded. `baseline` is None where it is the baseline's."""

    launch: str
    port: int
    baseline: GuardResult | None


@dataclass(frozen=True, slots=True)
class StopServer:
    """Stop a launch and verify that nothing of it is left; ends in ServerStopped.

    `drains`: it got ready, so it may have requests to finish and is given time for them.
    """

    launch: str
    config: LaunchConfig
    drains: bool


@dataclass(frozen=True, slots=True)
class EndSession:
    """Cancel background work and leave the loop."""

    ending: Ending


Command = (
    AttachServer
    | DetachServer
    | RunTask
    | CancelTask
    | SetQuiet
    | Prepare
    | StartServer
    | RejoinServer
    | MeasureRound
    | AskGuard
    | StopServer
    | EndSession
)
