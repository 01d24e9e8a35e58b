"""`tunebot doctor`: whether a target can be used, in words, with what to do where it cannot."""

import asyncio
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from agent.core.model import Gpu
from agent.ports import Target, TargetUnusable
from agent.targets.choose import open_named
from agent.text import one_line

LIMIT_S = 9.0
_LOW_BYTES = 10 * 2**30
_GLYPHS = {"ok": "✓", "note": "•", "bad": "✗"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing that was looked at. A `note` stands in nobody's way, but should be known."""

    name: str
    state: Literal["ok", "note", "bad"]
    text: str
    hint: str = ""


async def examine(name: str) -> list[Check]:
    """Everything about the target of that name; ends within ten seconds."""
    checks: list[Check] = []
    with tempfile.TemporaryDirectory(prefix="tunebot-") as folder:
        try:
            target = open_named(name, Path(folder))
        except TargetUnusable as error:
            return [Check(name="target", state="bad", text=str(error), hint=error.hint)]
        try:
            async with asyncio.timeout(LIMIT_S):
                await _examine(target, checks.append)
        except TargetUnusable as error:
            checks.append(
                Check(name="connection" if not checks else "host", state="bad", text=str(error), hint=error.hint)
            )
        except TimeoutError:
            hint = "a slow network, or a file system there that does not answer"
            checks.append(Check(name="time", state="bad", text=f"not done after {LIMIT_S:.0f} s", hint=hint))
        finally:
            await target.close()
    return checks


async def _examine(target: Target, add: Callable[[Check], None]) -> None:
    began = time.monotonic()
    await target.exists("~/")
    add(Check(name="connection", state="ok", text=f"reached in {time.monotonic() - began:.1f} s"))
    found = await target.survey()
    for check in (_python(found), _workdir(found), _disk(found), _ports(found), _lock(found), _launches(found)):
        if check:
            add(check)
    try:
        add(_gpus((await target.host()).gpus))
    except TargetUnusable as error:
        add(Check(name="gpus", state="bad", text=str(error), hint=error.hint))


def _python(found: Mapping[str, Any]) -> Check:
    return Check(name="python3", state="ok", text=".".join(map(str, found["python"])))


def _workdir(found: Mapping[str, Any]) -> Check:
    if problem := found["workdir_problem"]:
        return Check(name="work folder", state="bad", text=one_line(problem["message"]), hint=one_line(problem["hint"]))
    return Check(name="work folder", state="ok", text=f"{one_line(found['workdir'])} can be written")


def _disk(found: Mapping[str, Any]) -> Check | None:
    if found["free_bytes"] is None:
        return None
    text = f"{found['free_bytes'] / 2**30:.0f} GiB free"
    if found["free_bytes"] < _LOW_BYTES:
        return Check(name="disk", state="note", text=text, hint="logs and caches of a server may need more")
    return Check(name="disk", state="ok", text=text)


def _ports(found: Mapping[str, Any]) -> Check | None:
    if "forwards" not in found:
        return None
    if not found["forwards"]:
        hint = "AllowTcpForwarding in the host's sshd_config must be yes or local"
        return Check(name="ports", state="bad", text="its sshd forwards no ports: no server can be reached", hint=hint)
    return Check(name="ports", state="ok", text="its ports can be reached through SSH")


def _lock(found: Mapping[str, Any]) -> Check:
    owner = found["lock_owner"]
    if owner is None:
        return Check(name="lock", state="ok", text="nobody holds the GPUs")
    words = {key: one_line(str(owner.get(key, "?"))) for key in ("owner", "host", "launch", "time")}
    text = "held by {owner} on {host}, launch {launch}, since {time}".format_map(words)
    return Check(name="lock", state="note", text=text, hint="wait until that server is stopped, or stop it there")


def _launches(found: Mapping[str, Any]) -> Check:
    if not found["launches"]:
        return Check(name="launches", state="ok", text="nothing of an earlier launch runs")
    running = "; ".join(
        f"{one_line(item['launch'])} (pids {', '.join(map(str, item['pids'][:8]))})" for item in found["launches"]
    )
    hint = "a session may own it; where none does, kill these pids, and the host is free"
    return Check(name="launches", state="note", text=f"still running: {running}", hint=hint)


def _gpus(gpus: tuple[Gpu, ...]) -> Check:
    if not gpus:
        return Check(name="gpus", state="note", text="none", hint="no nvidia-smi there, or it lists no device")
    kinds = ", ".join(dict.fromkeys(gpu.name for gpu in gpus))
    drivers = ", ".join(dict.fromkeys(gpu.driver for gpu in gpus))
    return Check(name="gpus", state="ok", text=f"{len(gpus)} x {one_line(kinds)}, driver {one_line(drivers)}")


def usable(checks: list[Check]) -> bool:
    """Whether nothing is in the way."""
    return all(check.state != "bad" for check in checks)


def lines_of(name: str, checks: list[Check]) -> list[str]:
    """The checks for a person."""
    lines = []
    for check in checks:
        first, *rest = check.text.splitlines() or [""]
        lines.append(f"{_GLYPHS[check.state]} {check.name:<12} {first}")
        lines += [f"    {line}" for line in rest]
        if check.hint:
            lines.append(f"    hint: {check.hint}")
    lines.append(f"{name} {'can be used' if usable(checks) else 'cannot be used'}")
    return lines


def as_json(name: str, checks: list[Check]) -> dict[str, Any]:
    """The checks for a program."""
    return {"target": name, "usable": usable(checks), "checks": [asdict(check) for check in checks]}
