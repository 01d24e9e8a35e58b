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
    check_flag,
    fetch_json,
    generates,
    requested_flags,
    with_address,
)

_DOTS = re.compile(r"^(\.{4,})$")
# llama.cpp draws one dot for each per cent of the tensors, all on one line.
_DOTS_IN_ALL = 100
_MARKS: tuple[tuple[re.Pattern[str], PhaseMark], ...] = tuple(
    (re.compile(pattern), PhaseMark(phase=phase, begins=begins))
    for pattern, phase, begins in (
        (r"^build: \d|^build_info: |system[_ ]info: n_threads", Phase.CONFIG, True),
        (r"load_model: loading model|load_tensors: loading|llama_model_load_from_file\w*: using device"
         r"|llama_model_loader: loaded meta data",
         Phase.LOAD_WEIGHTS, True),
        (r"llama_context: constructing|llama_init_from_model:|llama_new_context_with_model: n_ctx",
         Phase.KV_CACHE, True),
        (r"warming up the model", Phase.WARMUP, True),
        (r"server is listening on http|model loaded$|starting the main loop", Phase.READY, True),
    )
)  # fmt: skip
_WORDS = (
    "build: ", "build_info", "system_info", "system info", "loading model", "load_tensors", "using device",
    "loaded meta data", "llama_context: c", "llama_init_from_model", "llama_new_context", "warming up",
    "server is listening", "model loaded", "main loop", "....",
)  # fmt: skip
# Fields of /props and of its default_generation_settings that differ from the flag's name.
_FIELDS = {
    "c": "n_ctx",
    "ctx_size": "n_ctx",
    "np": "total_slots",
    "parallel": "total_slots",
    "m": "model_path",
    "model": "model_path",
}

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
        """Each requested flag against /props, which reports few of them."""
        props = await fetch_json(self._http, f"{base_url}/props")
        reported = dict(props) if isinstance(props, dict) else {}
        settings = reported.get("default_generation_settings")
        if isinstance(settings, dict):
            reported = {**settings, **reported}
        checks = []
        for flag, plain, value in requested_flags(config):
            field = next((name for name in (plain, _FIELDS.get(plain)) if name in reported), None)
            # The context is shared among the slots: the one that is reported is that of a slot.
            checks.append(check_flag(flag, value, reported, field, field == "n_ctx"))
        return tuple(checks)

    async def flush_cache(self, base_url: str) -> bool:
        """There is no one call that empties the cache of all slots."""
        return False

    async def speculation(self, base_url: str) -> Speculation | None:
        """It is told for each request only, in its own log."""
        return None


def _one_dash(name: str, words: Sequence[str]) -> Sequence[str]:
    return (f"-{name}", *words[1:]) if words and _SHORT.fullmatch(name) else words
