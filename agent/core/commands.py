"""What the core wants done. Each command ends in at least one event; a lost one shows as a state without its end."""

from dataclasses import dataclass

from agent.core.events import Ending
from agent.core.model import LaunchConfig, Task
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
    """Run one approved step; ends in PrepareFinished."""

    experiment: str
    index: int
    step: PrepareStep


@dataclass(frozen=True, slots=True)
class StartServer:
    """Start and watch a server; ends in ServerReady or ServerFailed, and in ServerFailed when it dies later."""

    launch: str
    config: LaunchConfig


@dataclass(frozen=True, slots=True)
class AttachServer:
    """Check and watch a server that is not ours; ends as StartServer does."""

    launch: str
    config: LaunchConfig


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
class StopServer:
    """Stop a launch and verify that nothing of it is left; ends in ServerStopped.

    `drains`: it got ready, so it may have requests to finish and is given time for them.
    """

    launch: str
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
    | MeasureRound
    | StopServer
    | EndSession
)
