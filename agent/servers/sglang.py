"""SGLang 0.5.8 to 0.5.23: flags, log lines, readiness, resolved arguments."""

import re

import httpx

from agent.core.model import FlagCheck, LaunchConfig, Phase
from agent.core.plan import flag_words
from agent.playbook.model import Args
from agent.ports import PhaseMark, Speculation
from agent.servers.common import (
    TRY_TIMEOUT_S,
    Json,
    check_flag,
    fetch_json,
    generates,
    post_ok,
    requested_flags,
    with_address,
)

# Short flag names, and flags that became others: the field under which /server_info reports them.
_FIELDS = {
    "tp": "tp_size",
    "tensor_parallel_size": "tp_size",
    "dp": "dp_size",
    "data_parallel_size": "dp_size",
    "ep": "ep_size",
    "expert_parallel_size": "ep_size",
    "pp": "pp_size",
    "pipeline_parallel_size": "pp_size",
    "model": "model_path",
    "cuda_graph_max_bs": "cuda_graph_max_bs_decode",
    "cuda_graph_bs": "cuda_graph_bs_decode",
}

# What SGLang adjusts by its own rules, with a line in the log: to memory, to the A2A backend, to speculation.
_ADJUSTED = {
    "ep_size", "mem_fraction_static", "max_running_requests", "max_total_tokens", "max_prefill_tokens",
    "chunked_prefill_size", "page_size", "cuda_graph_max_bs", "cuda_graph_bs", "cuda_graph_max_bs_decode",
    "cuda_graph_bs_decode", "disable_cuda_graph", "disable_overlap_schedule", "disable_radix_cache",
    "enable_mixed_chunk",
    "disable_shared_experts_fusion", "deepep_mode", "speculative_num_steps", "speculative_num_draft_tokens",
    "speculative_eagle_topk", "schedule_policy",
}  # fmt: skip
_RENAMED_VALUES = {("speculative_algorithm", "NEXTN"): "EAGLE"}

_BAR = re.compile(r"([Ll]oading|Capturing).*\|\s*(\d+)/(\d+) \[")
_MARKS: tuple[tuple[re.Pattern[str], PhaseMark], ...] = tuple(
    (re.compile(pattern), PhaseMark(phase=phase, begins=begins))
    for pattern, phase, begins in (
        (r"UserWarning: 'python -m sglang\.launch_server'|' is deprecated and will be removed", Phase.ARGS, True),
        (r"server_args=ServerArgs\(", Phase.CONFIG, True),
        (r"[Ii]nit (torch distributed|parallel|nccl) begin", Phase.DIST_INIT, True),
        (r"[Ii]nit (torch distributed|parallel|nccl) ends", Phase.DIST_INIT, False),
        (r"Load weight begin", Phase.LOAD_WEIGHTS, True),
        (r"Load weight end", Phase.KV_CACHE, True),
        (r"KV Cache is allocated|Memory pool end", Phase.KV_CACHE, False),
        (r"Capture .*(cuda|CUDA|npu|cpu|hip) graph begin", Phase.GRAPH_CAPTURE, True),
        (r"Capture .*(cuda|CUDA|npu|cpu|hip) graph end", Phase.GRAPH_CAPTURE, False),
        (r"INFO:\s+Started server process", Phase.HTTP_START, True),
        (r"Uvicorn running on ", Phase.WARMUP, True),
        (r"The server is fired up and ready to roll", Phase.READY, True),
    )
)
# Words of which every line above has one: most lines are told by these alone.
_WORDS = (
    "oading ", "Load weight", "Init ", "init nccl", "Captur", "KV Cache", "Memory pool", "server_args=",
    "launch_server", "Started server", "fired up", "Uvicorn", "is deprecated",
)  # fmt: skip


