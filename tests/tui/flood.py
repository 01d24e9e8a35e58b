"""A session of 200 experiments that is played for the screen's benchmark: in a flood, and through eight hours."""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from agent.core import commands as do
from agent.core import events as ev
from agent.core.model import Finding, Phase
from agent.core.reduce import initial, reduce
from agent.core.schedule import next_decision
from agent.core.state import Launch, State
from agent.core.views.panels import GpuUse
from agent.journal.journal import Journal
from agent.logtimes import WHOLE, Shown
from tests.core.conftest import World, playbook, started

EXPERIMENTS = 200
LINES_PER_SECOND = 60_000
REPORTS_PER_SECOND = 80


class Flooded:
    """A Source that is played by the bench: the reducer and the scheduler run for each event, as in a session."""

    read_only = ""
    elsewhere = False
    trouble = ""
    gpus: tuple[GpuUse, ...] = ()
    known_flags: Sequence[Sequence[str]] = ()

    def __init__(self, folder: Path, start: ev.SessionStarted, journal: Journal) -> None:
        self.folder, self.version, self.time = folder, 0, start.at
        self.state: State = initial(start)
        self.redact: Callable[[str], str] = lambda text: text.replace("hunter2hunter2", "‹redacted›")
        self._journal = journal
        self.world = World()
        self.waiting: list[ev.Event] = []

    def now(self) -> float:
        return self.time

    def log_shown(self, launch: Launch, now: float) -> Shown:
        return WHOLE

    def submit(self, event: ev.Event) -> None:
        self.apply(event)

    def apply(self, event: ev.Event) -> list[do.Command]:
        """What the engine does with an event."""
        self.state, commands = reduce(self.state, event)
        self._journal.append(event)
        self.version += 1
        return list(commands)

    def decide(self) -> list[do.Command]:
        """All decisions that follow."""
        commands: list[do.Command] = []
        while (decision := next_decision(self.state)) is not None:
            commands += self.apply(decision)
        return commands


def made_source(folder: Path) -> Flooded:
    (folder / "launches").mkdir(parents=True)
    research = [{"ask": f"question {n} of the flood, in some words"} for n in range(4)]
    book = playbook(
        {"id": "base"},
        *({"id": f"experiment-{n}", "args": {"flag": str(n)}, "research": research} for n in range(1, EXPERIMENTS)),
    )
    return Flooded(folder, started(book, attended=True), Journal(folder, lambda value: value))


def write_log(path: str, seconds: float) -> None:
    """Another process: the server's log grows evenly, 50 times a second."""
    lines = [
        f"[2026-11-30 01:27:{n % 60:02} TP{n % 8}] Decode batch, #running-req: {n}, #token: {n * 37}, "
        f"token usage: 0.05, cuda graph: True, gen throughput (token/s): {n}.50\n".encode()
        for n in range(LINES_PER_SECOND // 50)
    ]
    block, begun = b"".join(lines), time.monotonic()
    with Path(path).open("ab", buffering=0) as file:
        for tick in range(int(seconds * 50)):
            file.write(block)
            time.sleep(max(0.0, begun + (tick + 1) / 50 - time.monotonic()))


async def report(source: Flooded, launch: str) -> None:
    """The tasks that run, and the load, say what they do, until cancelled."""
    begun = time.monotonic()
    for count in range(1_000_000):
        await asyncio.sleep(max(0.0, begun + count / REPORTS_PER_SECOND - time.monotonic()))
        source.time = 1000.0 + time.monotonic() - begun
        running = [name for name, task in source.state.tasks.items() if task.status is None]
        if running:
            action = f"reading file {count} of the source"
            source.apply(ev.TaskProgressed(at=source.time, task=running[count % len(running)], action=action))
        if count % REPORTS_PER_SECOND == 0:
            source.apply(progress(source.time, launch, count // REPORTS_PER_SECOND % 64))
        source.decide()


def progress(at: float, launch: str, done: int) -> ev.PhaseProgressed:
    return ev.PhaseProgressed(
        at=at, launch=launch, phase=Phase.LOAD_WEIGHTS, done=done, total=64, fraction=done / 64, remaining_s=64.0 - done
    )


def begin_load(source: Flooded) -> str:
    """Research runs and the first launch loads; the launch's id."""
    for _ in range(1000):
        for command in source.decide():
            if isinstance(command, do.StartServer):
                source.apply(ev.LaunchStarted(at=source.time, launch=command.launch, pid=1, port=2, argv=("python3",)))
                entered = ev.PhaseEntered(
                    at=source.time, launch=command.launch, phase=Phase.LOAD_WEIGHTS, remaining_s=None
                )
                source.apply(entered)
                return command.launch
    raise AssertionError("nothing is launched")


def play(source: Flooded, seconds: float) -> Iterator[None]:
    """Second by second: tasks and loads report once each; a load or a task takes two minutes, a round ten seconds."""
    begun = source.time
    ends: list[tuple[float, list[ev.Event]]] = []
    commands = source.decide()
    launch = ""
    while source.time < begun + seconds:
        source.time += 1
        for command in commands:
            ends += [(source.time + after, answers) for after, answers in answers_of(source, command)]
            if isinstance(command, do.StartServer):
                launch = command.launch
        commands = []
        for event in [e for at, events_ in ends if at <= source.time for e in events_]:
            commands += source.apply(event)
        ends = [(at, answers) for at, answers in ends if at > source.time]
        for name, task in list(source.state.tasks.items()):
            if task.status is None:
                action = f"reading file {int(source.time)}"
                source.apply(ev.TaskProgressed(at=source.time, task=name, action=action))
        if launch and source.state.launches[launch].stage == "loading":
            source.apply(progress(source.time, launch, int(source.time) % 64))
            with (source.folder / "launches" / f"{launch}.log").open("ab") as log:
                log.write(b"[2026-11-30 01:27:00 TP1] Load weight begin. avail mem=94.99 GB\n" * 50)
        commands += source.decide()
        yield


def answers_of(source: Flooded, command: do.Command) -> Iterator[tuple[float, list[ev.Event]]]:
    at = source.time
    match command:
        case do.RunTask(task):
            finding = Finding(summary="found something, in as many words as one finds " * 3)
            yield 120, [ev.TaskFinished(at=at + 120, task=task.id, status="done", finding=finding)]
        case do.StartServer():
            first, *rest = source.world.answer(source.state, command, at)
            yield 1, [first]
            yield 120, rest
        case _:
            yield 10, source.world.answer(source.state, command, at + 10)
