"""What the simulated server answers at each path, control endpoints and generation."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from agent.sim import completions
from agent.sim.children import Children
from agent.sim.decode import Decoder
from agent.sim.plan import Setting
from agent.sim.procs import append
from agent.sim.text import PrefixCache
from agent.sim.web import Handler, Reply, Request, json_reply, text_reply

HEALTH_LIMIT_S = 20.0


class Service:
    """State of a serving launch. `ready`, `draining` and `broken` are set by the launcher."""

    def __init__(self, root: Path, setting: Setting, decoder: Decoder, children: Children) -> None:
        self.root = root
        self.setting = setting
        self.decoder = decoder
        self.children = children
        self.cache = PrefixCache()
        self.ledger = root / ".sim" / "ledger.jsonl"
        self.ready = self.draining = self.broken = False
        self.last_rate = 0.0
        self.requests = 0
        self.paths: dict[str, Callable[[Request], Awaitable[Reply]]] = {
            "/health": self.health,
            "/health_generate": self.health,
            "/model_info": self.model_info,
            "/get_model_info": self.model_info,
            "/v1/models": self.models,
            "/server_info": self.server_info,
            "/get_server_info": self.server_info,
            "/flush_cache": self.flush,
            "/v1/completions": self.generate(completions.Completion),
            "/v1/chat/completions": self.generate(completions.Chat),
            "/generate": self.generate(completions.Native),
        }
        if setting.args["enable_metrics"]:
            self.paths["/metrics"] = self.metrics

    async def handle(self, request: Request) -> Reply:
        """Answer one request."""
        handler = self.paths.get(request.path)
        if handler is None:
            return json_reply({"detail": "Not Found"}, 404)
        if request.bad_json:
            return json_reply({"object": "error", "message": "body is not valid JSON", "code": 400}, 400)
        return await handler(request)

    async def health(self, request: Request) -> Reply:
        """503 until ready and while draining; else one token is generated, which takes its time."""
        if not self.ready:
            return text_reply("", 503)
        seconds = self.setting.world.seconds("health")
        deadline = time.monotonic() + max(HEALTH_LIMIT_S / self.setting.world.speed, seconds)
        self.children.log(self.prefill_line(1, 0))
        await asyncio.sleep(seconds)
        while self.broken or self.children.stalled():
            if time.monotonic() > deadline:
                return text_reply("", 503)
            await asyncio.sleep(0.05)
        return text_reply("")

    async def model_info(self, request: Request) -> Reply:
        """Which model is loaded."""
        args = self.setting.args
        return json_reply(
            {
                "model_path": args["model_path"],
                "tokenizer_path": args["tokenizer_path"],
                "is_generation": True,
                "preferred_sampling_params": None,
                "weight_version": "default",
                "model_type": "kimi_k25",
                "architectures": ["KimiK25ForConditionalGeneration"],
                "simulated": True,
            }
        )

    async def models(self, request: Request) -> Reply:
        """The list of models of the OpenAI API."""
        name = self.setting.args["served_model_name"]
        entry = {"id": name, "object": "model", "created": int(time.time()), "owned_by": "sglang", "root": name}
        length = self.setting.args["context_length"] or 262144
        return json_reply({"object": "list", "data": [{**entry, "parent": None, "max_model_len": length}]})

    async def server_info(self, request: Request) -> Reply:
        """Resolved arguments and what the scheduler knows."""
        memory, setting = self.setting.world.memory, self.setting
        state: dict[str, Any] = {
            "last_gen_throughput": self.last_rate,
            "memory_usage": {
                "weight": memory.weights_gib,
                "kvcache": memory.kv_gib,
                "token_capacity": setting.tokens,
                "graph": memory.graph_gib,
            },
            "effective_max_running_requests_per_dp": self.decoder.limit,
        }
        if self.decoder.verified:
            state["avg_spec_accept_length"] = setting.outcome.spec_accept
        return json_reply(
            {
                **setting.args,
                "status": "ready" if self.ready else "starting",
                "max_total_num_tokens": setting.tokens,
                "internal_states": [state],
                "version": setting.environment.version,
                "simulated": True,
            }
        )

    async def flush(self, request: Request) -> Reply:
        """Forget all prefixes; refused while requests run."""
        if self.decoder.running:
            return text_reply("Flush cache failed: there are running requests.\n", 400)
        self.cache.flush()
        self.decoder.new_round()
        self.decoder.verified = False
        append(self.ledger, "flush")
        return text_reply("Cache flushed.\nPlease check backend logs for more details.\n")

    async def metrics(self, request: Request) -> Reply:
        """Prometheus text."""
        label = f'{{model_name="{self.setting.args["served_model_name"]}"}}'
        values = {
            "gen_throughput": self.last_rate,
            "num_running_reqs": self.decoder.running,
            "num_queue_reqs": 0,
            "token_usage": 0.0,
            "spec_accept_length": self.setting.outcome.spec_accept or 0.0,
        }
        lines = [f"# TYPE sglang:{name} gauge\nsglang:{name}{label} {value}" for name, value in values.items()]
        return text_reply("\n".join(lines) + "\n")

    def generate(self, kind: type[completions.Format]) -> Handler:
        """The handler of one generation endpoint."""

        async def handler(request: Request) -> Reply:
            if not isinstance(request.data, dict):
                return json_reply({"object": "error", "message": "expected a JSON object", "code": 400}, 400)
            return await completions.answer(self, kind(self.setting, request.data, f"{self.decoder.rate}"))

        return handler

    def busy(self, change: int) -> None:
        """Count a request in or out; while any runs, nvidia-smi of the host shows busy GPUs, which may wait."""
        self.requests += change
        mark = self.root / ".sim" / "busy" / str(os.getpid())
        if self.requests == 1 and change == 1:
            mark.write_text(f"{self.setting.outcome.pace.waiting():.3f}")
        elif self.requests == 0:
            mark.unlink(missing_ok=True)

    def prefill_line(self, new: int, cached: int) -> str:
        """The scheduler's line about a prefill."""
        speed = self.setting.world.rates.prefill_tok_s
        return self.setting.words.prefill_line(new, cached, self.decoder.running, speed)

    def decode_line(self, tokens: int, steps: int, seconds: float) -> str:
        """The scheduler's line about the last decode steps."""
        self.last_rate = round(tokens / seconds * max(1, self.decoder.running), 2) if seconds > 0 else 0.0
        accept = None if self.setting.outcome.spec_accept is None else tokens / steps
        running, rows = self.decoder.running, self.setting.rows
        return self.setting.words.decode_line(running, tokens, self.last_rate, accept, rows)
