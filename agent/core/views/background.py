"""What the run screen shows of the background lane. Pure values of a state and a moment."""

from dataclasses import dataclass

from agent.core.state import State, TaskState
from agent.core.views.panels import Tone, short_duration
from agent.core.views.tasks import told_of


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
        elapsed=short_duration((now if task.ended_at is None else task.ended_at) - task.started_at),
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
    summary = told_of(task) if task.finding else ""
    outcome = task.finding.outcome if task.finding and task.status == "done" else None
    if task.status == "done" and outcome is None:
        return "✔", "good", summary or "done"
    glyph, tone, word = _OUTCOMES[outcome or task.status]
    return glyph, tone, f"{word}: {summary}" if summary and summary != word else word
