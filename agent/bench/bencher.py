"""Measures a workload on a running server: a closed loop of streamed completions."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from time import perf_counter, thread_time

from agent.bench.client import Exchange, Lane, Server, deadline_s, first_model
from agent.bench.http import HttpError
from agent.bench.metrics import NotMeasurable, Sample, round_metrics, sample, too_many_failed
from agent.bench.prompts import prompts
from agent.core.model import RoundMetrics
from agent.playbook.model import Workload
from agent.ports import RoundError
from agent.text import clean, one_line

_WARM_UP_SEED = -1
"""Rounds are seeded from 0 on, so no round meets these prompts again."""

_WARM_UP_TOKENS = 128
"""Enough that the requests which are let in first still decode when the last ones join: the full batch is warmed."""

_HOLD_BYTES = 128 << 20
"""Responses kept unread until the round ends. Reading one takes a millisecond that the stamps of others would feel."""


class _TooManyFailed(Exception):
    """Ends the lanes of a round that cannot count any more."""


@dataclass(slots=True)
class _Run:
    """A closed loop while it goes on."""

    model: str
    output_len: int
    todo: Iterator[str]
    requests: int
    ended: list[Exchange | Sample] = field(default_factory=list)
    held_bytes: int = 0
    failed: int = 0
    client_busy: float = 0.0

    def add(self, exchange: Exchange) -> None:
        """Keep an ended request. Raises _TooManyFailed."""
        size = len(exchange.response.body) if exchange.response else 0
        if self.held_bytes + size > _HOLD_BYTES:
            self.ended.append(sample(exchange))
        else:
            self.ended.append(exchange)
            self.held_bytes += size
        self.failed += exchange.response is None or exchange.response.status != 200
        if too_many_failed(self.failed, self.requests):
            raise _TooManyFailed

    def samples(self) -> list[Sample]:
        """Every request that ended, read."""
        return [sample(x) if isinstance(x, Exchange) else x for x in self.ended]


class HttpBencher:
    """Benches a server over `/v1/completions`; implements `agent.ports.Bencher`.

    `redact` takes secrets out of messages. `record` is called after each round with one dict a request, in the order
    in which they ended: `workload seed sent_ms ttft_ms tpot_ms e2e_ms output_tokens counted prompt_tokens
    cached_tokens chunks retries refused ok error client_busy`. `sent_ms` counts from the first send of the round;
    `client_busy` is the fraction of the round in which this thread used a core: towards 1 the client was the limit.
    """

    def __init__(
        self, redact: Callable[[str], str] | None = None, record: Callable[[dict[str, object]], None] | None = None
    ) -> None:
        self._redact = redact or str
        self._record = record
        self._servers: dict[str, Server] = {}

    async def warm_up(self, base_url: str, model: str | None, workload: Workload) -> None:
        """As many requests as are concurrent, with prompts of no round. Raises RoundError where any of them failed.

        What the server does not take is learnt anew: another server may stand at this address by now.
        """
        server = self._servers[base_url] = Server(base_url)
        texts = prompts(workload, _WARM_UP_SEED, workload.concurrency)
        output_len = min(workload.output_len, _WARM_UP_TOKENS)
        samples = (await self._drive(server, model, texts, workload.concurrency, output_len)).samples()
        failed = [s.error for s in samples if s.error is not None]
        if failed:
            raise RoundError(f"warm-up: {len(failed)} of {len(texts)} requests failed: {self._cleaned(failed[0])}")

    async def round(self, base_url: str, model: str | None, workload: Workload, seed: int) -> RoundMetrics:
        """One round; the prompts follow from `seed`, which is 0 or more. Raises RoundError.

        With more than 1 % of the requests failed it is no round, and ends as soon as that is certain.
        """
        server = self._servers.setdefault(base_url, Server(base_url))
        texts = prompts(workload, seed, workload.requests)
        run = await self._drive(server, model, texts, workload.concurrency, workload.output_len)
        samples = run.samples()
        self._keep(samples, {"workload": workload.name, "seed": seed}, sorted(server.refused), run.client_busy)
        try:
            return round_metrics(samples)
        except NotMeasurable as error:
            raise RoundError(self._cleaned(str(error))) from error

    async def _drive(
        self, server: Server, model: str | None, texts: Sequence[str], concurrency: int, output_len: int
    ) -> _Run:
        try:
            model = model or await first_model(server)
        except HttpError as error:
            raise RoundError(self._cleaned(str(error))) from error
        run = _Run(model=model, output_len=output_len, todo=iter(texts), requests=len(texts))
        wall_s, cpu_s = perf_counter(), thread_time()
        try:
            async with asyncio.TaskGroup() as lanes:
                for _ in range(min(concurrency, len(texts))):
                    lanes.create_task(_lane(server, run))
        except* _TooManyFailed:
            pass  # the failed requests are in the run, and say it
        run.client_busy = (thread_time() - cpu_s) / (perf_counter() - wall_s)
        return run

    def _keep(
        self, samples: Sequence[Sample], head: dict[str, object], refused: Sequence[str], client_busy: float
    ) -> None:
        if self._record is None:
            return
        start_s = min((s.sent_s for s in samples if s.sent_s is not None), default=0.0)
        for s in samples:
            self._record(
                head
                | {
                    "sent_ms": None if s.sent_s is None else (s.sent_s - start_s) * 1000,
                    "ttft_ms": s.ttft_ms,
                    "tpot_ms": s.tpot_ms,
                    "e2e_ms": s.e2e_ms,
                    "output_tokens": s.output_tokens,
                    "counted": s.counted,
                    "prompt_tokens": s.prompt_tokens,
                    "cached_tokens": s.cached_tokens,
                    "chunks": s.chunks,
                    "retries": s.retries,
                    "refused": list(refused),
                    "ok": s.ok,
                    "error": None if s.error is None else self._cleaned(s.error),
                    "client_busy": round(client_busy, 3),
                }
            )

    def _cleaned(self, text: str) -> str:
        # Cleaned before it is redacted, lest an escape inside a secret hides it; cut last, lest half of one is left.
        return one_line(self._redact(clean(text)))


async def _lane(server: Server, run: _Run) -> None:
    lane = Lane(server)
    try:
        for prompt in run.todo:
            run.add(await lane.complete(run.model, prompt, run.output_len, deadline_s(run.output_len)))
    finally:
        await lane.close()
