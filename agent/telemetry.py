"""What the GPUs do while a launch is up: looked at once a second, shown, never journalled."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from agent.core.state import State
from agent.core.views.panels import GpuUse
from agent.ports import Target, TargetUnusable
from agent.targets.gpus import number_of

QUERY = (
    "nvidia-smi",
    "--query-gpu=index,memory.used,memory.total,utilization.gpu,power.draw",
    "--format=csv,noheader,nounits",
)
EVERY_S = 1.0
TIMEOUT_S = 5.0

Tell = Callable[[tuple[GpuUse, ...]], None]


@asynccontextmanager
async def telemetry(
    target: Target, state: Callable[[], State], tell: Tell, wanted: Callable[[], bool]
) -> AsyncIterator[None]:
    """While inside, `tell` is given what the GPUs do, as long as it is wanted; an empty tuple where nobody can say."""
    watch = asyncio.create_task(_watch(target, state, tell, wanted), name="telemetry")
    try:
        yield
    finally:
        watch.cancel()
        with suppress(asyncio.CancelledError):
            await watch


async def _watch(target: Target, state: Callable[[], State], tell: Tell, wanted: Callable[[], bool]) -> None:
    while True:
        present = state()
        if not wanted():
            pass
        elif present.current is None or not present.host.gpus:
            tell(())
        elif not present.measuring:  # a measurement has the machine to itself; what was seen last stays
            tell(await _look(target))
        await asyncio.sleep(EVERY_S)


async def _look(target: Target) -> tuple[GpuUse, ...]:
    try:
        result = await target.run(QUERY, timeout_s=TIMEOUT_S)
    except TargetUnusable:
        return ()
    return parse(result.output.decode("utf-8", "replace")) if result.exit_code == 0 else ()


def parse(text: str) -> tuple[GpuUse, ...]:
    """The GPUs in the answer to QUERY. Lines that do not say how much memory is used are left out."""
    return tuple(gpu for line in text.splitlines() if (gpu := _gpu(line)) is not None)


def _gpu(line: str) -> GpuUse | None:
    cells = [number_of(cell) for cell in line.split(",")]
    if len(cells) != 5:
        return None
    index, used, total, busy, power = cells
    if index is None or used is None or not total:
        return None
    return GpuUse(
        index=int(index),
        used_mib=int(used),
        total_mib=int(total),
        busy=None if busy is None else busy / 100,
        power_w=power,
    )