class SGLang:
    """SGLang as tunebot knows it."""

    name = "sglang"
    words: tuple[str, ...] = _WORDS
    stop_grace_s = 20.0
    phases: tuple[Phase, ...] = (
        Phase.LAUNCH, Phase.IMPORT, Phase.ARGS, Phase.CONFIG, Phase.DIST_INIT, Phase.LOAD_WEIGHTS, Phase.KV_CACHE,
        Phase.GRAPH_CAPTURE, Phase.HTTP_START, Phase.WARMUP, Phase.READY, Phase.SERVING,
    )  # fmt: skip

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    def argv(self, config: LaunchConfig, port: int) -> tuple[str, ...]:
        """The command, then every flag."""
        return (*config.command, *flag_words(with_address(config.args, port)))

    def phase_of(self, line: str) -> PhaseMark | None:
        """What a cleaned log line says about the load, if anything."""
        for word in _WORDS:  # a plain loop: this sees every line of a flood
            if word in line:
                break
        else:
            return None
        if bar := _BAR.search(line):
            phase = Phase.GRAPH_CAPTURE if bar[1] == "Capturing" else Phase.LOAD_WEIGHTS
            return PhaseMark(phase=phase, done=int(bar[2]), total=int(bar[3]), begins=False)
        return next((mark for pattern, mark in _MARKS if pattern.search(line)), None)

    def fatal(self, line: str) -> str | None:
        """SGLang lives on after a failed bind, and up to 65 s after the death of a rank."""
        if "[Errno 98]" in line and "bind" in line:
            return "the port is in use"
        if "SIGQUIT received. signum" in line:
            return "a child process of the server failed"
        return None

    @staticmethod
    def model_of(args: Args) -> str:
        """The value of --model-path."""
        model = args.get("model-path", args.get("model"))
        return model if isinstance(model, str) else ""

    async def ready(self, base_url: str) -> bool:
        """One generation came back, and the server's own warm-up is over.

        While that runs /health answers 503. Later each /health generates a token, so it is asked last and rarely.
        """
        if not await generates(self._http, base_url):
            return False
        try:
            health = await self._http.get(f"{base_url}/health", timeout=TRY_TIMEOUT_S)
        except httpx.HTTPError:
            return False
        return health.status_code != 503

    async def effective_flags(self, base_url: str, config: LaunchConfig, log_head: str) -> tuple[FlagCheck, ...]:
        """Each requested flag against the resolved arguments of /server_info."""
        info = await fetch_json(self._http, f"{base_url}/server_info")
        if not isinstance(info, dict):
            info = await fetch_json(self._http, f"{base_url}/get_server_info")
        reported: dict[str, Json] = info if isinstance(info, dict) else {}
        adjusted = _ADJUSTED | _overridden(reported)
        checks = []
        for flag, plain, value in requested_flags(config):
            field = next((name for name in (plain, _FIELDS.get(plain)) if name in reported), None)
            renamed = field is not None and _RENAMED_VALUES.get((field, str(value))) == reported[field]
            checks.append(check_flag(flag, value, reported, field, renamed or field in adjusted))
        return tuple(checks)

    async def flush_cache(self, base_url: str) -> bool:
        """POST /flush_cache: refused (400) while requests run."""
        return await post_ok(self._http, f"{base_url}/flush_cache")

    async def speculation(self, base_url: str) -> Speculation | None:
        """Of /server_info, which tells the average since /flush_cache: it is as good as one pass since then.

        There is none before the first pass (`reset_metrics` in SGLang 0.5.9's scheduler_metrics_mixin.py).
        """
        info = await fetch_json(self._http, f"{base_url}/server_info")
        states = info.get("internal_states") if isinstance(info, dict) else None
        if not isinstance(states, list):
            return None
        averages = [state.get("avg_spec_accept_length") for state in states if isinstance(state, dict)]
        known = [float(a) for a in averages if isinstance(a, int | float)]
        return Speculation(kept=sum(known) / len(known), passes=1.0) if known else Speculation()


def _overridden(reported: dict[str, Json]) -> set[str]:
    """The fields that the server says it changed: {"_resolved_overrides": {rule: {field: value}}}, since 0.5.16."""
    rules = reported.get("_resolved_overrides")
    changes = rules.values() if isinstance(rules, dict) else ()
    return {field for change in changes if isinstance(change, dict) for field in change}
