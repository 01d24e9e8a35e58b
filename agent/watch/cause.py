"""The one line that names why a launch failed.

A start, by plain rules: the earliest exception that names a fault we know, else the earliest that is not known to
follow from another one.
"""

import re
from collections import deque
from collections.abc import Iterable, Sequence

from agent.core.model import Failure, Phase, Quote
from agent.text import one_line
from agent.watch.categories import category_of, not_before
from agent.watch.lines import Line, origin
from agent.watch.traces import Suspect, suspects

_KEPT = 2000
_LOG = "server.log"
_NOISE = ("Decode batch", "Prefill batch", ' HTTP/1.1" ', " throughput: ")
_BAR_ENDS = ("it/s]", "s/it]")

_FOLLOWS = re.compile(
    r"other ranks that didn't|Broken pipe|Connection (reset|refused)|EOFError|BrokenPipeError|ConnectionRefusedError"
    r"|remote error|CancelledError|KeyboardInterrupt|SystemExit|EngineDeadError|leaked (semaphore|shared_memory)"
    r"|Exception ignored|destroy_process_group|Executor failed"
)
_WRAPS = re.compile(
    r"Engine core initialization failed|Engine process failed|EngineCore (failed|encountered)|WorkerProc (init|failed)"
    r"|worker died|ActorDied|See stack trace|root cause|unhandled (system|cuda) error"
    r"|terminate called|Initialization failed|JSONDecodeError|[Ww]atchdog timeout \(self\."
)
_LOST_PEER = re.compile(r"Connection closed by peer|Connection reset by peer|NCCL communicator was aborted")
_DIED = re.compile(
    r"(?:Rank (\d+) scheduler died during initialization|Worker proc \S*?(\d*) died unexpectedly) \(exit code: (\S+?)\)"
)
_SIGQUIT = re.compile(r"[Rr]eceived sigquit from a child|SIGQUIT received")
_SIGTERM = re.compile(r"SIGTERM received|trigger received signal=SIGTERM")
_OWN_KILL = re.compile(r"kill_process_tree called")  # SGLang ends each failure, and each stop, by SIGKILL of itself
_TEARDOWN = re.compile(r"resource_tracker|warnings\.warn|nanobind|leaked |kill_process_tree called")
_ANNOUNCES = re.compile(r"\d validation errors? for|failed: ?$|error: ?$")
_INNER = re.compile(r"(?:\w+: )?Capture cuda graph failed: ")

# Functions whose frame tells the phase, where the log's own marks are behind it.
_FRAME_PHASES = (
    (re.compile(r"event_loop|forward_thread_func|run_busy_loop"), Phase.SERVING),
    (re.compile(r"graph_runner\w*\.py|capture"), Phase.GRAPH_CAPTURE),
    (re.compile(r"alloc_memory_pool|init_memory_pool|determine_available_memory|initialize_cache"), Phase.KV_CACHE),
    (re.compile(r" load_model$"), Phase.LOAD_WEIGHTS),
    (re.compile(r"init_torch_distributed|init_distributed|init_device$"), Phase.DIST_INIT),
    (re.compile(r"server_args\.py:\d+ (?!prepare|from_cli)|create_engine_config|model_config"), Phase.CONFIG),
)
_ORDER = list(Phase)


class Evidence:
    """The lines of a log that a diagnosis needs: the first and the last 2,000 that are no progress or routine."""

    def __init__(self) -> None:
        self._first: list[Line] = []
        self._last: deque[Line] = deque(maxlen=_KEPT)

    def add(self, line: Line) -> None:
        """Keep a line, unless it is routine."""
        text = line.text
        if text.endswith(_BAR_ENDS):
            return
        for word in _NOISE:
            if word in text:
                return
        (self._first if len(self._first) < _KEPT else self._last).append(line)

    def lines(self) -> list[Line]:
        """What was kept, in the order of the log."""
        return [*self._first, *self._last]


def diagnose(lines: Sequence[Line], exit_code: int | None, phase: Phase, stopped_by_us: bool) -> Failure:
    """Why the launch failed: one line for the board, its kind, and the lines that show it."""
    if phase is Phase.READY:
        phase = Phase.SERVING
    if stopped_by_us:
        return Failure(phase=phase, reason="stopped by tunebot", category="none", exit_code=exit_code)
    found = list(suspects(lines))
    best = max(found, key=lambda suspect: (_weight(suspect, phase), -suspect.line.number), default=None)
    if best is None or _weight(best, phase) == 0:
        return _without_cause(lines, exit_code, phase)
    if any(_INNER.match(suspect.text) for suspect in found):
        phase = _later(phase, Phase.GRAPH_CAPTURE)
    return _failure(best, exit_code, phase)


