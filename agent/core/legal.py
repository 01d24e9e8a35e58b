"""What may happen when: the legal moves of experiments and launches, as tables."""

from collections.abc import Mapping

from agent.core import events as ev
from agent.core.state import LaunchStage, Stage, State

# The legal moves of an experiment: the stages in which an event may reach it. Where it goes is the handler's part.
EXPERIMENT_MOVES: Mapping[type[ev.Event], frozenset[Stage]] = {
    ev.ExperimentRuledOut: frozenset({Stage.TODO}),
    ev.ExperimentNotReached: frozenset({Stage.TODO}),
    ev.ExperimentCompleted: frozenset({Stage.TODO}),
    ev.ExperimentReopened: frozenset({Stage.ENDED}),
    ev.PrepareRequested: frozenset({Stage.TODO}),
    ev.PrepareFinished: frozenset({Stage.PREPARING}),
    ev.LaunchPlanned: frozenset({Stage.RUNNING, Stage.NEAR}),
    ev.VerdictReached: frozenset({Stage.RUNNING, Stage.NEAR}),
    ev.ProposalApproved: frozenset({Stage.PROPOSED}),
    ev.ExperimentSkipped: frozenset({Stage.PROPOSED, Stage.TODO, Stage.NEAR}),
    ev.ExperimentRetried: frozenset({Stage.ENDED}),
    ev.DeadEndReopened: frozenset({Stage.ENDED}),
    ev.ResearchAdded: frozenset(Stage),
}

ALIVE = frozenset({LaunchStage.REQUESTED, LaunchStage.LOADING, LaunchStage.READY, LaunchStage.MEASURING})
# What an effect reports after the launch failed or was stopped is late, not wrong: journalled, it changes nothing.
OVER = frozenset({LaunchStage.FAILED, LaunchStage.STOPPING, LaunchStage.STOPPED})

LAUNCH_MOVES: Mapping[type[ev.Event], frozenset[LaunchStage]] = {
    ev.LaunchStarted: frozenset({LaunchStage.REQUESTED}) | OVER,
    ev.LaunchVoid: frozenset({LaunchStage.REQUESTED}) | OVER,
    ev.PhaseEntered: frozenset({LaunchStage.LOADING}) | OVER,
    ev.PhaseProgressed: frozenset({LaunchStage.LOADING}) | OVER,
    ev.LoadDoubted: frozenset({LaunchStage.REQUESTED, LaunchStage.LOADING}) | OVER,
    ev.ServerReady: frozenset({LaunchStage.LOADING}) | OVER,
    ev.ServerFailed: ALIVE | OVER,
    ev.RoundRequested: frozenset({LaunchStage.READY, LaunchStage.MEASURING}),
    ev.RoundMeasured: frozenset({LaunchStage.MEASURING}) | OVER,
    ev.RoundFailed: frozenset({LaunchStage.MEASURING}) | OVER,
    ev.RoundSpoilt: frozenset({LaunchStage.READY, LaunchStage.MEASURING}),
    ev.GuardRequested: frozenset({LaunchStage.READY, LaunchStage.MEASURING}),
    ev.GuardEnded: frozenset({LaunchStage.MEASURING}) | OVER,
    ev.LaunchAbandoned: ALIVE | OVER,
    ev.StopRequested: ALIVE | {LaunchStage.FAILED},
    ev.ServerStopped: frozenset({LaunchStage.STOPPING}),
}


class IllegalTransition(Exception):
    """An event that cannot happen in this state. The message names the events that led to it."""

    def __init__(self, state: State, event: ev.Event, subject: str, stage: str) -> None:
        story = [name for about, name in state.story if about == subject]
        trail = " > ".join(story[-12:]) or "nothing"
        super().__init__(f"{type(event).__name__} is not possible for {subject} in stage {stage}; it saw: {trail}")


class Refused(IllegalTransition):
    """An edit of the plan that cannot be made now. The message says why in a few words."""

    def __init__(self, reason: str) -> None:
        Exception.__init__(self, reason)


def check_legal(state: State, event: ev.Event) -> str:
    """The experiment that the event is about, or an empty text; progress leaves no trace in a story."""
    if allowed := LAUNCH_MOVES.get(type(event)):
        name = event.launch  # type: ignore[attr-defined]
        launch = state.launches.get(name)
        if launch is None or launch.stage not in allowed:
            raise IllegalTransition(state, event, name, launch.stage if launch else "unknown")
        return "" if isinstance(event, ev.PhaseProgressed) else launch.experiment
    if stages := EXPERIMENT_MOVES.get(type(event)):
        name = event.experiment  # type: ignore[attr-defined]
        experiment = state.experiments.get(name)
        if experiment is None or experiment.stage not in stages:
            raise IllegalTransition(state, event, name, experiment.stage if experiment else "unknown")
        return str(name)
    if isinstance(event, ev.LaunchRequested):
        _check_launch(state, event)
        return event.experiment
    if isinstance(event, ev.TaskProgressed | ev.ToolUsed | ev.LlmSpent | ev.TaskFinished | ev.TaskAbandoned):
        task = state.tasks.get(event.task)
        if task is None or task.status is not None:
            raise IllegalTransition(state, event, event.task, "ended" if task else "unknown")
    if isinstance(event, ev.TaskRequested) and event.task.id in state.tasks:
        raise IllegalTransition(state, event, event.task.id, "started")
    return ""


def _check_launch(state: State, event: ev.LaunchRequested) -> None:
    experiment = state.experiments.get(event.experiment)
    wanted = {Stage.ENDED} if event.purpose == "serve" else {Stage.TODO}
    if event.purpose == "measure" and any(e.stage is Stage.NEAR for e in state.experiments.values()):
        # Again, for a verdict that is near: the experiment itself, or one that it is compared with.
        wanted |= {Stage.NEAR, Stage.ENDED}
    if experiment is None or experiment.stage not in wanted:
        raise IllegalTransition(state, event, event.experiment, experiment.stage if experiment else "unknown")
    if state.current or event.launch in state.launches:
        raise IllegalTransition(state, event, event.experiment, "with the server lane taken")
