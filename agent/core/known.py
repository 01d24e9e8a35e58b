"""Dead ends with their scope: what each stands on, and which of earlier sessions are known on this host."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from agent.core import events as ev
from agent.core.model import BARREN, DEAD, LaunchConfig
from agent.core.plan import config_of, flag_words, lineage
from agent.core.scope import (
    ANYTHING,
    HOST,
    INSTALLED,
    LAUNCH,
    MODEL_FLAGS,
    PACKAGES,
    READ,
    UNKNOWN,
    Facts,
    KnownDeadEnd,
    Standing,
    host_facts,
    launch_facts,
    standing,
)
from agent.core.state import ExperimentState, Stage, State
from agent.core.views.basics import Place, place_of
from agent.core.views.flags import HIDDEN, config_used, shown_args, shown_env
from agent.playbook.hardware import Numa
from agent.playbook.model import Args, Env
from agent.playbook.preflights import EnvCheck, GpuCheck, Scope, Topology

_OURS = ("stopped", "internal")
"""Failures of a launch that say nothing of the idea: a person ended it, or a fault of tunebot did."""

_WIRED = ("GPU", "GPUs", "topology")
_GPUS: Mapping[type, tuple[str, ...]] = {GpuCheck: ("GPU", "GPUs"), Topology: _WIRED, Numa: _WIRED}
"""The checks that look at more than the kind of the GPUs."""

_QUOTES = 3
"""Lines of evidence that a host's history keeps."""


def environment_of(config: LaunchConfig) -> str:
    """The program that begins a server's command: it stands for the environment in which the server runs."""
    return config.command[0]


def environments(state: State) -> dict[str, LaunchConfig]:
    """The environments that exist by now, each with a configuration that runs in it, the baseline's first."""
    found: dict[str, LaunchConfig] = {}
    for experiment in sorted(state.experiments.values(), key=lambda one: not one.spec.baseline):
        chain = lineage(state.experiments, experiment.id)
        if all(link.prepared == len(link.spec.prepare) for link in chain):
            config = config_of(state, experiment.id)
            found.setdefault(environment_of(config), config)
    return found


def facts_for(state: State, config: LaunchConfig) -> dict[str, str]:
    """All facts on which a launch would stand now, as far as they are known."""
    there = state.facts.get(environment_of(config), {})
    facts = dict(host_facts(state.host))
    facts |= {name: state.facts.get("", {}).get(name, UNKNOWN) for name in READ}
    if state.host.image:
        facts["image"] = state.host.image
    facts[config.kind] = there.get(config.kind, UNKNOWN)
    facts |= {name: there.get(name, UNKNOWN) for name in (*PACKAGES, INSTALLED)}
    if not there:  # then the place of the server says most
        facts["environment"] = environment_of(config)
    args = {flag: value for flag, value in shown_args(config.args).items() if flag not in MODEL_FLAGS}
    words = [" ".join(flag_words({flag: value})) for flag, value in args.items()]
    words += [f"{name}={value}" for name, value in shown_env(config.env).items() if value is not None]
    return facts | dict(launch_facts(config, [word for word in words if word]))


def scope_of(state: State, experiment: ExperimentState) -> Facts:
    """What the end of an experiment stands on: what its check looked at, and everything where it was launched."""
    config = config_used(state, experiment)
    kind, facts = config.kind, facts_for(state, config)
    compared = {name: facts.get(name, UNKNOWN) for name in _names(state, experiment, kind)}
    within = {kind, *PACKAGES, INSTALLED} & compared.keys()
    return compared | {name: facts[name] for name in ("image", "environment") if within and name in facts}


def _names(state: State, experiment: ExperimentState, kind: str) -> tuple[str, ...]:
    if experiment.verdict is None or experiment.verdict.word != "ruled-out":
        return (*HOST, kind, *PACKAGES, *LAUNCH)
    present = (t.task for t in state.tasks.values() if not t.stale)
    said = (task for task in present if task.experiment == experiment.id and task.is_check)
    ruling = (t for t in said if (f := state.tasks[t.id].finding) and f.outcome in ("fails", "no-effect"))
    task = next(ruling, None)
    check = getattr(task.entry, "check", None) if task else None
    if check is None:
        return (kind, *LAUNCH)
    if isinstance(check, EnvCheck):  # the variable itself is what makes it this experiment
        return ("NCCL",) if check.name.startswith("NCCL_") else ()
    source = str(getattr(check, "file", "")).partition(":")[0]
    by_scope: Mapping[Scope, tuple[str, ...]] = {
        "source": (source if source in PACKAGES else kind,),
        "environment": (kind, *PACKAGES, INSTALLED),
        "flags": LAUNCH,
        "gpus": _GPUS.get(type(check), ("GPU",)),
        "cuda": ("driver", "torch", "CUDA toolkit"),
        "driver": ("driver", "driver options"),
        "pcie": (*_WIRED, "PCIe link", "IOMMU"),
        "power": ("GPU", "power limit"),
        "host": (ANYTHING,),
    }
    return tuple(dict.fromkeys(name for scope in check.scope for name in by_scope[scope]))


def stamped(before: State, event: ev.Event, after: State) -> State:
    """The state after an event, where an experiment that ended by it has the time and the scope of its end.

    What ended in an environment before anything was read of it gets its facts as soon as they come.
    """
    if isinstance(event, ev.FactsRead):
        return _filled(after, event)
    name = getattr(event, "experiment", None)
    ended = after.experiments.get(name) if isinstance(name, str) else None
    if ended is None or ended.stage is not Stage.ENDED:
        return after
    was = before.experiments.get(ended.id)
    if was is not None and was.stage is Stage.ENDED:
        return after
    return after.with_experiment(ended.id, scope=scope_of(after, ended), ended_at=event.at)


