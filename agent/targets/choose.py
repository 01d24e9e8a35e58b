"""From a playbook's `target:` (or `--target NAME`) to a target."""

import os
import re
from pathlib import Path

from agent.paths import state_folder, targets_files
from agent.playbook.model import Playbook
from agent.ports import Target, TargetUnusable
from agent.targets.file import TargetEntry, find_target

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
    if name == "local":
        return _local(name, TargetEntry(kind="local"))
    if match := re.fullmatch(r"simulated(?::(.+))?", name):
        return _simulated("simulated", match[1], session)
    kind, _, host = name.partition(":")
    if kind == "ssh" and _HOST.fullmatch(host):
        return _ssh(host, TargetEntry(kind="ssh", host=host))
    entry = find_target(name, targets_files())
    if entry is None:
        raise TargetUnusable(f"there is no target {name}", f"targets are {NAMES}")
    if entry.kind == "simulated":
        return _simulated(name, entry.world, session)
    return _ssh(name, entry) if entry.kind == "ssh" else _local(name, entry)


def _local(name: str, entry: TargetEntry) -> Target:
    from agent.targets.local import LocalTarget

    workdir = Path(entry.workdir).expanduser() if entry.workdir else state_folder() / "local"
    path = os.pathsep.join(str(Path(folder).expanduser()) for folder in entry.path)
    return LocalTarget(name, workdir=workdir, path_prefix=path or None, extra_env=entry.env)


def _ssh(name: str, entry: TargetEntry) -> Target:
    from agent.targets.dial import Dialling
    from agent.targets.ssh import SshTarget

    assert entry.host is not None
    workdir = entry.workdir or "~/.tunebot"
    to = Dialling(host=entry.host)
    return SshTarget(name, to, workdir=workdir, env=entry.env, path=entry.path, gpus=entry.gpus)


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
