"""driver-option, kernel-arg, pcie-link, peers, power-limit, numa: how the host lets its GPUs talk, and run."""

from collections.abc import Mapping, Sequence

from agent.core.model import Host, LaunchConfig
from agent.playbook.hardware import DriverOption, KernelArg, Numa, PcieLink, Peers, PowerLimit
from agent.ports import Target
from agent.research.common import Progress, ResearchError
from agent.research.preflights.reports import Report, gib
from agent.research.preflights.used_gpus import used_gpus
from agent.research.sources import Sources
from agent.targets import hardware
from agent.targets.hardware import Card

_MIB = float(1 << 20)


async def check_option(sources: Sources, check: DriverOption, progress: Progress) -> Report:
    """Raises ResearchError where nobody says."""
    progress("reading the options of the driver")
    value = (await hardware.driver_options(sources.target)).get(check.name)
    if value is None:
        raise ResearchError(f"/proc/driver/nvidia/params says nothing of {check.name}")
    shown = f"the driver has {check.name}={value}" if value else f"the driver has no {check.name}"
    if check.contains is not None and check.contains not in value:
        return Report(check.otherwise, f"{shown}: it must hold {check.contains}")
    if check.one_of and value not in check.one_of:
        return Report(check.otherwise, f"{shown}: it must be {' or '.join(check.one_of)}")
    return Report("fine", shown)


async def check_argument(sources: Sources, check: KernelArg, progress: Progress) -> Report:
    """Raises as `check_option`."""
    progress("reading the kernel's arguments")
    words = await hardware.kernel_arguments(sources.target)
    if not words:
        raise ResearchError("/proc/cmdline cannot be read")
    given = [word.partition("=") for word in words]
    values = [value for name, _, text in given if name == check.name for value in text.split(",")]
    said = [word for word in words if word.partition("=")[0] == check.name]
    shown = f"the kernel has {' '.join(said)}" if said else f"the kernel has no argument {check.name}"
    if bad := [value for value in values if value in check.not_in]:
        return Report(check.otherwise, f"{shown}: it must not be {bad[0]}")
    if check.one_of and not set(values) & set(check.one_of):
        return Report(check.otherwise, f"{shown}: it must be {' or '.join(check.one_of)}")
    return Report("fine", shown)


async def check_link(sources: Sources, check: PcieLink, host: Host, config: LaunchConfig, progress: Progress) -> Report:
    """Raises as `check_option`."""
    progress("asking for the PCIe links of the GPUs")
    cards = await _cards(sources.target, host, config)
    for card in cards:
        if card.generation is None or card.lanes is None:
            raise ResearchError(f"the PCIe link of GPU {card.index} is not known")
        low = check.generation is not None and card.generation < check.generation
        narrow = check.lanes is not None and card.lanes < check.lanes
        if low or narrow:
            wanted = [f"generation {check.generation}"] * low + [f"{check.lanes} lanes"] * narrow
            return Report(check.otherwise, f"GPU {card.index} has {_link(card)}, not {' and '.join(wanted)}")
    return Report("fine", f"{_each(cards)} {', '.join(dict.fromkeys(map(_link, cards)))}")


async def check_power(
    sources: Sources, check: PowerLimit, host: Host, config: LaunchConfig, progress: Progress
) -> Report:
    """Raises as `check_option`."""
    progress("asking for the power limits of the GPUs")
    cards = await _cards(sources.target, host, config)
    for card in cards:
        if card.power_limit_w is None:
            raise ResearchError(f"the power limit of GPU {card.index} is not known")
        shown = f"GPU {card.index} is limited to {card.power_limit_w:.0f} W"
        if check.at_least_w is not None and card.power_limit_w < check.at_least_w:
            return Report(check.otherwise, f"{shown}, not to {check.at_least_w} W or more")
        if check.at_most_w is not None and card.power_limit_w > check.at_most_w:
            return Report(check.otherwise, f"{shown}, not to {check.at_most_w} W or less")
    limits = dict.fromkeys(f"{card.power_limit_w:.0f} W" for card in cards)
    return Report("fine", f"{_each(cards)} a power limit of {' or '.join(limits)}")


