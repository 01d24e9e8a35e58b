"""A host of one's own for a harness: a target on this machine and one over SSH to it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from agent.targets.local import LocalTarget
from tests.sshd import start_sshd
from tests.targets.kit import Place, Placed


@asynccontextmanager
async def hosts(root: Path) -> AsyncIterator[tuple[Placed, Placed]]:
    """Two targets with one home and a work folder each. What is launched there is stopped at the end."""
    (root / "home").mkdir()
    sshd = start_sshd(root / "sshd")
    local = Place(root=root, work=root / "local", env={}, sshd=None).target()
    remote = Place(root=root, work=root / "remote", env={}, sshd=sshd).target()
    try:
        yield local, remote
    finally:
        await remote.close()
        sshd.stop()
        for target in (local, remote):
            work = target.place.work
            for run in (work / "runs").glob("*"):
                await LocalTarget("here", workdir=work).stop(run.name, 0.0)
        await local.close()
