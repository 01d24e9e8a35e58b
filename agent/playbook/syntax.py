"""What YAML's own complaints mean, in plain words."""

import yaml

from agent.playbook.problems import Place

_PLAIN_WORDS = (
    # a part of PyYAML's text, what it means, what to do
    (
        "mapping values are not allowed",
        "a ':' is not expected here",
        "put the text in quotes, or check the indentation",
    ),
    ("cannot start any token", "text cannot begin with this character", "put it in quotes"),
    ("expected <block end>", "this line does not fit the indentation above it", None),
    ("expected ',' or '}'", "expected ',' or '}'", "a '{' is not closed, or a text needs quotes"),
    ("expected ',' or ']'", "expected ',' or ']'", "a '[' is not closed, or a text needs quotes"),
    ("unexpected end of stream", "a quote is never closed", None),
    ("could not find expected ':'", "expected a ':' after this key", None),
    ("unknown escape character", "unknown escape in double quotes", "use single quotes to keep a backslash"),
    ("sequence entries are not allowed", "a list cannot begin here", "check the indentation"),
    ("expected the node content", "a value is missing here", None),
    ("expected a comment or a line break", "a '|' or '>' must end its line", None),
    ("expected '<document start>'", "only one value can stand here", "check the indentation"),
)


def explain(error: yaml.MarkedYAMLError) -> tuple[Place, str, str | None]:
    """Where a YAML error is, what is wrong, and what to do about it."""
    mark = error.problem_mark or error.context_mark
    place = Place(mark.line + 1, mark.column + 1) if mark else Place(1, 1)
    raw = error.problem or error.context or "it cannot be read"
    if "'\\t'" in raw:
        return place, "YAML: a tab cannot be used here", "indent with spaces"
    if "unexpected end of stream" in raw and error.context_mark:
        place = Place(error.context_mark.line + 1, error.context_mark.column + 1)
    for part, message, hint in _PLAIN_WORDS:
        if part in raw:
            return place, f"YAML: {message}", hint
    return place, f"YAML: {raw}", None
