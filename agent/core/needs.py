"""What waits for a person: steps to approve, flags to accept, questions that need a key."""

from collections.abc import Iterator
from dataclasses import dataclass

from agent.core.model import LaunchConfig, Quote
from agent.core.plan import (
    approvals_missing,
    approvals_needed,
    config_of,
    flag_words,
    plan_approval,
    proposal_digest,
)
from agent.core.state import Stage, State, TaskState
from agent.core.views.expected import best_of, expected_of
from agent.core.views.flags import shown_args, shown_env
from agent.playbook.model import Args, ArgValue

READABLE = 8000
"""Characters of a command that a person may be expected to read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A step that changes the host. `run` is the argv as it would be executed, `needed` the `ID@HASH` of its bytes.

    `plan` is the `ID@HASH` that approves all `steps` of its experiment at once.
    """

    key: str
    experiment: str
    step: int
    steps: int
    run: tuple[str, ...]
    creates: str | None
    target: str
    needed: str
    plan: str
    why: str

    @property
    def readable(self) -> bool:
        """Whether a person can be shown all of it; what cannot be shown whole is not approved on the screen."""
        return sum(map(len, self.run)) <= READABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """Flags that a finding says are demanded: `changes` are (flag, value now, value then); None is not given.

    `from_llm` tells that a language model says so, not the source.
    """

    key: str
    experiment: str
    task: str
    summary: str
    adds: Args
    changes: tuple[tuple[str, ArgValue, ArgValue], ...]
    quotes: tuple[Quote, ...]
    from_llm: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """An experiment that an LLM proposed. `command` is the argv of its launch as it would be executed, with `env`.

    `changes` are (flag or variable, value of its parent, its value); `digest` stands for exactly these bytes.
    `expected` is the most that it could gain, in words; empty where it says nothing of that.
    """

    key: str
    experiment: str
    based_on: str
    why: str
    target: str
    command: tuple[str, ...]
    env: tuple[tuple[str, str | None], ...]
    changes: tuple[tuple[str, ArgValue, ArgValue], ...]
    digest: str
    expected: str
    quotes: tuple[Quote, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingKey:
    """A question that cannot be asked without a key for the LLM."""

    key: str
    experiment: str
    task: str
    question: str
    summary: str


Need = Approval | Completion | Proposal | MissingKey


def needs(state: State) -> tuple[Need, ...]:
    """All that waits for a person, what holds up a launch first; nothing once the session has ended."""
    if state.ending:
        return ()
    return (*_approvals(state), *_completions(state), *_proposals(state), *_missing_keys(state))


def target_name(state: State) -> str:
    """The host as people call it: the name it is reached by, and what it calls itself where that differs."""
    target = state.playbook.target
    name = target if isinstance(target, str) else f"ssh {target.ssh}"
    return name if state.host.name in name else f"{name} ({state.host.name})"


def _approvals(state: State) -> Iterator[Approval]:
    for experiment in state.experiments.values():
        if experiment.stage is not Stage.TODO:
            continue
        spec = experiment.spec
        missing = approvals_missing(state.playbook, spec, state.approved)
        for step, (prepare, needed) in enumerate(
            zip(spec.prepare, approvals_needed(state.playbook, spec), strict=True)
        ):
            if step >= experiment.prepared and needed in missing:
                yield Approval(
                    key=f"{experiment.id}/prepare{step + 1}",
                    experiment=experiment.id,
                    step=step,
                    steps=len(spec.prepare),
                    run=prepare.run,
                    creates=prepare.creates,
                    target=target_name(state),
                    needed=needed,
                    plan=plan_approval(state.playbook, spec),
                    why=spec.why,
                )


def _completions(state: State) -> Iterator[Completion]:
    for task in state.tasks.values():
        # By `accept: resolver` the source's are added without asking, an LLM's never.
        if state.playbook.accept == "resolver" and task.task.kind != "ask":
            continue
        if completion := _completion(state, task):
            yield completion


def _completion(state: State, task: TaskState) -> Completion | None:
    experiment = state.experiments[task.task.experiment]
    if task.stale or task.finding is None or not task.finding.requires or experiment.stage is not Stage.TODO:
        return None
    present = config_of(state, experiment.id).args
    adds = {flag: value for flag, value in task.finding.requires.items() if present.get(flag) != value}
    if not adds:
        return None
    return Completion(
        key=task.task.id,
        experiment=experiment.id,
        task=task.task.id,
        summary=task.finding.summary,
        adds=adds,
        changes=tuple((flag, present.get(flag), value) for flag, value in adds.items()),
        quotes=task.finding.quotes,
        from_llm=task.task.kind == "ask",
    )


def _proposals(state: State) -> Iterator[Proposal]:
    """Those first that could gain most."""
    proposed = [e for e in state.experiments.values() if e.stage is Stage.PROPOSED]
    for experiment in sorted(proposed, key=lambda one: best_of(state, one) or 0.0, reverse=True):
        if experiment.spec.based_on is None:
            continue
        expected = expected_of(state, experiment)
        parent, config = config_of(state, experiment.spec.based_on), config_of(state, experiment.id)
        before, after = _settings(parent), _settings(config)
        names = dict.fromkeys((*before, *after))
        task = state.tasks.get(experiment.proposed_by or "")
        yield Proposal(
            key=f"{experiment.id}/proposal",
            experiment=experiment.id,
            based_on=experiment.spec.based_on,
            why=experiment.spec.why,
            target=target_name(state),
            command=(*config.command, *flag_words(shown_args(config.args))),
            env=tuple(shown_env(config.env).items()),
            changes=tuple((n, before.get(n), after.get(n)) for n in names if before.get(n) != after.get(n)),
            digest=proposal_digest(state, experiment.id),
            expected=expected.lines[0] if expected else "",
            quotes=task.finding.quotes if task and task.finding else (),
        )


def _settings(config: LaunchConfig) -> dict[str, ArgValue]:
    args = {f"--{flag}": value for flag, value in shown_args(config.args).items()}
    return {**args, **shown_env(config.env)}


def _missing_keys(state: State) -> Iterator[MissingKey]:
    for task in state.tasks.values():
        if task.status == "needs-key" and state.experiments[task.task.experiment].stage is not Stage.ENDED:
            yield MissingKey(
                key=task.task.id,
                experiment=task.task.experiment,
                task=task.task.id,
                question=task.task.title,
                summary=task.finding.summary if task.finding else "",
            )
