"""How fast the screen answers in a flood, and what it holds after a long session: `make bench-screen`.

The flood: a launch's log grows by 60,000 lines a second, 200 experiments are on the board, the tasks that run report
80 times a second. Keys come from a thread of their own, as from a terminal; a key is answered when the app has drawn
what it changed. The long session: the events of eight hours, one after the other, with the screen drawn for every
ten seconds of them.
"""

import argparse
import asyncio
import multiprocessing
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from typing import Any

from textual import events

from tests.tui.flood import begin_load, made_source, play, report, write_log
from tui.app import TunebotApp
from tui.garbage import calm_garbage_collector
from tui.screens.log import LogScreen
from tui.widgets.board import Board
from tui.widgets.log_pane import LogPane

PAUSE_S = 0.08
"""Seconds from one answer to the next key: twelve keys a second are more than one types."""
P95_MS = 50.0
MEMORY_MB = 200.0

BOARD_KEYS = ("down", "down", "up", "pagedown", "pageup")
PANE_KEYS = ("tab", "up", "pageup", "pagedown", "end", "w", "w", "tab")
# A log just opened has no line above its first: keys that work there come first.
LOG_KEYS = (
    "l",
    "w",
    "w",
    "up",
    "pageup",
    "slash",
    "5",
    "0",
    "enter",
    "N",
    "N",
    "escape",
    "3",
    "asterisk",
    "home",
    "end",
)
REST = (*LOG_KEYS, "escape", "question_mark", "escape")
KEYS = (*BOARD_KEYS, *PANE_KEYS, *REST)
NARROW_KEYS = (*BOARD_KEYS, "b", *PANE_KEYS, "b", *REST)


def look(app: TunebotApp) -> tuple[Any, ...]:
    """What a key can change, as far as it does not change by itself."""
    screen = app.screen
    for pane in screen.query(LogPane):
        status = pane.status
        shown = bool(pane.region)
        still = pane.top if not status.follow else -1
        log = (
            status.follow,
            status.wrap,
            status.typed,
            status.rank,
            status.needle,
            status.match,
            still,
            pane._skip,
            shown,
        )
        cursor = next((board.cursor for board in screen.query(Board)), None)
        return (type(screen), type(screen.focused), cursor, *log)
    return (type(screen),)


class Keyboard(threading.Thread):
    """Presses keys and waits for each to be drawn."""

    def __init__(self, app: TunebotApp, seconds: float) -> None:
        super().__init__(daemon=True)
        self.app, self.until = app, time.monotonic() + seconds
        self.latencies: list[tuple[float, str]] = []
        self.waits: list[float] = []
        self._loop_thread = threading.get_native_id()
        self.unanswered: list[str] = []
        self._before: tuple[Any, ...] | None = None
        self._drawn = threading.Event()

    def drawn(self) -> None:
        """Called after each drawing."""
        if self._before is not None and look(self.app) != self._before:
            self._before = None
            self._drawn.set()

    def run(self) -> None:
        for key in cycle(KEYS if self.app.size.width >= 100 else NARROW_KEYS):
            if time.monotonic() > self.until:
                return
            self._drawn.clear()
            self._before = look(self.app)
            pressed, waited = time.perf_counter(), run_delay_ms(self._loop_thread)
            character = {"slash": "/", "question_mark": "?", "asterisk": "*"}.get(key, key if len(key) == 1 else None)
            self.app._driver.process_message(events.Key(key, character))  # type: ignore[union-attr]
            if self._drawn.wait(1.0):
                self.latencies.append(((time.perf_counter() - pressed) * 1000, key))
                self.waits.append(run_delay_ms(self._loop_thread) - waited)
            else:
                self.unanswered.append(key)
            time.sleep(PAUSE_S)


def run_delay_ms(thread: int) -> float:
    """How long a thread of this process could have run, but other processes had the CPU."""
    return int(Path(f"/proc/self/task/{thread}/schedstat").read_text().split()[1]) / 1e6


def call_after_drawing(app: TunebotApp, call: Callable[[], None]) -> None:
    """From now on, `call` after each drawing of the app."""
    display = app._display

    def watched(*arguments: Any) -> None:
        display(*arguments)
        call()

    app._display = watched  # type: ignore[method-assign, assignment]


