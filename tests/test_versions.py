"""What is read of a host and its environments: in the background, once each, and nothing where nobody answers."""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from agent.core import events as ev
from agent.core.reduce import initial, reduce
from agent.core.state import State
from agent.playbook.model import Playbook
from agent.ports import CommandResult, TargetUnusable
from agent.research.server_python import ANSWER
from agent.versions import facts_read
from tests.core.conftest import HOST, playbook, started

PARAMS = (
    'EnableResizableBar: 1\nRegistryDwords: "ForceP2P=0x11;RMForceP2PType=1"\nTCEBypassMode: 0\nDmaRemapPeerMmio: 0\n'
)
CARDS = "0, 00000000:11:00.0, 5, 16, 600.00\n1, 00000000:C1:00.0, 5, 8, [N/A]\n"
Said = Mapping[str, str | Exception]


@dataclass
class Machine:
    """Answers a command by the first of `said` that stands in it."""

    said: Said
    image: str = ""
    asked: list[Sequence[str]] = field(default_factory=list)

    async def run(self, argv: Sequence[str], **how: Any) -> CommandResult:
        assert how["background"] and how["hide_gpus"], "it is in nobody's way"
        self.asked.append(argv)
        answer = next((text for words, text in self.said.items() if words in " ".join(argv)), "")
        if isinstance(answer, Exception):
            raise answer
        return CommandResult(exit_code=0 if answer else 1, output=answer.encode())


@dataclass
class Session:
    """The part of an engine that is told."""

    state: State
    told: list[ev.Event] = field(default_factory=list)

    def submit(self, event: ev.Event) -> None:
        self.told.append(event)
        self.state, _ = reduce(self.state, event)


async def read(machine: Machine, book: Playbook | None = None, count: int = 2, **changes: Any) -> dict[str, Any]:
    """The facts by environment, as soon as there are so many."""
    state = initial(started(book or playbook({"id": "base"})))
    session = Session(replace(state, host=replace(HOST, image=machine.image), **changes))
    async with facts_read(session, machine, lambda text: text.replace("secret", "***")):  # type: ignore[arg-type]
        async with asyncio.timeout(10):
            while len(session.told) < count:
                await asyncio.sleep(0.01)
    return {event.environment: dict(event.facts) for event in session.told if isinstance(event, ev.FactsRead)}


def python(**said: object) -> str:
    return f"a warning\n{ANSWER}{json.dumps(said)}\n"


async def test_versions_of_an_environment_and_options_of_the_driver() -> None:
    machine = Machine(
        {
            "importlib.metadata.version": python(sglang="0.5.9", torch="2.9.1", packages="2 (x)", evil="[red]"),
            "nvcc": python(nvcc="12.8", path="/usr/local/cuda/bin/nvcc", torch="12.8"),
            "/proc/driver": PARAMS,
            "--query-gpu": CARDS,
            "grep": "".join(f"/sys/bus/pci/devices/0000:{bus}:00.0/iommu_group/type:DMA-FQ\n" for bus in ("11", "c1")),
        }
    )
    found = await read(machine)
    assert found[""] == {
        "driver options": "RegistryDwords=ForceP2P=0x11;RMForceP2PType=1, EnableResizableBar=1",
        "PCIe link": "1 x PCIe 5 x16, 1 x PCIe 5 x8",
        "IOMMU": "2 x translated",
    }, "one of the GPUs does not tell its power limit"
    assert found["python3"] == {
        "sglang": "0.5.9",
        "torch": "2.9.1 (CUDA 12.8)",
        "packages": "2 (x)",
        "CUDA toolkit": "12.8",
    }


@pytest.mark.parametrize("trouble", ["", "not JSON", TargetUnusable("no python3 there")])
async def test_what_does_not_answer_is_not_known(trouble: str | Exception) -> None:
    assert await read(Machine({"python3": trouble, "cat": trouble})) == {"": {}, "python3": {}}


async def test_texts_of_a_host_are_cleaned_and_redacted() -> None:
    found = await read(Machine({"metadata": python(sglang="1\n\x1b[31msecret" + "x" * 999)}))
    assert found["python3"]["sglang"].startswith("1 ***xxx") and len(found["python3"]["sglang"]) < 300


async def test_nobody_looks_into_containers() -> None:
    machine = Machine({"metadata": python(sglang="0.5.9")}, image="lmsysorg/sglang:v0.5.9")
    assert (await read(machine))["python3"] == {}
    assert [argv[0] for argv in machine.asked] == ["cat", "nvidia-smi"]


async def test_a_server_that_is_no_python_says_its_own_version() -> None:
    llama = {"kind": "llamacpp", "command": ["/opt/llama-server"], "args": {"model": "/m.gguf"}}
    found = await read(Machine({"--version": "version: 6527 (7f76692)\nbuilt with cc\n"}), playbook(server=llama))
    assert found["/opt/llama-server"] == {"llamacpp": "6527 (7f76692)"}


async def test_an_environment_that_is_built_later_is_read_then() -> None:
    book = playbook(
        {"id": "base"}, {"id": "new", "prepare": [{"run": ["make"]}], "server": {"command": ["/new/bin/python3"]}}
    )
    machine = Machine({"/new": python(sglang="0.5.23"), "metadata": python(sglang="0.5.9")})
    session = Session(initial(started(book)))
    async with facts_read(session, machine, str):  # type: ignore[arg-type]
        async with asyncio.timeout(10):
            await _until(lambda: len(session.told) == 2)
            session.state = session.state.with_experiment("new", prepared=1)
            await _until(lambda: len(session.told) == 3)
    assert session.told[-1].environment == "/new/bin/python3"  # type: ignore[attr-defined]


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.01)
