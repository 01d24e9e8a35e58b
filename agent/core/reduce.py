"""reduce(state, event) -> (state, commands): the only place where a session's state changes."""

from collections.abc import Callable, Container, Mapping
from dataclasses import replace
from itertools import count
from typing import Any

from agent.core import commands as do
from agent.core import edits, pivots
from agent.core import events as ev
from agent.core.contract import contract_of
from agent.core.edit_rules import EDITS, refusal
from agent.core.edits import end_unlaunched
from agent.core.known import stamped
from agent.core.legal import OVER, IllegalTransition, Refused, check_legal
from agent.core.model import Failure
from agent.core.plan import proposal_digest, reopened_spec
from agent.core.reactions import commands_of
from agent.core.state import ExperimentState, Launch, LaunchStage, Round, Stage, State, TaskState

STORY_LENGTH = 200


def initial(event: ev.SessionStarted) -> State:
    """The state right after a session began."""
    return State(
        session=event.session,
        playbook=event.playbook,
        host=event.host,
        approved=event.approved,
        keep=event.keep,
        attended=event.attended,
        seed=event.seed,
        started_at=event.at,
        now=event.at,
        target=event.target,
        client=event.version,
        noise=event.noise,
        known=event.known,
        experiments={spec.id: ExperimentState(spec=spec) for spec in event.playbook.experiments},
    )


def reduce(state: State, event: ev.Event) -> tuple[State, tuple[do.Command, ...]]:
    """The state after an event, and what is to be done because of it. Raises IllegalTransition."""
    handler = _HANDLERS.get(type(event))
    goes_on = isinstance(event, ev.SessionResumed) and state.ending != "completed"
    if handler is None or (state.ending and not goes_on):
        raise IllegalTransition(state, event, "the session", state.ending or "running")
    if isinstance(event, EDITS) and (reason := refusal(state, event)):
        raise Refused(reason)
    subject = check_legal(state, event)
    after = stamped(state, event, handler(state, event))
    story = ((*state.story, (subject, type(event).__name__)))[-STORY_LENGTH:] if subject else state.story
    after = replace(after, now=max(state.now, event.at), story=story)
    return after, tuple(commands_of(state, event, after))


def _resumed(state: State, event: ev.SessionResumed) -> State:
    launch = state.current
    if launch is not None and launch.stage is LaunchStage.MEASURING:
        state = state.with_launch(launch.id, stage=LaunchStage.READY, measuring=None, guarding=False)
    state = _unwatched(state)
    return replace(
        state,
        host=event.host,
        approved=(*state.approved, *event.approved),
        keep=event.keep,
        attended=event.attended,
        client=event.version,
        noise=event.noise or state.noise,
        facts={},
        paused=False,
        interrupted=False,
        lost=None,
        unreachable_since=None,
        ending=None,
        resumes=state.resumes + 1,
    )


def _unwatched(state: State) -> State:
    """The state where nobody watched what is being loaded for a while."""
    launch = state.current
    if launch is None or launch.load_s is not None:
        return state
    return state.with_launch(launch.id, unwatched=True)


def _noted(state: State, event: ev.Noted) -> State:
    return replace(state, notes=(*state.notes, event.text))


def _task_requested(state: State, event: ev.TaskRequested) -> State:
    task = TaskState(task=event.task, started_at=event.at)
    return replace(state, tasks={**state.tasks, event.task.id: task})


def _task_progressed(state: State, event: ev.TaskProgressed) -> State:
    return state.with_task(event.task, action=event.action)


def _tool_used(state: State, event: ev.ToolUsed) -> State:
    return state.with_task(event.task, action=f"{event.tool} {event.asked}")


def _llm_spent(state: State, event: ev.LlmSpent) -> State:
    return state.with_task(event.task, spent=event.spent)


def _task_finished(state: State, event: ev.TaskFinished) -> State:
    state = state.with_task(event.task, status=event.status, finding=event.finding, ended_at=event.at)
    spec = event.finding.proposal
    if spec is None or spec.based_on not in state.experiments:
        return state
    spec = spec.model_copy(update={"id": free_id(state.experiments, spec.id)})
    proposed = ExperimentState(spec=spec, stage=Stage.PROPOSED, proposed_by=event.task)
    return replace(state, experiments={**state.experiments, spec.id: proposed})


def free_id(taken: Container[str], wanted: str) -> str:
    """The id that a proposed experiment gets: as proposed, with a number where that is taken."""
    names = (wanted if number == 1 else f"{wanted}-{number}" for number in count(1))
    return next(name for name in names if name not in taken)


def _ruled_out(state: State, event: ev.ExperimentRuledOut) -> State:
    return end_unlaunched(state, event.experiment, "ruled-out", event.reason, evidence=event.evidence)