def _filled(state: State, event: ev.FactsRead) -> State:
    for experiment in state.experiments.values():
        if UNKNOWN in experiment.scope.values():
            config = config_used(state, experiment)
            if event.environment in ("", environment_of(config)):
                was = {name: value for name, value in experiment.scope.items() if value != UNKNOWN}
                scope = {name: was.get(name, value) for name, value in scope_of(state, experiment).items()}
                state = state.with_experiment(experiment.id, scope=scope)
    return state


def changes_of(state: State, experiment: ExperimentState) -> tuple[Args, Env]:
    """Flags and variables against the baseline, as the playbook has them; values of secret names are hidden."""
    args: Args = {}
    env: Env = {}
    for link in lineage(state.experiments, experiment.id)[1:]:
        args = {**args, **link.spec.args}
        env = {**env, **link.spec.env}
    return shown_args(args), shown_env(env)


def dead_ends(state: State) -> Iterator[ExperimentState]:
    """The dead ends of this session."""
    return (e for e in state.experiments.values() if place_of(state, e) is Place.DEAD_ENDS)


def same_as(state: State, experiment: ExperimentState) -> list[KnownDeadEnd]:
    """The known dead ends that an experiment is: the same changes, or without any the same environment."""
    if experiment.spec.baseline or not state.known:
        return []
    changes, here = changes_of(state, experiment), environment_of(config_used(state, experiment))
    found = [known for known in state.known if (known.args, known.env) == changes]
    return found if any(changes) else [known for known in found if known.environment == here]


def known_for(state: State, experiment: ExperimentState) -> KnownDeadEnd | None:
    """The dead end of an earlier session that an experiment is, if any; one of its own environment comes first."""
    same = same_as(state, experiment)
    here = environment_of(config_used(state, experiment)) if same else ""
    return min(same, key=lambda known: (known.environment != here, -known.at), default=None)


def standing_for(state: State, known: KnownDeadEnd, experiment: ExperimentState) -> Standing:
    """Whether a dead end of an earlier session holds for an experiment of this one."""
    return standing(known.scope, facts_for(state, config_used(state, experiment)))


def facts_there(state: State) -> dict[str, Facts]:
    """The facts of each environment that exists by now, the baseline's first."""
    return {name: facts_for(state, config) for name, config in environments(state).items()}


def standing_of(known: KnownDeadEnd, there: Mapping[str, Facts]) -> Standing:
    """Whether a dead end holds in its environment, or where that is none of `there` in the first of them.

    What else a launch would be given is not compared: no experiment says it.
    """
    facts = there.get(known.environment) or next(iter(there.values()), {})
    return standing({name: value for name, value in known.scope.items() if name != "flags"}, facts)


def known_counts(state: State) -> tuple[int, int]:
    """How many known dead ends hold here, and how many may not any more."""
    there = facts_there(state) if state.known else {}
    held = sum(standing_of(known, there).holds for known in state.known)
    return held, len(state.known) - held


def elsewhere(state: State, experiment: ExperimentState) -> Iterator[tuple[str, Standing]]:
    """Experiments in another environment, measured by now, in which a dead end of this session may not hold."""
    scope = {name: value for name, value in experiment.scope.items() if name not in LAUNCH}
    home = environment_of(config_used(state, experiment))
    for base in state.experiments.values():
        measured = base.stage is Stage.ENDED and base.verdict and base.verdict.word not in BARREN
        if base.spec.server is None or not measured or f"{experiment.id}@{base.id}" in state.experiments:
            continue
        config = config_used(state, base)
        found = standing(scope, facts_for(state, config))
        if environment_of(config) != home and found.changed:
            yield base.id, found


def to_remember(state: State) -> Iterator[KnownDeadEnd]:
    """What the host's history is to keep of a session: its dead ends, and those known that ended otherwise now."""
    dead = {e.id for e in dead_ends(state)}
    for experiment in state.experiments.values():
        if experiment.stage is not Stage.ENDED or experiment.verdict is None or experiment.ended_at is None:
            continue
        record = _record(state, experiment)
        if experiment.id in dead and not _is_ours(state, experiment):
            yield record
        elif experiment.launches and experiment.verdict.word not in DEAD:
            known = known_for(state, experiment)
            if known is not None and known.environment == record.environment:
                yield replace(record, lives=True)


def _record(state: State, experiment: ExperimentState) -> KnownDeadEnd:
    args, env = changes_of(state, experiment)
    assert experiment.verdict is not None and experiment.ended_at is not None
    return KnownDeadEnd(
        experiment=experiment.id,
        word=experiment.verdict.word,
        reason=f"by hand: {experiment.given_up}" if experiment.given_up else experiment.reason,
        at=experiment.ended_at,
        session=state.session,
        environment=environment_of(config_used(state, experiment)),
        args=args,
        env=env,
        scope=experiment.scope,
        evidence=experiment.evidence[:_QUOTES],
    )


def _is_ours(state: State, experiment: ExperimentState) -> bool:
    failure = state.launches[experiment.launches[-1]].failure if experiment.launches else None
    return failure is not None and failure.category in _OURS


def holds_secret(known: KnownDeadEnd) -> bool:
    """Whether a value that it needs was hidden: then it cannot be tried again from the history."""
    return HIDDEN in (*known.args.values(), *known.env.values())
