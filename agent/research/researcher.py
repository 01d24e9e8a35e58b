"""Carries out the background tasks of a session on one target."""

from agent.core.model import Finding, Host, PreflightOutcome, Task, TaskStatus
from agent.playbook.model import AskEntry, GrepEntry, ProbeEntry, ReadEntry
from agent.ports import Target, TargetUnusable
from agent.research.ask import NEEDS_KEY, Asker
from agent.research.common import Progress, Redact, ResearchError, Result, sentence
from agent.research.grep import grep_task
from agent.research.preflight import preflight
from agent.research.probe import probe_task
from agent.research.read import read_task
from agent.research.sources import Sources


class TargetResearcher:
    """The Researcher of `agent.ports` for one target. Without an `asker`, questions end as needs-key."""

    def __init__(self, target: Target, host: Host, redact: Redact, asker: Asker | None) -> None:
        self._target = target
        self._host = host
        self._redact = redact
        self._asker = asker

    async def run(self, task: Task, progress: Progress) -> tuple[TaskStatus, Finding]:
        """Run one task. Whatever a target, a file or an LLM does ends as a status and a summary."""
        outcome: PreflightOutcome | None = "unknown" if task.kind == "preflight" else None
        try:
            return await self._run(task, progress)
        except ResearchError as error:
            return error.status, Finding(summary=sentence(str(error), self._redact), outcome=outcome)
        except TargetUnusable as error:
            return "failed", Finding(summary=sentence(str(error), self._redact), outcome=outcome)

    async def _run(self, task: Task, progress: Progress) -> Result:
        sources = Sources(self._target, {**self._target.trees, **task.config.source}, self._redact)
        match task.entry:
            case GrepEntry(task=entry):
                return await grep_task(sources, entry, progress)
            case ReadEntry(task=entry):
                return await read_task(sources, entry, task.config, progress)
            case ProbeEntry(task=entry):
                return await probe_task(sources, entry, task.config, progress)
            case AskEntry(task=question):
                if self._asker is None:
                    return "needs-key", Finding(summary=NEEDS_KEY)
                return await self._asker.answer(sources, question, task.config, self._host, progress)
            case check:
                return "done", await preflight(sources, check, self._host, task.config, progress)
