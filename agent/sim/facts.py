"""What holds of a simulated host and one of its environments, by name: the facts on which its laws decide."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agent.sim.parts import Environment, Gpu
    from agent.sim.world import World

STOCK_OPTIONS: dict[str, Any] = {
    "DmaRemapPeerMmio": 1,
    "EnableResizableBar": 0,
    "GrdmaPciTopoCheckOverride": 0,
    "RegistryDwords": '""',
}
"""Options of a driver that nobody has touched, as /proc/driver/nvidia/params prints them."""
_RANGE = re.compile(r"(<=|>=|<|>)\s*(\S+)")


def facts_of(world: World, environment: Environment) -> dict[str, str]:
    """Versions, GPU, links, driver state; then what the world and the environment say of themselves."""
    shape = world.topology
    found: dict[str, Any] = {
        "sglang": environment.version,
        "torch": environment.torch,
        "flashinfer": environment.flashinfer,
        "nccl": environment.nccl,
        "cuda": environment.cuda,
        "driver": world.gpu.driver,
        "gpus": world.gpu.count,
        "sm": world.gpu.compute_cap.partition(".")[0],
        "nvlink": "full" if shape.nvlink else "none",
        "nvswitch": "yes" if shape.nvswitch else "no",
        "force_p2p": "on" if "ForceP2P" in str(driver_options(world.gpu)["RegistryDwords"]) else "off",
        **environment.packages,
        **world.facts,
        **environment.facts,
    }
    return {name: str(value) for name, value in found.items()}


def driver_options(gpu: Gpu) -> dict[str, Any]:
    """All options of the driver."""
    return {**STOCK_OPTIONS, **gpu.driver_options}


def fits(value: object, wanted: object) -> bool:
    """Whether a value is the wanted one, as text: a list has any of its members, `*` and `a*b` match what is set.

    `>=2.31` compares versions, null is what is not set.
    """
    if isinstance(wanted, list | tuple):
        return any(fits(value, item) for item in wanted)
    if wanted is None:
        return value is None
    if wanted == "*":
        return value not in (None, False, "")
    if value is None:
        return False
    if match := _RANGE.fullmatch(str(wanted)):
        return _compare(numbers(str(value)), match[1], numbers(match[2]))
    return _like(str(value).lower(), str(wanted).lower())


def all_fit(values: Mapping[str, object], wanted: Mapping[str, object]) -> bool:
    """Whether each of the wanted values is there."""
    return all(fits(values.get(name), value) for name, value in wanted.items())


def numbers(version: str) -> tuple[int, ...]:
    """The numbers of a version, for comparison: 0.5.10.post1 -> (0, 5, 10, 1)."""
    return tuple(int(number) for number in re.findall(r"\d+", version))


def _compare(left: tuple[int, ...], sign: str, right: tuple[int, ...]) -> bool:
    if sign.startswith("<"):
        return left < right or (sign == "<=" and left == right)
    return left > right or (sign == ">=" and left == right)


def _like(value: str, wanted: str) -> bool:
    if "*" not in wanted:
        return value == wanted
    pattern = ".*".join(re.escape(part) for part in wanted.split("*"))
    return re.fullmatch(pattern, value, re.DOTALL) is not None
