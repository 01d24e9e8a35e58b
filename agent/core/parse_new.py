"""The text in which a person writes a new experiment: `FLAG=VALUE FLAG -FLAG ENV:NAME=VALUE -ENV:NAME`.

Words are split as in a shell, so that a value may be quoted. `FLAG` alone is a switch, `-FLAG` takes an inherited flag
away, and a flag that is given several times has several values. As in a playbook, `true`, `false` and `null` are a
switch, its absence, and the removal of an inherited flag.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import ValidationError

from agent.core.model import LaunchConfig
from agent.core.plan import config_of
from agent.core.state import State
from agent.playbook.model import MOST_EXPERIMENTS, ArgValue, Experiment
from agent.playbook.problems import nearest, shown
from agent.text import clean

TEXT_LIMIT = 8000
"""Characters of the text that are read; nobody types more."""

ENV = "ENV:"
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_FLAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS: Mapping[str, ArgValue] = {"true": True, "false": False, "null": None}
_ID_WIDTH = 40

Flags = Sequence[Sequence[str]]
"""Each flag of a kind of server with its aliases, the usual spelling first."""


@dataclass(slots=True)
class Change:
    """What a text says is different from the parent, and what is wrong with it."""

    args: dict[str, ArgValue] = field(default_factory=dict)
    env: dict[str, str | None] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def parse_new(
    state: State, based_on: str, experiment: str, text: str, known_flags: Flags = (), why: str = ""
) -> Experiment | list[str]:
    """The experiment that `text` describes on top of `based_on`, or all problems in the order of the text.

    `known_flags` are those of the playbook's kind of server; without any, no name is checked.
    """
    if based_on not in state.experiments:
        return [f"there is no experiment {shown(based_on)} to base it on"]
    change = read_change(text)
    problems = [*change_problems(state, based_on, change, known_flags), *id_problems(state, experiment)]
    if problems:
        return problems
    try:
        return Experiment(id=experiment, based_on=based_on, args=change.args, env=change.env, why=why)
    except ValidationError as error:
        return [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]


def change_problems(state: State, based_on: str, change: Change, known_flags: Flags) -> list[str]:
    """What is wrong with a change of an experiment, in the order of the text. `known_flags` are as for `parse_new`."""
    parent = config_of(state, based_on)
    return [*change.problems, *_unknown(change, parent, known_flags), *_idle(change, parent, based_on)]


def read_change(text: str) -> Change:
    """The words of a text, one after the other."""
    change = Change()
    if len(text) > TEXT_LIMIT:
        change.problems.append(f"longer than {TEXT_LIMIT} characters")
        return change
    if clean(text) != text or "\n" in text or "\t" in text:
        change.problems.append("holds control or invisible characters")
        return change
    try:
        words = shlex.split(text)
    except ValueError as error:
        change.problems.append(f"{str(error).lower()}: quotes go around a whole value")
        return change
    for word in words:
        _read_word(change, word)
    return change


def suggested_id(state: State, text: str) -> str:
    """A free id that tells what the text changes: `cuda-graph-max-bs-256`."""
    change = read_change(text)
    parts = [_slug(name, value) for name, value in change.args.items()]
    parts += [_slug(name.lower(), value) for name, value in change.env.items()]
    base = re.sub(r"[^A-Za-z0-9.]+", "-", "-".join(parts))[:_ID_WIDTH].strip("-.") or "new"
    taken, number, name = state.experiments, 1, base
    while name in taken:
        number += 1
        name = f"{base}-{number}"
    return name


def _read_word(change: Change, word: str) -> None:
    # Two dashes are how a flag is pasted from a command line; one dash takes something away.
    removes = word.startswith("-") and not word.startswith("--")
    name, equals, value = word.lstrip("-").partition("=")
    if removes and equals:
        change.problems.append(f"{shown(word)}: what is taken away has no value")
    elif name.startswith(ENV):
        _read_variable(change, name.removeprefix(ENV), value if equals else None, removes)
    elif not _FLAG.fullmatch(name):
        change.problems.append(f"{shown(word)} is no flag: write FLAG=VALUE, or ENV:NAME=VALUE")
    elif removes:
        _put(change, name, None)
    else:
        _put(change, name, _WORDS.get(value, value) if equals else True)


def _read_variable(change: Change, name: str, value: str | None, removes: bool) -> None:
    if not _VARIABLE.fullmatch(name):
        change.problems.append(f"{shown(name)} cannot be the name of an environment variable")
    elif value is None and not removes:
        change.problems.append(f"{ENV}{name} needs a value; -{ENV}{name} takes it away")
    elif name in change.env:
        change.problems.append(f"{ENV}{name} is given twice")
    else:
        change.env[name] = value


def _put(change: Change, name: str, value: ArgValue) -> None:
    if name not in change.args:
        change.args[name] = value
        return
    before = change.args[name]
    if isinstance(before, str | tuple) and isinstance(value, str):
        change.args[name] = (*((before,) if isinstance(before, str) else before), value)
    else:
        change.problems.append(f"{shown(name)} is given twice")


def _unknown(change: Change, parent: LaunchConfig, known_flags: Flags) -> list[str]:
    usual = {spelling: group[0] for group in known_flags for spelling in group}
    inherited = {usual.get(flag, flag): flag for flag in parent.args}
    problems = []
    for flag in change.args:
        if usual and not _is_known(flag, usual, parent.kind):
            guess = nearest(flag.replace("_", "-"), usual)
            hint = f"; did you mean {shown(guess)}?" if guess else ""
            problems.append(f"{parent.kind} has no flag {shown(flag)}{hint}")
        elif (other := inherited.get(usual.get(flag, flag), flag)) != flag:
            problems.append(f"{shown(flag)} is another spelling of {shown(other)}: write {shown(other)} to replace it")
        # Two new spellings of one flag would both reach the server; the second one is the problem.
        inherited.setdefault(usual.get(flag, flag), flag)
    return problems


def _is_known(flag: str, usual: Mapping[str, str], kind: str) -> bool:
    # vLLM reads --compilation-config.mode as a key of that JSON.
    head, dot, rest = flag.partition(".")
    return flag in usual or (kind == "vllm" and bool(dot and rest) and head in usual)


def _idle(change: Change, parent: LaunchConfig, based_on: str) -> list[str]:
    """What would change nothing."""
    problems = []
    for flag, value in change.args.items():
        if value is None and flag not in parent.args:
            problems.append(f"{based_on} has no {shown(flag)} to take away")
        elif value is not None and parent.args.get(flag) == value:
            problems.append(f"{shown(flag)} is like this in {based_on} already")
    for name, text in change.env.items():
        if parent.env.get(name) == text and (text is not None or name in parent.env):
            problems.append(f"{ENV}{name} is like this in {based_on} already")
    if not change.args and not change.env and not change.problems:
        problems.append(f"nothing is different from {based_on} yet")
    return problems


def id_problems(state: State, experiment: str) -> list[str]:
    """Why a new experiment cannot be called like this."""
    if not _ID.fullmatch(experiment):
        return ["the id takes letters, digits, '.', '_' and '-', at most 64, and begins with a letter or digit"]
    if experiment in state.experiments:
        return [f"there is an experiment {shown(experiment)} already"]
    if len(state.experiments) >= MOST_EXPERIMENTS:
        return [f"a session has at most {MOST_EXPERIMENTS} experiments"]
    return []


def _slug(name: str, value: ArgValue) -> str:
    match value:
        case None | False:
            return f"no-{name}"
        case True:
            return name
        case tuple():
            return f"{name}-{value[0]}-{value[-1]}"
    return f"{name}-{value}"
