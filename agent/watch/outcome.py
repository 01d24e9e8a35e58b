"""What became of a start: ready, failed, hung, stopped, degraded or still on its way; and by which line."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agent.core.model import Phase
from agent.text import one_line
from agent.watch import cause
from agent.watch.engine import LogEngine
from agent.watch.frames import ORDER, phase_of_frames
from agent.watch.records import Record, record
from agent.watch.traces import Suspect

Outcome = Literal["ready", "failed", "hung", "stopped", "degraded", "in-progress"]

_SURE, _DEADLY = 2.0, 4.0
"""A suspect of this score is a failure by itself (the second, once the server was ready); a lighter one needs another
sign of an end."""
_TERMINATED = (-15, 143)

_DIED = re.compile(r"(?:Rank (\d+) scheduler died during initialization|Worker proc \S*?(\d*) died unexpectedly)")
_EXIT_CODE = re.compile(r"exit(?:ed with)? ?code:? (-?\d+)")
_LOST_PEER = re.compile(r"Connection (?:closed|reset) by (?:peer|remote)|remote process exited|recv returned 0")
_KILLED = re.compile(r"(?:^|\d |: )Killed\b")
_BUSY = re.compile(r"\d+% ?(?:Completed)? ?\|")

LOOK_OUTSIDE = (
    "the exit code of each process, and dmesg -T (OOM killer, Xid, segfault)",
    "the start again with NCCL_DEBUG=WARN and PYTHONFAULTHANDLER=1",
    "the log of the other nodes, from the same second",
)
LOOK_FOR_HANG = (
    "py-spy dump of every rank: the odd one out is the cause",
    "the start again with NCCL_DEBUG=INFO; NCCL_P2P_DISABLE=1, NCCL_SOCKET_IFNAME",
    "the other nodes' logs; state and CPU time of the ranks (ps -eLo pid,stat,time,wchan)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """The answer about one log. `root` is the line that names the cause, `aside` what was taken for none and why."""

    outcome: Outcome
    category: str
    phase: Phase
    reason: str
    rank: int | None = None
    root: Record | None = None
    near: tuple[Record, ...] = ()
    was_ready: bool = False
    means: str = ""
    remedies: tuple[str, ...] = ()
    aside: tuple[tuple[Record, str], ...] = ()


def conclude(engine: LogEngine, exit_code: int | None = None, *, by_us: bool = False) -> Diagnosis:
    """The diagnosis of what was read so far. `by_us`: tunebot itself stopped the server, so its end says nothing."""
    ready = engine.tracker.is_up
    judged = [_judge(engine, suspect, ready) for suspect in engine.suspects]
    after = [one for one in judged if engine.ready_at is None or one.suspect.line.number >= engine.ready_at]
    best = cause.choose(after if ready else judged)
    dead = _death(engine, ready)
    if not by_us:
        exited = exit_code not in (None, 0, *_TERMINATED)
        if best is not None and (dead is not None or exited or best.score >= (_DEADLY if ready else _SURE)):
            return _failed(engine, best, judged, ready)
        ended = dead is not None or (exited and "own-kill" not in engine.seen)
        if ended and ("stops" not in engine.seen or (dead is not None and not _asked_to_stop(engine, dead))):
            return _without_cause(engine, judged, exit_code, dead, ready)
    return _no_failure(engine, judged, exit_code, ready, by_us)


def _judge(engine: LogEngine, suspect: Suspect, ready: bool) -> cause.Judged:
    phase = suspect.phase
    went_on = engine.tracker.passed.get(suspect.line.writer, 0) > suspect.marks
    return cause.judge(suspect, phase, went_on=went_on, was_ready=ready and phase in (Phase.READY, Phase.SERVING))


def _failed(engine: LogEngine, best: cause.Judged, judged: Sequence[cause.Judged], ready: bool) -> Diagnosis:
    seen = best.suspect.phase
    if ORDER[seen] <= ORDER[Phase.IMPORT] and not best.suspect.frames:  # an excerpt without marks: others' stacks tell
        told = (phase_of_frames(one.suspect.frames) for one in judged)
        seen = next((phase for phase in told if phase is not None), seen)
    phase = cause.phase_of(best, Phase.SERVING if seen is Phase.READY else seen)
    category = cause.category_of(best, phase)
    if category == "port-in-use":
        phase, ready = Phase.HTTP_START, False
    fault = best.fault
    return Diagnosis(
        outcome="hung" if category == "hang-watchdog" else "failed",
        category=category,
        phase=phase,
        reason=cause.reason_of(best, phase),
        rank=cause.rank_of(best, _around(engine, best.suspect.line)),
        root=best.root,
        near=(best.suspect.line,) if best.root is not best.suspect.line else (),
        was_ready=ready or phase is Phase.SERVING,
        means=fault.means if fault is not None else "",
        remedies=fault.remedies if fault is not None else (),
        aside=_aside(judged, best.root),
    )


def _around(engine: LogEngine, line: Record) -> list[Record]:
    return [one.line for one in engine.suspects if one.line.number >= line.number] + [
        seen.first for seen in engine.seen.values()
    ]


def _aside(judged: Sequence[cause.Judged], root: Record | None) -> tuple[tuple[Record, str], ...]:
    """What was taken for no cause; several suspects may have theirs in the line of the `root`."""
    others = [one for one in judged if root is None or one.root.number != root.number]
    return tuple((one.root, one.aside or "later than the cause, or less telling") for one in others)[:20]


def _death(engine: LogEngine, ready: bool) -> Record | None:
    """A line that proves the end of the server (after it was ready, if it was)."""
    for kind in ("deaths", "fatal"):
        seen = engine.seen.get(kind)
        if seen is not None and (not ready or engine.ready_at is None or seen.last.number >= engine.ready_at):
            return seen.first if not ready else seen.last
    return None


def _asked_to_stop(engine: LogEngine, dead: Record) -> bool:
    return engine.seen["stops"].first.number <= dead.number


def _without_cause(
    engine: LogEngine, judged: Sequence[cause.Judged], exit_code: int | None, dead: Record | None, ready: bool
) -> Diagnosis:
    """The log names no cause: say what it does say, and where to look."""
    phase = Phase.SERVING if ready else engine.tracker.phase
    rank: int | None = None
    category = "root-not-in-log"
    lines = [one.suspect.line for one in judged]
    line = next((row for row in lines if _DIED.search(row.message)), None)
    if line is not None and (died := _DIED.search(line.message)):
        rank = int(died[1] or died[2] or 0)
        code = _EXIT_CODE.search(line.message)
        with_code = f" (exit code {code[1]})" if code else ""
        reason = f"rank {rank} died without a word{with_code}: killed from outside, or by the kernel (dmesg)"
    elif left := next((one.suspect for one in judged if _LOST_PEER.search(one.suspect.text)), None):
        line = left.line
        others = set(engine.ranks) - {left.rank}
        rank = others.pop() if len(others) == 1 else None
        who = "another rank" if rank is None else f"rank {rank}"
        reason = f"{who} died without a word; this one only lost its connection"
    elif dead is not None and _KILLED.search(dead.message):
        line, category = dead, "host-oom-kill"
        reason = "killed from outside: most often the kernel's OOM killer (dmesg)"
    elif dead is not None:
        line = lines[0] if lines else dead
        reason = f"a process died and the log does not say why: {line.message.strip()}"
    else:
        last = engine.last_lines()
        said = f"last line: {record(0, last[-1]).message}" if last else "it wrote nothing"
        killed = f"killed (exit code {exit_code}) from outside, or by the kernel (dmesg)"
        reason = f"{killed if exit_code in (-9, 137) else f'exited with code {exit_code}'}; {said}"
    return Diagnosis(
        outcome="failed", category=category, phase=phase, reason=one_line(reason), rank=rank, root=line,
        was_ready=ready, means="The log does not name the cause.", remedies=LOOK_OUTSIDE, aside=_aside(judged, line),
    )  # fmt: skip


def _no_failure(
    engine: LogEngine, judged: Sequence[cause.Judged], exit_code: int | None, ready: bool, by_us: bool
) -> Diagnosis:
    phase = engine.tracker.phase
    aside = _aside(judged, None)
    stopped = exit_code in _TERMINATED or "stops" in engine.seen or (not ready and "leaked" in engine.seen)
    if stopped and not by_us:
        phase = Phase.SERVING if ready else phase
        reason = f"stopped from outside (SIGTERM) {'while serving' if ready else f'in {phase}'}"
        return Diagnosis(outcome="stopped", category="none", phase=phase, reason=reason, was_ready=ready, aside=aside)
    if ready and "degraded" in engine.seen:
        row = engine.seen["degraded"].first
        category = "weights-name-mismatch" if "initialized" in row.message else "kernel-runtime"
        reason = one_line(f"up, but its output is wrong: {row.message}")
        return Diagnosis(
            outcome="degraded",
            category=category,
            phase=Phase.SERVING,
            reason=reason,
            root=row,
            was_ready=True,
            aside=aside,
        )
    if ready:
        return Diagnosis(
            outcome="ready", category="none", phase=Phase.READY, reason="ready", was_ready=True, aside=aside
        )
    return _unfinished(engine, phase, aside)


def _unfinished(engine: LogEngine, phase: Phase, aside: tuple[tuple[Record, str], ...]) -> Diagnosis:
    """A log that just ends: still on its way where it was moving, else stuck where nothing lasts long."""
    bar = engine.tracker.bar
    moving = bar is not None and 0 < bar[0] < bar[1]
    early = ORDER[phase] < ORDER[Phase.DIST_INIT]
    if "waiting" not in engine.seen and (moving or early):
        shown = f", {bar[0]} of {bar[1]}" if bar is not None else ""
        return Diagnosis(
            outcome="in-progress", category="none", phase=phase, reason=f"still in {phase}{shown}", aside=aside
        )
    last = engine.last_lines()
    said = record(0, last[-1]).message.strip() if last else ""
    return Diagnosis(
        outcome="hung", category="hang-silent", phase=phase, aside=aside, remedies=LOOK_FOR_HANG,
        reason=one_line(f"nothing more after {phase} began; last line: {said}"),
        means="The log stops without an end: some rank waits for something that never comes.",
    )  # fmt: skip
