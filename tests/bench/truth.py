"""What the load generator measures, against the ledger of the server: `python -m tests.bench.truth`.

TTFT and TPOT may be off by 0.3 ms in the median and by 5 ms at p99, or the health of the load must say that the
client or its host was too busy. On a busy machine that is the usual case, so a run that is flagged proves nothing
about the client; it is said.

At p99 the server is late itself to note that a request arrived, where it has to wait for a core. There TTFT is judged
by the arrival of the first token, against its send: both are stamps of one clock.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.bench.client import Lane, Server
from agent.bench.health import Health
from agent.bench.hygiene import CPU_WARN, LAG_WARN_MS
from agent.bench.load import Load, Plan
from agent.bench.worker import run_apart

MEDIAN_MS, P99_MS = 0.3, 5.0
OTHERS_BUSY = 0.6
"""Fraction of the host's cores, the server's included, with which a process often waits for one."""

Run = Callable[[Server, Plan], Coroutine[Any, Any, Load]]


@dataclass(frozen=True, slots=True)
class Judged:
    """How far off the measured times are, in ms, one a request, and what the client says about itself.

    `arrival_off_ms` is the stamp of the first token minus its send.
    """

    ttft_off_ms: list[float]
    arrival_off_ms: list[float]
    tpot_off_ms: list[float]
    health: Health

    @property
    def within(self) -> bool:
        """Whether the times are as near to the truth as they must be."""
        medians = at(self.ttft_off_ms, 0.5), at(self.tpot_off_ms, 0.5)
        tails = at(self.arrival_off_ms, 0.99), at(self.tpot_off_ms, 0.99)
        return max(medians) <= MEDIAN_MS and max(tails) <= P99_MS

    @property
    def flagged(self) -> bool:
        """Whether the client warns of itself or of its host."""
        health = self.health
        busy = health.cpu_fraction > CPU_WARN or (health.host_load_others or 0.0) > OTHERS_BUSY
        return busy or health.loop_lag_p99_ms > LAG_WARN_MS

    def __str__(self) -> str:
        def told(name: str, off: list[float]) -> str:
            return f"{name} off by {at(off, 0.5):.3f} ms (median), {at(off, 0.99):.3f} ms (p99)"

        health, others = self.health, self.health.host_load_others
        state = f"CPU {health.cpu_fraction:.1%} of a core, lag {health.loop_lag_p99_ms:.1f} ms (p99)"
        state += "" if others is None else f", others {others:.0%} of the host"
        verdict = f"{'within' if self.within else 'NOT within'} limits, {'flagged' if self.flagged else 'not flagged'}"
        offs = {"TTFT": self.ttft_off_ms, "first token": self.arrival_off_ms, "TPOT": self.tpot_off_ms}
        return f"{'; '.join(told(name, off) for name, off in offs.items())}; {state}: {verdict}"


def at(values: Sequence[float], part: float) -> float:
    """A quantile."""
    return sorted(values)[round(part * (len(values) - 1))]


@asynccontextmanager
async def truth_server() -> AsyncIterator[str]:
    """The URL of a server with a ledger, in a process of its own."""
    pipe = asyncio.subprocess.PIPE
    program = Path(__file__).with_name("truth_server.py")
    process = await asyncio.create_subprocess_exec(sys.executable, program, stdin=pipe, stdout=pipe)
    assert process.stdin is not None and process.stdout is not None
    try:
        yield f"http://127.0.0.1:{(await process.stdout.readline()).decode().strip()}"
    finally:
        process.stdin.close()
        await process.wait()


async def judge(
    requests: int,
    tokens: int,
    concurrency: int = 64,
    step_s: float = 0.02,
    rate: float | None = None,
    run: Run = run_apart,
) -> Judged:
    """Send requests, and compare with the ledger. With `rate` (requests/s) in an open loop."""
    prompts = tuple(f"{i} {0.03 + i * 37 % 101 / 1000} {step_s}" for i in range(requests))
    send_at_s = None if rate is None else tuple(i / rate for i in range(requests))
    plan = Plan(
        api="completions",
        model="m",
        prompts=prompts,
        output_lens=(tokens,) * requests,
        concurrency=concurrency,
        send_at_s=send_at_s,
    )
    async with truth_server() as url:
        load = await run(Server(url), plan)
        lane = Lane(Server(url))
        ledger = (await lane.get("/ledger", 30)).body
        await lane.close()
    return judged(load, ledger, concurrency)


def judged(load: Load, ledger: bytes, opening: int) -> Judged:
    """The requests of the load against their lines of the ledger.

    The first `opening` are left out: they come at once with their connections, and the server itself is late to note
    when each arrived.
    """
    entries = json.loads(ledger)
    assert [s.error for s in load.samples] == [None] * len(entries)
    ttft, arrival, tpot = [], [], []
    for sample in load.samples:
        arrived, *sent = entries[str(sample.prompt_tokens)]
        if sample.prompt_tokens is None or sample.prompt_tokens < opening:
            continue
        assert (
            sample.first_s is not None
            and sample.ttft_ms is not None
            and sample.tpot_ms is not None
            and len(sample.chunk_s) == len(sent)
        )
        ttft.append(abs(sample.ttft_ms - (sent[0] - arrived) * 1000))
        arrival.append((sample.first_s - sent[0]) * 1000)
        tpot.append(abs(sample.tpot_ms - (sent[-1] - sent[0]) * 1000 / (len(sent) - 1)))
    return Judged(ttft, arrival, tpot, load.health)


async def main() -> int:
    """Closed and open loops, a minute in all."""
    results = []
    for name, rate, step_s, tokens in (
        ("closed", None, 0.02, 100),
        ("closed", None, 0.005, 400),
        ("open", 40.0, 0.02, 60),
    ):
        result = await judge(768, tokens, 64, step_s, rate)
        print(f"{name} loop, 64 at once, {step_s * 1000:g} ms between tokens: {result}", flush=True)
        results.append(result.within or result.flagged)
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
