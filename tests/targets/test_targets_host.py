"""Facts about the host, and whose sockets listen."""

import asyncio
import socket
from pathlib import Path

import pytest

from agent.core.model import Gpu
from agent.ports import PortOwners, TargetUnusable
from agent.targets import gpus, local, ssh
from agent.targets.local import LocalTarget
from tests.targets.kit import SLEEP, Placed, printed, serve

LISTEN = """
import socket, sys, time
sock = socket.socket(socket.AF_INET6 if sys.argv[2] == "::" else socket.AF_INET)
sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
sock.bind((sys.argv[2], int(sys.argv[1])))
sock.listen()
print("listens", flush=True)
time.sleep(600)
"""
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-I', '-S', '-c', sys.argv[1], *sys.argv[2:]])"


def smi(target: Placed, script: str) -> None:
    tool = target.place.tools / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{script}\n")
    tool.chmod(0o755)


async def test_gpus_as_nvidia_smi_lists_them(target: Placed) -> None:
    rows = [
        "0, NVIDIA RTX PRO 6000 Blackwell Server Edition, 12.0, 97887, 580.82.07",
        "1, NVIDIA GB10, rev 2, 12.1, [N/A], 580.82.07",
    ]
    smi(target, f'[ "$*" = "{" ".join(gpus.SMI[1:])}" ] && printf "%s\\n" "{rows[0]}" "{rows[1]}"')
    host = await target.host()
    name = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
    assert host.gpus == (
        Gpu(index=0, name=name, sm_major=12, sm_minor=0, memory_mib=97887, driver="580.82.07"),
        Gpu(index=1, name="NVIDIA GB10, rev 2", sm_major=12, sm_minor=1, memory_mib=0, driver="580.82.07"),
    )
    assert (host.name, host.simulated) == (socket.gethostname(), False)


async def test_hosts_without_gpus_and_with_broken_ones(target: Placed, monkeypatch: pytest.MonkeyPatch) -> None:
    if isinstance(target, LocalTarget):
        target._env["PATH"] = str(target.place.tools)
    assert (await target.host()).gpus == ()
    smi(target, "echo No devices were found; exit 6")
    assert (await target.host()).gpus == ()
    smi(target, "echo NVIDIA-SMI has failed; exit 9")
    with pytest.raises(TargetUnusable, match="NVIDIA-SMI has failed"):
        await target.host()
    smi(target, "echo nonsense")
    with pytest.raises(TargetUnusable, match="nvidia-smi says nonsense"):
        await target.host()
    for module in (local, ssh):
        monkeypatch.setattr(module, "_SMI_LIMIT_S", 0.2)
    smi(target, "exec /bin/sleep 60")
    with pytest.raises(TargetUnusable, match="no answer") as caught:
        await target.host()
    assert caught.value.hint


async def test_a_simulated_host_has_the_name_of_its_target(tmp_path: Path) -> None:
    target = LocalTarget("toy\x1b[31m host", workdir=tmp_path / "work", simulated=True)
    host = await target.host()
    assert (host.name, host.simulated) == ("toy host", True)


async def test_ports_are_free_and_never_the_same(target: Placed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_CONNECT_LIMIT_S", 0.3)  # what a full backlog costs
    ports = [await target.free_port() for _ in range(200)]
    assert len(set(ports)) == 200
    port = ports[0]
    assert not await target.port_answers(port)
    with socket.create_server(("127.0.0.1", port), backlog=0):
        for _ in range(3):
            assert await target.port_answers(port)
    assert not await target.port_answers(port)


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::"])
async def test_who_listens(target: Placed, address: str) -> None:
    port = await target.free_port()
    await serve(target, PARENT, LISTEN, str(port), address)
    await printed(target, "listens")
    rank = (await target.launch_status("l1")).processes[-1].pid
    assert await target.port_owners("l1", port) == PortOwners(ours=(rank,), others=False)
    assert await target.port_owners("other", port) == PortOwners(ours=(), others=True)
    assert await target.port_owners("l1", await target.free_port()) == PortOwners(ours=(), others=False)


async def test_an_old_server_on_our_port_is_seen(target: Placed) -> None:
    """With SO_REUSEPORT both can listen: the kernel deals connections out between them."""
    port = await target.free_port()
    await serve(target, LISTEN, str(port), "127.0.0.1")
    await printed(target, "listens")
    with socket.socket() as old:
        old.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        old.bind(("127.0.0.1", port))
        old.listen()
        owners = await target.port_owners("l1", port)
    assert (len(owners.ours), owners.others) == (1, True)
    assert not (await target.port_owners("l1", port)).others


async def test_only_others_listen(target: Placed) -> None:
    await serve(target, SLEEP)
    server = await asyncio.start_server(lambda reader, writer: writer.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    assert await target.port_owners("l1", port) == PortOwners(ours=(), others=True)
    server.close()
    await server.wait_closed()