async def check_numa(sources: Sources, check: Numa, host: Host, config: LaunchConfig, progress: Progress) -> Report:
    """Raises as `check_option`."""
    told = []
    if check.balancing is not None:
        progress("asking whether the kernel balances NUMA nodes")
        balancing = await hardware.numa_balancing(sources.target, host)
        if balancing is None:
            raise ResearchError("whether the kernel balances NUMA nodes is not known")
        told.append(f"NUMA balancing is {'on' if balancing else 'off'}")
        if balancing != check.balancing:
            return Report(check.otherwise, f"{told[0]}: echo {int(check.balancing)} > {hardware.BALANCING}")
    if check.nodes is not None:
        progress("asking for the NUMA nodes of the GPUs")
        cards = await _cards(sources.target, host, config)
        if any(card.node is None for card in cards):
            raise ResearchError("on which NUMA nodes the GPUs sit is not known")
        found = sorted({card.node for card in cards if card.node is not None})
        told.append(f"{_count(cards)} on NUMA node {' and '.join(map(str, found))}")
        if len(found) > check.nodes:
            return Report(check.otherwise, f"{told[-1]}: {len(found)} nodes, not {check.nodes}")
    return Report("fine", "; ".join(told))


async def check_peers(sources: Sources, check: Peers, host: Host, config: LaunchConfig, progress: Progress) -> Report:
    """What is wrong is told before what is not known. Raises as `check_option`."""
    progress("asking how the GPUs reach each other")
    cards = await _cards(sources.target, host, config)
    looks = [_iommu(check, cards)] if check.iommu else []
    if check.access is not None:
        looks.append(await _access(sources.target, check, cards))
    if check.bar1 is not None:
        looks.append(_bar1(check.bar1, check, cards, await hardware.bar1_mib(sources.target)))
    if check.acs is not None:
        looks.append(_acs(check, await hardware.redirecting_bridges(sources.target, host)))
    if wrong := next((look for look in looks if look.outcome not in ("fine", "unknown")), None):
        return wrong
    if unknown := [look.summary for look in looks if look.outcome == "unknown"]:
        raise ResearchError("; ".join(unknown))
    return Report("fine", "; ".join(look.summary for look in looks))


def _iommu(check: Peers, cards: Sequence[Card]) -> Report:
    for card in cards:
        if card.iommu is None:
            return Report("unknown", f"what the IOMMU does with GPU {card.index} is not known")
        if card.iommu not in check.iommu:
            shown = f"the IOMMU is {card.iommu} for GPU {card.index}"
            return Report(check.otherwise, f"{shown}: it must be {' or '.join(check.iommu)}")
    return Report("fine", f"IOMMU {', '.join(dict.fromkeys(str(card.iommu) for card in cards))}")


async def _access(target: Target, check: Peers, cards: Sequence[Card]) -> Report:
    indexes = [card.index for card in cards]
    if len(indexes) < 2:
        return Report("unknown", "one GPU has no peers")
    words = await hardware.peer_access(target, indexes)
    if not words:
        return Report("unknown", "what the driver says of peers is not known")
    refused = next(((pair, word) for pair, word in words.items() if word != "OK"), None)
    shown = f"the driver says OK for all {len(words)} ways between GPUs"
    if refused:
        (a, b), word = refused
        shown = f"the driver says {word} for GPU {a} reading GPU {b}"
    return Report("fine" if (refused is None) == check.access else check.otherwise, shown)


def _bar1(least: float, check: Peers, cards: Sequence[Card], sizes: Mapping[str, int]) -> Report:
    for card in cards:
        if card.address not in sizes:
            return Report("unknown", f"the BAR1 of GPU {card.index} is not known")
        if (size := sizes[card.address] * _MIB) < least:
            return Report(check.otherwise, f"GPU {card.index} has a BAR1 of {gib(size)}, not {gib(least)}")
    return Report("fine", f"BAR1 {gib(min(sizes[card.address] for card in cards) * _MIB)}")


def _acs(check: Peers, bridges: int | None) -> Report:
    if bridges is None:
        return Report("unknown", "lspci shows no ACS (that takes root)")
    many = f"{bridges} PCIe bridges send" if bridges > 1 else f"{bridges or 'no'} PCIe bridge sends"
    shown = f"{many} peers' transfers up to the root (ACS)"
    return Report("fine" if (bridges > 0) == check.acs else check.otherwise, shown)


async def _cards(target: Target, host: Host, config: LaunchConfig) -> tuple[Card, ...]:
    """Those that the launch would use. Raises ResearchError where nobody knows them."""
    by_index = {card.index: card for card in await hardware.cards(target, host)}
    used = [by_index.get(gpu.index) for gpu in used_gpus(config, host.gpus)]
    found = tuple(card for card in used if card is not None)
    if not found or len(found) < len(used):
        raise ResearchError(f"how the GPUs of {host.name} sit on PCIe is not known")
    return found


def _link(card: Card) -> str:
    return f"PCIe {card.generation} x{card.lanes}"


def _each(cards: Sequence[Card]) -> str:
    return f"{_count(cards)} {'has' if len(cards) == 1 else 'have'}"


def _count(cards: Sequence[Card]) -> str:
    return "1 GPU" if len(cards) == 1 else f"{len(cards)} GPUs"
