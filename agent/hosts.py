"""The machines that can be targets, for the start screen: their names, and what one says when a person asks it."""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

from agent.core.views.entries import HostAnswer, HostEntry
from agent.dead_ends import read_dead_ends
from agent.paths import dead_ends_file, targets_files
from agent.targets.file import TargetEntry, load_targets
from agent.text import one_line

LIMIT_S = 15.0
"""For an answer; the doctor itself takes at most ten seconds."""


def host_entries() -> list[HostEntry]:
    """This machine, those of targets.yaml, and others on which sessions left dead ends. Nothing is connected to."""
    entries = {"local": _entry("local", "local", "this machine")}
    broken = []
    for path in targets_files():
        for entry in _named(path):
            if entry.problem:
                broken.append(entry)
            else:
                entries.setdefault(entry.kept, entry)
    for path in sorted(dead_ends_file("any").parent.glob("*.jsonl")):
        kept = unquote(path.stem)
        if kept not in entries:
            entries[kept] = _entry(f"ssh:{kept}", kept, "of an earlier session")
    return [*entries.values(), *broken]


def _named(path: Path) -> Iterator[HostEntry]:
    try:
        found = load_targets(path.read_bytes(), str(path))
    except FileNotFoundError:
        return
    except OSError as error:
        yield HostEntry(name=str(path), problem=one_line(f"cannot be read: {error.strerror}"))
        return
    if isinstance(found, list):
        yield HostEntry(name=str(path), problem=one_line(f"has problems: {found[0]}"))
        return
    for name, target in found.items():
        yield _entry(name, name, _where(target), str(path))


def _where(target: TargetEntry) -> str:
    what = f"ssh {target.host}" if target.kind == "ssh" else "this machine" if target.kind == "local" else "simulated"
    within = target.venv or target.conda or (target.docker.run[-1] if target.docker else "")
    return one_line(f"{what}, {within}" if within else what)


def _entry(name: str, kept: str, where: str, file: str = "") -> HostEntry:
    return HostEntry(name=name, kept=kept, where=where, file=file, dead_ends=len(read_dead_ends(kept)))


async def ask_host(name: str) -> HostAnswer:
    """Whether a machine can be used, and why not. It is asked in a process of its own, which can be let go at once.

    There it has no terminal, so nobody is asked about the key of a host that is not known yet.
    """
    doctor = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "agent.cli", "doctor", name, "--json"),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(LIMIT_S):
            output, _ = await doctor.communicate()
    except TimeoutError:
        return HostAnswer(usable=False, text=f"no answer in {LIMIT_S:.0f} s")
    finally:
        if doctor.returncode is None:
            doctor.kill()
            await doctor.wait()
    return answer_of(output)


def answer_of(output: bytes) -> HostAnswer:
    """What the doctor printed as JSON, in one line."""
    try:
        said = json.loads(output)
        checks = {check["name"]: check for check in said["checks"]}
        bad = next((check for check in said["checks"] if check["state"] == "bad"), None)
        if bad is not None:
            hint = f" ({bad['hint']})" if bad["hint"] else ""
            return HostAnswer(usable=False, text=one_line(f"{bad['text']}{hint}"))
        told = [checks[name]["text"] for name in ("gpus", "gpu memory", "lock") if name in checks]
        told = ["no GPUs" if text == "none" else text for text in told]
        return HostAnswer(usable=bool(said["usable"]), text=one_line("; ".join(told)))
    except (ValueError, KeyError, TypeError):
        return HostAnswer(usable=False, text="it could not be asked: tunebot doctor tells why")
