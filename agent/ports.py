"""What the engine needs from the world: Protocols that adapters fill and tests may stand in for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from agent.core.events import LlmSpent, TaskProgressed, ToolUsed
from agent.core.guard import GuardResult
from agent.core.model import Finding, FlagCheck, Host, LaunchConfig, Phase, RoundMetrics, Task, TaskStatus
from agent.playbook.model import Args, Workload
from agent.reach import Reach


class TargetUnusable(Exception):
    """The target cannot do what was asked. The message says what and the hint what to try."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class TargetUnreachable(TargetUnusable):
    """The target cannot be reached now. What runs on it goes on, and it may come back."""


class TargetGone(TargetUnusable):
    """The target must not be used any more: its host key has changed, say."""


class TargetBusy(TargetUnusable):
    """Another server holds the target's GPUs. The message says whose."""


class LaunchVoid(TargetUnusable):
    """Nothing was ever started under this launch id, and never will be: its start was cut off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """A finished command. `exit_code` is None where its end could not be learnt: that is never success."""

    exit_code: int | None
    output: bytes
    timed_out: bool = False
    truncated: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchSpec:
    """One start of a server on a target: argv as it will be executed, and the variables added to the environment.

    `port` is the one on which it will listen.
    """

    launch: str
    port: int
    argv: tuple[str, ...]
    env: Mapping[str, str]
    unset: tuple[str, ...]
    owner: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A process that our launch started: its pid and its start time in clock ticks since boot (field 22 of stat)."""

    pid: int
    start_ticks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """What a start left: its leader (as Process), the port, and when, in Unix seconds of the host's clock.

    `age_s` is how long ago that was when the host said so: nobody's clock needs to agree with the host's.
    """

    pid: int
    start_ticks: int
    port: int
    started_at: float
    age_s: float = 0.0


