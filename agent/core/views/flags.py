"""The flags and variables of an experiment against its parent, and the command that they make."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from agent.core.model import FlagCheck, LaunchConfig, Quote
from agent.core.plan import config_of, flag_words, overlay
from agent.core.smoke import real_launches
from agent.core.state import ExperimentState, Stage, State
from agent.core.views.basics import command_line
from agent.playbook.model import Args, ArgValue, Env, Experiment
from agent.redact import is_secret_name

Mark = Literal["+", "~", "-", " "]
HIDDEN = "‹hidden›"
"""Stands for the value of a flag or variable whose name tells that it is secret."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagRow:
    """A flag (or variable) against the parent: new `+`, changed `~`, taken away `-`, inherited.

    `before` is the parent's value where it was changed or taken away; `origin` the finding that demanded the flag.
    """

    mark: Mark
    name: str
    requested: str
    before: str
    effective: str
    status: str
    origin: str


def arg_text(value: ArgValue) -> str:
    """A flag's value for people: `on`, `off`, `none`, or as written."""
    match value:
        case None:
            return "none"
        case bool():
            return "on" if value else "off"
        case tuple():
            return " ".join(value)
    return value


def command_of(state: State, name: str) -> str:
    """The launch command as one would type it: the environment, then the argv of the last launch or of the next one."""
    experiment = state.experiments[name]
    config = config_used(state, experiment)
    launched = [launch.argv for launch in real_launches(state, experiment) if launch.argv]
    argv = launched[-1] if launched else (*config.command, *flag_words(shown_args(config.args)))
    unset = [word for variable, text in config.env.items() if text is None for word in ("-u", variable)]
    env = [f"{variable}={_typed(variable, text)}" for variable, text in config.env.items() if text is not None]
    return " ".join([*(["env", *unset] if unset else []), *env, command_line(argv)])


def _typed(name: str, text: str) -> str:
    return command_line([_hidden(name, text)])


def shown_args(args: Args) -> Args:
    """The flags with the values of secret ones hidden."""
    return {flag: _hidden(flag, value) if isinstance(value, str) else value for flag, value in args.items()}


def shown_env(env: Env) -> Env:
    """The variables with the values of secret ones hidden."""
    return {name: _hidden(name, value) if isinstance(value, str) else value for name, value in env.items()}


def _hidden(name: str, text: str) -> str:
    return HIDDEN if is_secret_name(name) else text


def config_used(state: State, experiment: ExperimentState) -> LaunchConfig:
    """What it was launched with the last time, or would be launched with now."""
    launches = real_launches(state, experiment)
    if launches and experiment.stage is not Stage.TODO:
        return launches[-1].config
    return config_of(state, experiment.id)


def _parent_config(state: State, experiment: ExperimentState) -> LaunchConfig:
    parent = experiment.spec.based_on
    return config_of(state, parent) if parent else overlay(state.playbook, [])


def flag_rows(state: State, experiment: ExperimentState, config: LaunchConfig) -> tuple[FlagRow, ...]:
    """The flags against the parent's, and against what the server reported: what is different comes first."""
    checks: dict[str, FlagCheck] = {}
    for launch in real_launches(state, experiment):
        checks |= {check.flag: check for check in launch.flags}
    before = _parent_config(state, experiment).args
    rows = []
    for name, (mark, old, new) in _changes(before, config.args).items():
        check = checks.get(name)
        rows.append(
            FlagRow(
                mark=mark,
                name=f"--{name}",
                requested="" if mark == "-" else _hidden(name, arg_text(new)),
                before=_hidden(name, arg_text(old)) if mark in "~-" else "",
                effective=_hidden(name, check.effective or "") if check else "",
                status=check.status if check else "",
                origin=_origin(state, experiment, name),
            )
        )
    return tuple(rows)


def env_rows(state: State, experiment: ExperimentState, config: LaunchConfig) -> tuple[FlagRow, ...]:
    """The variables against the parent's; no server reports those."""
    rows = []
    for name, (mark, old, new) in _changes(_parent_config(state, experiment).env, config.env).items():
        requested = "unset" if new is None else _hidden(name, arg_text(new))
        before = _hidden(name, arg_text(old)) if mark in "~-" else ""
        row = FlagRow(mark=mark, name=name, requested=requested, before=before, effective="", status="", origin="")
        rows.append(row)
    return tuple(rows)


def _changes(
    before: Mapping[str, ArgValue], after: Mapping[str, ArgValue]
) -> dict[str, tuple[Mark, ArgValue, ArgValue]]:
    """What is different first, then what is inherited."""
    different: dict[str, tuple[Mark, ArgValue, ArgValue]] = {}
    for name in dict.fromkeys([*before, *after]):
        old, new = before.get(name), after.get(name)
        if name not in after or (new is None and old is not None):
            different[name] = ("-", old, new)
        elif name not in before:
            different[name] = ("+", None, new)
        elif old != new:
            different[name] = ("~", old, new)
    inherited: dict[str, tuple[Mark, ArgValue, ArgValue]] = {
        name: (" ", value, value) for name, value in after.items() if name not in different
    }
    return different | inherited


def _origin(state: State, experiment: ExperimentState, flag: str) -> str:
    """The finding that demanded a flag which was added to the experiment."""
    if flag not in experiment.added:
        return ""
    for task in state.tasks.values():
        ours = task.task.experiment == experiment.id and not task.stale
        if ours and task.finding and flag in task.finding.requires:
            quote = demanding(task.finding.quotes, flag, arg_text(task.finding.requires[flag]))
            return f"{quote.path}:{quote.line}" if quote else task.task.id
    return "a finding"


def demanding(quotes: Sequence[Quote], flag: str, value: str) -> Quote | None:
    """The quote that says most about a demanded flag: with its field and its value, then with its value."""
    field = flag.replace("-", "_")
    best = [quote for quote in quotes if field in quote.text and value in quote.text]
    best += [quote for quote in quotes if value in quote.text]
    return next(iter(best), None)


def spec_rows(state: State, spec: Experiment) -> tuple[FlagRow, ...]:
    """What an experiment that is not in the plan yet would change against its parent."""
    planned = replace(state, experiments={**state.experiments, spec.id: ExperimentState(spec=spec)})
    experiment, config = planned.experiments[spec.id], config_of(planned, spec.id)
    rows = (*flag_rows(planned, experiment, config), *env_rows(planned, experiment, config))
    return tuple(flag for flag in rows if flag.mark != " ")
