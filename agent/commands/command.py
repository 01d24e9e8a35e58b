"""What a command of `tunebot` is, and the page of help that is made of it."""

import argparse
import shutil
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

Handler = Callable[[argparse.Namespace], int]
Rows = tuple[tuple[str, str], ...]
"""What stands on the left of a section (a command, a code, a file, a variable), and what is said of it."""

_WIDEST, _LEFT, _NARROWEST = 120, 48, 40
"""Columns of a page, of what stands on the left, and of what is said of it at least."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command. `help` is its line in the list of all; `about` what its own page begins with, if that says more.

    `options` adds what it takes. `notes` end the page. `settles` names arguments that the configuration may decide.
    """

    name: str
    help: str
    about: str = ""
    handler: Handler
    options: Callable[[argparse.ArgumentParser], None] = lambda parser: None
    examples: Rows
    exits: Rows
    files: Rows = ()
    environment: Rows = ()
    notes: str = ""
    settles: tuple[str, ...] = ()

    def add_to(self, commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
        """Make its parser among `commands`."""
        parser = commands.add_parser(
            self.name,
            help=self.help,
            description=self.about or f"{self.help[0].upper()}{self.help[1:]}.",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.epilog = page(
            ("examples", self.examples),
            ("exit codes", self.exits),
            ("files", self.files),
            ("environment", self.environment),
            notes=self.notes,
        )
        parser.set_defaults(handler=self.handler, settles=self.settles)
        self.options(parser)


def page(*sections: tuple[str, Rows], notes: str = "") -> str:
    """Sections of a page of help as text that fits the terminal; empty ones are left out."""
    columns = min(_WIDEST, shutil.get_terminal_size().columns - 2)
    parts = [f"{title}:\n{_table(rows, columns)}" for title, rows in sections if rows]
    if notes:
        parts.append(textwrap.fill(notes, columns))
    return "\n\n".join(parts)


def _table(rows: Sequence[tuple[str, str]], columns: int) -> str:
    left = min(_LEFT, max(len(name) for name, _ in rows)) + 2
    beside = columns - left - 2 >= _NARROWEST
    lines: list[str] = []
    for name, said in rows:
        indent = left + 2 if beside else 6
        told = textwrap.wrap(said, columns - indent)
        if beside and told and len(name) < left:
            lines.append(f"  {name:<{left}}{told.pop(0)}")
        else:
            lines.append(f"  {name}")
        lines += [" " * indent + line for line in told]
    return "\n".join(lines)
