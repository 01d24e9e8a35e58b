"""What a launch of an experiment would run, and what its preparation needs approval for."""

import hashlib
import json
from collections.abc import Container, Iterator, Mapping

from agent.core.model import LaunchConfig
from agent.core.state import ExperimentState, State
from agent.playbook.model import Args, ArgValue, Experiment, Playbook, PrepareStep


def lineage(experiments: Mapping[str, ExperimentState], experiment: str) -> list[ExperimentState]:
    """The experiment's ancestors from the baseline down to itself."""
    chain = [experiments[experiment]]
    while (parent := chain[-1].spec.based_on) is not None:
        chain.append(experiments[parent])
    return chain[::-1]


def config_of(state: State, experiment: str) -> LaunchConfig:
    """The launch configuration: the server's, with each ancestor's changes laid over it, oldest first."""
    return overlay(state.playbook, lineage(state.experiments, experiment))


def planned_configs(playbook: Playbook) -> dict[str, LaunchConfig]:
    """What each experiment of a playbook would run by its words alone, by their ids."""
    planned = {experiment.id: ExperimentState(spec=experiment) for experiment in playbook.experiments}
    return {name: overlay(playbook, lineage(planned, name)) for name in planned}


def overlay(playbook: Playbook, chain: list[ExperimentState]) -> LaunchConfig:
    """The playbook's server with the changes of `chain` laid over it; None takes an inherited flag away."""
    server = playbook.server
    args: dict[str, ArgValue] = dict(server.args)
    env: dict[str, str | None] = dict(server.env)
    command, source, version = server.command, dict(server.source), server.version
    for link in chain:
        args |= {**link.spec.args, **link.added}
        env |= link.spec.env
        if override := link.spec.server:
            command = override.command or command
            version = override.version or version
            source |= override.source or {}
            env |= override.env
    return LaunchConfig(
        kind=server.kind,
        command=command,
        args={flag: value for flag, value in args.items() if value is not None},
        env=env,
        source=source,
        version=version,
        load_timeout_s=server.load_timeout,
    )


def reopened_spec(state: State, dead_end: str, base: str) -> Experiment:
    """A dead end as it is tried again on top of an experiment that changed what it stands on, as `ID@BASE`."""
    old = state.experiments[dead_end]
    word = old.verdict.word if old.verdict else "given up"
    why = f"{dead_end} was {word} ({old.reason}); {base} changes what it stands on"
    change = {"id": f"{dead_end}@{base}", "based_on": base, "why": why, "when": None, "revisit": (), "server": None}
    return old.spec.model_copy(update=change)


def flag_words(args: Args) -> Iterator[str]:
    """The flags as argv elements, in the order of the playbook."""
    for name, value in args.items():
        if value is None or value is False:
            continue
        yield f"--{name}"
        if isinstance(value, tuple):
            yield from value
        elif value is not True:
            yield value


def proposal_digest(state: State, experiment: str) -> str:
    """Twelve hex digits that stand for exactly what a proposed experiment would run, and where."""
    config = config_of(state, experiment)
    content = [state.host.name, experiment, list(config.command), dict(config.args), dict(config.env)]
    return hashlib.sha256(json.dumps(content, ensure_ascii=False, sort_keys=True).encode()).hexdigest()[:12]


def step_digest(playbook: Playbook, step: PrepareStep) -> str:
    """Twelve hex digits that stand for exactly these bytes of a step on this target. An approval names them."""
    target = playbook.target if isinstance(playbook.target, str) else playbook.target.ssh
    content = json.dumps([target, list(step.run), step.creates], ensure_ascii=False)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def approvals_needed(playbook: Playbook, experiment: Experiment) -> Iterator[str]:
    """The `ID@HASH` of each step of an experiment that changes the host."""
    for step in experiment.prepare:
        yield f"{experiment.id}@{step_digest(playbook, step)}"


def plan_approval(playbook: Playbook, experiment: Experiment) -> str:
    """The `ID@HASH` of all steps of an experiment in their order; of a single one, its own."""
    steps = list(approvals_needed(playbook, experiment))
    if len(steps) < 2:
        return "".join(steps)
    return f"{experiment.id}@{hashlib.sha256(json.dumps(steps).encode()).hexdigest()[:12]}"


def approvals_missing(playbook: Playbook, experiment: Experiment, approved: Container[str]) -> list[str]:
    """The `ID@HASH` of each step that is approved neither by itself nor with all others."""
    if plan_approval(playbook, experiment) in approved:
        return []
    return [needed for needed in approvals_needed(playbook, experiment) if needed not in approved]
