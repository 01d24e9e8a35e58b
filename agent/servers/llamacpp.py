"""llama.cpp's `llama-server`: flags, log lines, readiness, reported arguments."""

import re
from collections.abc import Sequence
from itertools import chain

import httpx

from agent.core.model import FlagCheck, LaunchConfig, Phase
from agent.core.plan import flag_words
from agent.playbook.model import Args
from agent.ports import PhaseMark, Speculation
from agent.servers.common import (
    TRY_TIMEOUT_S,
    Json,
    check_flag,
    drafts_and_accepted,
    fetch_json,
    generates,
    requested_flags,
    with_address,
)

_DOTS = re.compile(r"^(\.{4,})$")
# One dot for each per cent of the tensors, all on one line; servers of late 2026 draw none.
_DOTS_IN_ALL = 100
_MARKS: tuple[tuple[re.Pattern[str], PhaseMark], ...] = tuple(
    (re.compile(pattern), PhaseMark(phase=phase, begins=begins))
    for pattern, phase, begins in (
        (r"^build: \d|^build_info: |system[_ ]info: n_threads|^srv +\w+: initializing \.\.\.", Phase.CONFIG, True),
        (r"load_model: loading model|load_tensors: loading|llama_model_load_from_file\w*: using device"
         r"|llama_model_loader: loaded meta data",
         Phase.LOAD_WEIGHTS, True),
        (r"llama_context: constructing|llama_init_from_model:|llama_new_context_with_model: n_ctx",
         Phase.KV_CACHE, True),
        (r"warming up the model", Phase.WARMUP, True),
        (r"\blistening on http|model loaded$|starting the main loop", Phase.READY, True),
    )
)  # fmt: skip
_WORDS = (
    "build: ", "build_info", "system_info", "system info", "loading model", "load_tensors", "using device",
    "loaded meta data", "llama_context: c", "llama_init_from_model", "llama_new_context", "warming up",
    "listening on http", "model loaded", "main loop", "....", "initializing ...",
)  # fmt: skip
# Fields of /props, of its default_generation_settings and of the log that differ from the flag's name.
_FIELDS = {
    "c": "n_ctx", "ctx_size": "n_ctx", "np": "total_slots", "parallel": "total_slots", "m": "model_path",
    "model": "model_path", "a": "model_alias", "alias": "model_alias", "metrics": "endpoint_metrics",
    "t": "n_threads", "threads": "n_threads", "tb": "n_threads_batch", "threads_batch": "n_threads_batch",
    "b": "n_batch", "batch_size": "n_batch", "ub": "n_ubatch", "ubatch_size": "n_ubatch", "fa": "flash_attn",
    "kvu": "kv_unified", "ctk": "cache_type_k", "ctv": "cache_type_v",
}  # fmt: skip
# The context is shared among the slots and rounded, and no batch is larger than it.
_ADJUSTED = ("n_ctx", "n_batch", "n_ubatch")
# What the log says of the context from --log-verbosity 4 on; what is said first is not of a draft model.
_LOGGED = (
    re.compile(r"system_info: n_threads = (?P<n_threads>\d+)(?: \(n_threads_batch = (?P<n_threads_batch>\d+)\))?"),
    re.compile(r"llama_context: n_ctx += (?P<n_ctx>\d+)$", re.MULTILINE),
    re.compile(r"llama_context: n_batch += (?P<n_batch>\d+)$", re.MULTILINE),
    re.compile(r"llama_context: n_ubatch += (?P<n_ubatch>\d+)$", re.MULTILINE),
    re.compile(r"llama_context: flash_attn += (?P<flash_attn>\w+)$", re.MULTILINE),
    re.compile(r"llama_context: kv_unified += (?P<kv_unified>\w+)$", re.MULTILINE),
    re.compile(r"llama_kv_cache: size = .* K \((?P<cache_type_k>\w+)\): .* V \((?P<cache_type_v>\w+)\): "),
)
_STATES: dict[str, Json] = {"enabled": "on", "disabled": "off", "true": True, "false": False}

