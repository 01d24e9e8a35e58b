"""The pages that people read, taken apart: fenced blocks, commands, links, headings."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]

_FENCED = re.compile(r"^(```+)(\w*)\n(.*?)^\1\n", re.MULTILINE | re.DOTALL)
_PUNCTUATION = frozenset("|&;<>()")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language (empty where none is named), its text, and the line where the text begins."""

    language: str
    text: str
    line: int


def name_of(page: Path) -> str:
    """A page as a test is called after it."""
    return str(page.relative_to(ROOT))


def blocks(text: str) -> list[Block]:
    """The fenced blocks of a page."""
    return [Block(m[2], m[3], text.count("\n", 0, m.start(3)) + 1) for m in _FENCED.finditer(text)]


def prose(text: str) -> str:
    """A page without its fenced blocks."""
    return _FENCED.sub("\n", text)


def inline(text: str) -> list[str]:
    """What stands between backticks in a page's prose."""
    return [" ".join(found.split()) for found in re.findall(r"`([^`]+)`", prose(text))]


def shell_lines(text: str) -> Iterator[str]:
    """The lines that a reader would type: those behind `$ `, all of a block without any, and what is inline."""
    for block in blocks(text):
        if block.language in ("", "sh", "console"):
            lines = block.text.splitlines()
            typed = [line[2:] for line in lines if line.startswith("$ ")]
            yield from typed or lines
    yield from inline(text)


def commands(text: str, program: str) -> list[list[str]]:
    """The words behind `program` wherever a reader would type it. What has a `[`, `…` or `·` is a form of one."""
    found = []
    for line in shell_lines(text):
        if program in line and not re.search(r"\[|…|·", line):
            found += [words[1:] for words in _simple_commands(line) if words[0] == program]
    return found


def _simple_commands(line: str) -> Iterator[list[str]]:
    """The parts of a line of shell between pipes, `;` and redirections, without variables that are set for them."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words: list[str] = []
    try:
        for word in [*lexer, ";"]:
            if not set(word) <= _PUNCTUATION:
                words.append(word)
                continue
            while words and re.match(r"[A-Z_]+=", words[0]):
                words.pop(0)
            if words:
                yield words
            words = []
    except ValueError:  # an apostrophe of some output: nothing to type
        return


def headings(text: str) -> list[str]:
    """The anchors of a page, as GitHub makes them of its headings."""
    found = re.findall(r"^#+ (.+)$", prose(text), re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in found]


def links(text: str) -> list[str]:
    """Where the links and pictures of a page lead to, but for other sites."""
    found = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]+`", "", prose(text)))
    return [target for target in found if not target.startswith(("http://", "https://"))]
