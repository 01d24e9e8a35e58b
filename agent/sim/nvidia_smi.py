"""nvidia-smi of a simulated host: what living ranks hold, in the formats of the real tool."""

import json
import sys
from typing import Any

from agent.sim.procs import read_gpu_states
from agent.sim.world import World, parse_world

UNITS = {
    "memory.total": "MiB",
    "memory.used": "MiB",
    "memory.free": "MiB",
    "memory.reserved": "MiB",
    "utilization.gpu": "%",
    "utilization.memory": "%",
    "power.draw": "W",
    "power.limit": "W",
    "clocks.sm": "MHz",
    "clocks.current.sm": "MHz",
    "clocks.mem": "MHz",
    "clocks.max.sm": "MHz",
}
RESERVED_MIB = 638


def main() -> None:
    """Entry; arguments: root of the host, then those of nvidia-smi."""
    root, arguments = sys.argv[1], sys.argv[2:]
    with open(f"{root}/.sim/world.json") as file:  # noqa: PTH123  (started often, once a second)
        world = parse_world(json.load(file))
    states = read_gpu_states(f"{root}/.sim/gpu")
    options = dict(item.partition("=")[::2] for item in arguments if item.startswith("--"))
    chosen = _chosen(world, arguments, options)
    if arguments[:2] == ["topo", "-p2p"]:
        text = peers(world)
    elif arguments[:1] == ["topo"]:
        text = topology(world)
    elif "-L" in arguments or "--list-gpus" in options:
        text = "".join(f"GPU {gpu}: {world.gpu.name} (UUID: {uuid(gpu)})\n" for gpu in chosen)
    elif "--query-gpu" in options:
        text = query(world, root, states, options, chosen)
    elif "--query-compute-apps" in options:
        text = compute_apps(states, options, chosen)
    elif not options or "-i" in arguments:
        text = table(world, root, states)
    else:
        text = f"Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n\n{arguments}\n"
    sys.stdout.write(text)
    if text.startswith(("Invalid", "Field")):
        raise SystemExit(2)


def uuid(gpu: int) -> str:
    """UUID of a GPU by index."""
    return f"GPU-{gpu:08x}-5117-4a7e-8000-00000000{gpu:04x}"


def query(world: World, root: str, states: list[dict[str, Any]], options: dict[str, str], chosen: list[int]) -> str:
    """The answer to --query-gpu."""
    names = [name.strip() for name in options["--query-gpu"].split(",")]
    rows = []
    for gpu in chosen:
        values = facts(world, root, states, gpu)
        for name in names:
            if name not in values:
                return f'Field "{name}" is not a valid field to query.\n\n'
        rows.append([_unit(name, values[name], options) for name in names])
    return _csv([f"{name} [{UNITS[name]}]" if name in UNITS else name for name in names], rows, options)


def compute_apps(states: list[dict[str, Any]], options: dict[str, str], chosen: list[int]) -> str:
    """The answer to --query-compute-apps."""
    names = [name.strip() for name in options["--query-compute-apps"].split(",")]
    rows = []
    for state in sorted(states, key=lambda item: (item["gpu"], item["pid"])):
        unit = "" if "nounits" in options.get("--format", "") else " MiB"
        used = f"{state['used_mib']}{unit}"
        values = {"gpu_uuid": uuid(state["gpu"]), "pid": str(state["pid"]), "used_memory": used}
        values |= {"used_gpu_memory": used, "process_name": _title(state["pid"]), "name": _title(state["pid"])}
        for name in names:
            if name not in values:
                return f'Field "{name}" is not a valid field to query.\n\n'
        if state["gpu"] in chosen and state["used_mib"]:
            rows.append([values[name] for name in names])
    return _csv(names, rows, options)


def facts(world: World, root: str, states: list[dict[str, Any]], gpu: int) -> dict[str, str]:
    """All fields of one GPU, without units."""
    mine = [state for state in states if state["gpu"] == gpu]
    used = sum(state["used_mib"] for state in mine)
    waiting = [share for state in mine if (share := _waiting(f"{root}/.sim/busy/{state['launcher']}")) is not None]
    busy = bool(waiting)
    # Half of the limit is what decoding draws; 0.21 of it where half of the time is waiting (rtx6kpro#25).
    working = world.gpu.power_w * max(0.2, 0.55 - 0.62 * max(waiting, default=0.0))
    clock, watts = ("2430", working) if busy else ("180", 32.0 + 60.0 * bool(mine))
    total, total_used = world.gpu.memory_mib, used + 4 * bool(mine)
    utilization = "97" if busy else "0"
    return {
        "index": str(gpu),
        "name": world.gpu.name,
        "gpu_name": world.gpu.name,
        "uuid": uuid(gpu),
        "gpu_uuid": uuid(gpu),
        "count": str(world.gpu.count),
        "compute_cap": world.gpu.compute_cap,
        "driver_version": world.gpu.driver,
        "memory.total": str(total),
        "memory.used": str(total_used),
        "memory.free": str(max(0, total - total_used - RESERVED_MIB)),
        "memory.reserved": str(RESERVED_MIB),
        "utilization.gpu": utilization,
        "utilization.memory": utilization,
        "temperature.gpu": "58" if busy else "34",
        "power.draw": f"{watts:.2f}",
        "power.limit": f"{world.gpu.power_w:.2f}",
        "clocks.sm": clock,
        "clocks.current.sm": clock,
        "clocks.max.sm": "2430",
        "clocks.mem": "12481",
        "clocks_throttle_reasons.hw_slowdown": "Not Active",
        "clocks_throttle_reasons.sw_thermal_slowdown": "Not Active",
        "pstate": "P1" if busy else "P8",
        "persistence_mode": "Enabled",
        "ecc.mode.current": "Enabled",
        "mig.mode.current": "Disabled",
        "compute_mode": "Default",
        "pci.bus_id": bus(gpu),
        "pcie.link.gen.current": "5" if busy else "1",
        "pcie.link.gen.max": "5",
        "pcie.link.width.current": "16",
        "pcie.link.width.max": "16",
    }