def _not_reached(state: State, event: ev.ExperimentNotReached) -> State:
    return end_unlaunched(state, event.experiment, "not-reached", event.reason)


def _retried(state: State, event: ev.ExperimentRetried) -> State:
    experiment = state.experiments[event.experiment]
    if experiment.verdict is None or experiment.verdict.word == "keep":
        raise IllegalTransition(state, event, event.experiment, "keep")
    # What was inconclusive gets one more launch of the same flags; all else is measured anew.
    goes_on = experiment.verdict.word == "inconclusive" and state.playbook.launches > 1
    return state.with_experiment(
        event.experiment,
        stage=Stage.TODO,
        parent=None,
        incumbent=None,
        reason="",
        evidence=(),
        overruled=experiment.overruled or not edits.was_given_up_in_line(experiment),
        planned=None,
        given_up="",
        since=experiment.since if goes_on else len(experiment.launches),
    )


def _added(state: State, event: ev.ExperimentAdded) -> State:
    spec = event.spec
    if spec.id in state.experiments or spec.based_on not in state.experiments:
        raise IllegalTransition(state, event, spec.id, "with its id taken or its parent unknown")
    return replace(state, experiments={**state.experiments, spec.id: ExperimentState(spec=spec)})


def _proposal_approved(state: State, event: ev.ProposalApproved) -> State:
    if proposal_digest(state, event.experiment) != event.digest:
        raise IllegalTransition(state, event, event.experiment, "other than what was approved")
    return state.with_experiment(event.experiment, stage=Stage.TODO)


def _research_added(state: State, event: ev.ResearchAdded) -> State:
    asked = (*state.experiments[event.experiment].asked, event.entry)
    return state.with_experiment(event.experiment, asked=asked)


def _approved(state: State, event: ev.ApprovalGiven) -> State:
    return replace(state, approved=(*state.approved, event.needed))


def _paused(state: State, event: ev.PauseSet) -> State:
    return replace(state, paused=event.on)


def _unchanged(state: State, event: ev.Event) -> State:
    return state


def _completed(state: State, event: ev.ExperimentCompleted) -> State:
    experiment = state.experiments[event.experiment]
    added = {**experiment.added, **event.adds}
    return state.with_experiment(event.experiment, added=added, since=len(experiment.launches))


def _reopened(state: State, event: ev.ExperimentReopened) -> State:
    state = state.with_experiment(event.experiment, reopened_as=event.spec.id)
    return replace(state, experiments={**state.experiments, event.spec.id: ExperimentState(spec=event.spec)})


def _dead_end_reopened(state: State, event: ev.DeadEndReopened) -> State:
    spec = reopened_spec(state, event.experiment, event.base) if event.base in state.experiments else None
    if spec is None or spec.id in state.experiments:
        raise IllegalTransition(state, event, event.experiment, "tried again there already, or on nothing")
    return _reopened(state, ev.ExperimentReopened(at=event.at, experiment=event.experiment, spec=spec))


def _facts_read(state: State, event: ev.FactsRead) -> State:
    return replace(state, facts={**state.facts, event.environment: event.facts})


def _prepare_requested(state: State, event: ev.PrepareRequested) -> State:
    state = replace(state, prepares=state.prepares + 1)
    return state.with_experiment(event.experiment, stage=Stage.PREPARING)


def _prepare_finished(state: State, event: ev.PrepareFinished) -> State:
    if event.ok:
        return state.with_experiment(event.experiment, stage=Stage.TODO, prepared=event.step + 1)
    reason = f"prepare step {event.step + 1}: {event.summary}"
    return end_unlaunched(state, event.experiment, "failed", reason)


def _launch_requested(state: State, event: ev.LaunchRequested) -> State:
    launch = Launch(
        id=event.launch,
        experiment=event.experiment,
        purpose=event.purpose,
        config=event.config,
        requested_at=event.at,
    )
    state = replace(state, launches={**state.launches, launch.id: launch})
    experiment = state.experiments[event.experiment]
    # One that has ended and is launched again, to serve or as the reference of another, keeps its verdict.
    stage = Stage.ENDED if experiment.stage is Stage.ENDED else Stage.RUNNING
    return state.with_experiment(event.experiment, stage=stage, launches=(*experiment.launches, launch.id))


def _unless_over(handler: Callable[[State, Any, Launch], State]) -> Callable[[State, Any], State]:
    def checked(state: State, event: Any) -> State:
        launch = state.launches[event.launch]
        return state if launch.stage in OVER else handler(state, event, launch)

    return checked


