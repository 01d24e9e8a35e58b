"""Carries out the background tasks of a session on one target."""

import time
from collections.abc import Sequence

from agent.core import events as ev
from agent.core.model import CallTimes, Finding, Host, LaunchConfig, PreflightOutcome, Task, TaskStatus
from agent.flags.check import check_args
from agent.flags.model import readable
from agent.playbook.model import AskEntry, GrepEntry, ProbeEntry, ReadEntry
from agent.ports import Target, TargetUnusable
from agent.research.ask import NEEDS_KEY, Asker
from agent.research.call_times import call_times_task
from agent.research.common import Redact, ResearchError, Result, sentence
from agent.research.facts import Facts, SessionFacts
from agent.research.grep import grep_task
from agent.research.preflight import preflight
from agent.research.probe import probe_task
from agent.research.proposals import check_known_flags
from agent.research.read import read_task
from agent.research.resolver import FlagResolver
from agent.research.sources import Sources
from agent.research.tool import Scope
from agent.research.toolbox import Tell


class TargetResearcher:
    """The Researcher of `agent.ports` for one target. Without an `asker`, questions end as needs-key."""

    def __init__(
        self, target: Target, host: Host, redact: Redact, asker: Asker | None, facts: Facts = SessionFacts
    ) -> None:
        """`facts` tells what questions may know of the session at that moment."""
        self._target = target
        self._host = host
        self._redact = redact
        self._asker = asker
        self._facts = facts
        self._resolver = FlagResolver()

    async def run(self, task: Task, tell: Tell) -> tuple[TaskStatus, Finding]:
        """Run one task. Whatever a target, a file or an LLM does ends as a status and a summary."""
        outcome: PreflightOutcome | None = "unknown" if task.is_check else None
        try:
            return await self._run(task, tell)
        except ResearchError as error:
            return error.status, Finding(summary=sentence(str(error), self._redact), outcome=outcome)
        except TargetUnusable as error:
            return "failed", Finding(summary=sentence(str(error), self._redact), outcome=outcome)

    async def _run(self, task: Task, tell: Tell) -> Result:
        def progress(action: str) -> None:
            tell(ev.TaskProgressed(at=time.time(), task=task.id, action=action))

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
                scope = Scope(sources=sources, config=task.config, host=self._host, facts=self._facts)
                return await self._asker.answer(scope, task, question, self._check_flags, tell)
            case CallTimes() as calls:
                return await call_times_task(sources, calls, self._host, task.config, progress)
            case None:
                return "done", await self._resolver.finding(sources, task.config, progress)
            case check:
                return "done", await preflight(sources, check, self._host, task.config, self._resolver.table, progress)

    async def _check_flags(self, sources: Sources, config: LaunchConfig) -> Sequence[str]:
        """By the installed source where it can be read, else by what is known of this kind of server."""
        kind = readable(config.kind)
        if kind is None:
            return ()
        try:
            table = await self._resolver.table(sources, kind, lambda action: None)
        except (ResearchError, TargetUnusable):
            return await check_known_flags(sources, config)
        return [f"{problem.message}; {problem.hint}" for problem in check_args(table, config.args) if problem.fatal]
