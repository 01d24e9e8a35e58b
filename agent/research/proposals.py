"""What an LLM wants changed: the flags that it recommends and the experiment that it proposes, held against what is so.

Whatever fails a check is dropped, with the reason. What passes is still only shown to a person.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from agent.core.model import LaunchConfig
from agent.playbook.model import Args, ArgValue, Experiment
from agent.playbook.problems import nearest, shown
from agent.research.answer_form import FlagForm, ProposalForm, RemovalForm, VariableForm
from agent.research.facts import SessionFacts
from agent.research.sources import Sources
from agent.research.tool import problems
from agent.servers.known_flags import known_flags
from agent.text import clean, one_line

CheckFlags = Callable[[Sources, LaunchConfig], Awaitable[Sequence[str]]]
"""What is wrong with the flags of a configuration, a sentence each; of the sources of its task."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_FLAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LONGEST_VALUE = 2000
_MOST = 40


class Unfit(Exception):
    """Something that an LLM proposed cannot be tried. The message is the reason."""


async def check_known_flags(sources: Sources, config: LaunchConfig) -> Sequence[str]:
    """Flags that this kind of server has in no version that tunebot knows."""
    known = {name for group in known_flags(config.kind) for name in group}
    # vLLM reads --compilation-config.mode as a key of that JSON.
    names = {flag: flag.partition(".")[0] if config.kind == "vllm" else flag for flag in config.args}
    unknown = [flag for flag, name in names.items() if known and name not in known]
    return [f"{config.kind} has no flag {shown(flag)}{_meant(flag, known)}" for flag in unknown]


async def recommended(
    flags: Sequence[FlagForm], config: LaunchConfig, sources: Sources, check: CheckFlags
) -> tuple[Args, list[str]]:
    """The flags that may be recommended for a configuration, and why others are dropped."""
    kept: dict[str, ArgValue] = {}
    dropped: list[str] = []
    for flag in flags[:_MOST]:
        try:
            one = _args([flag], sources)
            _refuse(await check(sources, replace(config, args=one)))
            _refuse(_other_spellings(one, config))
        except Unfit as reason:
            dropped.append(str(reason))
        else:
            kept |= {name: value for name, value in one.items() if config.args.get(name) != value}
    return kept, dropped


async def proposed(form: Mapping[str, Any], facts: SessionFacts, sources: Sources, check: CheckFlags) -> Experiment:
    """The proposed experiment, as a playbook would have it. Raises Unfit."""
    try:
        wanted = ProposalForm.model_validate(form)
    except ValidationError as error:
        raise Unfit(problems(error)) from error
    if not _ID.fullmatch(wanted.id):
        raise Unfit(f"{shown(wanted.id)} cannot be the id of an experiment")
    parent = facts.config_of(wanted.based_on)
    if parent is None:
        raise Unfit(f"there is no experiment {shown(wanted.based_on)} to base it on")
    args, env = _args(wanted.args, sources), _env(wanted.env, sources)
    if len(args) + len(env) > _MOST:
        raise Unfit("it changes too much at once")
    if all(parent.args.get(name) == value for name, value in args.items()) and all(
        parent.env.get(name) == value for name, value in env.items()
    ):
        raise Unfit(f"nothing is different from {wanted.based_on}")
    _refuse(_other_spellings(args, parent))
    added = {name: value for name, value in args.items() if value is not None}
    _refuse(await check(sources, replace(parent, args=added)))
    why = sources.redact(one_line(wanted.why, 500))
    try:
        removes = _removes(wanted.removes, facts)
        return Experiment(id=wanted.id, based_on=wanted.based_on, why=why, args=args, env=env, removes=removes)
    except ValidationError as error:
        raise Unfit(problems(error)) from error


def _args(flags: Iterable[FlagForm], sources: Sources) -> dict[str, ArgValue]:
    found: dict[str, ArgValue] = {}
    for flag in flags:
        name = flag.name.removeprefix("--")
        if not _FLAG.fullmatch(name) or name in found:
            raise Unfit(f"{shown(flag.name)} is no flag, or is given twice")
        for text in flag.value if isinstance(flag.value, tuple) else (flag.value,):
            _check_text(name, text, sources)
        found[name] = flag.value
    return found


def _env(variables: Iterable[VariableForm], sources: Sources) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for variable in variables:
        if not _VARIABLE.fullmatch(variable.name) or variable.name in found:
            raise Unfit(f"{shown(variable.name)} is no environment variable, or is given twice")
        _check_text(variable.name, variable.value, sources)
        found[variable.name] = variable.value
    return found


def _removes(removals: Iterable[RemovalForm], facts: SessionFacts) -> dict[str, int]:
    found: dict[str, int] = {}
    for removal in removals:
        count = facts.terms.get(removal.term)
        if count is None or removal.term in found:
            raise Unfit(f"there is no term {shown(removal.term)} to remove calls of, or it is given twice")
        if not 0 < removal.calls <= count:
            raise Unfit(f"{removal.calls} of the {count} calls of {removal.term} cannot go")
        found[removal.term] = removal.calls
    return found


def _check_text(name: str, value: str | bool | None, sources: Sources) -> None:
    """What a person approves must be what they see."""
    if not isinstance(value, str):
        return
    if clean(value, _LONGEST_VALUE) != value or "\n" in value or "\t" in value:
        raise Unfit(f"the value of {name} is too long, or has characters that cannot be seen")
    if sources.redact(f"{name}={value}") != f"{name}={value}":
        raise Unfit(f"the value of {name} looks like a secret")


def _refuse(reasons: Sequence[str]) -> None:
    if reasons:
        raise Unfit("; ".join(reasons))


def _other_spellings(args: Args, parent: LaunchConfig) -> list[str]:
    """Flags that the parent has under another name: both would reach the server."""
    usual = {name: group[0] for group in known_flags(parent.kind) for name in group}
    inherited = {usual.get(name, name): name for name in parent.args}
    twins = {name: inherited.get(usual.get(name, name), name) for name in args}
    return [f"{shown(name)} is another spelling of {shown(other)}" for name, other in twins.items() if name != other]


def _meant(flag: str, known: set[str]) -> str:
    guess = nearest(flag.replace("_", "-"), known)
    return f"; did it mean {shown(guess)}?" if guess else ""
