"""Versions and settings on which dead ends stand: read on the target in the background, one environment at a time."""

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Protocol

from agent.core import events as ev
from agent.core.known import environments
from agent.core.model import LaunchConfig
from agent.core.scope import INSTALLED, Facts
from agent.core.state import State
from agent.ports import Target, TargetUnusable
from agent.research.common import Redact, ResearchError
from agent.research.preflights.environment import CUDA_SCRIPT
from agent.research.server_python import ANSWER, ask_python, python_of
from agent.research.sources import Sources
from agent.targets import hardware
from agent.text import decode, one_line

EVERY_S = 1.0
"""How often it is looked whether there is another environment: a prepare step may have built one."""

_DISTRIBUTIONS: Mapping[str, Sequence[str]] = {
    "sglang": ("sglang",),
    "vllm": ("vllm",),
    "flashinfer": ("flashinfer-python", "flashinfer"),
    "torch": ("torch",),
    "NCCL": ("nvidia-nccl-cu13", "nvidia-nccl-cu12", "nvidia-nccl-cu11"),
}
_VERSIONS = f"""
import hashlib, importlib.metadata, json, os, sys
said = {{}}
for name, distributions in json.loads(sys.argv[1]).items():
    for distribution in distributions:
        try:
            said.setdefault(name, importlib.metadata.version(distribution))
        except importlib.metadata.PackageNotFoundError:
            pass
found = set()
for folder in sys.path:
    try:
        found.update(entry for entry in os.listdir(folder or ".") if entry.endswith((".dist-info", ".egg-info")))
    except OSError:
        pass
mark = hashlib.sha256("/".join(sorted(found)).encode("utf-8", "replace")).hexdigest()[:8]
said["{INSTALLED}"] = "%d (%s)" % (len(found), mark)
print()
print("{ANSWER}" + json.dumps(said), flush=True)
"""
_OPTIONS = (
    "RegistryDwords",
    "RegistryDwordsPerDevice",
    "EnableResizableBar",
    "DmaRemapPeerMmio",
    "GrdmaPciTopoCheckOverride",
)
"""Options of the driver that decide what peers on PCIe can do."""

_LIMIT_S = 20.0
_LONGEST = 200


class Running(Protocol):
    """The part of an engine that is told."""

    state: State

    def submit(self, event: ev.Event) -> None:
        """Hand in an event."""


@asynccontextmanager
async def facts_read(engine: Running, target: Target, redact: Redact) -> AsyncIterator[None]:
    """While inside, the engine is told what is read of the host and of each environment, once each."""
    reading = asyncio.create_task(_read_all(engine, target, redact), name="versions")
    try:
        yield
    finally:
        reading.cancel()
        with suppress(asyncio.CancelledError):
            await reading


async def _read_all(engine: Running, target: Target, redact: Redact) -> None:
    read: set[str] = set()
    while True:
        state = engine.state
        there = environments(state)
        wanted = next((name for name in ("", *there) if name not in read), None)
        if wanted is None or state.measuring:
            await asyncio.sleep(EVERY_S)
            continue
        read.add(wanted)
        found = await (_of_environment(target, there[wanted], redact) if wanted else _of_host(target, state))
        facts = {name: redact(one_line(value, _LONGEST)) for name, value in found.items()}
        engine.submit(ev.FactsRead(at=time.time(), environment=wanted, facts=facts))


async def _of_environment(target: Target, config: LaunchConfig, redact: Redact) -> Facts:
    """The versions in the environment of a server; nothing where servers run in containers, which nobody looks into."""
    if target.image:
        return {}
    if config.kind == "llamacpp":
        return await _of_program(target, config)
    python, sources = python_of(None, config.command), Sources(target, {}, redact)

    async def asked(script: str, *words: str) -> dict[str, str]:
        try:
            said = await ask_python(sources, config, python, script, words, "asking for versions")
        except (ResearchError, TargetUnusable):
            return {}
        return {name: value for name, value in said.items() if isinstance(value, str) and value}

    found, cuda = await asked(_VERSIONS, json.dumps(_DISTRIBUTIONS)), await asked(CUDA_SCRIPT)
    facts = {name: found[name] for name in (*_DISTRIBUTIONS, INSTALLED) if name in found}
    if "torch" in facts and "torch" in cuda:
        facts["torch"] += f" (CUDA {cuda['torch']})"
    return facts | ({"CUDA toolkit": cuda["nvcc"]} if "nvcc" in cuda else {})


async def _of_program(target: Target, config: LaunchConfig) -> Facts:
    said = await _output(target, (config.command[0], "--version"))
    version = re.search(r"^version: *(.+)", said, re.MULTILINE)
    return {config.kind: version[1]} if version else {}


async def _of_host(target: Target, state: State) -> Facts:
    if not state.host.gpus:
        return {}
    told = await hardware.driver_options(target)
    options = [f"{name}={told[name]}" for name in _OPTIONS if told.get(name, "0") not in ("", "0")]
    facts = {"driver options": ", ".join(options) or "none"} if told.keys() & set(_OPTIONS) else {}
    return facts | _of_cards(await hardware.cards(target, state.host))


def _of_cards(cards: Sequence[hardware.Card]) -> dict[str, str]:
    """What all GPUs of a host say of a thing: `8 x PCIe 5 x16`. Nothing where one of them does not."""
    said = {
        "PCIe link": [f"PCIe {card.generation} x{card.lanes}" for card in cards if card.generation and card.lanes],
        "IOMMU": [str(card.iommu) for card in cards if card.iommu],
        "power limit": [f"{card.power_limit_w:.0f} W" for card in cards if card.power_limit_w],
    }
    counted = {name: Counter(values) for name, values in said.items() if values and len(values) == len(cards)}
    return {
        name: ", ".join(f"{count} x {value}" for value, count in sorted(values.items()))
        for name, values in counted.items()
    }


async def _output(target: Target, argv: Sequence[str]) -> str:
    """What a command says; nothing where it fails."""
    try:
        result = await target.run(argv, timeout_s=_LIMIT_S, background=True, hide_gpus=True)
    except TargetUnusable:
        return ""
    return decode(result.output) if result.exit_code == 0 else ""
