"""A rank of the simulated server: one process that logs its phases, holds GPU memory, and can die or hang.

The launcher starts it as a fresh interpreter and talks JSON lines: the plan arrives on stdin, then `go` after each
phase (a barrier, as collectives are), later lines to log. Rank 0 is the first in every phase: the others wait for
`begin`, so that their lines come behind its bar however busy the machine is. The rank answers on the shared status
pipe. End of file on stdin means that the launcher is gone.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time

from agent.sim import procs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

EIGHTHS = " ▏▎▍▌▋▊▉"


class LauncherGoneError(Exception):
    """The launcher closed its end."""


class Control:
    """The launcher's messages, read from stdin without losing time."""

    def __init__(self) -> None:
        self.buffer = b""

    def next(self, deadline: float | None) -> Any:
        """The next message, or None once the deadline (monotonic seconds) has passed."""
        while b"\n" not in self.buffer:
            wait = None if deadline is None else max(0.0, deadline - time.monotonic())
            if not select.select([0], [], [], wait)[0]:
                return None
            data = os.read(0, 65536)
            if not data:
                raise LauncherGoneError
            self.buffer += data
        line, _, self.buffer = self.buffer.partition(b"\n")
        return json.loads(line)


class Rank:
    """The life of one rank, as its plan says."""

    def __init__(self, control: Control, plan: dict[str, Any]) -> None:
        self.control = control
        self.plan = plan
        self.prefix: str = plan["prefix"]
        self.gpu_mib = 0.0
        self.gone = 0
        self.begun = 0
        self.begins: list[float] = []

    def log(self, text: str) -> None:
        """Write one log line of this rank."""
        procs.write_all(2, f"{procs.stamp(self.prefix)} {text}\n")

    def wait(self, deadline: float) -> None:
        """Sleep till the deadline; a `go` that arrives meanwhile counts."""
        while (message := self.control.next(deadline)) is not None:
            self.take(message)

    def take(self, message: dict[str, Any]) -> None:
        """Handle one message of the launcher."""
        if "go" in message:
            self.gone = max(self.gone, message["go"])
        elif "begin" in message:
            self.begun = message["begin"]
        elif "log" in message:
            self.log(message["log"])
        elif "crash" in message:
            self.crash(message["crash"])

    def crash(self, text: str) -> None:
        """Log a traceback and tell the launcher, as a failing scheduler does."""
        self.log(f"Scheduler hit an exception: {text}")
        os.kill(self.plan["launcher"], signal.SIGQUIT)

    def tell(self, **message: Any) -> None:
        """Tell the launcher something on the status pipe."""
        os.write(self.plan["status"], json.dumps({"rank": self.plan["rank"], **message}).encode() + b"\n")

    def use_memory(self, mib: float) -> None:
        """Hold this much GPU memory from now on."""
        if self.plan["gpu"] is not None and mib != self.gpu_mib:
            self.gpu_mib = mib
            procs.write_gpu_state(self.plan["gpu_folder"], self.plan["gpu"], mib, self.plan["launcher"])

    def run(self) -> None:
        """All phases, then messages until the launcher is gone."""
        for number, step in enumerate(self.plan["steps"], 1):
            while self.plan["rank"] and self.begun < number:
                self.take(self.control.next(None))
            self.step(number, step)
            self.tell(done=number)
            while self.gone < number:
                self.take(self.control.next(None))
        while True:
            self.take(self.control.next(None))

    def step(self, number: int, step: dict[str, Any]) -> None:
        """The phase of that number: its first lines, its time with bar and memory, its last lines; or its failure."""
        self.wait(time.monotonic() + step["lag"])
        begin, began = time.monotonic(), time.time()
        self.begins.append(begin)
        for line in step["begin"]:
            self.log(line)
        if step["jit"]:
            self.compile(step["jit"])
        if step["bar"]:
            draw(step["bar"], 0, 0.0)
        if self.plan["rank"] == 0:
            self.tell(begun=number)
        self.progress(step, begin, begin + step["seconds"] * step["until"])
        if step["hang"]:
            while True:
                self.take(self.control.next(None))
        if step["fail"]:
            self.fail(step["fail"])
        for line in step["end"]:
            self.log(line.replace("{elapsed}", f"{time.monotonic() - self.begins[-1 - step['since']]:.2f}"))
        if self.plan["rank"] == 0:
            times = {"launcher": self.plan["launcher"], "start": began, "end": time.time()}
            procs.append(self.plan["ledger"], "phase", phase=step["phase"], **times)

    def progress(self, step: dict[str, Any], begin: float, end: float) -> None:
        """Pass the time of a phase: grow the memory and draw on the bar of rank 0."""
        bar = step["bar"]
        low, high = step["memory"] or (self.gpu_mib, self.gpu_mib)
        total = bar["total"] if bar else (8 if high != low else 1)
        for count in range(1, total + 1):
            moment = begin + step["seconds"] * count / total
            if moment > end + 1e-9:
                break
            self.wait(moment)
            self.use_memory(low + (high - low) * count / total)
            if bar:
                draw(bar, count, time.monotonic() - begin)
        self.wait(end)
        if bar and end >= begin + step["seconds"]:
            procs.write_all(2, "\n")

    def fail(self, fail: dict[str, Any]) -> None:
        """Die as the world says; after a traceback a rank lives on until it is killed."""
        for line in fail["before"]:
            self.log(line)
        if fail["signal"]:
            os.kill(os.getpid(), fail["signal"])
        self.crash(fail["text"])
        self.tell(failed=True)
        while True:
            self.control.next(None)

    def compile(self, seconds: float) -> None:
        """Run a compiler that outlives the rank, as ninja does; it ends by itself."""
        code = (
            "import sys,time;sys.path.insert(0,sys.argv[1]);from agent.sim.procs import set_title;s=float(sys.argv[2]);"
            "set_title('ninja -v -f build.ninja');time.sleep(s)"
        )
        command = [sys.executable, "-I", "-S", "-c", code, sys.path[0], str(seconds), " " * 40]
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)