@_unless_over
def _launch_started(state: State, event: ev.LaunchStarted, launch: Launch) -> State:
    return state.with_launch(
        launch.id,
        stage=LaunchStage.LOADING,
        pid=event.pid,
        port=event.port,
        argv=event.argv,
        usual_s=event.usual_s,
    )


@_unless_over
def _launch_void(state: State, event: ev.LaunchVoid, launch: Launch) -> State:
    state = _unjudged(state, launch.experiment)
    return state.with_launch(launch.id, stage=LaunchStage.STOPPED, void=True, ended_at=event.at)


def _unjudged(state: State, experiment: str) -> State:
    """The state where a launch of an experiment came to nothing: it waits for one again, if it was its turn."""
    found = state.experiments[experiment]
    if found.stage is not Stage.RUNNING:
        return state
    return state.with_experiment(experiment, stage=Stage.NEAR if found.planned else Stage.TODO)


@_unless_over
def _phase_entered(state: State, event: ev.PhaseEntered, launch: Launch) -> State:
    phases = (*launch.phases, (event.phase, event.at))
    return state.with_launch(launch.id, phases=phases, done=None, total=None, remaining_s=event.remaining_s)


@_unless_over
def _phase_progressed(state: State, event: ev.PhaseProgressed, launch: Launch) -> State:
    return state.with_launch(
        launch.id, done=event.done, total=event.total, fraction=event.fraction, remaining_s=event.remaining_s
    )


@_unless_over
def _load_doubted(state: State, event: ev.LoadDoubted, launch: Launch) -> State:
    return state.with_launch(launch.id, doubt=event.text)


@_unless_over
def _server_ready(state: State, event: ev.ServerReady, launch: Launch) -> State:
    return state.with_launch(
        launch.id,
        stage=LaunchStage.READY,
        load_s=event.load_s,
        flags=event.flags,
        fraction=1.0,
        remaining_s=0.0,
        doubt="",
    )


@_unless_over
def _server_failed(state: State, event: ev.ServerFailed, launch: Launch) -> State:
    return state.with_launch(launch.id, stage=LaunchStage.FAILED, failure=event.failure, measuring=None)


@_unless_over
def _abandoned(state: State, event: ev.LaunchAbandoned, launch: Launch) -> State:
    failure = Failure(phase=launch.phase, reason="ended by hand", category="stopped")
    return state.with_launch(event.launch, stage=LaunchStage.FAILED, failure=failure, measuring=None)


def _round_requested(state: State, event: ev.RoundRequested) -> State:
    measuring = (event.workload, event.index)
    return state.with_launch(event.launch, stage=LaunchStage.MEASURING, measuring=measuring)


@_unless_over
def _round_measured(state: State, event: ev.RoundMeasured, launch: Launch) -> State:
    workload = next(w for w in state.playbook.workloads if w.name == event.workload)
    contract = contract_of(workload, state.client)
    measured = Round(workload=event.workload, index=event.index, metrics=event.metrics, contract=contract)
    rounds = (*launch.rounds, measured)
    # A launch of an experiment that is not judged now has no verdict to wait for.
    whole = len(rounds) == sum(w.rounds for w in state.playbook.workloads)
    done = whole and state.experiments[launch.experiment].stage is not Stage.RUNNING
    stage = LaunchStage.READY if done else launch.stage
    return state.with_launch(launch.id, rounds=rounds, measuring=None, stage=stage)


@_unless_over
def _round_failed(state: State, event: ev.RoundFailed, launch: Launch) -> State:
    judged = state.experiments[launch.experiment].stage is Stage.RUNNING
    stage = launch.stage if judged else LaunchStage.READY
    return state.with_launch(launch.id, round_error=event.reason, measuring=None, stage=stage)


def _round_spoilt(state: State, event: ev.RoundSpoilt) -> State:
    launch, place = state.launches[event.launch], (event.workload, event.index)
    spoilt = tuple(r for r in launch.rounds if (r.workload, r.index) == place)
    rounds = tuple(r for r in launch.rounds if r not in spoilt)
    return state.with_launch(launch.id, rounds=rounds, spoilt=(*launch.spoilt, *spoilt))


def _guard_requested(state: State, event: ev.GuardRequested) -> State:
    return state.with_launch(event.launch, stage=LaunchStage.MEASURING, guarding=True)


@_unless_over
def _guard_ended(state: State, event: ev.GuardEnded, launch: Launch) -> State:
    return state.with_launch(launch.id, guarding=False, guard=event.result, guard_error=event.error)


def _launch_planned(state: State, event: ev.LaunchPlanned) -> State:
    state = _after_measuring(state, event.experiment)
    return state.with_experiment(event.experiment, stage=Stage.NEAR, planned=event)


