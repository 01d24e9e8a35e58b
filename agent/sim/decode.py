"""How fast the simulated server generates: absolute deadlines, so that the mean rate is exact."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Callable

from agent.sim.plan import Setting

ROUND_S = 60.0
STALL_POLL_S = 0.05
REQUEST_SHARE = 0.3


class Decoder:
    """The pace of all requests of one launch. `rate` is decode tokens/s of a single request."""

    def __init__(self, setting: Setting, rate: float, stalled: Callable[[], bool]) -> None:
        self.rates = setting.world.rates
        self.noise_sd = setting.world.noise.round_sd
        self.rate = rate
        self.stalled = stalled
        self.random = random.Random(f"{setting.world.seed}|{rate}")
        self.limit = int(setting.args["max_running_requests"] or 2048)
        self.slots = asyncio.Semaphore(self.limit)
        self.prefill = asyncio.Lock()
        self.accept, self.pace, self.most = setting.outcome.spec_accept, setting.outcome.pace, setting.rows
        self.verified = self.accept is not None
        """Whether a draft was verified since the last flush: then there is an average to tell."""
        self.running = 0
        self.round_began = 0.0
        self.new_round()

    def new_round(self) -> None:
        """Draw the noise of a round; a flush begins one, and so do 60 seconds."""
        self.round_factor = 1 + self.random.gauss(0, self.noise_sd)
        self.round_began = time.monotonic()

    def share(self) -> float:
        """Tokens/s of each running request now."""
        if time.monotonic() - self.round_began > ROUND_S:
            self.new_round()
        count = max(1, self.running)
        return self.rate * self.round_factor * self.pace.tok_s(count) / self.pace.tok_s()

    async def generate(self, new_prompt_tokens: int, count: int) -> AsyncGenerator[int, None]:
        """Token counts, each when its tokens are due: one after the prefill, then one chunk after the other."""
        async with self.slots:
            self.running += 1
            try:
                async with self.prefill:
                    seconds = self.rates.ttft + new_prompt_tokens / self.rates.prefill_tok_s
                    await asyncio.sleep(seconds / self.rates.token_speed)
                    await self._unstalled()
                factor = 1 + self.random.gauss(0, self.noise_sd * REQUEST_SHARE)
                deadline = time.monotonic()
                yield 1
                self.verified = self.accept is not None
                for size in self._sizes(count - 1):
                    deadline += size / (self.share() * factor)
                    await asyncio.sleep(max(0.0, deadline - time.monotonic()))
                    deadline += await self._unstalled()
                    yield size
            finally:
                self.running -= 1

    async def _unstalled(self) -> float:
        """Wait while a rank is stopped; the seconds that it took."""
        began = time.monotonic()
        while self.stalled():
            await asyncio.sleep(STALL_POLL_S)
        return time.monotonic() - began

    def _sizes(self, total: int) -> list[int]:
        """Chunk sizes: single tokens, or under speculation what passes yield, whose mean is the accept length."""
        if self.accept is None:
            return [1] * total
        sizes: list[int] = []
        done, due = 0, 0.0
        while done < total:
            due += self.accept
            wanted = round(due) - done + self.random.choice((-1, 0, 1))
            size = min(max(1, wanted), self.most, total - done)
            sizes.append(size)
            done += size
        return sizes
