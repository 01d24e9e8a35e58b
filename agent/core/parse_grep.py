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
    """All source trees of an experiment, as one would type them: `sglang: flashinfer:`."""
    return " ".join(f"{name}:" for name in config_of(state, experiment).source)


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
    known = config_of(state, experiment).source
    if not known:
        return ["the playbook names no source to search: declare it under server.source"]
    words = places.split()
    problems = [problem for word in words if (problem := _problem(word, list(known)))]
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
        return f"{shown(word)}: write NAME:path, with a name from server.source"
    if name not in known:
        guess = nearest(name, known)
        return f"server.source has no {shown(name)}; " + (
            f"did you mean {shown(guess)}?" if guess else f"known: {', '.join(known)}"
        )
    if path.startswith(("/", "~")) or ".." in path.split("/"):
        return f"{shown(word)} leads out of its source tree"
    return ""
