"""The loop: an event is journalled, reduced, shown; its commands are carried out and come back as events.

The engine owns every task that it starts: each has a name, a deadline inside its effect, and an end that is an event.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Protocol

from agent.core import commands as do
from agent.core import events as ev
from agent.core.legal import IllegalTransition
from agent.core.model import Failure, Finding
from agent.core.reduce import initial, reduce
from agent.core.schedule import next_decision
from agent.core.state import State
from agent.journal.journal import JournalFull
from agent.text import one_line

Listener = Callable[[State, ev.Event, State], None]
Submit = Callable[[ev.Event], None]

CANCEL_GRACE_S = 15.0
FULL_RETRY_S = 1.0
"""After so long a full disk is tried again."""


class Effects(Protocol):
    """Carries commands out. Each coroutine submits the events in which its command ends; `quiet` acts at once."""

    def quiet(self, on: bool) -> None:
        """Suspend (or let go on) background work on the target."""

    async def run_task(self, command: do.RunTask, submit: Submit) -> None:
        """Ends in TaskFinished."""

    async def prepare(self, command: do.Prepare, submit: Submit) -> None:
        """Ends in PrepareFinished."""

    async def start_server(self, command: do.StartServer, submit: Submit) -> None:
        """Watches until the server dies; ends in ServerFailed unless it is cancelled by a stop."""

    async def rejoin_server(self, command: do.RejoinServer, submit: Submit) -> None:
        """As `start_server`, with a launch that was begun before; ends in LaunchVoid where nothing was started."""

    async def attach_server(self, command: do.AttachServer, submit: Submit) -> None:
        """Watches until the server is gone; ends in ServerFailed unless it is cancelled by a detach."""

    async def measure_round(self, command: do.MeasureRound, submit: Submit) -> None:
        """Ends in RoundMeasured or RoundFailed."""

    async def ask_guard(self, command: do.AskGuard, submit: Submit) -> None:
        """Ends in GuardEnded."""

    async def stop_server(self, command: do.StopServer, submit: Submit) -> None:
        """Ends in ServerStopped."""


class Log(Protocol):
    """Where events are kept before they count."""

    def append(self, event: ev.Event) -> None:
        """Raises JournalFull where the event could not be kept for now, JournalError where it never can."""


class Engine:
    """Runs one session to its last event."""

    def __init__(self, state: State, log: Log, effects: Effects, listen: Listener) -> None:
        """`state` is that of the journal; `listen` is called with the states before and after each event from now on.

        It must not block.
        """
        self.state = state
        self.trouble = ""
        """What keeps the session from going on; empty where nothing does."""
        self.on_trouble: Callable[[str], None] = lambda text: None
        """Called when `trouble` changes."""
        self._log = log
        self._effects = effects
        self._listen = listen
        self._inbox: asyncio.Queue[ev.Event] = asyncio.Queue()
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._wants_to_leave = asyncio.Event()

    @classmethod
    def begin(cls, start: ev.SessionStarted, log: Log, effects: Effects, listen: Listener) -> "Engine":
        """A new session. Raises JournalError."""
        engine = cls(initial(start), log, effects, listen)
        log.append(start)
        listen(engine.state, start, engine.state)
        return engine

    @classmethod
    def resume(cls, state: State, resumed: ev.SessionResumed, log: Log, effects: Effects, listen: Listener) -> "Engine":
        """A session that was left or cut off at `state`: what was under way is asked for or done again.

        Raises JournalError, and IllegalTransition where it has come to its end.
        """
        engine = cls(state, log, effects, listen)
        engine._apply(resumed)
        return engine

    def submit(self, event: ev.Event) -> None:
        """Hand in an event from outside: a key, a signal, a result. Safe to call from the loop's thread only."""
        if isinstance(event, ev.InterruptRequested):
            self._wants_to_leave.set()
        self._inbox.put_nowait(event)

    async def run(self) -> State:
        """Go on until the session has ended; the final state.

        While the disk is full nothing new is begun, and what runs is watched. Raises JournalError if a person wants to
        leave then, and what `listen` raises; the server is stopped before that.
        """
        try:
            while True:
                while (decision := next_decision(self.state)) is not None:
                    await self._keep(decision)
                if self.state.ending:
                    return self.state
                await self._take(await self._inbox.get())
        finally:
            await self._cancel(list(self._tasks.values()))
            current = self.state.current
            if current and not self.state.ending and not self.state.keep and current.purpose != "attach":
                await self._effects.stop_server(do.StopServer(current.id, current.config, drains=False), self.submit)

    async def _take(self, event: ev.Event) -> None:
        """Apply an event from outside. A person may act on what was on the screen a moment ago."""
        try:
            await self._keep(event)
        except IllegalTransition as error:
            if not isinstance(event, ev.Wish | ev.ExperimentCompleted):
                raise
            await self._keep(ev.Noted(at=event.at, text=f"came too late: {error}"))

    async def _keep(self, event: ev.Event) -> None:
        """Apply an event as soon as the disk takes it."""
        full = False
        while True:
            try:
                self._apply(event)
            except JournalFull as error:
                if self._wants_to_leave.is_set():
                    raise
                full = True
                what = f"the journal cannot be written ({error.reason})"
                self._tell_trouble(f"{what}: nothing new is started until it can")
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._wants_to_leave.wait(), FULL_RETRY_S)
            else:
                break
        if full:
            self._tell_trouble("")

    def _tell_trouble(self, text: str) -> None:
        if text != self.trouble:
            self.trouble = text
            self.on_trouble(text)

    def _apply(self, event: ev.Event) -> None:
        before = self.state
        # The order is the promise: what cannot be reduced is not journalled, what is not journalled has no effect.
        after, commands = reduce(before, event)
        self._log.append(event)
        self.state = after
        self._listen(before, event, after)
        for command in commands:
            self._carry_out(command)

    def _carry_out(self, command: do.Command) -> None:
        effects, submit = self._effects, self.submit
        match command:
            case do.SetQuiet():
                effects.quiet(command.on)
            case do.CancelTask():
                if owned := self._tasks.get(f"task {command.task}"):
                    owned.cancel()
            case do.RunTask():
                self._own(f"task {command.task.id}", effects.run_task(command, submit), command)
            case do.Prepare():
                self._own(f"prepare {command.experiment} {command.index}", effects.prepare(command, submit), command)
            case do.StartServer():
                self._own(f"watch {command.launch}", effects.start_server(command, submit), command)
            case do.RejoinServer():
                self._own(f"watch {command.launch}", effects.rejoin_server(command, submit), command)
            case do.MeasureRound():
                self._own(f"measure {command.launch}", effects.measure_round(command, submit), command)
            case do.AskGuard():
                self._own(f"measure {command.launch}", effects.ask_guard(command, submit), command)
            case do.AttachServer():
                self._own(f"watch {command.launch}", effects.attach_server(command, submit), command)
            case do.StopServer() | do.DetachServer():
                self._own(f"stop {command.launch}", self._stop(command), command)
            case do.EndSession():
                pass

    async def _stop(self, command: do.StopServer | do.DetachServer) -> None:
        owned = (self._tasks.get(f"{what} {command.launch}") for what in ("watch", "measure"))
        await self._cancel([task for task in owned if task])
        if isinstance(command, do.DetachServer):
            self.submit(ev.ServerStopped(at=time.time(), launch=command.launch, exit_code=None, left=()))
        else:
            await self._effects.stop_server(command, self.submit)

    def _own(self, name: str, work: Coroutine[Any, Any, None], command: do.Command) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks[name] = task
        task.add_done_callback(lambda done: self._ended(name, done, command))

    def _ended(self, name: str, task: asyncio.Task[None], command: do.Command) -> None:
        if self._tasks.get(name) is task:
            del self._tasks[name]
        if task.cancelled():
            if isinstance(command, do.RunTask):
                gone = Finding(summary="cancelled")
                self.submit(ev.TaskFinished(at=time.time(), task=command.task.id, status="cancelled", finding=gone))
        elif error := task.exception():
            text = one_line(f"{type(error).__name__}: {error}")
            self.submit(_broken(command, text, time.time(), self.state))

    async def _cancel(self, tasks: list[asyncio.Task[None]]) -> None:
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CANCEL_GRACE_S)


def _broken(command: do.Command, text: str, now: float, state: State) -> ev.Event:
    """The event in which a command ends whose effect raised: a fault of ours or of a library, never swallowed."""
    reason = f"internal error: {text}"
    match command:
        case do.RunTask():
            return ev.TaskFinished(at=now, task=command.task.id, status="failed", finding=Finding(summary=reason))
        case do.Prepare():
            return ev.PrepareFinished(
                at=now, experiment=command.experiment, step=command.index, ok=False, summary=reason
            )
        case do.StartServer() | do.RejoinServer() | do.AttachServer():
            launch = state.launches[command.launch]
            failure = Failure(phase=launch.phase, reason=reason, category="internal")
            return ev.ServerFailed(at=now, launch=command.launch, failure=failure)
        case do.MeasureRound():
            return ev.RoundFailed(
                at=now, launch=command.launch, workload=command.workload.name, index=command.index, reason=reason
            )
        case do.AskGuard():
            return ev.GuardEnded(at=now, launch=command.launch, error=reason)
        case _:
            return ev.TargetLost(at=now, reason=reason)
