"""Measures a workload on a running server, with a load generator in a process of its own."""

from collections.abc import Callable, Sequence

from agent.bench.client import Server, first_model
from agent.bench.http import HttpError
from agent.bench.load import Load, Plan
from agent.bench.metrics import NotMeasurable, measured
from agent.bench.plan import plan_of, warm_up_plan
from agent.bench.worker import WorkerFailed, run_apart
from agent.core.metrics import RoundMetrics
from agent.playbook.workload import Workload
from agent.ports import RoundError
from agent.text import clean, one_line


class HttpBencher:
    """Benches a server over HTTP; implements `agent.ports.Bencher`.

    `redact` takes secrets out of messages. `record` is called after each round with one dict a request, in the order
    in which they ended: `workload seed scheduled_ms sent_ms ttft_ms tpot_ms e2e_ms output_tokens counted prompt_tokens
    cached_tokens chunks retries refused ok error client_busy client_lag_p99_ms host_load_others`. `scheduled_ms` and
    `sent_ms` count from the first send of the round; the last three are those of `agent.bench.health.Health`.
    """

    def __init__(
        self, redact: Callable[[str], str] | None = None, record: Callable[[dict[str, object]], None] | None = None
    ) -> None:
        self._redact = redact or str
        self._record = record
        self._servers: dict[str, Server] = {}

    async def warm_up(self, base_url: str, model: str | None, workload: Workload) -> None:
        """Requests with prompts of no round, as many as may be in flight. Raises RoundError where any of them failed.

        What the server does not take is learnt anew: another server may stand at this address by now.
        """
        server = self._servers[base_url] = Server(base_url)
        load = await self._loaded(server, model, lambda name: warm_up_plan(workload, name))
        failed = [s.error for s in load.samples if s.error is not None]
        if failed:
            count = len(load.samples)
            raise RoundError(f"warm-up: {len(failed)} of {count} requests failed: {self._cleaned(failed[0])}")

    async def round(self, base_url: str, model: str | None, workload: Workload, seed: int) -> RoundMetrics:
        """One round; the prompts follow from `seed`, which is 0 or more. Raises RoundError.

        With more than 1 % of the requests failed it is no round, and ends as soon as that is certain.
        """
        server = self._servers.setdefault(base_url, Server(base_url))
        load = await self._loaded(server, model, lambda name: plan_of(workload, name, seed))
        self._keep(load, {"workload": workload.name, "seed": seed}, sorted(server.refused))
        try:
            return measured(load.samples, load.health, workload, server.refused)
        except NotMeasurable as error:
            raise RoundError(self._cleaned(str(error))) from error

    async def _loaded(self, server: Server, model: str | None, plan: Callable[[str], Plan]) -> Load:
        try:
            return await run_apart(server, plan(model or await first_model(server)))
        except (HttpError, WorkerFailed, ValueError) as error:
            raise RoundError(self._cleaned(str(error))) from error

    def _keep(self, load: Load, head: dict[str, object], refused: Sequence[str]) -> None:
        if self._record is None:
            return
        start_s = min((s.sent_s for s in load.samples if s.sent_s is not None), default=0.0)
        for s in load.samples:
            self._record(
                head
                | {
                    "scheduled_ms": None if s.scheduled_s is None else (s.scheduled_s - start_s) * 1000,
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
                    "client_busy": round(load.health.cpu_fraction, 3),
                    "client_lag_p99_ms": round(load.health.loop_lag_p99_ms, 2),
                    "host_load_others": load.health.host_load_others,
                }
            )

    def _cleaned(self, text: str) -> str:
        # Cleaned before it is redacted, lest an escape inside a secret hides it; cut last, lest half of one is left.
        return one_line(self._redact(clean(text)))
