"""What the run screen shows of the session and its server lane. Pure values of a state and a moment."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from agent.core.model import Phase
from agent.core.needs import Approval, needs
from agent.core.plan import lineage
from agent.core.smoke import is_dummy
from agent.core.state import Launch, LaunchStage, Stage, State
from agent.core.views.basics import SMOKE_LOAD, change_text, command_line, duration, value_text
from agent.core.views.flags import command_of
from agent.core.views.numbers import doubts_text
from agent.core.views.usual import slow_now

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
    """The head of the screen. `mark` says what is not as usual: paused, stopping, finished, ended.

    `role` is how the screen stands to a session of another process, such as read-only; empty in one of its own.
    """

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
    role: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One phase in the strip of a load: how it stands, its duration or count in words, the seconds it took (before)."""

    phase: str
    stands: Literal["passed", "present", "failed", "ahead"]
    detail: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerView:
    """The server lane. `fraction` fills a bar, None means that there is no bar; `note` is the line under it, and
    `more` what there is to read where nothing runs."""

    title: str
    steps: tuple[Step, ...] = ()
    fraction: float | None = None
    status: str = ""
    note: str = ""
    tone: Tone = "plain"
    more: str = ""
    gpus: tuple[GpuUse, ...] = ()


def header_view(state: State, now: float) -> HeaderView:
    """Who, where, how long; the best so far; what needs a person."""
    best = state.experiments[state.incumbent] if state.incumbent else None
    mark, tone = _mark(state, now)
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


def _mark(state: State, now: float) -> tuple[str, Tone]:
    if state.ending:
        return f"ended: {state.ending}", "muted"
    if state.lost:
        return f"✖ target lost: {state.lost}", "bad"
    if state.interrupted:
        return "■ stopping…", "warn"
    if state.unreachable_since is not None:
        return f"✖ unreachable for {duration(now - state.unreachable_since)}", "bad"
    if state.finished and not (state.current and state.current.stage is not LaunchStage.READY):
        return "✔ finished: n adds, ^q leaves", "good"
    return ("‖ paused: p goes on", "warn") if state.paused else ("", "plain")


def _needs_text(state: State) -> str:
    """`1 now`, `2 in 2:40`, `2`: how many things wait for a person, and when they will hold up the server lane."""
    count = len(needs(state))
    launch = state.current
    if not count or not _waits_for_approval(state):
        return str(count or "")
    if launch is None or state.experiments[launch.experiment].stage is Stage.ENDED:
        return f"{count} now"
    return f"{count} in {duration(launch.remaining_s)}" if launch.remaining_s else str(count)


def _waits_for_approval(state: State) -> tuple[str, ...]:
    """The experiments that need approval, once nothing else is ahead of the server lane."""
    missing = dict.fromkeys(need.experiment for need in needs(state) if isinstance(need, Approval))
    ahead = (e.id for e in state.experiments.values() if e.stage in (Stage.TODO, Stage.PREPARING))
    if any(missing.keys().isdisjoint(link.id for link in lineage(state.experiments, name)) for name in ahead):
        return ()
    return tuple(missing)


def server_view(state: State, now: float, gpus: tuple[GpuUse, ...] = ()) -> ServerView:
    """The launch that holds the server lane, or what the lane waits for."""
    launch = state.current
    if launch is None:
        text, tone = _idle(state)
        best = f"The best: {command_of(state, state.incumbent)}" if state.finished and state.incumbent else ""
        return ServerView(title="Server", note=text, tone=tone, more=best)
    fraction, status = _progress(state, launch)
    note, tone = _note(state, launch)
    smoke = f" · {SMOKE_LOAD}" if launch.purpose == "smoke" else ""
    if slow := slow_now(state, launch, now):
        note, tone = f"! {slow[0]}", "warn"
    if launch.stage is LaunchStage.READY and state.experiments[launch.experiment].stage is Stage.ENDED:
        note, tone = _idle(state)  # it only stays up until the lane is needed again
    return ServerView(
        title=f"Server: {launch.experiment} · {launch_name(state, launch)}{smoke}",
        steps=tuple(_steps(state, launch, now)),
        fraction=fraction,
        status=status,
        note=note,
        tone=tone,
        gpus=gpus,
    )


def launch_name(state: State, launch: Launch) -> str:
    """`launch 7`: launches are counted in the order of the session."""
    return f"launch {list(state.launches).index(launch.id) + 1}"


def _idle(state: State) -> tuple[str, Tone]:
    """What an empty server lane waits for."""
    preparing = next((e for e in state.experiments.values() if e.stage is Stage.PREPARING), None)
    if state.ending or state.interrupted:
        return "nothing more is launched", "muted"
    if preparing:
        step = preparing.spec.prepare[preparing.prepared]
        count = f"step {preparing.prepared + 1} of {len(preparing.spec.prepare)}"
        return f"prepares {preparing.id}, {count}: {command_line(step.run)}", "busy"
    if state.finished:
        return "every experiment has ended: n adds one, ctrl+q leaves", "good"
    if state.paused:
        return "paused: nothing is launched until p", "warn"
    for task in state.tasks.values():
        ahead = state.experiments[task.task.experiment].stage is Stage.TODO
        if task.status is None and (task.task.gpu or (task.task.needed and ahead)):
            return f"waits for a {task.task.kind} of {task.task.experiment}: {task.task.title}", "busy"
    if missing := _waits_for_approval(state):
        return f"waits for your approval of {', '.join(missing)}: y", "warn"
    return ("nothing is in line" if state.launches else "nothing was launched yet"), "muted"


