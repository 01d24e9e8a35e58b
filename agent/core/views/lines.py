"""One line a change, for people and logs: what the headless run prints and `replay --headless` prints again."""

from agent.core import events as ev
from agent.core.known import environments
from agent.core.state import State
from agent.core.verdict import counted
from agent.core.views.basics import SMOKE_LOAD, change_text, command_line, duration, load_text, near_text, value_text
from agent.core.views.dead_ends import known_text
from agent.core.views.flags import arg_text, shown_args, shown_env
from agent.core.views.guard import guard_lines
from agent.core.views.numbers import doubts_text
from agent.core.views.strategy import pivot_text

_PROGRESS_STEP = 0.2


def line_of(before: State, event: ev.Event, after: State) -> str | None:
    """The line for an event, or None where nothing is worth one."""
    told = tell(before, event, after)
    if told is None:
        return None
    subject, text = told
    return line_text(event.at, after, subject, text)


def line_text(at: float, state: State, subject: str, text: str) -> str:
    """A line: the time since the session began, what it is about, and what it says."""
    return f"{duration(at - state.started_at):>7}  {subject:<24} {text}"


def tell(before: State, event: ev.Event, after: State) -> tuple[str, str] | None:
    """What a change is about (an experiment, `session`, …) and what it is; None where nothing is worth a line."""
    match event:
        case (
            ev.PhaseEntered()
            | ev.PhaseProgressed()
            | ev.LaunchStarted()
            | ev.LaunchVoid()
            | ev.LoadDoubted()
            | ev.ServerReady()
            | ev.ServerFailed()
        ):
            return _tell_load(before, event, after)
        case ev.TaskRequested() | ev.TaskFinished():
            return _tell_task(event, after)
        case (
            ev.RoundMeasured()
            | ev.RoundFailed()
            | ev.RoundSpoilt()
            | ev.GuardEnded()
            | ev.LaunchPlanned()
            | ev.VerdictReached()
        ):
            return _tell_measurement(event, after)
        case ev.SessionResumed():
            return "session", f"resumed after {duration(event.at - before.now)}"
        case ev.Noted():
            return "note", event.text
        case ev.ExperimentRuledOut():
            return event.experiment, f"ruled-out: {event.reason}; its load is saved"
        case ev.ExperimentNotReached():
            return event.experiment, f"not-reached: {event.reason}"
        case ev.ExperimentCompleted():
            adds = " ".join(f"+ --{flag} {value}" for flag, value in event.adds.items())
            return event.experiment, f"completed from the source: {adds}"
        case ev.ExperimentReopened():
            return event.experiment, f"to be tried again as {event.spec.id}"
        case ev.DeadEndReopened():
            return event.experiment, f"to be tried again by hand as {event.experiment}@{event.base}"
        case ev.FactsRead():
            first = event.environment not in before.facts and event.environment == next(iter(environments(after)), None)
            text = known_text(after) if first else ""
            return ("session", text) if text else None
        case ev.PivotReached():
            return "strategy", pivot_text(after.playbook, event)
        case ev.PrepareRequested():
            step = after.experiments[event.experiment].spec.prepare[event.step]
            return event.experiment, f"prepare step {event.step + 1}: {command_line(step.run)}"
        case ev.PrepareFinished():
            return (
                event.experiment,
                f"prepare step {event.step + 1} {'done' if event.ok else 'failed'}: {event.summary}",
            )
        case ev.LaunchRequested():
            again = len(counted(after, after.experiments[event.experiment]))
            return event.experiment, f"launch {len(after.launches)}" + {
                "measure": f", {again} of {after.playbook.launches} of these flags" if again > 1 else "",
                "serve": " to serve",
                "attach": ": attaching",
                "smoke": f": {SMOKE_LOAD}, with dummy weights",
            }[event.purpose]
        case ev.StopRequested():
            return after.launches[event.launch].experiment, f"stopping the server: {event.why}"
        case ev.ServerStopped():
            left = f", still alive: {', '.join(map(str, event.left))}" if event.left else ", nothing left of it"
            return after.launches[event.launch].experiment, f"stopped (exit {event.exit_code}){left}"
        case ev.ApprovalGiven():
            return event.needed.partition("@")[0], f"approved: {event.needed}"
        case ev.ProposalApproved():
            return event.experiment, f"the proposal is approved: {event.digest}"
        case ev.ExperimentAdded():
            return event.spec.id, f"added by hand, on {event.spec.based_on}"
        case ev.ExperimentSkipped():
            return event.experiment, "not-reached: skipped by hand"
        case ev.ExperimentRetried():
            return event.experiment, "to be tried again by hand"
        case (
            ev.ExperimentMoved()
            | ev.ExperimentChanged()
            | ev.DeadEndMarked()
            | ev.NoteWritten()
            | ev.NoteTakenBack()
            | ev.TodoAdded()
            | ev.TodoTicked()
        ):
            return _tell_edit(event, after)
        case ev.LaunchAbandoned():
            return after.launches[event.launch].experiment, "the launch is ended by hand"
        case ev.PauseSet():
            return "session", "paused: nothing new is launched" if event.on else "goes on"
        case ev.InterruptRequested():
            return "session", "interrupted"
        case ev.LinkLost():
            return "session", f"the target cannot be reached ({event.reason}); what runs there goes on"
        case ev.LinkRestored():
            since = event.at if before.unreachable_since is None else before.unreachable_since
            return "session", f"the target is reached again, after {duration(event.at - since)}"
        case ev.TargetLost():
            return "session", f"the target cannot be used: {event.reason}"
        case _:
            return None


