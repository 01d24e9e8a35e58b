"""A load: what is sent to a server, and what became of it."""

import asyncio
import sys
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from agent.bench.api import Prompt
from agent.bench.client import Exchange, Lane, Server, deadline_s
from agent.bench.health import Gauge, Health
from agent.bench.pause import Pause
from agent.bench.read import Reader
from agent.bench.sample import Sample, too_many_failed
from agent.playbook.api import Api

_HOLD_BYTES = 128 << 20
"""Responses kept unread until the load ends, as received; with tiny events Python needs three times that to keep them.
Reading one takes a millisecond that the stamps of others would feel."""

_PROGRESS_S = 0.25

_SWITCH_S = 0.0005
"""How long a busy event loop may keep the thread that tells it the time from telling it; Python's own is 5 ms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is to be sent.

    `output_lens` are tokens, one a prompt. `concurrency` is the number of lanes of a closed loop, and the most
    requests in flight of an open one. `send_at_s` makes it an open loop: when each request is to be sent, in seconds
    from the start of the load, ascending.
    """

    api: Api
    model: str
    prompts: tuple[Prompt, ...]
    output_lens: tuple[int, ...]
    concurrency: int
    send_at_s: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        """Raises ValueError for token ids in a chat."""
        if self.api == "chat" and not all(isinstance(prompt, str) for prompt in self.prompts):
            raise ValueError("a chat takes text, not token ids")


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a load has come. `output_chunks` are the pieces received, with text or not."""

    done: int
    failed: int
    in_flight: int
    output_chunks: int
    elapsed_s: float


# No repr: asyncio makes one of what a main task returned, whether anybody reads it or not, and this is large.
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Load:
    """Every request that ended, in the order in which they did, and how the client fared."""

    samples: tuple[Sample, ...]
    health: Health


async def run_load(server: Server, plan: Plan, progress: Callable[[Progress], None] | None = None) -> Load:
    """Send what is planned. What goes wrong is in the samples; only cancellation is raised.

    Where more requests failed than a measurement may have, it ends at once, with what ended until then. It blocks its
    event loop for short pauses, and its stamps are best with uvloop: it is for a process that does nothing else.
    """
    return await _Loop(server, plan, progress).run()


class _TooManyFailed(Exception):
    """Ends a load that cannot count any more."""


class _Loop:
    """A load while it goes on. A request waits in `_due` for a free place; `_lanes` are those that have one or had."""

    def __init__(self, server: Server, plan: Plan, progress: Callable[[Progress], None] | None) -> None:
        self._server, self._plan, self._progress = server, plan, progress
        self._reader = Reader(plan.api)
        self._pause = Pause()
        self._due: deque[int] = deque()
        self._lanes: list[Lane] = []
        self._idle: list[Lane] = []
        self._ended: list[tuple[Exchange, float] | Sample] = []
        self._held_bytes = 0
        self._failed = 0
        self._start_s = perf_counter()
        self._ticker: asyncio.TimerHandle | None = None

    async def run(self) -> Load:
        """The whole load."""
        gauge = Gauge()
        gauge.start()
        self._tick()
        self._start_s = perf_counter()
        try:
            async with asyncio.TaskGroup() as tasks:
                await self._send_all(tasks)
        except* _TooManyFailed:
            pass  # the failed requests are in the samples, and say it
        finally:
            health = gauge.stop()
            if self._ticker is not None:
                self._ticker.cancel()
            for lane in self._lanes:
                await lane.close()
        samples = tuple(self._read(x) if isinstance(x, tuple) else x for x in self._ended)
        return Load(samples=samples, health=health)

    async def _send_all(self, tasks: asyncio.TaskGroup) -> None:
        if self._plan.send_at_s is not None:
            await self._at_their_times(tasks, self._plan.send_at_s)
            return
        self._due.extend(range(len(self._plan.prompts)))
        for _ in range(min(self._plan.concurrency, len(self._due))):
            self._start(tasks, self._due.popleft())

    async def _at_their_times(self, tasks: asyncio.TaskGroup, send_at_s: tuple[float, ...]) -> None:
        # A timer of the event loop is a millisecond early or late; a thread that sleeps is not.
        stop, loop, interval_s = threading.Event(), asyncio.get_running_loop(), sys.getswitchinterval()

        def release(index: int) -> None:
            self._due.append(index)
            if len(self._lanes) - len(self._idle) < self._plan.concurrency:
                self._start(tasks, self._due.popleft())

        def keep_time() -> None:
            for index, at_s in enumerate(send_at_s):
                if stop.wait(self._start_s + at_s - perf_counter()):
                    return
                loop.call_soon_threadsafe(release, index)

        sys.setswitchinterval(_SWITCH_S)
        try:
            await asyncio.to_thread(keep_time)
        finally:
            stop.set()
            sys.setswitchinterval(interval_s)

    def _start(self, tasks: asyncio.TaskGroup, index: int) -> None:
        if not self._idle:
            self._idle.append(Lane(self._server, self._pause))
            self._lanes.append(self._idle[-1])
        tasks.create_task(self._run(self._idle.pop(), index))

    async def _run(self, lane: Lane, index: int) -> None:
        """Send a request, and then others that wait, over one connection."""
        plan = self._plan
        while True:
            scheduled_s = perf_counter() if plan.send_at_s is None else self._start_s + plan.send_at_s[index]
            length = plan.output_lens[index]
            self._add(
                await lane.complete(plan.api, plan.model, plan.prompts[index], length, deadline_s(length)), scheduled_s
            )
            if not self._due:
                break
            index = self._due.popleft()
        self._idle.append(lane)

    def _add(self, exchange: Exchange, scheduled_s: float) -> None:
        """Keep an ended request. Raises _TooManyFailed."""
        size = exchange.response.size if exchange.response else 0
        if self._held_bytes + size > _HOLD_BYTES:
            self._ended.append(self._read((exchange, scheduled_s)))
        else:
            self._ended.append((exchange, scheduled_s))
            self._held_bytes += size
        self._failed += exchange.response is None or exchange.response.status != 200
        if too_many_failed(self._failed, len(self._plan.prompts)):
            raise _TooManyFailed

    def _read(self, ended: tuple[Exchange, float]) -> Sample:
        exchange, scheduled_s = ended
        return self._reader.sample(exchange, scheduled_s)

    def _tick(self) -> None:
        if self._progress is None:
            return
        self._progress(
            Progress(
                done=len(self._ended),
                failed=self._failed,
                in_flight=len(self._lanes) - len(self._idle),
                output_chunks=sum(lane.pieces for lane in self._lanes),
                elapsed_s=perf_counter() - self._start_s,
            )
        )
        self._ticker = asyncio.get_running_loop().call_later(_PROGRESS_S, self._tick)
