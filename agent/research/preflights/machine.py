"""gpu, topology, command-version, path, disk-free, port-free, http: the host itself."""

import itertools
import json
import re
from collections.abc import Sequence

from agent.core.model import Gpu, Host, LaunchConfig
from agent.playbook.preflights import CommandVersion, DiskFree, GpuCheck, HttpCheck, PathCheck, PortFree, Topology
from agent.ports import CommandResult, Target
from agent.research.common import Progress, ResearchError, launch_env
from agent.research.preflights.reports import Report, gib, in_range
from agent.research.preflights.used_gpus import used_gpus, visible_gpus
from agent.research.sources import Sources
from agent.targets.holders import Holder, holders

_VERSION = re.compile(r"(?<![0-9A-Za-z.])v?([0-9]+(?:\.[0-9]+)+(?:(?:[-_.]?(?:a|b|rc|post|dev))[0-9]*)*)")
_LIMIT_S = 60.0
_HTTP_LIMIT_S = 10.0

_DISK = """
import json, os, shutil, sys
path = os.path.realpath(os.path.expanduser(sys.argv[1]))
while not os.path.exists(path) and path != os.path.dirname(path):
    path = os.path.dirname(path)
print(json.dumps([path, shutil.disk_usage(path).free]))
"""
_GET = """
import http.client, json, sys, urllib.error, urllib.request

class Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None

opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), Stay)
try:
    with opener.open(sys.argv[1], timeout=float(sys.argv[2])) as reply:
        said = [reply.status, ""]
except urllib.error.HTTPError as error:
    said = [error.code, ""]
except (OSError, ValueError, http.client.HTTPException) as error:
    said = [None, str(getattr(error, "reason", "") or error or type(error).__name__)]
print(json.dumps(said))
"""


async def check_gpu(sources: Sources, check: GpuCheck, host: Host, config: LaunchConfig, progress: Progress) -> Report:
    """As many as wanted must be there for the launch; the rest is asked of those that it would use.

    Raises ResearchError where it cannot tell, TargetUnusable as the target does.
    """
    visible = visible_gpus(config, host.gpus)
    if check.count is not None and len(visible) < check.count:
        return Report(check.otherwise, f"{_had(visible, host)}, not {check.count}")
    gpus = used_gpus(config, host.gpus)
    if not gpus:
        raise ResearchError(_had(gpus, host))
    for gpu in gpus if check.sm else ():
        capability = f"{gpu.sm_major}.{gpu.sm_minor}"
        if check.sm and not in_range(capability, check.sm):
            return Report(check.otherwise, f"GPU {gpu.index} ({gpu.name}) is SM {capability}, not {check.sm}")
    if check.memory_free is not None:
        return await _memory(sources.target, check, gpus, progress)
    return Report("fine", f"{_count(gpus)}, SM {gpus[0].sm_major}.{gpus[0].sm_minor}")


async def _memory(target: Target, check: GpuCheck, gpus: Sequence[Gpu], progress: Progress) -> Report:
    """What our own launches hold is free when the next one begins."""
    progress("asking who holds GPU memory")
    found = await holders(target, gpus)
    launches = (await target.survey())["launches"]
    ours = {pid for launch in launches for pid in launch["pids"]}
    others = [holder for holder in found if holder.pid not in ours]
    if launches and any(holder.pid is None for holder in others):
        raise ResearchError("whose the GPU memory is cannot be told while a launch runs")
    wanted = check.memory_free or 0.0
    for gpu in gpus:
        held = [holder for holder in others if holder.gpu == gpu.index]
        free = (gpu.memory_mib - sum(holder.used_mib for holder in held)) * float(1 << 20)
        if free < wanted:
            return Report(check.otherwise, f"GPU {gpu.index} has {gib(free)} for us, not {gib(wanted)}{_by(held)}")
    return Report("fine", f"{gib(wanted)} of each of {_count(gpus)} can be had")


def _by(held: Sequence[Holder]) -> str:
    return f": {held[0]}" if held else ""


def _count(gpus: Sequence[Gpu]) -> str:
    return "1 GPU" if len(gpus) == 1 else f"{len(gpus)} GPUs"


def _had(gpus: Sequence[Gpu], host: Host) -> str:
    if len(gpus) == len(host.gpus):
        return f"{host.name} has {_count(gpus)}"
    return f"the launch has {_count(gpus)} of the {len(host.gpus)} of {host.name}"