def _weight(suspect: Suspect, phase: Phase) -> int:
    """How likely a line is to name the cause; among equals the earliest does."""
    start = suspect.text[:200]
    if _FOLLOWS.search(start) or _LOST_PEER.search(start) or _DIED.search(start):
        return 0
    if _WRAPS.search(start):
        return 1
    if _INNER.match(suspect.text):
        return 2
    return 4 if category_of(_said(suspect), phase) else 3


def _said(suspect: Suspect) -> str:
    """Everything that may tell the kind of fault: the line, what stands below it, the place that raised it."""
    source = suspect.source.text.strip() if suspect.source is not None and _is_bare(suspect) else ""
    place = suspect.frames[-1].rpartition("/")[2] if suspect.frames else ""
    return " ".join([suspect.text[:300], *(line.text for line in suspect.below), source, place])


def _is_bare(suspect: Suspect) -> bool:
    """An exception without a message of its own: `AssertionError`, `KeyError: 12`."""
    return len(suspect.text.partition(":")[2]) < 8


def _failure(best: Suspect, exit_code: int | None, phase: Phase) -> Failure:
    phase = _phase(best, phase)
    category = category_of(_said(best), phase) or _unknown(best, phase)
    phase = _later(phase, not_before(category))
    if category == "cli-arguments" and best.native and ": error: " in best.text:
        phase = Phase.ARGS
    root, reason = best.line, _INNER.sub("", best.text)
    if best.source is not None and best.text.startswith("AssertionError") and _is_bare(best):
        root, reason = best.source, best.source.text.strip()
    elif best.below and _ANNOUNCES.search(best.text):
        root, reason = best.below[0], best.below[0].text.strip()
    if root is best.line and _is_bare(best) and best.frames:
        reason = f"{reason} ({best.frames[-1].rpartition('/')[2]})"
    evidence = [best.line] if root is best.line else [root, best.line]
    return Failure(
        phase=phase,
        reason=one_line(reason),
        category=category,
        evidence=tuple(_quote(line) for line in evidence),
        rank=best.rank,
        exit_code=exit_code,
    )


def _unknown(best: Suspect, phase: Phase) -> str:
    if phase is Phase.IMPORT:
        return "import-error"
    return "model-runtime-assert" if best.text.startswith("AssertionError") else "unknown"


def _phase(best: Suspect, phase: Phase) -> Phase:
    """The phase of the watch, or the later one that the frames of the traceback tell."""
    if phase is Phase.IMPORT and sum(frame.endswith(" <module>") for frame in best.frames) > 2:
        return phase  # modules import each other: whatever their files are called, nothing runs yet
    if phase is Phase.WARMUP:
        return phase
    for pattern, told in _FRAME_PHASES:
        if any(pattern.search(frame) for frame in best.frames):
            return _later(phase, told)
    return phase


def _later(one: Phase, other: Phase) -> Phase:
    return max(one, other, key=_ORDER.index)


def _without_cause(lines: Sequence[Line], exit_code: int | None, phase: Phase) -> Failure:
    """The log names no cause: say what it does say."""
    rank: int | None = None
    if (line := _find(lines, _DIED)) and (died := _DIED.search(line.text)):
        rank = int(died[1] or died[2] or 0)
        reason = f"rank {rank} died without a word (exit code {died[3]}): killed from outside, or by the kernel (dmesg)"
    elif line := _find(lines, _LOST_PEER):
        reason = "another rank died without a word; this one only lost its connection"
    elif line := _find(lines, _SIGQUIT):
        reason = "a child process died without a word: see dmesg and the core dumps"
    else:
        return _ended(lines, exit_code, phase)
    return Failure(
        phase=phase, reason=reason, category="root-not-in-log", evidence=(_quote(line),), rank=rank, exit_code=exit_code
    )


def _ended(lines: Sequence[Line], exit_code: int | None, phase: Phase) -> Failure:
    last = next((line for line in reversed(lines) if not _TEARDOWN.search(line.text)), None)
    said = "it wrote nothing" if last is None else f"last line: {origin(last.text).message}"
    category = "root-not-in-log"
    if exit_code in (-15, 143) or _find(lines, _SIGTERM):
        reason, category = "stopped from outside (SIGTERM)", "none"
    elif exit_code in (-9, 137) and not _find(lines, _OWN_KILL):
        reason = f"killed (exit code {exit_code}) from outside, or by the kernel (dmesg); {said}"
    else:
        reason = f"gave up; {said}" if exit_code is None else f"exited with code {exit_code}; {said}"
    return Failure(
        phase=phase,
        reason=one_line(reason),
        category=category,
        evidence=(_quote(last),) if last is not None else (),
        exit_code=exit_code,
    )


def _find(lines: Iterable[Line], pattern: re.Pattern[str]) -> Line | None:
    return next((line for line in lines if pattern.search(line.text)), None)


def _quote(line: Line) -> Quote:
    return Quote(path=_LOG, line=line.number, text=one_line(line.text, 500))
