"""What is known of the flag that a person types: its help by the server's own source, else the names that fit."""

from collections.abc import Sequence
from dataclasses import dataclass

from agent.core.parse_new import ENV, Flags
from agent.text import one_line

_MOST_NAMES = 12
_MOST_CHOICES = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagFacts:
    """A flag as the server's source has it, in words. What the source leaves open is empty.

    `takes` says what follows it (nothing, an int, one of its `choices`), `default` is the source's own text.
    """

    names: tuple[str, ...]
    takes: str
    choices: tuple[str, ...]
    default: str
    help: str
    deprecated: bool = False


def flag_at(text: str, cursor: int) -> str:
    """The flag whose name or value the cursor stands in, without dashes; empty where there is none."""
    word = text[text.rfind(" ", 0, cursor) + 1 :].partition(" ")[0]
    name = word.lstrip("'\"-").partition("=")[0]
    return "" if name.startswith(ENV) else name


def flag_help(name: str, known_flags: Flags, facts: FlagFacts | None) -> tuple[str, ...]:
    """What to show for a name, whole or begun, in at most three lines."""
    if facts is not None:
        return tuple(_told(facts))
    if not name:
        return ()
    for group in known_flags:
        if name in group:
            others = [other for other in group if other != name]
            return (f"{name}, also {', '.join(others)}" if others else f"{name} is a flag of this server",)
    fitting = _fitting(name, known_flags)
    if not fitting:
        return ()
    more = f" and {len(fitting) - _MOST_NAMES} more" if len(fitting) > _MOST_NAMES else ""
    return ("  ".join(fitting[:_MOST_NAMES]) + more,)


def _fitting(name: str, known_flags: Flags) -> Sequence[str]:
    """The flags that a beginning may become: those that begin like it first."""
    usual = [group[0] for group in known_flags]
    begin = [flag for flag in usual if flag.startswith(name)]
    return [*begin, *(flag for flag in usual if name in flag and flag not in begin)]


def _told(facts: FlagFacts) -> list[str]:
    also = f", also {', '.join(facts.names[1:])}" if len(facts.names) > 1 else ""
    takes = f" takes {facts.takes}" if facts.takes else ""
    default = f"; default {facts.default}" if facts.default else ""
    deprecated = "  DEPRECATED" if facts.deprecated else ""
    lines = [one_line(f"{facts.names[0]}{takes}{default}{also}{deprecated}", 300)]
    if facts.choices:
        more = " …" if len(facts.choices) > _MOST_CHOICES else ""
        lines.append(one_line(f"one of {' '.join(facts.choices[:_MOST_CHOICES])}{more}", 600))
    if facts.help:
        lines.append(one_line(facts.help, 600))
    return lines
