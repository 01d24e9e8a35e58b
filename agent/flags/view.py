"""Flags and their uses as lines for people and as JSON. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from agent.flags.model import Clause, Flag, FlagTable, Place, Use
from agent.text import one_line

_WIDEST = {"flag": 44, "type": 22, "default": 24, "choices": 52}
_MOST_CONDITIONS = 4
_SAYS = 110


def flags_json(flags: Sequence[Flag]) -> list[dict[str, Any]]:
    """Flags as JSON-ready values."""
    return [{**asdict(flag), "place": str(flag.place)} for flag in flags]


def flag_lines(flags: Sequence[Flag]) -> Iterator[str]:
    """An aligned table: flag, type, default, choices, where. What cannot be read from the source is a question mark."""
    rows = [("flag", "type", "default", "choices", "where"), *(_row(flag) for flag in flags)]
    widths = [min(max(len(row[column]) for row in rows), widest) for column, widest in enumerate(_WIDEST.values())]
    for row in rows:
        cells = [_cell(text, width) for text, width in zip(row, widths, strict=False)]
        yield "  ".join([*cells, row[-1]]).rstrip()


def _row(flag: Flag) -> tuple[str, str, str, str, str]:
    kind = flag.type if flag.type is not None else "?"
    several = {"several": "…", "optional": "?"}.get(flag.takes, "")
    choices = "?" if "choices" in flag.unresolved else " ".join(flag.choices or ())
    shown = (
        flag.name + (" (deprecated)" if flag.deprecated else ""),
        kind + several,
        "?" if flag.default is None else flag.default,
        choices,
        str(flag.place),
    )
    one, two, three, four, five = (one_line(text, 400) for text in shown)
    return one, two, three, four, five


def _cell(text: str, width: int) -> str:
    return text.ljust(width) if len(text) <= width else text[: width - 1] + "…"


def uses_of(table: FlagTable, flag: Flag) -> list[Use]:
    """The uses that a flag has a part in: it is tested where they stand, or it is what they set."""
    name = flag.name
    return [
        use
        for use in table.uses
        if use.flag == name or any(name in test.flags for clause in (*use.when, use.clause) for test in clause)
    ]


def uses_json(uses: Sequence[Use]) -> list[dict[str, Any]]:
    """Uses as JSON-ready values."""
    return [
        {
            "when": [_clause(clause) for clause in use.when],
            "reached": [_clause(clause) for clause in use.reached],
            "effect": use.effect,
            "text": use.text,
            "says": use.says,
            "place": str(use.place),
            "block": str(use.block),
        }
        for use in uses
    ]


def use_lines(uses: Sequence[Use]) -> Iterator[str]:
    """Uses by the conditions around them: each block of the source, then what it does, with its lines."""
    before: tuple[Place, str] | None = None
    for use in sorted(uses, key=lambda use: (use.block, use.place)):
        head = _conditions(use.when)
        if (use.block, head) != before:
            yield f"{head}   {use.block}"
            before = (use.block, head)
        said = f'  "{one_line(use.says, _SAYS)}"' if use.says else ""
        text = "" if use.effect in ("refuses", "warns") else f" {one_line(use.text, 200)}"
        yield f"  {use.effect:8}{text}{said}  :{use.place.line}"


def _conditions(clauses: Sequence[Clause]) -> str:
    """The conditions of a block in a line; of many the last ones, which stand nearest."""
    texts = [f"({_clause(clause)})" if len(clause) > 1 < len(clauses) else _clause(clause) for clause in clauses]
    more = len(texts) - _MOST_CONDITIONS
    shown = [f"({more} more)", *texts[more:]] if more > 0 else texts
    return one_line(" and ".join(shown), 300) if shown else "always"


def _clause(clause: Clause) -> str:
    return " or ".join(test.text for test in clause)
