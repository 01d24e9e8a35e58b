"""Launches in containers: what the wrapper asks of Docker, or of what has the same words, such as podman.

The leader of such a launch is `docker run` in the foreground, but what lives is the container: the client may be
killed and the server goes on, in no session, group or tree of ours. A label with the launch's mark tells it from all
others. Standard library only, Linux, Python 3.8 or later, like the wrapper.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

_MARK = "tunebot.mark"
_LIMIT_S = 20.0
_TRIES = 3
_AT_REST = ("created", "configured", "initialized", "exited", "stopped", "dead")
_NEVER_RAN = ("created", "configured", "initialized")
_NO_PROGRAM = (126, 127)
# What leads to the daemon. The variables of the server may be secrets, and are not kept.
_KEPT = ("PATH", "HOME", "XDG_RUNTIME_DIR", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "CONTAINER_HOST")


class Unsure(OSError):
    """Docker gave no answer: whether the container lives is not known."""


def words_before(order: Mapping[str, Any], run: Path, launch: str, mark: str, names: Sequence[str]) -> list[str]:
    """What goes before the server's argv: the `run` of the order with our labels and the named variables.

    Their values come from the environment of the client: an argv can be read by everybody.
    """
    words: list[str] = order["run"]
    at = words.index("run", 1) + 1
    labels = ["--label", f"tunebot.launch={launch}", "--label", f"{_MARK}={mark}"]
    variables = [word for name in names for word in ("--env", name)]
    return [*words[:at], *labels, "--cidfile", str(run / "container.id"), *variables, *words[at:]]


def box_of(order: Mapping[str, Any], mark: str, env: Mapping[str, str]) -> dict[str, Any]:
    """How the container of a launch is asked for, to be kept with the launch."""
    command = order["run"][: order["run"].index("run", 1)]
    program = shutil.which(command[0], path=env.get("PATH", os.defpath)) or command[0]
    kept = {name: env[name] for name in _KEPT if name in env}
    return {"command": [program, *command[1:]], "env": kept, "mark": mark, "stop_s": order["stop_s"]}


def first_pids(box: Mapping[str, Any]) -> list[int]:
    """The first process of each container that lives, as the host numbers it. Raises Unsure."""
    return [pid for _, state, pid in _listed(box) if state not in _AT_REST]


def over(box: Mapping[str, Any]) -> bool:
    """Whether no container of the launch lives. One that has not run yet is removed: it never will. Raises Unsure."""
    listed = _listed(box)
    waiting = [name for name, state, _ in listed if state in _NEVER_RAN]
    if waiting:
        _ask(box, "rm", *waiting)  # refused where it has begun to run meanwhile
        listed = _listed(box)
    return all(state in _AT_REST and state not in _NEVER_RAN for _, state, _ in listed)


def stop(box: Mapping[str, Any], grace_s: float) -> bool:
    """TERM to what lives, KILL after `grace_s` or what the box says instead; whether anything lived. Raises Unsure."""
    seconds = grace_s if box["stop_s"] is None else box["stop_s"]
    alive = [name for name, state, _ in _listed(box) if state not in _AT_REST]
    if alive:
        _ask(box, "stop", "-t", str(int(seconds)), *alive, limit_s=seconds + _LIMIT_S)
    return bool(alive)


def kill(box: Mapping[str, Any]) -> None:
    """KILL to what lives. Raises Unsure."""
    alive = [name for name, state, _ in _listed(box) if state not in _AT_REST]
    if alive:
        _ask(box, "kill", *alive)


def sockets(box: Mapping[str, Any]) -> set[str]:
    """The sockets (`socket:[INODE]`) of all processes in the container, for who may not look himself. Raises Unsure."""
    found: set[str] = set()
    for name, state, _ in _listed(box):
        if state not in _AT_REST:
            look = ("find", "/proc", "-maxdepth", "3", "-path", "/proc/[0-9]*/fd/*", "-lname", "socket:*", "-printf")
            code, text = _ask(box, "exec", "--user", "0", name, *look, "%l\n")
            if code in _NO_PROGRAM:
                raise Unsure("whose ports these are cannot be seen: the image has no `find`, and we are not root")
            found.update(word for word in text.split() if word.startswith("socket:["))
    return found


def _listed(box: Mapping[str, Any]) -> list[tuple[str, str, int]]:
    """Id, state and first process of every container of the launch."""
    for _ in range(_TRIES):  # one can be gone before it is looked at
        only = ("--filter", f"label={_MARK}={box['mark']}")
        code, text = _ask(box, "ps", "--all", "--quiet", "--no-trunc", *only)
        names = text.split()
        if code != 0 or not all(re.fullmatch("[0-9a-f]{64}", name) for name in names):
            break
        if not names:
            return []
        code, text = _ask(box, "inspect", "--format", "{{.Id}} {{.State.Status}} {{.State.Pid}}", *names)
        rows = [line.split() for line in text.splitlines()]
        if code == 0 and all(len(row) == 3 and row[2].isdigit() for row in rows):
            return [(row[0], row[1].lower(), int(row[2])) for row in rows]
    raise Unsure(f"docker gives no answer: {text.strip()[-200:]}")


def _ask(box: Mapping[str, Any], *words: str, limit_s: float = _LIMIT_S) -> tuple[int, str]:
    """Exit code and output of a command of Docker. Raises Unsure."""
    try:
        done = subprocess.run(
            [*box["command"], *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=box["env"],
            cwd="/",
            timeout=limit_s,
            check=False,
        )
    except subprocess.TimeoutExpired as err:
        raise Unsure(f"docker {words[0]} gave no answer in {limit_s:.0f} s") from err
    except (OSError, ValueError) as err:
        raise Unsure(f"docker cannot be asked: {err}") from err
    return done.returncode, done.stdout.decode("utf-8", "replace")
