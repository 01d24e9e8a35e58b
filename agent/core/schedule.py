"""The scheduler of the two lanes: from a state, the next decision, as an event.

The engine asks again after every event until there is nothing to decide, so each rule here says one thing. Rules are
tried in the order of `_RULES`: what needs no waiting first, then the background lane, then the server lane.
"""

from collections.abc import Iterator

from agent.core import background, pivots, relaunch, repeats
from agent.core import events as ev
from agent.core.model import BARREN, DEAD
from agent.core.plan import approvals_missing, config_of, plan_approval, reopened_spec
from agent.core.smoke import is_wanted, smoke_config
from agent.core.state import ExperimentState, Launch, LaunchStage, Stage, State
from agent.core.terms import not_worth_a_load
from agent.core.verdict import counted, guard_of, trouble
from agent.playbook.model import Experiment, VerdictWord


def next_decision(state: State) -> ev.Event | None:
    """The next decision, or None while there is nothing to decide before something else happens."""
    if state.ending:
        return None
    if state.interrupted or state.lost:
        return _wind_up(state)
    for rule in _RULES:
        if (decision := rule(state)) is not None:
            return decision
    return None


def _todo(state: State) -> Iterator[ExperimentState]:
    return (e for e in state.experiments.values() if e.stage is Stage.TODO)


def _give_up(state: State) -> ev.Event | None:
    for experiment in _todo(state):
        if reason := _unreachable(state, experiment):
            return ev.ExperimentNotReached(at=state.now, experiment=experiment.id, reason=reason)
    return None


def _unreachable(state: State, experiment: ExperimentState) -> str | None:
    spec = experiment.spec
    # A child inherits its parent's flags: where the parent could not run, neither can the child.
    if spec.based_on and (parent := state.experiments[spec.based_on].verdict) and parent.word in BARREN:
        return f"it is based on {spec.based_on}, which is {parent.word}"
    if experiment.overruled:
        return None
    if spec.when and (reason := _when(state, spec)[1]):
        return reason
    return pivots.unreachable(state, experiment) or not_worth_a_load(state, experiment)


def _when(state: State, spec: Experiment) -> tuple[bool, str | None]:
    """Whether the condition holds now, and why it never can (None while it still may)."""
    assert spec.when is not None
    wanted = spec.when.are
    words = {name: _word(state, name) for name in (*spec.when.all_of, *spec.when.any_of)}
    for name in spec.when.all_of:
        if words[name] is not None and words[name] not in wanted:
            return False, f"{name} is {words[name]}, not {' or '.join(wanted)}"
    hits = [name for name in spec.when.any_of if words[name] in wanted]
    if spec.when.any_of and not hits and all(words[name] for name in spec.when.any_of):
        return False, f"none of {', '.join(spec.when.any_of)} is {' or '.join(wanted)}"
    holds = all(words[name] for name in spec.when.all_of) and bool(hits or not spec.when.any_of)
    return holds, None


def _word(state: State, experiment: str) -> VerdictWord | None:
    found = state.experiments[experiment]
    return found.verdict.word if found.stage is Stage.ENDED and found.verdict else None


def _reopen(state: State) -> ev.Event | None:
    for base in state.experiments.values():
        if not base.spec.revisit or base.stage is not Stage.ENDED or not base.verdict or base.verdict.word in BARREN:
            continue
        for name in base.spec.revisit:
            old = state.experiments[name]
            if old.stage is Stage.ENDED and old.verdict and old.verdict.word in DEAD and not old.reopened_as:
                spec = reopened_spec(state, name, base.id)
                return ev.ExperimentReopened(at=state.now, experiment=name, spec=spec)
    return None


def _current_launch(state: State) -> ev.Event | None:
    launch = state.current
    if launch is None or launch.stage in (LaunchStage.REQUESTED, LaunchStage.LOADING, LaunchStage.STOPPING):
        return None
    experiment = state.experiments[launch.experiment]
    if launch.purpose == "serve":
        return None
    if launch.stage is LaunchStage.FAILED:
        return _outcome(state, experiment) or ev.StopRequested(at=state.now, launch=launch.id, why="it failed")
    if launch.purpose == "smoke":
        return ev.StopRequested(at=state.now, launch=launch.id, why="the smoke load got ready, the real one is next")
    if launch.measuring is not None or launch.guarding:
        return None
    return _next_round(state, launch) or _guard(state, launch) or _outcome(state, experiment)


