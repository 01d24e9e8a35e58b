"""What is to be done because of an event, as commands."""

from collections.abc import Iterator

from agent.core import commands as do
from agent.core import events as ev
from agent.core.smoke import config_of_launch
from agent.core.state import ExperimentState, Launch, LaunchStage, Stage, State
from agent.core.verdict import guard_reference


def commands_of(before: State, event: ev.Event, after: State) -> list[do.Command]:
    """What an event calls for that led from one state to the other."""
    commands: list[do.Command] = []
    if before.measuring != after.measuring:
        commands.append(do.SetQuiet(after.measuring))
    match event:
        case ev.TaskRequested():
            commands.append(do.RunTask(event.task))
        case ev.TaskAbandoned():
            commands.append(do.CancelTask(event.task))
        case ev.ExperimentChanged():
            running = (task for task in after.tasks.values() if task.stale and task.status is None)
            commands += [do.CancelTask(task.task.id) for task in running]
        case ev.PrepareRequested():
            commands.append(_prepare(after, after.experiments[event.experiment]))
        case ev.LaunchRequested():
            start = do.AttachServer if event.purpose == "attach" else do.StartServer
            commands.append(start(event.launch, event.config))
        case ev.RoundRequested():
            workload = next(w for w in after.playbook.workloads if w.name == event.workload)
            port = after.launches[event.launch].port
            assert port is not None, "a launch that is ready has a port"
            commands.append(do.MeasureRound(event.launch, port, workload, event.index, event.seed))
        case ev.GuardRequested():
            launch = after.launches[event.launch]
            assert launch.port is not None, "a launch that is ready has a port"
            commands.append(do.AskGuard(launch.id, launch.port, guard_reference(after, launch)))
        case ev.StopRequested():
            commands.append(_stop(before.launches[event.launch]))
        case ev.SessionResumed():
            commands += _unfinished(after, away_s=max(0.0, event.at - before.now))
        case ev.SessionEnded():
            commands.append(do.EndSession(event.ending))
    return commands


def _prepare(state: State, experiment: ExperimentState) -> do.Command:
    index = experiment.prepared
    job = f"{state.session}-p{state.prepares:02d}"
    return do.Prepare(experiment.id, index, experiment.spec.prepare[index], job)


def _stop(launch: Launch) -> do.Command:
    if launch.purpose == "attach":
        return do.DetachServer(launch.id)
    return do.StopServer(launch.id, launch.config, drains=launch.load_s is not None and not launch.failure)


def _unfinished(state: State, away_s: float) -> Iterator[do.Command]:
    """What was under way when tunebot left, as commands that ask for it or do it again."""
    for task in state.tasks.values():
        if task.status is None:
            yield do.RunTask(task.task)
    for experiment in state.experiments.values():
        if experiment.stage is Stage.PREPARING:
            yield _prepare(state, experiment)
    launch = state.current
    if launch is None or launch.stage is LaunchStage.FAILED:
        return
    # Not as it was journalled: there the secrets are taken out.
    config = config_of_launch(state, launch)
    if launch.stage is LaunchStage.STOPPING:
        yield _stop(launch)
    elif launch.purpose == "attach":
        yield do.AttachServer(launch.id, config, launch)
    else:
        yield do.RejoinServer(launch.id, config, launch, away_s)