def _tell_edit(event: ev.Event, after: State) -> tuple[str, str] | None:
    match event:
        case ev.ExperimentMoved():
            order = list(after.experiments)
            side = "before" if order.index(event.experiment) < order.index(event.past) else "behind"
            return event.experiment, f"moved by hand, {side} {event.past}"
        case ev.ExperimentChanged():
            changes = [f"--{flag} {arg_text(value)}" for flag, value in shown_args(event.args).items()]
            changes += [f"{name}={arg_text(value)}" for name, value in shown_env(event.env).items()]
            return event.experiment, f"changed by hand: {' '.join(changes)}"
        case ev.DeadEndMarked():
            return event.experiment, f"a dead end by hand: {event.reason}"
        case ev.NoteWritten():
            return event.experiment, f"note: {event.text}"
        case ev.NoteTakenBack():
            return event.experiment, "a note is taken back"
        case ev.TodoAdded():
            return "to do", event.text
        case ev.TodoTicked():
            return "to do", f"{'done' if event.done else 'not done yet'}: {after.todos[event.todo].text}"
        case _:
            return None


def _tell_load(before: State, event: ev.Event, after: State) -> tuple[str, str] | None:
    launch = after.launches[event.launch]  # type: ignore[attr-defined]
    which = f"{SMOKE_LOAD} " if launch.purpose == "smoke" else ""
    match event:
        case ev.LaunchStarted():
            if event.pid is None:
                return launch.experiment, f"attached to the server at port {event.port}"
            return launch.experiment, f"loading: pid {event.pid}, port {event.port}"
        case ev.LaunchVoid():
            return launch.experiment, f"nothing was started: {event.reason}; it is launched anew"
        case ev.PhaseEntered():
            return launch.experiment, f"loading: {load_text(launch)}"
        case ev.PhaseProgressed():
            told = before.launches[launch.id].fraction or 0.0
            crossed = int(told / _PROGRESS_STEP) < int((event.fraction or 0.0) / _PROGRESS_STEP)
            return (launch.experiment, f"loading: {load_text(launch)}") if crossed else None
        case ev.LoadDoubted():
            return launch.experiment, f"loading: {event.text or 'it goes on'}"
        case ev.ServerReady():
            odd = [f for f in event.flags if f.status in ("rewritten", "contradicted")]
            flags = "".join(f"; --{f.flag} {f.status}: {f.requested} is {f.effective}" for f in odd)
            return launch.experiment, f"{which}ready after {duration(event.load_s)}{flags}"
        case ev.ServerFailed():
            failure = event.failure
            rank = "" if failure.rank is None else f" on rank {failure.rank}"
            return launch.experiment, f"{which}failed in {failure.phase}{rank}: {failure.reason}"
        case _:
            return None


def _tell_task(event: ev.TaskRequested | ev.TaskFinished, after: State) -> tuple[str, str] | None:
    if isinstance(event, ev.TaskRequested):
        return event.task.experiment, f"{event.task.kind} started: {event.task.title}"
    task = after.tasks[event.task].task
    quotes = event.finding.quotes
    where = f"  {quotes[0].path}:{quotes[0].line}" if quotes else ""
    outcome = event.finding.outcome or event.status
    return task.experiment, f"{task.kind} {outcome}: {event.finding.summary}{where}"


def _tell_measurement(event: ev.Event, after: State) -> tuple[str, str] | None:
    match event:
        case ev.RoundMeasured():
            m = event.metrics
            text = f"{m.output_throughput:.1f} tok/s, TTFT {m.ttft_ms:.0f} ms, TPOT {m.tpot_ms:.1f} ms"
            text += f"  {doubts_text(m)}" if m.hygiene else ""
            return after.launches[event.launch].experiment, f"{event.workload} round {event.index + 1}: {text}"
        case ev.RoundFailed():
            return after.launches[event.launch].experiment, f"{event.workload} round {event.index + 1}: {event.reason}"
        case ev.RoundSpoilt():
            text = f"{event.workload} round {event.index + 1} spoilt: {event.reason}; repeated"
            return after.launches[event.launch].experiment, text
        case ev.GuardEnded():
            launch = after.launches[event.launch]
            return launch.experiment, f"guard: {'; '.join(guard_lines(after, launch))}"
        case ev.LaunchPlanned():
            return event.experiment, f"near: {near_text(after, after.experiments[event.experiment])}"
        case ev.VerdictReached():
            experiment = after.experiments[event.experiment]
            value = " ".join(filter(None, (value_text(after, experiment), change_text(after, experiment))))
            # Why a launch failed has a line of its own already.
            why = "" if event.parent.word == "failed" else f": {event.parent.reason}"
            verdict = f"verdict {event.parent.word}{why}"
            if event.incumbent.against != event.parent.against:
                verdict += f"; against the incumbent {event.incumbent.word}: {event.incumbent.reason}"
            return event.experiment, f"{value}  {verdict}" if value else verdict
        case _:
            return None