def _after_measuring(state: State, experiment: str) -> State:
    launch = state.launches[state.experiments[experiment].launches[-1]]
    return state.with_launch(launch.id, stage=LaunchStage.READY) if launch.stage is LaunchStage.MEASURING else state


def _verdict(state: State, event: ev.VerdictReached) -> State:
    experiment = state.experiments[event.experiment]
    failure = state.launches[experiment.launches[-1]].failure
    state = _after_measuring(state, event.experiment)
    state = state.with_experiment(
        event.experiment,
        stage=Stage.ENDED,
        parent=event.parent,
        incumbent=event.incumbent,
        reason=event.parent.reason,
        evidence=failure.evidence if failure and event.parent.word == "failed" else (),
    )
    if event.incumbent.word == "keep":
        state = replace(state, incumbent=event.experiment)
    return state


def _stop_requested(state: State, event: ev.StopRequested) -> State:
    return state.with_launch(event.launch, stage=LaunchStage.STOPPING, measuring=None)


def _server_stopped(state: State, event: ev.ServerStopped) -> State:
    # Only at an interruption is a launch stopped that nothing was said of.
    state = _unjudged(state, state.launches[event.launch].experiment)
    return state.with_launch(
        event.launch, stage=LaunchStage.STOPPED, exit_code=event.exit_code, left=event.left, ended_at=event.at
    )


def _interrupted(state: State, event: ev.InterruptRequested) -> State:
    return replace(state, interrupted=True, keep=event.keep)


def _link_lost(state: State, event: ev.LinkLost) -> State:
    return replace(state, unreachable_since=event.at if state.unreachable_since is None else state.unreachable_since)


def _link_restored(state: State, event: ev.LinkRestored) -> State:
    return replace(_unwatched(state), unreachable_since=None)


def _target_lost(state: State, event: ev.TargetLost) -> State:
    return replace(state, lost=event.reason)


def _session_ended(state: State, event: ev.SessionEnded) -> State:
    return replace(state, ending=event.ending)


_HANDLERS: Mapping[type[ev.Event], Callable[[State, Any], State]] = {
    ev.SessionResumed: _resumed,
    ev.Noted: _noted,
    ev.TaskRequested: _task_requested,
    ev.TaskProgressed: _task_progressed,
    ev.ToolUsed: _tool_used,
    ev.LlmSpent: _llm_spent,
    ev.TaskFinished: _task_finished,
    ev.ExperimentRuledOut: _ruled_out,
    ev.ExperimentNotReached: _not_reached,
    ev.ExperimentCompleted: _completed,
    ev.ExperimentReopened: _reopened,
    ev.PivotReached: pivots.reached,
    ev.DeadEndReopened: _dead_end_reopened,
    ev.FactsRead: _facts_read,
    ev.ExperimentAdded: _added,
    ev.ExperimentSkipped: edits.skipped,
    ev.ExperimentMoved: edits.moved,
    ev.ExperimentChanged: edits.changed,
    ev.DeadEndMarked: edits.dead_end_marked,
    ev.NoteWritten: edits.note_written,
    ev.NoteTakenBack: edits.note_taken_back,
    ev.TodoAdded: edits.todo_added,
    ev.TodoTicked: edits.todo_ticked,
    ev.ExperimentRetried: _retried,
    ev.ResearchAdded: _research_added,
    ev.ProposalApproved: _proposal_approved,
    ev.ApprovalGiven: _approved,
    ev.PauseSet: _paused,
    ev.LaunchAbandoned: _abandoned,
    ev.TaskAbandoned: _unchanged,
    ev.PrepareRequested: _prepare_requested,
    ev.PrepareFinished: _prepare_finished,
    ev.LaunchRequested: _launch_requested,
    ev.LaunchStarted: _launch_started,
    ev.LaunchVoid: _launch_void,
    ev.PhaseEntered: _phase_entered,
    ev.PhaseProgressed: _phase_progressed,
    ev.LoadDoubted: _load_doubted,
    ev.ServerReady: _server_ready,
    ev.ServerFailed: _server_failed,
    ev.RoundRequested: _round_requested,
    ev.RoundMeasured: _round_measured,
    ev.RoundFailed: _round_failed,
    ev.RoundSpoilt: _round_spoilt,
    ev.GuardRequested: _guard_requested,
    ev.GuardEnded: _guard_ended,
    ev.LaunchPlanned: _launch_planned,
    ev.VerdictReached: _verdict,
    ev.StopRequested: _stop_requested,
    ev.ServerStopped: _server_stopped,
    ev.InterruptRequested: _interrupted,
    ev.LinkLost: _link_lost,
    ev.LinkRestored: _link_restored,
    ev.TargetLost: _target_lost,
    ev.SessionEnded: _session_ended,
}