def _next_round(state: State, launch: Launch) -> ev.Event | None:
    invalid = any(flag.status == "contradicted" for flag in launch.flags)
    if launch.round_error or invalid:
        return None
    if spoilt := repeats.next_spoilt(state, launch):
        return spoilt
    measured = {(r.workload, r.index) for r in launch.rounds}
    for workload in state.playbook.workloads:
        for index in range(workload.rounds):
            if (workload.name, index) not in measured:
                seed = repeats.seed_of(state, launch, workload, index)
                return ev.RoundRequested(at=state.now, launch=launch.id, workload=workload.name, index=index, seed=seed)
    return None


def _guard(state: State, launch: Launch) -> ev.Event | None:
    """Every flag set that is judged answers the questions of the guard once, after its rounds."""
    judged = state.experiments[launch.experiment].stage is Stage.RUNNING
    if state.playbook.guard is None or not judged or trouble(state, launch):
        return None
    if launch.guard_error or guard_of(state, launch.experiment):
        return None
    return ev.GuardRequested(at=state.now, launch=launch.id)


def _outcome(state: State, experiment: ExperimentState) -> ev.Event | None:
    return relaunch.next_outcome(state, experiment) if experiment.stage is Stage.RUNNING else None


def _judge_again(state: State) -> ev.Event | None:
    """What a launch measured may decide other verdicts that are near, or change what is planned for them."""
    launch = state.current
    if not _near(state) or (launch and launch.stage not in (LaunchStage.READY, LaunchStage.FAILED)):
        return None
    return relaunch.next_outcome(state, None)


def _near(state: State) -> bool:
    return any(experiment.stage is Stage.NEAR for experiment in state.experiments.values())


def _next_experiment(state: State) -> ev.Event | None:
    if any(e.stage in (Stage.PREPARING, Stage.RUNNING) for e in state.experiments.values()):
        return None
    runnable = [e for e in _todo(state) if _is_runnable(state, e)]
    if state.attended:
        # Where a person is at hand, what waits for approval does not hold up the others.
        runnable = [e for e in runnable if not missing_approvals(state, e.spec)]
    if state.paused:
        return None
    if not runnable:
        return _relaunch(state) if _near(state) else None
    experiment = runnable[0]
    if missing := missing_approvals(state, experiment.spec):
        reason = f"its prepare steps need approval: --approve {' --approve '.join(missing)}"
        return ev.ExperimentNotReached(at=state.now, experiment=experiment.id, reason=reason)
    if state.current is not None:
        if blocked_by_attached(state):
            return None if state.attended else _give_up_behind_attached(state, experiment)
        if state.current.stage in (LaunchStage.READY, LaunchStage.FAILED):
            return ev.StopRequested(at=state.now, launch=state.current.id, why=f"{experiment.id} is next")
        return None
    if experiment.prepared < len(experiment.spec.prepare):
        return ev.PrepareRequested(at=state.now, experiment=experiment.id, step=experiment.prepared)
    if background.must_wait(state, experiment):
        return None
    attach = experiment.spec.baseline == "attach" and not experiment.launches
    purpose: ev.Purpose = "attach" if attach else "smoke" if is_wanted(state, experiment) else "measure"
    return _request_launch(state, experiment.id, purpose)


def _relaunch(state: State) -> ev.Event | None:
    """Once nothing else can be launched: the further launch that was planned for the verdicts that are near."""
    if state.current is not None and state.current.stage not in (LaunchStage.READY, LaunchStage.FAILED):
        return None
    of = state.experiments[relaunch.chosen(state)]
    if state.current is not None:
        why = f"launch {len(counted(state, of)) + 1} of {state.playbook.launches} of {of.id} is next"
        return ev.StopRequested(at=state.now, launch=state.current.id, why=why)
    return None if background.must_wait(state, of) else _request_launch(state, of.id, "measure")


