"""`tunebot check --preflight`: every preflight and the needed research of a playbook, without launching anything."""

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from agent.core.background import BACKGROUND_TASKS
from agent.core.model import Finding, Host, LaunchConfig, PreflightOutcome, Task, TaskKind, TaskStatus
from agent.core.plan import lineage, overlay
from agent.core.state import ExperimentState
from agent.diagnostics import Exit, UserError
from agent.playbook.model import AskEntry, Experiment, GrepEntry, Playbook, ProbeEntry, ReadEntry, ResearchEntry
from agent.playbook.preflight_entries import PreflightEntry, kind_of
from agent.ports import Target, TargetUnusable
from agent.redact import redactor
from agent.research.researcher import TargetResearcher
from agent.run import host_of
from agent.targets.choose import open_target

_MOST_QUOTES = 4
_NOT_BUILT = "its environment is not built yet: looked at after its prepare steps"
_WORDS: Mapping[PreflightOutcome, tuple[str, str]] = {
    "fails": ("✖", "would fail"),
    "no-effect": ("✖", "would have no effect"),
    "unknown": ("?", "unknown"),
    "fine": ("✔", "fine"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """One check or needed research task, and what it found. `scope` is what the outcome of a check depends on."""

    kind: str
    status: TaskStatus
    finding: Finding
    scope: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """What is known of an experiment before its load. `built` says whether its environment exists already."""

    id: str
    built: bool
    checks: tuple[Looked, ...]
    research: tuple[Looked, ...]

    @property
    def outcome(self) -> PreflightOutcome:
        """The worst of its checks; fine where it has none."""
        said = {look.finding.outcome for look in self.checks}
        order: tuple[PreflightOutcome, ...] = ("fails", "no-effect", "unknown")
        return next((outcome for outcome in order if outcome in said), "fine" if self.built else "unknown")


def check_on_target(playbook: Playbook, target: str | None, as_json: bool, out: Callable[[str], None]) -> int:
    """`tunebot check --preflight`: its exit code. Raises UserError."""
    try:
        host, foreseen = asyncio.run(foresee(playbook, target))
    except TargetUnusable as error:
        raise UserError(str(error), error.hint, Exit.TARGET_UNUSABLE) from error
    if as_json:
        out(json.dumps(json_of(playbook, host, foreseen), ensure_ascii=False, indent=2))
    else:
        for line in lines_of(playbook, host, foreseen):
            out(line)
    return Exit.RULED_OUT if ruled_out(foreseen) else Exit.OK


async def foresee(playbook: Playbook, target_name: str | None) -> tuple[Host, list[Foreseen]]:
    """Look at every experiment, in the playbook's order. Raises TargetUnusable."""
    with tempfile.TemporaryDirectory(prefix="tunebot-") as folder:
        target = open_target(target_name, playbook, Path(folder))
        try:
            host = await host_of(target)
            researcher = TargetResearcher(target, host, redactor(playbook), None)
            states = {experiment.id: ExperimentState(spec=experiment) for experiment in playbook.experiments}
            places = asyncio.Semaphore(BACKGROUND_TASKS)
            lookers = []
            for name in states:
                chain = lineage(states, name)
                built = await _is_built(target, chain)
                lookers.append(_Looker(chain[-1].spec, overlay(playbook, chain), built, researcher, places))
            async with asyncio.TaskGroup() as group:
                looks = [group.create_task(looker.look(), name=f"check {looker.experiment.id}") for looker in lookers]
            return host, [look.result() for look in looks]
        finally:
            await target.close()


async def _is_built(target: Target, chain: list[ExperimentState]) -> bool:
    """Whether everything that the prepare steps of an experiment and its ancestors create is there already."""
    steps = [step for link in chain for step in link.spec.prepare]
    return all([step.creates is not None and await target.exists(step.creates) for step in steps])


@dataclass(frozen=True, slots=True)
class _Looker:
    """Carries the tasks of one experiment out."""

    experiment: Experiment
    config: LaunchConfig
    built: bool
    researcher: TargetResearcher
    places: asyncio.Semaphore

    async def look(self) -> Foreseen:
        """Never raises for what the target does: that is an outcome."""
        checks = await asyncio.gather(*self.flags(), *map(self.check, self.experiment.preflight))
        needed = [entry for entry in self.experiment.research if entry.needed]
        research = await asyncio.gather(*map(self.research, needed))
        return Foreseen(id=self.experiment.id, built=self.built, checks=tuple(checks), research=tuple(research))

    def flags(self) -> Iterator[Awaitable[Looked]]:
        """Its flags against the source of its server, where the playbook says where that is."""
        if self.config.kind in self.config.source and self.experiment.baseline != "attach":
            yield self._flags()

    async def _flags(self) -> Looked:
        if not self.built:
            return Looked(kind="flags", status="cancelled", finding=Finding(summary=_NOT_BUILT, outcome="unknown"))
        look = await self._run("flags", "flags", None, ())
        return replace(look, finding=replace(look.finding, outcome=look.finding.outcome or "fine"))

    async def check(self, entry: PreflightEntry) -> Looked:
        if not self.built:
            finding = Finding(summary=_NOT_BUILT, outcome="unknown")
            return Looked(kind=kind_of(entry), status="cancelled", finding=finding, scope=entry.check.scope)
        return await self._run("preflight", kind_of(entry), entry, entry.check.scope)

    async def research(self, entry: ResearchEntry) -> Looked:
        kind = _research_kind(entry)
        why = "" if self.built else _NOT_BUILT
        if isinstance(entry, AskEntry):
            why = "only asked in a session: it costs money"
        elif isinstance(entry, ProbeEntry) and entry.task.gpu:
            why = "only run in a session: it needs a GPU"
        if why:
            return Looked(kind=kind, status="cancelled", finding=Finding(summary=why))
        return await self._run(kind, kind, entry, ())

    async def _run(
        self, kind: TaskKind, title: str, entry: PreflightEntry | ResearchEntry | None, scope: tuple[str, ...]
    ) -> Looked:
        name = self.experiment.id
        task = Task(
            id=f"{name}/{title}",
            experiment=name,
            kind=kind,
            title=title,
            entry=entry,
            config=self.config,
            needed=True,
        )
        async with self.places:
            status, finding = await self.researcher.run(task, lambda event: None)
        return Looked(kind=title, status=status, finding=finding, scope=scope)


def _research_kind(entry: ResearchEntry) -> TaskKind:
    match entry:
        case GrepEntry():
            return "grep"
        case ReadEntry():
            return "read"
        case ProbeEntry():
            return "probe"
        case AskEntry():
            return "ask"


def ruled_out(foreseen: Sequence[Foreseen]) -> int:
    """How many experiments would fail or change nothing."""
    return sum(one.outcome in ("fails", "no-effect") for one in foreseen)


def json_of(playbook: Playbook, host: Host, foreseen: Sequence[Foreseen]) -> dict[str, Any]:
    """Everything as JSON-ready values."""
    experiments = [{"outcome": one.outcome, **asdict(one)} for one in foreseen]
    return {"name": playbook.name, "host": asdict(host), "experiments": experiments, "ruled_out": ruled_out(foreseen)}


def lines_of(playbook: Playbook, host: Host, foreseen: Sequence[Foreseen]) -> Iterator[str]:
    """The same for a person: each experiment with what its checks say, and the lines that show it."""
    yield f"{playbook.name} on {_described(host)}"
    for one in foreseen:
        yield ""
        glyph, word = _WORDS[one.outcome] if one.checks else ("○", "nothing to check")
        yield f"{glyph} {one.id}: {word}"
        for look in one.checks:
            glyph, word = _WORDS[look.finding.outcome or "unknown"]
            yield f"    {glyph} {look.kind} · {word}: {look.finding.summary}"
            # Where nothing is wrong, the sentence is enough.
            for quote in look.finding.quotes[-_MOST_QUOTES:] if look.finding.outcome != "fine" else ():
                yield f"          {quote.path}:{quote.line}  {quote.text.strip()}"
        for look in one.research:
            yield f"    {'✔' if look.status == 'done' else '?'} {look.kind} · {look.status}: {look.finding.summary}"
    yield ""
    count = ruled_out(foreseen)
    yield f"{count} of {len(foreseen)} experiments would fail or change nothing; nothing was launched"


def _described(host: Host) -> str:
    if not host.gpus:
        return f"{host.name} (no GPU)"
    names = Counter(f"{gpu.name}, SM {gpu.sm_major}.{gpu.sm_minor}" for gpu in host.gpus)
    gpus = "; ".join(f"{count} x {name}" for name, count in names.items())
    simulated = "simulated, " if host.simulated else ""
    return f"{host.name} ({simulated}{gpus}; CUDA up to {host.cuda or '?'})"