def _steps(state: State, launch: Launch, now: float) -> Iterator[Step]:
    marks = [(Phase.LAUNCH, launch.requested_at), *launch.phases]
    loaded = launch.load_s is not None
    end = launch.requested_at + launch.load_s if launch.load_s is not None else now
    ends = [at for _, at in marks[1:]] + [max(end, marks[-1][1])]
    for (phase, at), until in zip(marks[:-1], ends[:-1], strict=True):
        yield Step(phase=str(phase), stands="passed", detail=short_duration(until - at), seconds=until - at)
    last, seconds = marks[-1][0], ends[-1] - marks[-1][1]
    if launch.failure:
        yield Step(phase=str(last), stands="failed", detail="failed")
    elif loaded:
        yield Step(phase=str(last), stands="passed", detail=short_duration(seconds), seconds=seconds)
        yield Step(phase="ready", stands="passed", detail=f"after {duration(launch.load_s or 0.0)}", seconds=end)
    else:
        count = f"{launch.done}/{launch.total}" if launch.total else short_duration(seconds)
        slow = slow_now(state, launch, now)
        mark = f" !slow {slow[1]:.1f}x" if slow else ""
        yield Step(phase=str(last), stands="present", detail=count + mark)
        yield from _ahead(state, launch)


def _ahead(state: State, launch: Launch) -> Iterator[Step]:
    """The phases still to come, as the latest load that got ready had them; else those that every kind has."""
    order = list(Phase)
    usual: dict[Phase, float] = {Phase.LOAD_WEIGHTS: 0.0, Phase.GRAPH_CAPTURE: 0.0}
    for other in state.launches.values():
        alike = (other.config.kind, is_dummy(other.config)) == (launch.config.kind, is_dummy(launch.config))
        if other.load_s is not None and other.phases and alike:
            ends = [at for _, at in other.phases[1:]] + [other.phases[-1][1]]
            usual = {phase: end - at for (phase, at), end in zip(other.phases, ends, strict=True)}
    if launch.phase is Phase.READY:  # so says its log; that it answers is being found out
        return
    for phase, seconds in usual.items():
        if order.index(launch.phase) < order.index(phase) < order.index(Phase.READY):
            yield Step(phase=str(phase), stands="ahead", seconds=seconds)
    yield Step(phase="ready", stands="ahead")


def short_duration(seconds: float) -> str:
    """`<1s`, `12s` or `6:52`."""
    if seconds < 1:
        return "<1s"
    return f"{seconds:.0f}s" if seconds < 59.5 else duration(seconds)


def _progress(state: State, launch: Launch) -> tuple[float | None, str]:
    """The bar of a launch and the words beside it."""
    match launch.stage:
        case LaunchStage.REQUESTED:
            return None, "is being attached to" if launch.purpose == "attach" else "is being started"
        case LaunchStage.LOADING:
            if launch.phase is Phase.READY:
                return 1.0, "must answer once"
            left = "no ETA yet" if launch.remaining_s is None else f"{duration(launch.remaining_s)} left"
            if launch.fraction is None:
                return (launch.done or 0) / launch.total if launch.total else 0.0, left
            return launch.fraction, f"{launch.fraction * 100:.0f} %   {left}"
        case LaunchStage.READY if launch.purpose == "smoke":
            return 1.0, "it starts"
        case LaunchStage.READY | LaunchStage.MEASURING if launch.purpose != "serve":
            total = sum(workload.rounds for workload in state.playbook.workloads)
            done = len(launch.rounds)
            if launch.measuring:
                again = " again" if launch.repeats else ""
                return done / total, f"measures {launch.measuring[0]}, round {launch.measuring[1] + 1}{again}"
            return done / total, f"{done} of {total} rounds measured"
        case LaunchStage.READY | LaunchStage.MEASURING:
            return None, f"serves at port {launch.port}"
        case LaunchStage.FAILED:
            return None, "failed"
        case _:
            return None, "is let go" if launch.purpose == "attach" else "is being stopped"


def _note(state: State, launch: Launch) -> tuple[str, Tone]:
    if launch.failure:
        rank = "" if launch.failure.rank is None else f"rank {launch.failure.rank}: "
        return f"✖ {rank}{launch.failure.reason}", "bad"
    if launch.round_error:
        return f"✖ could not be measured: {launch.round_error}", "bad"
    if again := launch.repeats:
        return f"! {again.workload} round {again.index + 1} was spoilt: {again.metrics.not_comparable}", "warn"
    if launch.rounds:
        last = launch.rounds[-1]
        m = last.metrics
        numbers = f"{m.output_throughput:.1f} tok/s · TTFT {m.ttft_ms:.0f} ms · TPOT {m.tpot_ms:.1f} ms"
        doubts = doubts_text(m)
        tone: Tone = "bad" if m.not_comparable else "plain"
        return f"{last.workload} round {last.index + 1}: {numbers}{' · ' + doubts if doubts else ''}", tone
    if launch.load_s is not None:
        odd = [f"--{flag.flag} {flag.status}" for flag in launch.flags if flag.status in ("rewritten", "contradicted")]
        return f"flags: {', '.join(odd)}" if odd else "every flag that the server reports is as asked", "muted"
    if launch.port is None:
        return "", "muted"
    return (f"pid {launch.pid} · port {launch.port}" if launch.pid else f"port {launch.port}, not ours"), "muted"
