"""What the server and the GPUs say of a round, beside what the client measured: speculation, watts, slowed clocks."""

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass, field, replace
from statistics import fmean

from agent.core.metrics import GpuUse, Hygiene, RoundMetrics
from agent.ports import ServerKind, Target, TargetUnusable
from agent.targets.gpus import number_of
from agent.text import decode

_FIELDS = (
    "power.draw",
    "clocks_throttle_reasons.hw_slowdown",
    "clocks_throttle_reasons.sw_thermal_slowdown",
    "utilization.gpu",
    "power.limit",
)
QUERY = ("nvidia-smi", f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits")
FIRST_S, EVERY_S = 2.0, 10.0
"""When the GPUs are looked at: not in the ramp, and so rarely that it takes nothing from what is measured."""

TIMEOUT_S = 5.0


@dataclass(slots=True)
class _Seen:
    """What the GPUs did: watts of each GPU at each look, and how many looks found one slowed down.

    `uses` has for each GPU, by its row, what each look found: the fraction of time with a kernel, watts, their limit.
    """

    watts: list[float] = field(default_factory=list)
    uses: dict[int, list[tuple[float, float, float]]] = field(default_factory=dict)
    looks: int = 0
    slowed: int = 0


async def measured_with(
    target: Target, kind: ServerKind, base_url: str, has_gpus: bool, round_: Awaitable[RoundMetrics]
) -> RoundMetrics:
    """The round, with accept length and watts where they can be told. Raises what the round raises."""
    before = await kind.speculation(base_url)
    seen = _Seen()
    looking = asyncio.create_task(_look(target, seen), name="watts of a round") if has_gpus else None
    try:
        metrics = await round_
    finally:
        if looking:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
    after = await kind.speculation(base_url)
    passes = after.passes - before.passes if before and after else 0.0
    return replace(
        metrics,
        accept_length=(after.kept - before.kept) / passes if before and after and passes > 0 else None,
        watts_per_gpu=fmean(seen.watts) if seen.watts else None,
        gpu_use=_use(seen),
        hygiene=metrics.hygiene + _slowed(seen),
    )


async def _look(target: Target, seen: _Seen) -> None:
    await asyncio.sleep(FIRST_S)
    while True:
        try:
            result = await target.run(QUERY, timeout_s=TIMEOUT_S)
        except TargetUnusable:
            return
        if result.exit_code != 0:
            return
        rows = [[cell.strip() for cell in line.split(",")] for line in decode(result.output).splitlines()]
        seen.watts += [watts for row in rows if (watts := number_of(row[0])) is not None]
        for number, row in enumerate(rows):
            watts, busy, limit = (number_of(cell) for cell in (row[0], *row[3:5], "", "")[:3])
            if watts is not None and busy is not None and limit:
                seen.uses.setdefault(number, []).append((busy / 100, watts, limit))
        seen.looks += 1
        seen.slowed += any("Active" in row[1:3] for row in rows)
        await asyncio.sleep(EVERY_S)


def _use(seen: _Seen) -> GpuUse | None:
    worked = [looks for looks in seen.uses.values() if any(busy for busy, _, _ in looks)]
    if not worked:
        return None
    busy, watts, limit = (fmean(values) for values in zip(*(look for looks in worked for look in looks), strict=True))
    return GpuUse(count=len(worked), busy=busy, watts=watts, limit_watts=limit)


def _slowed(seen: _Seen) -> tuple[Hygiene, ...]:
    if not seen.slowed:
        return ()
    text = f"the hardware slowed GPUs down (heat or power) at {seen.slowed} of {seen.looks} looks"
    return (Hygiene(name="GPU clocks", level="bad" if 2 * seen.slowed >= seen.looks else "warn", text=text),)
