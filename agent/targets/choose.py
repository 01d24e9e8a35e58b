"""From a playbook's `target:` (or `--target NAME`) to a target."""

import os
import re
from pathlib import Path
from typing import Any

from agent.paths import state_folder, targets_files
from agent.playbook.model import Playbook
from agent.ports import Target, TargetUnusable
from agent.targets.environment import changes_of
from agent.targets.file import TargetEntry, find_target
from agent.targets.places import Unfit

NAMES = "local, simulated, simulated:WORLD, ssh:HOST or a name of targets.yaml"
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._@:-]*")


def open_target(name: str | None, playbook: Playbook, session: Path) -> Target:
    """The target of that name, else the playbook's. A simulated host lives in the session's folder.

    Raises TargetUnusable for a name that leads nowhere. Nothing is connected yet.
    """
    wanted = name if name is not None else playbook.target
    if not isinstance(wanted, str):
        return _ssh(wanted.ssh, TargetEntry(kind="ssh", host=wanted.ssh, gpus=wanted.gpus))
    return open_named(wanted, session)


def open_named(name: str, session: Path) -> Target:
    """The target of a name, as `open_target`."""
    return open_entry(*entry_of(name), session)


def entry_of(name: str) -> tuple[str, TargetEntry]:
    """What a name of a target stands for, and how the target is called. Raises TargetUnusable."""
    if name == "local":
        return name, TargetEntry(kind="local")
    if match := re.fullmatch(r"simulated(?::(.+))?", name):
        return "simulated", TargetEntry(kind="simulated", world=match[1])
    kind, _, host = name.partition(":")
    if kind == "ssh" and _HOST.fullmatch(host):
        return host, TargetEntry(kind="ssh", host=host)
    entry = find_target(name, targets_files())
    if entry is None:
        raise TargetUnusable(f"there is no target {name}", f"targets are {NAMES}")
    return name, entry


def open_entry(name: str, entry: TargetEntry, session: Path) -> Target:
    """The target of an entry, as `open_target`."""
    if entry.kind == "simulated":
        return _simulated(name, entry.world, session)
    return _ssh(name, entry) if entry.kind == "ssh" else _local(name, entry)


def _local(name: str, entry: TargetEntry) -> Target:
    from agent.targets.local import LocalTarget

    workdir = Path(entry.workdir).expanduser() if entry.workdir else state_folder() / "local"
    settings = {"env": entry.env, "path": entry.path, "venv": entry.venv, "conda": entry.conda}
    try:
        env = changes_of(settings, {"HOME": str(Path.home()), **os.environ})
    except Unfit as error:
        raise TargetUnusable(str(error), error.hint) from error
    return LocalTarget(name, workdir=workdir, extra_env=env, container=_container(entry), trees=entry.trees)


def _ssh(name: str, entry: TargetEntry) -> Target:
    from agent.targets.dial import Dialling
    from agent.targets.ssh import SshTarget

    assert entry.host is not None
    workdir = entry.workdir or "~/.tunebot"
    to = Dialling(host=entry.host)
    return SshTarget(
        name,
        to,
        workdir=workdir,
        env=entry.env,
        path=entry.path,
        venv=entry.venv,
        conda=entry.conda,
        container=_container(entry),
        trees=entry.trees,
        gpus=entry.gpus,
    )


def _container(entry: TargetEntry) -> dict[str, Any] | None:
    if entry.docker is None:
        return None
    return {"run": list(entry.docker.run), "stop_s": entry.docker.stop_timeout, "env": list(entry.env)}


def _simulated(name: str, world: str | None, session: Path) -> Target:
    from agent.sim.host import create_host, world_file
    from agent.targets.local import LocalTarget

    world = world or "story"
    path = Path(world) if world.endswith((".yaml", ".yml")) else world_file(world)
    try:
        host = create_host(session / "host", path)
    except (OSError, ValueError) as error:
        raise TargetUnusable(f"cannot simulate the world {world}: {error}", "see agent/sim/worlds") from error
    return LocalTarget(
        name,
        workdir=host.home / ".tunebot",
        home=host.home,
        path_prefix=str(host.home / "bin"),
        extra_env=host.env,
        simulated=True,
    )