def _waiting(mark: str) -> float | None:
    """The fraction of time in which a busy server's GPUs wait; None where it has nothing to do."""
    try:
        with open(mark) as file:  # noqa: PTH123  (started often, once a second)
            return float(file.read() or 0)
    except FileNotFoundError:
        return None


def bus(gpu: int) -> str:
    """PCI address of a GPU."""
    return f"00000000:{0x11 + 0x10 * gpu:02X}:00.0"


def topology(world: World) -> str:
    """The answer to `topo -m`, with its underlined header."""
    count, shape = world.gpu.count, world.topology
    names = [f"GPU{gpu}" for gpu in range(count)]
    per_node = max(1, count // shape.numa_nodes)
    head = "\t\x1b[4m" + "\t".join([*names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"]) + "\x1b[0m"
    lines = [head]
    for row in range(count):
        cells = [_link(world, row, column, per_node) for column in range(count)]
        node = row // per_node
        lines.append("\t".join([names[row], *cells, f"{node * 64}-{node * 64 + 63}", str(node), "\tN/A"]))
    return "\n".join([*lines, "", LEGEND])


def peers(world: World) -> str:
    """The answer to `topo -p2p r`: what the driver says of peer access, which is no proof that it works."""
    names = [f"GPU{gpu}" for gpu in range(world.gpu.count)]
    rows = ["\t".join([name, *(" X " if name == other else "OK" for other in names)]) for name in names]
    return "\n".join(["\t".join(["", *names]), *rows, "", PEER_LEGEND])


def _link(world: World, row: int, column: int, per_node: int) -> str:
    if row == column:
        return " X "
    if world.topology.nvlink:
        return f"NV{world.topology.nvlink}"
    if row // world.topology.switch_size == column // world.topology.switch_size:
        return "PIX"
    return "NODE" if row // per_node == column // per_node else "SYS"


def table(world: World, root: str, states: list[dict[str, Any]]) -> str:
    """The answer without arguments, in short."""
    rule = "+" + "-" * 77 + "+\n"
    driver, cuda = world.gpu.driver, world.gpu.cuda
    head = f"NVIDIA-SMI {driver}   Driver Version: {driver}   CUDA Version: {cuda}   (simulated)"
    lines = [rule, f"| {head:<75} |\n", rule]
    for gpu in range(world.gpu.count):
        values = facts(world, root, states, gpu)
        used = f"{values['memory.used']}MiB / {values['memory.total']}MiB"
        lines.append(
            f"| {gpu:>3}  {world.gpu.name[:30]:<30} {used:>22} {values['utilization.gpu']:>5}% {'Default':>9} |\n"
        )
    lines += [rule, f"| {'Processes:  GPU  PID  Type  Process name  GPU Memory Usage':<75} |\n"]
    for state in sorted(states, key=lambda item: int(item["gpu"])):
        text = f"{state['gpu']:>15} {state['pid']:>8}    C   {_title(state['pid']):<26} {state['used_mib']}MiB"
        lines.append(f"| {text:<75} |\n")
    return "".join([*lines, rule])


def _chosen(world: World, arguments: list[str], options: dict[str, str]) -> list[int]:
    wanted = options.get("--id", "")
    if "-i" in arguments[:-1]:
        wanted = arguments[arguments.index("-i") + 1]
    gpus = range(world.gpu.count)
    listed = [item.strip() for item in wanted.split(",") if item.strip()]
    return [gpu for gpu in gpus if not listed or str(gpu) in listed or uuid(gpu) in listed]


def _unit(name: str, value: str, options: dict[str, str]) -> str:
    return value if "nounits" in options.get("--format", "") or name not in UNITS else f"{value} {UNITS[name]}"


def _csv(names: list[str], rows: list[list[str]], options: dict[str, str]) -> str:
    shown = rows if "noheader" in options.get("--format", "") else [names, *rows]
    return "".join(", ".join(row) + "\n" for row in shown)


def _title(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123  (started often, once a second)
            return file.read().split(b"\0")[0].decode()
    except OSError:
        return "[Not Found]"


PEER_LEGEND = """Legend:

  X    = Self
  OK   = Status Ok
  CNS  = Chipset not supported
  GNS  = GPU not supported
  TNS  = Topology not supported
  NS   = Not supported
  U    = Unknown
"""
LEGEND = """Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks
"""
