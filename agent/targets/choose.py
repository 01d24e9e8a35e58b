"""From a playbook's `target:` (or `--target NAME`) to a target."""

import re
from pathlib import Path

from agent.paths import state_folder
from agent.playbook.model import Playbook
from agent.ports import Target, TargetUnusable

NAMES = "local, simulated or simulated:WORLD"


def open_target(name: str | None, playbook: Playbook, session: Path) -> Target:
    """The target of that name, else the playbook's. A simulated host lives in the session's folder.

    Raises TargetUnusable for a name that leads nowhere.
    """
    from agent.targets.local import LocalTarget

    wanted = name if name is not None else playbook.target
    if not isinstance(wanted, str):
        raise TargetUnusable(f"targets over SSH (ssh: {wanted.ssh}) cannot be reached yet", f"--target {NAMES}")
    if wanted == "local":
        return LocalTarget("local", workdir=state_folder() / "local")
    if match := re.fullmatch(r"simulated(?::(.+))?", wanted):
        from agent.sim.host import create_host, world_file

        world = match[1] or "story"
        path = Path(world) if world.endswith((".yaml", ".yml")) else world_file(world)
        try:
            host = create_host(session / "host", path)
        except (OSError, ValueError) as error:
            raise TargetUnusable(f"cannot simulate the world {world}: {error}", "see agent/sim/worlds") from error
        return LocalTarget(
            "simulated",
            workdir=host.home / ".tunebot",
            home=host.home,
            path_prefix=str(host.home / "bin"),
            extra_env=host.env,
            simulated=True,
        )
    raise TargetUnusable(f"there is no target {wanted}", f"targets are {NAMES}")