LaunchState = Literal["running", "exited", "gone", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchStatus:
    """What the host says of a launch.

    `running`: at least one process of it lives. `exited`: none lives and the wrapper wrote the exit code of the
    leader. `gone`: none lives and there is no exit file. `unknown`: the host could not be asked.
    `leader_exit_code` is set as soon as the leader is dead, though ranks may still live.
    """

    state: LaunchState
    leader_exit_code: int | None
    processes: tuple[Process, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPiece:
    """Bytes of a log, with the file's inode (0 where there is no file) and its size in bytes after the reading.

    A size below the offset means that the log was truncated, another inode than before that it was replaced: then it
    begins anew. A log that was only renamed is still read.
    """

    data: bytes
    inode: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StopReport:
    """The end of a stop. `left` are recorded processes that still live; empty means verified gone."""

    exit_code: int | None
    left: tuple[Process, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PortOwners:
    """Who listens on a TCP port: pids of the launch asked about, and whether anybody else does."""

    ours: tuple[int, ...]
    others: bool


class Target(Protocol):
    """A machine on which commands and servers run. Paths and argv elements may begin with `~/`."""

    name: str
    reach: Reach
    """Whether it can be reached. Calls wait while it cannot, but for `launch_status`, `read_log` and `stop`."""
    trees: Mapping[str, str]
    """Folders that research may read beside those of the playbook, by the name of source that each gets."""
    image: str
    """The image in whose containers servers run; empty where they run on the machine itself."""

    async def host(self) -> Host:
        """Facts about the machine. Raises TargetUnusable."""

    async def run(
        self,
        argv: Sequence[str],
        *,
        timeout_s: float,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        background: bool = False,
        hide_gpus: bool = False,
        max_output_bytes: int = 1 << 20,
    ) -> CommandResult:
        """Run a command to its end, stderr merged into stdout, stdin empty.

        `background` commands run niced and are suspended while `quiet(True)` holds; suspended time does not count.
        Of longer output the end is kept. Raises TargetUnusable where the program cannot be started.
        """

    def quiet(self, on: bool) -> None:
        """Suspend (or let go on) every background command, so that a measurement has the machine to itself."""

    async def read_file(self, path: str, offset: int = 0, limit: int = 1 << 20) -> bytes:
        """Bytes of a file from `offset`. Raises TargetUnusable where it cannot be read."""

    async def exists(self, path: str) -> bool:
        """Whether a file or folder of that name exists."""

    async def free_port(self) -> int:
        """A TCP port of the loopback interface on which nothing listens now."""

    async def port_answers(self, port: int) -> bool:
        """Whether anything accepts connections on that loopback port."""

    async def base_url(self, port: int) -> str:
        """The URL under which this process reaches the target's loopback port, without a trailing slash."""

    async def launch(self, spec: LaunchSpec) -> Started:
        """Start a server, detached from us; the wrapper claims the launch id first, once and for ever.

        Where the id was claimed before, nothing is started: this is what became of that start. Raises TargetBusy
        where another server holds the GPUs, LaunchVoid where the start was cut off, TargetUnusable where the program
        cannot be started.
        """

    async def outcome(self, launch: str) -> Started | None:
        """What became of an earlier start, as `launch` told or would have told; waits while it is under way.

        None where the host was never asked for it.
        """

    async def run_once(
        self, job: str, argv: Sequence[str], *, timeout_s: float, env: Mapping[str, str] | None = None
    ) -> CommandResult:
        """Run a command under an id (of the same kind as a launch id), at most once; wait for its end.

        Where it was started before, by whomever, its result is that one's. It needs neither us nor the link to go on,
        and holds no GPUs. What it leaves running is killed when it ends or its time is over. Of longer output the
        last MiB is kept. Raises LaunchVoid where its start was cut off, TargetUnusable where it cannot be started.
        """

    async def launch_status(self, launch: str) -> LaunchStatus:
        """What the host knows of a launch."""

    async def read_log(self, launch: str, offset: int, limit: int = 1 << 20) -> LogPiece:
        """Bytes of the launch's merged output from `offset`, and which file they are from; none at its present end.

        Raises TargetUnreachable at once where the target cannot be reached.
        """

    async def port_owners(self, launch: str, port: int) -> PortOwners:
        """Whose sockets listen on the port."""

    async def stop(self, launch: str, grace_s: float) -> StopReport:
        """TERM to the leader, after `grace_s` KILL to every recorded process, then wait until all are gone.

        Raises TargetUnreachable where the target could not be reached for a minute.
        """

    async def survey(self) -> Mapping[str, Any]:
        """What `tunebot doctor` wants to know of the machine: see agent/targets/survey.py."""

    async def close(self) -> None:
        """End background commands and connections. Servers go on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseMark:
    """A phase that begins, or how far it is: `done` of `total` units (shards, batch sizes) where the log says so."""

    phase: Phase
    done: int | None = None
    total: int | None = None
    begins: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """Counters of speculative decoding: tokens that verify passes kept, each pass its own one included, and passes."""

    kept: float = 0.0
    passes: float = 0.0


class ServerKind(Protocol):
    """What tunebot knows of one kind of server: how flags are written, how its log reads, when it is ready."""

    name: str
    stop_grace_s: float
    phases: tuple[Phase, ...]
    """The phases of a load of this kind, in the order in which a healthy start passes them."""
    words: tuple[str, ...]
    """Parts of words of which every line that `phase_of` understands has one."""

    def argv(self, config: LaunchConfig, port: int) -> tuple[str, ...]:
        """The whole argv of a launch that listens on a loopback port."""

    def phase_of(self, line: str) -> PhaseMark | None:
        """What a cleaned log line says about the load, if anything."""

    def fatal(self, line: str) -> str | None:
        """The reason, if this line proves that the start has failed though the process may live on."""

    def model_of(self, args: Args) -> str:
        """The model's path or name, for the history of loads."""

    async def ready(self, base_url: str) -> bool:
        """Whether one real generation came back. Errors of the connection mean no."""

    async def effective_flags(self, base_url: str, config: LaunchConfig, log_head: str) -> tuple[FlagCheck, ...]:
        """Each requested flag against what the server reports."""

    async def flush_cache(self, base_url: str) -> bool:
        """Empty the prefix cache. False where the server has no way to."""

    async def speculation(self, base_url: str) -> Speculation | None:
        """Its counters at this moment: only differences mean something. None where the server tells none."""


class Researcher(Protocol):
    """Runs one background task to its end."""

    async def run(
        self, task: Task, tell: Callable[[TaskProgressed | ToolUsed | LlmSpent], None]
    ) -> tuple[TaskStatus, Finding]:
        """`tell` is given what happens on the way. Each task has a deadline of its own.

        Never raises for what a target, a file or an LLM does: that is a status and a summary.
        """


class RoundError(Exception):
    """A round could not be measured. The message is for the board."""


class Bencher(Protocol):
    """Measures one round of a workload on a running server."""

    async def warm_up(self, base_url: str, model: str | None, workload: Workload) -> None:
        """Requests that are not counted, with prompts of their own. Raises RoundError."""

    async def round(self, base_url: str, model: str | None, workload: Workload, seed: int) -> RoundMetrics:
        """One round; the prompts follow from `seed`. Raises RoundError."""


class AnswerGuard(Protocol):
    """Puts fixed questions to a running server."""

    async def examine(self, base_url: str, model: str | None, kind: str, baseline: GuardResult | None) -> GuardResult:
        """What it answers, and how probable it finds the baseline's answers (its own, without one).

        Raises RoundError where it cannot be asked.
        """


class LoadHistory(Protocol):
    """Durations of earlier loads."""

    def phases_s(self, target: str, kind: str, model: str, how: str = "") -> Mapping[Phase, float] | None:
        """Typical seconds of each phase, or None where nothing like it was loaded before."""

    def add(self, target: str, kind: str, model: str, phases_s: Mapping[Phase, float], how: str = "") -> str | None:
        """Remember a load that got ready. Returns why it could not be remembered, if so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchUpdate:
    """Something that the watch of a load saw."""

    phase: Phase
    begins: bool
    done: int | None = None
    total: int | None = None
    fraction: float | None = None
    remaining_s: float | None = None
