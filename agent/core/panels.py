"""What the run screen shows beside the board: header, server, background. Pure values of a state and a moment."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from agent.core.model import Phase
from agent.core.needs import needs_you
from agent.core.state import Launch, LaunchStage, Stage, State, TaskState
from agent.core.views import change_text, command_line, duration, value_text
from agent.playbook.model import MetricName

Tone = Literal["plain", "muted", "good", "bad", "warn", "busy"]
"""How a piece of text is meant. The screen gives each tone a colour; the words say the same without it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUse:
    """What nvidia-smi says of a GPU at the moment. `busy` is a fraction; what a driver does not report is None."""

    index: int
    used_mib: int
    total_mib: int
    busy: float | None = None
    power_w: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderView:
    """The head of the screen. `mark` says what is not as usual: paused, stopping, finished, ended."""

    playbook: str
    host: str
    elapsed: str
    simulated: bool
    incumbent: str
    value: str
    change: str
    needs: str
    mark: str
    tone: Tone


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One phase in the strip of a load: how it stands, and its duration or its count."""

    phase: str
    stands: Literal["passed", "present", "failed", "ahead"]
    detail: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerView:
    """The server lane. `fraction` fills a bar, None means that there is no bar; `note` is the line under it."""

    title: str
    steps: tuple[Step, ...] = ()
    fraction: float | None = None
    status: str = ""
    note: str = ""
    tone: Tone = "plain"
    gpus: tuple[GpuUse, ...] = ()
    gpu_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRow:
    """A background task: what it is about, and what it does or found."""

    glyph: str
    tone: Tone
    kind: str
    experiment: str
    title: str
    text: str
    elapsed: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundView:
    """Running tasks first, then the ended ones, the latest first."""

    title: str
    rows: tuple[TaskRow, ...]


def header_view(state: State, now: float) -> HeaderView:
    """Who, where, how long; the best so far; what needs a person."""
    best = state.experiments[state.incumbent] if state.incumbent else None
    mark, tone = _mark(state)
    return HeaderView(
        playbook=state.playbook.name,
        host=state.host.name,
        elapsed=duration((state.now if state.ending else now) - state.started_at),
        simulated=state.host.simulated,
        incumbent=best.id if best else "",
        value=value_text(state, best) if best else "",
        change=change_text(state, best) if best else "",
        needs=_needs_text(state),
        mark=mark,
        tone=tone,
    )


def _mark(state: State) -> tuple[str, Tone]:
    if state.ending:
        return f"ended: {state.ending}", "muted"
    if state.lost:
        return f"✖ target lost: {state.lost}", "bad"
    if state.interrupted:
        return "■ stopping…", "warn"
    if state.finished and not (state.current and state.current.stage is not LaunchStage.READY):
        return "✔ finished: n adds an experiment, ctrl+q leaves", "good"
    return ("‖ paused: p goes on", "warn") if state.paused else ("", "plain")


def _needs_text(state: State) -> str:
    """`1 now`, `2 in 2:40`, `2`: how many things wait for a person, and when they will hold up the server lane."""
    count = len(needs_you(state))
    if not count or state.ending:
        return ""
    launch = state.current
    ahead = [e for e in state.experiments.values() if e.stage is Stage.TODO and not _waits_for_person(state, e.id)]
    if ahead or any(e.stage is Stage.PREPARING for e in state.experiments.values()):
        return str(count)
    if launch is None or launch.experiment in _ended(state):
        return f"{count} now"
    return f"{count} in {duration(launch.remaining_s)}" if launch.remaining_s else str(count)


def _ended(state: State) -> frozenset[str]:
    return frozenset(e.id for e in state.experiments.values() if e.stage is Stage.ENDED)


def _waits_for_person(state: State, experiment: str) -> bool:
    waiting = {need.experiment for need in needs_you(state)}
    link: str | None = experiment
    while link is not None:
        if link in waiting:
            return True
        link = state.experiments[link].spec.based_on
    return False


def server_view(state: State, now: float, gpus: tuple[GpuUse, ...] = ()) -> ServerView:
    """The launch that holds the server lane, or what the lane waits for."""
    count = len(state.host.gpus)
    launch = state.current
    if launch is None:
        text, tone = _idle(state)
        return ServerView(title="Server", note=text, tone=tone, gpu_count=count)
    fraction, status = _progress(state, launch)
    note, tone = _note(state, launch)
    return ServerView(
        title=f"Server: {launch.experiment} · {launch_name(state, launch)}",
        steps=tuple(_steps(state, launch, now)),
        fraction=fraction,
        status=status,
        note=note,
        tone=tone,
        gpus=gpus,
        gpu_count=count,
    )


def launch_name(state: State, launch: Launch) -> str:
    """`launch 7`: launches are counted in the order of the session."""
    return f"launch {list(state.launches).index(launch.id) + 1}"


def _idle(state: State) -> tuple[str, Tone]:
    """What an empty server lane waits for."""
    preparing = next((e for e in state.experiments.values() if e.stage is Stage.PREPARING), None)
    if state.ending or state.interrupted:
        return "no server is running", "muted"
    if preparing:
        step = preparing.spec.prepare[preparing.prepared]
        count = f"step {preparing.prepared + 1} of {len(preparing.spec.prepare)}"
        return f"prepares {preparing.id}, {count}: {command_line(step.run)}", "busy"
    if state.finished:
        return "every experiment has ended, no server is running", "good"
    if state.paused:
        return "paused: nothing is launched until p", "warn"
    for task in state.tasks.values():
        ahead = state.experiments[task.task.experiment].stage is Stage.TODO
        if task.status is None and (task.task.gpu or (task.task.needed and ahead)):
            return f"waits for a {task.task.kind} of {task.task.experiment}: {task.task.title}", "busy"
    if needs := needs_you(state):
        return f"waits for you: {needs[0].text} (y)", "warn"
    return "nothing is launched", "muted"


def _steps(state: State, launch: Launch, now: float) -> Iterator[Step]:
    marks = [(Phase.LAUNCH, launch.requested_at), *launch.phases]
    loaded = launch.load_s is not None
    end = launch.requested_at + launch.load_s if launch.load_s is not None else now
    ends = [at for _, at in marks[1:]] + [max(end, marks[-1][1])]
    for (phase, at), until in zip(marks[:-1], ends[:-1], strict=True):
        yield Step(phase=str(phase), stands="passed", detail=_short(until - at), seconds=until - at)
    last, seconds = marks[-1][0], ends[-1] - marks[-1][1]
    if launch.failure:
        yield Step(phase=str(last), stands="failed", detail="failed")
    elif loaded:
        yield Step(phase=str(last), stands="passed", detail=_short(seconds), seconds=seconds)
        yield Step(phase="ready", stands="passed", detail=f"after {duration(launch.load_s or 0.0)}", seconds=end)
    else:
        count = f"{launch.done}/{launch.total}" if launch.total else _short(seconds)
        yield Step(phase=str(last), stands="present", detail=count)
        yield from (Step(phase=str(phase), stands="ahead") for phase in _ahead(state, launch))


def _ahead(state: State, launch: Launch) -> list[Phase]:
    """The phases still to come: those of the latest load that got ready, else those that every kind has."""
    order = list(Phase)
    like = [other for other in state.launches.values() if other.load_s and other.config.kind == launch.config.kind]
    usual = [phase for phase, _ in like[-1].phases] if like else [Phase.LOAD_WEIGHTS, Phase.GRAPH_CAPTURE]
    here = order.index(launch.phase)
    return [phase for phase in usual if here < order.index(phase) < order.index(Phase.READY)] + [Phase.READY]


def _short(seconds: float) -> str:
    """`<1s`, `12s` or `6:52`."""
    if seconds < 1:
        return "<1s"
    return f"{seconds:.0f}s" if seconds < 59.5 else duration(seconds)


def _progress(state: State, launch: Launch) -> tuple[float | None, str]:
    """The bar of a launch and the words beside it."""
    match launch.stage:
        case LaunchStage.REQUESTED:
            return None, "is being started"
        case LaunchStage.LOADING:
            left = "no ETA yet" if launch.remaining_s is None else f"{duration(launch.remaining_s)} left"
            if launch.fraction is None:
                return (launch.done or 0) / launch.total if launch.total else 0.0, left
            return launch.fraction, f"{launch.fraction * 100:.0f} %   {left}"
        case LaunchStage.READY | LaunchStage.MEASURING if launch.purpose == "measure":
            total = sum(workload.rounds for workload in state.playbook.workloads)
            done = len(launch.rounds)
            if launch.measuring:
                return done / total, f"measures {launch.measuring[0]}, round {launch.measuring[1] + 1}"
            return done / total, f"{done} of {total} rounds measured"
        case LaunchStage.READY | LaunchStage.MEASURING:
            return None, f"serves at port {launch.port}"
        case LaunchStage.FAILED:
            return None, "failed"
        case _:
            return None, "is being stopped"


METRICS: dict[MetricName, str] = {
    "output_throughput": "tok/s",
    "request_throughput": "req/s",
    "ttft_ms": "ms TTFT",
    "tpot_ms": "ms TPOT",
}


def _note(state: State, launch: Launch) -> tuple[str, Tone]:
    if launch.failure:
        rank = "" if launch.failure.rank is None else f"rank {launch.failure.rank}: "
        return f"✖ {rank}{launch.failure.reason}", "bad"
    if launch.round_error:
        return f"✖ could not be measured: {launch.round_error}", "bad"
    if launch.rounds:
        last = launch.rounds[-1]
        m = last.metrics
        numbers = f"{m.output_throughput:.1f} tok/s · TTFT {m.ttft_ms:.0f} ms · TPOT {m.tpot_ms:.1f} ms"
        return f"{last.workload} round {last.index + 1}: {numbers}", "plain"
    if launch.load_s is not None:
        odd = [f"--{flag.flag} {flag.status}" for flag in launch.flags if flag.status in ("rewritten", "contradicted")]
        return f"flags: {', '.join(odd)}" if odd else "every flag that the server reports is as asked", "muted"
    return (f"pid {launch.pid} · port {launch.port}" if launch.pid else ""), "muted"


def background_view(state: State, now: float) -> BackgroundView:
    """All tasks that were started."""
    tasks = list(state.tasks.values())
    running = [task for task in tasks if task.status is None]
    ended = sorted((t for t in tasks if t.status), key=lambda t: t.ended_at or 0.0, reverse=True)
    words = f"{len(running)} running" + (f", {len(ended)} done" if ended else "")
    if state.measuring:
        words = "quiet while measuring"
    return BackgroundView(title=f"Background ({words})", rows=tuple(_task_row(t, now) for t in (*running, *ended)))


def _task_row(task: TaskState, now: float) -> TaskRow:
    glyph, tone, text = _task_text(task)
    return TaskRow(
        glyph=glyph,
        tone=tone,
        kind=task.task.kind,
        experiment=task.task.experiment,
        title=task.task.title,
        text=text,
        elapsed=duration((now if task.ended_at is None else task.ended_at) - task.started_at),
    )


_OUTCOMES: dict[str, tuple[str, Tone, str]] = {
    "fails": ("✖", "bad", "would fail"),
    "no-effect": ("✖", "bad", "no effect"),
    "fine": ("✔", "good", "fine"),
    "unknown": ("?", "muted", "unknown"),
    "failed": ("✖", "warn", "failed"),
    "timeout": ("!", "warn", "timed out"),
    "needs-key": ("!", "warn", "needs-key"),
    "cancelled": ("-", "muted", "cancelled"),
}


def _task_text(task: TaskState) -> tuple[str, Tone, str]:
    if task.status is None:
        return "◐", "busy", task.action or "running"
    summary = task.finding.summary if task.finding else ""
    outcome = task.finding.outcome if task.finding and task.status == "done" else None
    if task.status == "done" and outcome is None:
        return "✔", "good", summary or "done"
    glyph, tone, word = _OUTCOMES[outcome or task.status]
    return glyph, tone, f"{word}: {summary}" if summary and summary != word else word
