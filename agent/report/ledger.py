"""The ledger: what the time went into, what checks saved, what was researched meanwhile and what that cost."""

from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from agent.core.saved import paid_loads, saved_loads
from agent.core.state import ExperimentState, Launch, State
from agent.core.terms import set_aside
from agent.report.lane import Doing, Span
from agent.report.model import Ledger, LlmSpent, Saved, TaskFacts


def ledger_of(state: State, lane: Sequence[Span], tasks: Sequence[TaskFacts], elapsed_s: float) -> Ledger:
    """The ledger of a session; `lane` and `tasks` are those of its report."""
    seconds = {doing: sum(span.lasts_s for span in lane if span.act.doing is doing) for doing in Doing}
    loads = paid_loads(state)
    smoke = {launch.id: launch for launch in paid_loads(state, smoke=True)}
    ready = [launch.load_s for launch in loads if launch.load_s is not None]
    saved = tuple(_saved(state, experiment) for experiment in saved_loads(state))
    inside = [_inside(task, lane) for task in tasks]
    spoilt = [one.metrics.duration_s for launch in state.launches.values() for one in launch.spoilt]
    return Ledger(
        elapsed_s=elapsed_s,
        loading_s=seconds[Doing.LOADING],
        measuring_s=seconds[Doing.MEASURING],
        spoilt_rounds=len(spoilt),
        spoilt_s=sum(spoilt),
        stopping_s=seconds[Doing.STOPPING],
        preparing_s=seconds[Doing.PREPARING],
        idle_s=seconds[Doing.IDLE],
        away_s=seconds[Doing.AWAY],
        loads=len(loads),
        loads_ready=len(ready),
        mean_load_s=fmean(ready) if ready else None,
        smoke_loads=len(smoke),
        smoke_failed=sum(launch.failure is not None for launch in smoke.values()),
        smoke_s=sum(span.lasts_s for span in lane if span.act.launch in smoke),
        saved=saved,
        saved_s=sum(one.estimate_s or 0.0 for one in saved),
        tasks=tuple(sorted(Counter(task.kind for task in tasks).items())),
        tasks_s=sum(task.end_s - task.start_s for task in tasks),
        tasks_in_loads=sum(seconds > 0 for seconds in inside),
        tasks_in_loads_s=sum(inside),
        llm=_llm(tasks),
    )


def _saved(state: State, experiment: ExperimentState) -> Saved:
    """Loads of experiments with the same parent, and of the parent, are the nearest to one that never was."""
    parent = experiment.spec.based_on
    near = [launch for launch in _ready(state) if parent in (launch.experiment, _parent(state, launch))]
    loads = near or _ready(state)
    among = f"{parent} and of what is based on it" if near else "this session"
    return Saved(
        experiment=experiment.id,
        by="best case" if set_aside(experiment) else "check",
        estimate_s=fmean(launch.load_s or 0.0 for launch in loads) if loads else None,
        basis=f"mean of {len(loads)} load{'s' if len(loads) > 1 else ''} of {among}" if loads else "nothing was loaded",
    )


def _ready(state: State) -> list[Launch]:
    return [one for one in paid_loads(state) if one.load_s is not None]


def _parent(state: State, launch: Launch) -> str | None:
    return state.experiments[launch.experiment].spec.based_on


def _inside(task: TaskFacts, lane: Sequence[Span]) -> float:
    """Seconds of a task that passed while a server loaded."""
    loading = (span for span in lane if span.act.doing is Doing.LOADING)
    return sum(max(0.0, min(task.end_s, span.end_s) - max(task.start_s, span.start_s)) for span in loading)


def _llm(tasks: Sequence[TaskFacts]) -> LlmSpent:
    spent = [task.spent for task in tasks if task.spent is not None]
    return LlmSpent(
        questions=sum(task.kind == "ask" for task in tasks),
        calls=sum(one.calls for one in spent),
        read_bytes=sum(one.read_bytes for one in spent),
        input_tokens=sum(one.input_tokens for one in spent),
        output_tokens=sum(one.output_tokens for one in spent),
        cost_usd=sum(one.cost_usd or 0.0 for one in spent),
        unpriced=sum(one.cost_usd is None for one in spent),
    )