async def stalls(worst: list[float]) -> None:
    """How late the loop comes back to a task that wants to run every 5 ms."""
    while True:
        begun = time.perf_counter()
        await asyncio.sleep(0.005)
        worst.append((time.perf_counter() - begun) * 1000 - 5)


async def flood(seconds: float, size: tuple[int, int]) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        source = made_source(Path(folder) / "session")
        launch = begin_load(source)
        log = source.folder / "launches" / f"{launch}.log"
        app = TunebotApp(source)
        writer = multiprocessing.get_context("spawn").Process(target=write_log, args=(str(log), seconds + 3))
        writer.start()
        async with app.run_test(size=size) as pilot:
            while not log.exists():
                await pilot.pause(0.05)
            calm_garbage_collector()
            late: list[float] = []
            tasks = [asyncio.create_task(report(source, launch)), asyncio.create_task(stalls(late))]
            keyboard = Keyboard(app, seconds)
            call_after_drawing(app, keyboard.drawn)
            cpu = time.process_time()
            keyboard.start()
            with ThreadPoolExecutor(1) as pool:
                await asyncio.get_running_loop().run_in_executor(pool, keyboard.join)
            cpu = time.process_time() - cpu
            for task in tasks:
                task.cancel()
            writer.join()
            size_mb = log.stat().st_size / 1e6
        return said(keyboard, late, cpu / seconds, size_mb, size)


def said(keyboard: Keyboard, late: list[float], cpu: float, size_mb: float, size: tuple[int, int]) -> bool:
    times = [latency for latency, _ in keyboard.latencies]
    alone = [latency - wait for latency, wait in zip(times, keyboard.waits, strict=True)]
    print(f"{size[0]}x{size[1]}: {len(times)} keys: {in_words(times)}; had the CPU been free: {in_words(alone)}")
    slowest = sorted(zip(alone, keyboard.latencies, strict=True), reverse=True)[:5]
    slow = ", ".join(f"{key} {latency:.0f}" for latency, (_, key) in slowest)
    print(f"  slowest: {slow}; the loop was late by {max(late):.0f} ms at worst")
    print(f"  log {size_mb:.0f} MB, CPU {cpu:.0%}, memory {memory_mb():.0f} MB")
    if keyboard.unanswered:
        print(f"  not answered: {keyboard.unanswered}")
    return quantile(alone, 0.95) <= P95_MS and not keyboard.unanswered


def quantile(values: list[float], part: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * part))]


def in_words(times: list[float]) -> str:
    """Quantiles of times in milliseconds."""
    return ", ".join(f"p{part * 100:.0f} {quantile(times, part):.0f} ms" for part in (0.5, 0.95, 0.99))


async def long_session(hours: float) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        source = made_source(Path(folder) / "session")
        app = TunebotApp(source)
        async with app.run_test(size=(120, 40)) as pilot:
            before, begun = memory_mb(), time.monotonic()
            for count, _ in enumerate(play(source, hours * 3600)):
                if count % 10 == 0:
                    app.refresh_state()
                    await asyncio.sleep(0)
                if count % 600 == 0:
                    await pilot.pause()
            if source.state.launches:
                await app.push_screen(LogScreen(list(source.state.launches)[-1]))
                await pilot.pause()
            after = memory_mb()
        state, took = source.state, time.monotonic() - begun
        print(f"{hours:g} h in {took:.0f} s: {source.version} events, {len(state.launches)} launches, ", end="")
        print(f"{len(state.tasks)} tasks; memory {before:.0f} -> {after:.0f} MB")
        return after <= MEMORY_MB


def memory_mb() -> float:
    """What this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="how long the flood lasts, at each size")
    parser.add_argument("--hours", type=float, default=8.0, help="how long the long session is")
    arguments = parser.parse_args()
    good = [asyncio.run(flood(arguments.seconds, size)) for size in ((120, 40), (80, 24)) if arguments.seconds]
    if arguments.hours:
        good.append(asyncio.run(long_session(arguments.hours)))
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