def check_topology(check: Topology, host: Host, config: LaunchConfig) -> Report:
    """How those that the launch would use are connected. Raises ResearchError where nobody knows."""
    gpus = used_gpus(config, host.gpus)
    if len(gpus) < 2:
        raise ResearchError(f"{_had(gpus, host)}: there is nothing to connect")
    places = sorted(map(host.gpus.index, gpus))
    pairs = list(itertools.combinations(places, 2))
    if len(host.links) != len(host.gpus) or any(len(row) != len(host.gpus) for row in host.links):
        raise ResearchError(f"how the GPUs of {host.name} are connected is not known")
    linked = [pair for pair in pairs if host.links[pair[0]][pair[1]].startswith("NV")]
    how = f"{len(linked)} of {len(pairs)} pairs of GPUs have NVLink"
    if 0 < len(linked) < len(pairs):
        a, b = next(pair for pair in pairs if pair not in linked)
        how += f" (GPU {host.gpus[a].index} and {host.gpus[b].index} are connected by {host.links[a][b]})"
    elif not linked:
        how = f"no pair of {len(gpus)} GPUs has NVLink ({', '.join(sorted({host.links[a][b] for a, b in pairs}))})"
    held = len(linked) == len(pairs) if check.nvlink == "full" else not linked
    return Report("fine" if held else check.otherwise, how)


async def check_command(sources: Sources, check: CommandVersion, config: LaunchConfig, progress: Progress) -> Report:
    """Raises as `check_gpu`."""
    progress(f"running {check.run[0]}")
    result = await sources.target.run(
        check.run, timeout_s=_LIMIT_S, env=launch_env(config), background=True, hide_gpus=True
    )
    if result.timed_out:
        raise ResearchError(f"{check.run[0]} did not end within {_LIMIT_S:.0f} s", "timeout")
    text = result.output.decode("utf-8", "replace")
    start = text.find(check.after)
    match = _VERSION.search(text, start + len(check.after)) if start >= 0 else None
    if not match:
        where = f" behind '{check.after}'" if check.after else ""
        raise ResearchError(f"{check.run[0]} ended with code {result.exit_code} and printed no version{where}")
    if not in_range(match[1], check.version):
        return Report(check.otherwise, f"{check.run[0]} is {match[1]}, not {check.version}")
    return Report("fine", f"{check.run[0]} is {match[1]}")


async def check_path(sources: Sources, check: PathCheck) -> Report:
    """Raises TargetUnusable as the target does."""
    if check.exists and not await sources.target.exists(check.exists):
        return Report(check.otherwise, f"{check.exists} does not exist")
    if check.absent and await sources.target.exists(check.absent):
        return Report(check.otherwise, f"{check.absent} exists")
    told = ((check.exists, "exists"), (check.absent, "does not exist"))
    return Report("fine", ", ".join(f"{path} {what}" for path, what in told if path))


async def check_disk(sources: Sources, check: DiskFree, progress: Progress) -> Report:
    """Raises as `check_gpu`."""
    progress(f"asking for the room at {check.path}")
    where, free = await _asked(sources, _DISK, [check.path], "the room on the disk")
    if not isinstance(free, int):
        raise ResearchError("the room on the disk could not be learnt")
    outcome = "fine" if free >= check.at_least else check.otherwise
    wanted = "" if outcome == "fine" else f", not {gib(check.at_least)}"
    return Report(outcome, f"{gib(free)} are free at {where}{wanted}")


async def check_port(sources: Sources, check: PortFree, config: LaunchConfig, progress: Progress) -> Report:
    """Raises as `check_gpu`."""
    given = config.args.get("port")
    port = check.port or (int(given) if isinstance(given, str) and given.isdigit() else None)
    if port is None:
        return Report("fine", "the flags name no port: a free one is chosen")
    progress(f"asking who listens on {port}")
    launches = [str(launch["launch"]) for launch in (await sources.target.survey())["launches"]]
    # A launch that nobody made owns nothing: then every listener is somebody else's.
    owners = [await sources.target.port_owners(launch, port) for launch in launches or ["none"]]
    if not any(owner.others or owner.ours for owner in owners):
        return Report("fine", f"nobody listens on port {port}")
    if any(owner.ours and not owner.others for owner in owners):
        return Report("fine", f"only a server of ours listens on port {port}")
    return Report(check.otherwise, f"somebody else listens on port {port}")


async def check_http(sources: Sources, check: HttpCheck, progress: Progress) -> Report:
    """Raises as `check_gpu`."""
    progress(f"GET {check.name}")
    status, trouble = await _asked(sources, _GET, [check.name, str(_HTTP_LIMIT_S)], "the page")
    if status is None:
        return Report(check.otherwise, f"{check.name} does not answer: {trouble}")
    if status != check.status:
        return Report(check.otherwise, f"{check.name} answers {status}, not {check.status}")
    return Report("fine", f"{check.name} answers {status}")


async def _asked(sources: Sources, script: str, words: Sequence[str], what: str) -> tuple[object, object]:
    """The two values that a script prints as its last line."""
    argv = ["python3", "-I", "-S", "-c", script, *words]
    result: CommandResult = await sources.target.run(argv, timeout_s=_LIMIT_S, background=True)
    if result.timed_out:
        raise ResearchError(f"{what} was not told within {_LIMIT_S:.0f} s", "timeout")
    try:
        first, second = json.loads(result.output.decode("utf-8", "replace").rstrip().rpartition("\n")[2])
    except (ValueError, TypeError) as error:
        raise ResearchError(f"{what} could not be learnt (is python3 there?)") from error
    return first, second