def draw(bar: dict[str, Any], count: int, elapsed: float) -> None:
    """Redraw a progress bar with a bare carriage return, as tqdm does on a pipe."""
    total, rate = bar["total"], count / elapsed if elapsed > 0 else 0.0
    speed = "?it/s" if not count else f"{rate:5.2f}it/s" if rate >= 1 else f"{1 / rate:5.2f}s/it"
    left = clock((total - count) / rate) if count else "?"
    times = f"{count}/{total} [{clock(elapsed)}<{left}, {speed}]"
    if bar["style"] == "shards":
        text = f"\r{bar['desc']}: {100 * count / total:3.0f}% Completed | {times}" + ("\n" if bar["newline"] else "")
        procs.write_all(2, text if count < total else text * 2)
        return
    names = bar["items"]
    full, part = divmod(80 * count // total, 8)
    blocks = ("█" * full + (EIGHTHS[part] if part else "")).ljust(10)
    percent = f"{100 * count / total:3.0f}%|{blocks}| {times}"
    shown = [names[max(0, count - 1)], names[count]] if count < total else [names[count - 1]]
    start = f"\r  0%|{blocks}| {times}" if not count else ""
    shown = shown[1:] if not count else shown
    procs.write_all(2, start + "".join(f"\r{bar['desc']} ({name}): {percent}" for name in shown))


def clock(seconds: float) -> str:
    """Minutes and seconds as tqdm writes them."""
    return f"{int(seconds) // 60:02d}:{int(seconds) % 60:02d}"


def main() -> None:
    """Entry of a rank and of the detokenizer (a rank without phases)."""
    control = Control()
    plan = control.next(None)
    if plan["pdeathsig"]:
        procs.die_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    procs.set_title(plan["title"])
    start = procs.start_time("self")
    procs.append(plan["ledger"], "rank_start", title=plan["title"], start=start, launcher=plan["launcher"])
    try:
        Rank(control, plan).run()
    except LauncherGoneError:
        if not plan["pdeathsig"]:
            time.sleep(plan["orphan_limit_s"])
        procs.append(plan["ledger"], "rank_end", title=plan["title"])
