"""`tunebot doctor`: whether a target can be used, in words, with what to do where it cannot."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from agent.core.model import Gpu
from agent.hostkeys import meet
from agent.ports import Target, TargetUnusable
from agent.targets.choose import entry_of, open_entry
from agent.targets.file import DockerEntry, TargetEntry
from agent.targets.holders import holders, wiring
from agent.text import decode, one_line

LIMIT_S = 8.0
CLOSE_LIMIT_S = 0.5
COMMAND_LIMIT_S = 5.0
_MOST_SHOWN = 4
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
    """Everything about the target of that name, within ten seconds.

    Where its key is unknown the person at the terminal is asked first; that time is not counted.
    """
    checks: list[Check] = []
    with tempfile.TemporaryDirectory(prefix="tunebot-") as folder:
        try:
            called, entry = entry_of(name)
            target = open_entry(called, entry, Path(folder))
        except TargetUnusable as error:
            return [Check(name="target", state="bad", text=str(error), hint=error.hint)]
        try:
            took_s = await meet(target, LIMIT_S)
            checks.append(Check(name="connection", state="ok", text=f"reached in {took_s:.1f} s"))
            await _within(LIMIT_S - took_s, target, _examine(target, entry, checks.append))
        except TargetUnusable as error:
            checks.append(
                Check(name="connection" if not checks else "host", state="bad", text=str(error), hint=error.hint)
            )
        except TimeoutError:
            checks.append(_too_slow(reached=bool(checks)))
        finally:
            await _close(target)
    return checks


def _too_slow(reached: bool) -> Check:
    if not reached:
        hint = "is it up, and does `ssh` to it work from here?"
        return Check(name="connection", state="bad", text=f"no answer in {LIMIT_S:.0f} s", hint=hint)
    hint = "a slow network, or a file system there that does not answer"
    return Check(name="time", state="bad", text=f"not done after {LIMIT_S:.0f} s", hint=hint)


async def _within(limit_s: float, target: Target, work: Coroutine[Any, Any, None]) -> None:
    """Do it, or raise TimeoutError: a target that is silent would keep us waiting for the end of its command too."""
    task = asyncio.create_task(work, name=f"doctor {target.name}")
    done, _ = await asyncio.wait({task}, timeout=limit_s)
    if not done:
        task.cancel()
        await _close(target)  # which ends its commands
        await asyncio.gather(task, return_exceptions=True)
        raise TimeoutError
    task.result()


async def _close(target: Target) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(CLOSE_LIMIT_S):
            await target.close()


async def _examine(target: Target, entry: TargetEntry, add: Callable[[Check], None]) -> None:
    found = await target.survey()
    add(_python(found))
    if surroundings := entry.venv or entry.conda:
        add(await _tried("environment", _environment(target, surroundings)))
    if entry.docker:
        add(await _tried("docker", _docker(target, entry.docker)))
    if entry.read:
        add(await _read(target, entry.read))
    for check in (_workdir(found), _disk(found), _ports(found), _lock(found), _launches(found)):
        if check:
            add(check)
    try:
        gpus = (await target.host()).gpus
    except TargetUnusable as error:
        add(Check(name="gpus", state="bad", text=str(error), hint=error.hint))
        return
    add(_gpus(gpus))
    if gpus:
        looks = _tried("gpu memory", _memory(target, gpus)), _tried("topology", _topology(target, gpus))
        for check in await asyncio.gather(*looks):
            add(check)


async def _tried(name: str, look: Awaitable[Check]) -> Check:
    try:
        return await look
    except TargetUnusable as error:
        return Check(name=name, state="bad", text=str(error), hint=error.hint)


async def _environment(target: Target, what: str) -> Check:
    result = await target.run(["python3", "--version"], timeout_s=COMMAND_LIMIT_S)
    said = one_line(decode(result.output))
    if result.exit_code != 0:
        hint = "was it moved, or the Python that it was made with removed? Make it anew"
        return Check(name="environment", state="bad", text=f"python3 of {what} does not run: {said}", hint=hint)
    return Check(name="environment", state="ok", text=f"{what}, {said}")


async def _docker(target: Target, docker: DockerEntry) -> Check:
    command, image = docker.run[: docker.run.index("run", 1)], docker.run[-1]
    result = await target.run([*command, "ps", "--quiet"], timeout_s=COMMAND_LIMIT_S)
    if result.exit_code != 0:
        said = "no answer" if result.timed_out else one_line(decode(result.output))
        hint = "is its daemon up, and are you in the group docker?"
        return Check(name="docker", state="bad", text=f"{command[0]} cannot be used: {said}", hint=hint)
    result = await target.run([*command, "image", "inspect", image], timeout_s=COMMAND_LIMIT_S)
    if result.exit_code != 0:
        hint = (
            f"the first launch would fetch it, and that is part of its load; or now: {' '.join(command)} pull {image}"
        )
        return Check(name="docker", state="note", text=f"the image {one_line(image)} is not there", hint=hint)
    return Check(name="docker", state="ok", text=f"runs containers, has the image {one_line(image)}")


async def _read(target: Target, folders: Sequence[str]) -> Check:
    missing = [folder for folder in folders if not await target.exists(folder)]
    if missing:
        text = f"not there: {one_line(', '.join(missing))}"
        return Check(name="read", state="note", text=text, hint="correct `read` in targets.yaml")
    return Check(name="read", state="ok", text=f"research may read {one_line(', '.join(folders))}")


async def _memory(target: Target, gpus: tuple[Gpu, ...]) -> Check:
    found = await holders(target, gpus)
    if not found:
        return Check(name="gpu memory", state="ok", text="nobody holds any")
    more = f" and {len(found) - _MOST_SHOWN} more" if len(found) > _MOST_SHOWN else ""
    text = "; ".join(map(str, found[:_MOST_SHOWN])) + more
    return Check(name="gpu memory", state="note", text=text, hint="nothing can be launched while others hold the GPUs")


async def _topology(target: Target, gpus: tuple[Gpu, ...]) -> Check:
    found = await wiring(target, gpus)
    return Check(name="topology", state="ok", text=f"{found}; the driver runs CUDA {found.cuda or '(it does not say)'}")


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
        f"{one_line(item['launch'])} (pids {', '.join(map(str, item['pids'][:8])) or 'unknown'})"
        for item in found["launches"]
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
