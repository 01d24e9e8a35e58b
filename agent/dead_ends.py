"""The dead ends of a target that sessions leave to the next ones: a file for each target, a JSON line for each end."""

from collections.abc import Iterable

from pydantic import TypeAdapter, ValidationError

from agent.core.scope import KnownDeadEnd
from agent.history import append_line, read_lines, record_of
from agent.paths import dead_ends_file
from agent.redact import Redactor, redact_tree

MOST = 500
"""Dead ends of a target that are told: the latest."""

_ADAPTER = TypeAdapter(KnownDeadEnd)


def read_dead_ends(target: str) -> tuple[KnownDeadEnd, ...]:
    """What is known of a target, the latest last. Of each idea in an environment the last word counts.

    A file that cannot be read, and lines that nobody wrote like this, cost the knowledge and never the session.
    """
    latest: dict[str, KnownDeadEnd] = {}
    for line in read_lines(dead_ends_file(target)):
        try:
            found = _ADAPTER.validate_python(record_of(line))
        except ValidationError:
            continue
        key = repr((found.environment, sorted(found.args.items()), sorted(found.env.items())))
        latest.pop(key, None)
        latest[key] = found
    return tuple(found for found in latest.values() if not found.lives)[-MOST:]


def keep_dead_ends(target: str, ends: Iterable[KnownDeadEnd], redact: Redactor) -> str | None:
    """Add what a session leaves. Returns why it could not be kept, if so."""
    known = read_dead_ends(target)
    for end in ends:
        record = redact_tree(redact, _ADAPTER.dump_python(end, mode="json"))
        if _ADAPTER.validate_python(record) not in known:
            problem = append_line(dead_ends_file(target), record, "the dead ends were not saved")
            if problem:
                return problem
    return None
