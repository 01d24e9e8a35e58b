"""What a person types into the grep dialog: a pattern, and places of the form `NAME:path`."""

from pydantic import ValidationError

from agent.core.plan import config_of
from agent.core.state import State
from agent.playbook.model import GrepEntry
from agent.playbook.problems import nearest, shown
from agent.text import clean

TEXT_LIMIT = 1000
"""Characters of a pattern, and of the places."""


def places_of(state: State, experiment: str) -> str:
    """All source trees of an experiment and of the target, as one would type them: `sglang: flashinfer:`."""
    return " ".join(f"{name}:" for name in _known(state, experiment))


def _known(state: State, experiment: str) -> list[str]:
    return list(dict.fromkeys((*config_of(state, experiment).source, *state.host.trees)))


def parse_grep(state: State, experiment: str, pattern: str, places: str) -> GrepEntry | list[str]:
    """The entry, or all problems. Whether a path exists is found out on the target."""
    problems = []
    if not pattern.strip():
        problems.append("a pattern is needed: an extended regular expression, as for grep -E")
    for name, text in (("pattern", pattern), ("places", places)):
        if len(text) > TEXT_LIMIT:
            problems.append(f"the {name} are longer than {TEXT_LIMIT} characters")
        elif clean(text) != text or "\n" in text:
            problems.append(f"the {name} hold control or invisible characters")
    if problems:
        return problems
    known = _known(state, experiment)
    if not known:
        return ["there is no source to search: name one under server.source of the playbook, or read of targets.yaml"]
    words = places.split()
    problems = [problem for word in words if (problem := _problem(word, known))]
    if not words:
        problems.append(f"where? one of {', '.join(f'{name}:' for name in known)}, or NAME:path")
    if problems:
        return problems
    try:
        return GrepEntry.model_validate({"grep": {"pattern": pattern, "in": words}})
    except ValidationError as error:
        return [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]


def _problem(word: str, known: list[str]) -> str:
    name, colon, path = word.partition(":")
    if not colon or not name:
        return f"{shown(word)}: write NAME:path, with the name of a source: {', '.join(known)}"
    if name not in known:
        guess = nearest(name, known)
        return f"there is no source {shown(name)}; " + (
            f"did you mean {shown(guess)}?" if guess else f"known: {', '.join(known)}"
        )
    if path.startswith(("/", "~")) or ".." in path.split("/"):
        return f"{shown(word)} leads out of its source tree"
    return ""
