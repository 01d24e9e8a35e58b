"""The lines of a session that the page of the story quotes, by the section that quotes them."""

import re
import textwrap
from collections.abc import Iterator

WIDTH = 118

_LINE = re.compile(r"\s+\d+:\d\d(:\d\d)?  ([\w@.-]+) +(\S.*)$")
_ENDS = ("round ", "ready after", "verdict", "failed in")
_VERDICT = ("verdict",)
_SECTIONS: dict[str, tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]] = {
    # each: of which experiments (none: of all) the lines with any of these words
    "first": (
        ((), ("ruled-out:", "completed from the source", "probe done: 8 GPUs")),
        (("baseline",), ("ready after",)),
    ),
    "eagle3": ((("eagle3",), _ENDS),),
    "replacements": (
        (("custom-forced",), ("done: exit", "round ", *_VERDICT)),
        (("nccl-allreduce-tree", "nccl-allreduce-tree-ll", "strategy"), (*_VERDICT, "given up")),
    ),
    "experts": ((("ep-flashinfer", "ep-plain"), _ENDS),),
    "cuda13": ((("cuda13",), ("done: exit", "nvcc is", *_VERDICT)), ((), ("to be tried again",))),
    "after": ((("pcie-ipc", "eagle3-pcie-ipc", "mla-draft", "ar-fusion@cuda13", "torch-symm-mem@cuda13"), _VERDICT),),
}
_TO_THE_FIRST_SERVER = "first"


def excerpts(lines: list[str]) -> dict[str, list[str]]:
    """What each section quotes: lines are wrapped to the width of the page, those of the board are cut."""
    told = {name: list(_told(lines, name)) for name in _SECTIONS}
    told["board"] = [_cut(line.rstrip()) for line in _board(lines)]
    return told


def _told(lines: list[str], section: str) -> Iterator[str]:
    for line in lines:
        match = _LINE.match(line)
        if match is None or " started: " in line or " loading: " in line:
            continue
        about, text = match[2], match[3]
        wanted = _SECTIONS[section]
        if any((not ids or about in ids) and any(word in text for word in words) for ids, words in wanted):
            yield from _wrapped(line[2:])
        if section == _TO_THE_FIRST_SERVER and "ready after" in text:
            return


def _board(lines: list[str]) -> list[str]:
    """The board and the ledger line, as a session ends with them."""
    start = max(number for number, line in enumerate(lines) if line == "RESULTS")
    end = next(number for number, line in enumerate(lines) if number > start and " loads paid " in line)
    return lines[start : end + 1]


def _cut(line: str) -> str:
    return line if len(line) <= WIDTH else f"{line[: WIDTH - 1]}…"


def _wrapped(line: str) -> list[str]:
    return textwrap.wrap(line, WIDTH, subsequent_indent=" " * 33, break_long_words=False, break_on_hyphens=False)