def blocked_by_attached(state: State) -> bool:
    """Whether a server that is not ours holds the lane: it is never stopped, only waited for."""
    launch = state.current
    return launch is not None and launch.purpose == "attach" and launch.stage is LaunchStage.READY


def _give_up_behind_attached(state: State, experiment: ExperimentState) -> ev.Event:
    port = state.current.port if state.current else None
    reason = f"the attached server at port {port} still runs; it is not ours to stop"
    return ev.ExperimentNotReached(at=state.now, experiment=experiment.id, reason=reason)


def _is_runnable(state: State, experiment: ExperimentState) -> bool:
    parent = experiment.spec.based_on
    if parent and state.experiments[parent].stage is not Stage.ENDED:
        return False
    if pivots.waits_for(state, experiment):
        return False
    return experiment.spec.when is None or experiment.overruled or _when(state, experiment.spec)[0]


def missing_approvals(state: State, spec: Experiment) -> list[str]:
    """The `ID@HASH` of all steps of an experiment where nobody approved any yet, else of each that is missing."""
    missing = approvals_missing(state.playbook, spec, state.approved)
    return [plan_approval(state.playbook, spec)] if 0 < len(missing) == len(spec.prepare) else missing


def _request_launch(state: State, experiment: str, purpose: ev.Purpose) -> ev.Event:
    config = config_of(state, experiment)
    return ev.LaunchRequested(
        at=state.now,
        launch=f"{state.session}-{len(state.launches) + 1:02d}",
        experiment=experiment,
        purpose=purpose,
        config=smoke_config(config) if purpose == "smoke" else config,
    )


def _finish(state: State) -> ev.Event | None:
    """All experiments have ended: leave running what the playbook wants, then end."""
    if not state.finished:
        return None
    launch, wanted = state.current, _to_serve(state)
    if launch is None:
        last = next(reversed(tuple(state.launches.values())), None)
        served = last is not None and last.purpose == "serve" and not last.void
        if wanted and not served and state.playbook.at_end != "keep":
            return _request_launch(state, wanted, "serve")
        return _complete_session(state, None)
    if launch.stage is LaunchStage.FAILED:
        return ev.StopRequested(at=state.now, launch=launch.id, why="it failed")
    if launch.stage is not LaunchStage.READY:
        return None
    if launch.purpose == "attach":
        return _complete_session(state, launch.id)
    if wanted == launch.experiment or state.playbook.at_end == "keep":
        return _complete_session(state, launch.id)
    return ev.StopRequested(at=state.now, launch=launch.id, why=f"at_end: {state.playbook.at_end}")


def _complete_session(state: State, serving: str | None) -> ev.Event | None:
    """With a person at the screen the session goes on until that person leaves."""
    return None if state.attended or background.running_tasks(state) else _end(state, "completed", serving)


def _to_serve(state: State) -> str | None:
    """The experiment whose server the playbook wants to be running at the end."""
    if state.playbook.at_end == "serve-best":
        return state.incumbent
    if state.playbook.at_end == "baseline":
        baseline = state.baseline
        return baseline.id if baseline.verdict and baseline.verdict.word not in BARREN else None
    return None


def _wind_up(state: State) -> ev.Event | None:
    """Interrupted, or the target is lost: stop what runs (or keep it), then end."""
    launch = state.current
    ending: ev.Ending = "target-lost" if state.lost else "completed" if state.finished else "interrupted"
    stuck = state.lost and launch and launch.stage in (LaunchStage.REQUESTED, LaunchStage.STOPPING)
    if launch is None or state.keep or stuck:
        return _end(state, ending, launch.id if launch else None)
    if launch.stage is LaunchStage.STOPPING:
        return None
    # An attached server is let go, which is all that a stop does to it.
    return ev.StopRequested(at=state.now, launch=launch.id, why=ending)


def _end(state: State, ending: ev.Ending, serving: str | None) -> ev.Event:
    return ev.SessionEnded(at=state.now, ending=ending, serving=serving)


_RULES = (
    background.rule_out,
    _give_up,
    pivots.pivot,
    background.complete,
    _reopen,
    background.start_task,
    _current_launch,
    _judge_again,
    _next_experiment,
    _finish,
)
