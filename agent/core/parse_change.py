"""Another text for an experiment that has not begun: its flags as a person types them, and what they are changed to."""

import shlex
from collections.abc import Iterator

from agent.core import events as ev
from agent.core.edit_rules import cannot_change
from agent.core.parse_new import ENV, Flags, change_problems, read_change
from agent.core.state import State
from agent.playbook.model import ArgValue, Experiment
from agent.redact import MARK, is_secret_name

UNCHANGED = "nothing is changed yet"


def parse_change(
    state: State, experiment: str, text: str, known_flags: Flags = (), why: str = "", at: float = 0.0
) -> ev.ExperimentChanged | list[str]:
    """The wish to change an experiment to what `text` describes, as `parse_new` reads it; or all problems."""
    change = read_change(text)
    wish = ev.ExperimentChanged(at=at, experiment=experiment, args=change.args, env=change.env, why=why)
    spec = state.experiments[experiment].spec
    problems = change_problems(state, spec.based_on, change, known_flags) if spec.based_on else []
    if (spec.args, spec.env, spec.why) == (wish.args, wish.env, wish.why):
        problems.append(UNCHANGED)
    if reason := cannot_change(state, experiment):
        problems.append(reason)
    return problems or wish


def change_text(spec: Experiment) -> str | None:
    """The text that describes what an experiment changes, None where it cannot be typed (a JSON of several lines)."""
    words = [word for flag, value in spec.args.items() for word in _flag(flag, value)]
    words += [f"-{ENV}{name}" if value is None else f"{ENV}{name}={value}" for name, value in spec.env.items()]
    text = shlex.join(words)
    read = read_change(text)
    return text if not read.problems and (read.args, read.env) == (spec.args, spec.env) else None


def has_secret(spec: Experiment) -> bool:
    """Whether a flag or variable of an experiment is secret by its name, or was taken out of what is known here."""
    named = [(name, value) for name, value in (*spec.args.items(), *spec.env.items()) if isinstance(value, str | tuple)]
    return any(
        is_secret_name(name) or MARK in " ".join((value,) if isinstance(value, str) else value) for name, value in named
    )


def _flag(flag: str, value: ArgValue) -> Iterator[str]:
    match value:
        case None:
            yield f"-{flag}"
        case True:
            yield flag
        case False:
            yield f"{flag}=false"
        case tuple():
            yield from (f"{flag}={part}" for part in value)
        case str():
            yield f"{flag}={value}"
