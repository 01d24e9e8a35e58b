"""`tunebot explain`: what became of the server whose log this is, by which line, and what to try."""

import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import httpx

from agent.servers import KINDS
from agent.text import one_line
from agent.watch.engine import LogEngine
from agent.watch.inputs import CHUNK, LogFile, UnusableInput, open_log
from agent.watch.outcome import Diagnosis, conclude

ROOT_KEPT = 500
_AROUND = 3
_TRAITS: dict[str, tuple[bytes, ...]] = {
    "sglang": (
        b"sglang", b"SGLang", b"server_args=ServerArgs", b"Init torch distributed begin", b"Load weight begin",
        b"fired up and ready",
    ),
    "vllm": (b"vllm", b"vLLM", b"VllmWorker", b"(EngineCore", b"(APIServer", b"LLM engine (v"),
    "llamacpp": (b"llama_", b"ggml_", b"llama-server", b"load_tensors:", b"srv  "),
}  # fmt: skip
# What a node reports that only waited for, or lost, another one.
_CONSEQUENCES = ("root-not-in-log", "nccl-timeout", "rendezvous-timeout", "hang-silent", "hang-watchdog")
_BAD = ("failed", "hung", "degraded")


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """The answer about one file, with the lines around the root line."""

    file: str
    server: str
    found: Diagnosis
    root_number: int | None
    around: tuple[tuple[int, str], ...]
    aside: tuple[tuple[int, str, str], ...]


def kind_of(sample: bytes) -> str:
    """The kind of server that wrote this log. SGLang mentions vLLM, which it was built on; vLLM hardly SGLang."""
    found = {name: sum(trait in sample for trait in traits) for name, traits in _TRAITS.items()}
    return max(found, key=lambda name: found[name])


def diagnose(chunks: Iterable[bytes], server: str) -> Diagnosis:
    """The diagnosis of a whole log."""
    engine = LogEngine(KINDS[server](httpx.AsyncClient()))  # it only reads: nothing is asked over HTTP
    for data in chunks:
        for _ in engine.feed(data):
            pass
    for _ in engine.finish():
        pass
    return conclude(engine)


def explain_file(name: str, server: str = "auto") -> Explained:
    """The answer about a log file (`-`: standard input). Raises UnusableInput."""
    with open_log(name) as log:
        if server == "auto":
            log.file.seek(0)
            server = kind_of(log.file.read(4 * CHUNK))
        found = diagnose(log.chunks(), server)
        return Explained(
            file=name,
            server=server,
            found=found,
            root_number=log.number(found.root.number) if found.root is not None else None,
            around=tuple(log.around(found.root.number, _AROUND)) if found.root is not None else (),
            aside=_aside(log, found),
        )


def _aside(log: LogFile, found: Diagnosis) -> tuple[tuple[int, str, str], ...]:
    return tuple((log.number(row.number), one_line(row.message, 160), why) for row, why in found.aside)


def as_json(answer: Explained) -> dict[str, Any]:
    """The answer as plain data: the words are those of the table of categories."""
    found = answer.found
    return {
        "outcome": found.outcome,
        "category": found.category,
        "phase": found.phase.value,
        "rank": found.rank,
        "root_line": found.root.text[:ROOT_KEPT] if found.root is not None else None,
        "root_line_number": answer.root_number,
        "reason": found.reason,
        "was_ready": found.was_ready,
        "try": list(found.remedies),
        "means": found.means,
        "file": answer.file,
        "server": answer.server,
        "around": [{"line": number, "text": text} for number, text in answer.around],
        "set_aside": [{"line": number, "text": text, "why": why} for number, text, why in answer.aside],
    }


def overall(answers: list[Explained]) -> Explained:
    """Of several nodes the one that tells most: one that failed with a cause before one that only lost the others."""

    def key(answer: Explained) -> tuple[bool, bool, float]:
        found = answer.found
        consequence = found.category in _CONSEQUENCES
        time = found.root.time if found.root is not None and found.root.time is not None else 0.0
        return (found.outcome in _BAD, not consequence, -time)

    return max(answers, key=key)


def print_answer(answer: Explained, say: Callable[[str], None]) -> None:
    """The answer for a person."""
    found = answer.found
    where = f" on rank {found.rank}" if found.rank is not None else ""
    ready = ", after it had been ready" if found.was_ready and found.outcome in _BAD else ""
    say(f"{answer.file} ({answer.server}): {found.outcome} in {found.phase}{where}{ready}")
    say(f"  reason    {found.reason}")
    if found.category != "none":
        say(f"  category  {found.category}{': ' + found.means if found.means else ''}")
    for index, remedy in enumerate(found.remedies):
        say(f"  {'try' if not index else '':<9} - {remedy}")
    for number, text in answer.around:
        say(f"  {'>' if number == answer.root_number else ' '} {number:>6}  {one_line(text, 180)}")
    if answer.aside:
        say("  set aside")
        for number, text, why in answer.aside[:8]:
            say(f"    {number:>6}  {text[:100]}  ({why})")


def run(files: list[str], server: str, with_json: bool) -> int:
    """Explain the files: exit code 0 where nothing failed, 1 where something did or hangs, 2 where one is no log."""
    answers = []
    for name in files:
        try:
            answers.append(explain_file(name, server))
        except UnusableInput as error:
            sys.stderr.write(f"tunebot: {name}: {error}\n")
            return 2
    best = overall(answers)
    if with_json:
        shown = as_json(best)
        if len(answers) > 1:
            shown["files"] = [as_json(answer) for answer in answers]
        print_line(json.dumps(shown, ensure_ascii=False, indent=2))
    else:
        for answer in answers:
            print_answer(answer, print_line)
        if len(answers) > 1:
            print_line(f"of these, {best.file} names the cause: {best.found.reason}")
    return 1 if best.found.outcome in _BAD else 0


def print_line(line: str) -> None:
    """One line to standard output."""
    sys.stdout.write(line + "\n")