# Short names as the help of November 2026 has them: -ngl is a flag, --ngl is none.
_SHORT = re.compile(
    r"\w|Cb|Cbd|Cd|Cr|Crb|Crd|ag|bs|cb|cl|cmoed?|cms|cram|ctkd?|ctvd?|ctxcp|devd?|dr|dt|fa|fit[ct]?|hf[dfrt]?|hfrd|jf"
    r"|kvo|kvu|lc[ds]|lm|lv|lzm|md|mg|mm|mmdev|mmu|mu|ncffn|ncmoed?|ngld?|nkvo|no-ag|no-kvu|nocb|np|nr|otd?|rea|sm|sp"
    r"|tbd?|td|to|ts|ub"
)


class LlamaCpp:
    """llama.cpp's server as tunebot knows it. It binds its port before it loads: listening is not ready."""

    name = "llamacpp"
    stop_grace_s = 10.0
    words: tuple[str, ...] = _WORDS
    phases: tuple[Phase, ...] = (
        Phase.LAUNCH, Phase.IMPORT, Phase.CONFIG, Phase.LOAD_WEIGHTS, Phase.KV_CACHE, Phase.WARMUP, Phase.READY,
        Phase.SERVING,
    )  # fmt: skip

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    def argv(self, config: LaunchConfig, port: int) -> tuple[str, ...]:
        """The command, then every flag; the short names take one dash."""
        given = with_address(config.args, port).items()
        words = (_one_dash(name, tuple(flag_words({name: value}))) for name, value in given)
        return (*config.command, *chain.from_iterable(words))

    def phase_of(self, line: str) -> PhaseMark | None:
        """What a cleaned log line says about the load, if anything."""
        if dots := _DOTS.match(line):
            return PhaseMark(
                phase=Phase.LOAD_WEIGHTS, done=min(len(dots[1]), _DOTS_IN_ALL), total=_DOTS_IN_ALL, begins=False
            )
        return next((mark for pattern, mark in _MARKS if pattern.search(line)), None)

    def fatal(self, line: str) -> str | None:
        """llama.cpp exits by itself whenever it cannot start."""
        return None

    @staticmethod
    def model_of(args: Args) -> str:
        """The value of --model (or -m), else of -hf."""
        model = args.get("model", args.get("m", args.get("hf-repo", args.get("hf"))))
        return model if isinstance(model, str) else ""

    async def ready(self, base_url: str) -> bool:
        """/health answers 503 while the model loads; then one generation has to come back."""
        try:
            health = await self._http.get(f"{base_url}/health", timeout=TRY_TIMEOUT_S)
        except httpx.HTTPError:
            return False
        return health.status_code == 200 and await generates(self._http, base_url)

    async def effective_flags(self, base_url: str, config: LaunchConfig, log_head: str) -> tuple[FlagCheck, ...]:
        """Each requested flag against /props, which reports few of them, and against the log."""
        props = await fetch_json(self._http, f"{base_url}/props")
        reported = dict(props) if isinstance(props, dict) else {}
        settings = reported.get("default_generation_settings")
        # The log has the context of all slots, /props that of one.
        reported = (settings if isinstance(settings, dict) else {}) | _logged(log_head) | reported
        checks = []
        for flag, plain, value in requested_flags(config):
            field = next((name for name in (plain, _FIELDS.get(plain)) if name in reported), None)
            checks.append(check_flag(flag, value, reported, field, field in _ADJUSTED))
        return tuple(checks)

    async def flush_cache(self, base_url: str) -> bool:
        """There is no one call that empties the cache of all slots."""
        return False

    async def speculation(self, base_url: str) -> Speculation | None:
        """Of /metrics, where the playbook turns it on."""
        return await drafts_and_accepted(self._http, base_url)


def _logged(log: str) -> dict[str, Json]:
    """What the log says of the context, in the words of the flags."""
    found = [match for pattern in _LOGGED if (match := pattern.search(log))]
    told = {name: text for match in found for name, text in match.groupdict().items() if text is not None}
    return {name: _STATES.get(text, text) for name, text in told.items()}


def _one_dash(name: str, words: Sequence[str]) -> Sequence[str]:
    return (f"-{name}", *words[1:]) if words and _SHORT.fullmatch(name) else words
