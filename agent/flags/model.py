"""What is known of a server's flags from its source: the flags, and the blocks of code that test them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

Kind = Literal["sglang", "vllm"]
"""The kinds of servers whose flags can be read from their source."""

Takes = Literal["nothing", "one", "optional", "several"]
"""How many values follow a flag: none (a switch), one, one or none, any number."""


def readable(server: str) -> Kind | None:
    """The kind of a server by its name, None where its flags cannot be read from a source."""
    return next((kind for kind in get_args(Kind) if kind == server), None)


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A line of the tree: the path relative to its root, and the line from 1."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One flag as argparse would have it.

    `names` are its spellings with their dashes, in the source's order. `choices` are written as one would type them,
    None where any value is taken; `default` is Python's text of it (`'auto'`, `8`, `CompilationConfig()`). What could
    not be read (of `type`, `choices`, `default`, `condition`) is None there and named in `unresolved`. `owner` and
    `field` say under which class and name the source keeps the value.
    """

    names: tuple[str, ...]
    owner: str
    field: str
    takes: Takes
    type: str | None
    choices: tuple[str, ...] | None
    default: str | None
    help: str
    deprecated: bool
    instead: tuple[str, ...]
    place: Place
    unresolved: tuple[str, ...] = ()

    @property
    def spellings(self) -> tuple[str, ...]:
        """Every long spelling without its dashes, as a playbook writes it; the usual one first."""
        return tuple(name[2:] for name in self.names if name.startswith("--")) or (self.names[0].lstrip("-"),)

    @property
    def name(self) -> str:
        """The usual spelling without its dashes."""
        return self.spellings[0]


Op = Literal["in", "not in", "<", "<=", ">", ">=", "?"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """What one flag's value must be: `flag` in (or not in, less than …) `values`.

    Values are Python's texts; `--tp-size` among them is the value of that flag. `lower` says that upper and lower case
    are alike. `?` is a condition that cannot be read; it speaks of the flags in `about`.
    """

    flag: str | None = None
    op: Op = "?"
    values: tuple[str, ...] = ()
    lower: bool = False
    about: tuple[str, ...] = ()
    text: str

    @property
    def flags(self) -> tuple[str, ...]:
        """Every flag that it speaks of."""
        others = tuple(value[2:] for value in self.values if value.startswith("--"))
        return (*((self.flag,) if self.flag else ()), *others, *self.about)


Clause = tuple[Test, ...]
"""Tests of which one must hold."""

Effect = Literal["asserts", "refuses", "sets", "warns"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What the source does where every clause of `reached` and `when` holds.

    `when` stands around it; `reached` led there: earlier branches, and what its function is called under.
    asserts: `clause` must hold. refuses: it raises. sets: `flag` (None for what is no flag, such as a variable of the
    environment) becomes `value`: Python's text, `--name` for that flag's value, None where it is computed. warns: a
    line in the log. `text` says it in the source's words, `says` is its own message. `block` is the innermost `if`
    (or the function) around it.
    """

    effect: Effect
    when: tuple[Clause, ...]
    place: Place
    block: Place
    text: str = ""
    says: str = ""
    clause: Clause = ()
    flag: str | None = None
    value: str | None = None
    reached: tuple[Clause, ...] = ()

    @property
    def tested(self) -> frozenset[str]:
        """The flags that decide whether it happens."""
        return frozenset(flag for clause in (*self.when, self.clause) for test in clause for flag in test.flags)


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagTable:
    """Everything read from one tree. `files` are the SHA-256 of what was read, "" for a file that is not there."""

    kind: Kind
    version: str
    flags: tuple[Flag, ...]
    uses: tuple[Use, ...]
    unnamed: tuple[Place, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)

    def find(self, spelling: str) -> Flag | None:
        """The flag of that exact spelling, without dashes."""
        return next((flag for flag in self.flags if f"--{spelling}" in flag.names), None)

    def prefixed(self, beginning: str) -> tuple[str, ...]:
        """The spellings that argparse would take a shortened `--beginning` for."""
        spellings = (name for flag in self.flags for name in flag.spellings)
        return tuple(name for name in spellings if name.startswith(beginning))

    def meant(self, word: str) -> Flag | None:
        """The flag that argparse takes a word for: of that spelling, or the only one that it can be short for."""
        exact = self.find(word)
        if exact:
            return exact
        flags = {id(flag): flag for name in self.prefixed(word) if (flag := self.find(name))}
        return next(iter(flags.values())) if len(flags) == 1 else None


class NoFlags(Exception):
    """The tree has no flags that can be read. The message says why, in one sentence."""
