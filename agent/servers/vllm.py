"""vLLM (V1 engine, up to 0.33): flags, log lines, readiness, reported arguments."""

import re
from typing import cast

import httpx

from agent.core.model import FlagCheck, LaunchConfig, Phase
from agent.core.plan import flag_words
from agent.playbook.model import Args, ArgValue
from agent.ports import PhaseMark, Speculation
from agent.servers.common import (
    Json,
    check_flag,
    drafts_and_accepted,
    fetch_json,
    generates,
    post_ok,
    requested_flags,
    with_address,
)
from agent.syntax import Unparsable, literal

_FIELDS = {
    "tp": "tensor_parallel_size",
    "pp": "pipeline_parallel_size",
    "dp": "data_parallel_size",
    "ep": "enable_expert_parallel",
}
# Names of the engine's configuration line that differ from the flag's.
_ENGINE_FIELDS = {"max_model_len": "max_seq_len"}
# What vLLM adjusts by its own rules: to the platform, to the model (awq becomes awq_marlin), to other flags.
_ADJUSTED = {
    "max_seq_len", "max_model_len", "block_size", "enable_chunked_prefill", "max_num_batched_tokens", "max_num_seqs",
    "disable_custom_all_reduce", "quantization", "distributed_executor_backend",
}  # fmt: skip

_BAR = re.compile(r"([Ll]oading|Capturing).*\|\s*(\d+)/(\d+) \[")
_MARKS: tuple[tuple[re.Pattern[str], PhaseMark], ...] = tuple(
    (re.compile(pattern), PhaseMark(phase=phase, begins=begins))
    for pattern, phase, begins in (
        (r"vLLM API server version|api_utils\.py:\d+\].* version \d", Phase.ARGS, True),
        (r"non-default args: |\] args: Namespace\(", Phase.CONFIG, True),
        (r"Initializing an? (V\d )?LLM engine", Phase.DIST_INIT, True),
        (r"Starting to load model|Loading drafter model", Phase.LOAD_WEIGHTS, True),
        (r"Loading (model )?weights took", Phase.LOAD_WEIGHTS, False),
        (r"Model loading took", Phase.PROFILE, True),
        (r"Dynamo bytecode transform|Warming up model for the compilation", Phase.COMPILE, True),
        (r"torch\.compile (took|takes)|Compiling a graph for|Warming up done", Phase.COMPILE, False),
        (
            r"Available KV cache memory|set .* for KV cache|KV cache size: [\d,]+ tokens|# GPU blocks: ",
            Phase.KV_CACHE,
            True,
        ),
        (r"Graph capturing finished", Phase.GRAPH_CAPTURE, False),
        (r"Starting vLLM (API )?server|INFO:\s+Started server process", Phase.HTTP_START, True),
        (r"INFO:\s+Application startup complete", Phase.READY, True),
    )
)
# Words of which every line above has one: most lines are told by these alone.
_WORDS = (
    "oading ", "aptur", "KV cache", "args: ", "Initializing a", "Starting to load", "Starting vLLM", "Started server",
    "version ", "startup complete", "torch.compile", "Compiling", "for the compil", "Dynamo", "Warming up",
    "GPU blocks",
)  # fmt: skip

_ARGS_LINE = re.compile(r"non-default args: (\{.*)")
_PAIR = re.compile(r"'(\w+)': ('[^']*'|\"[^\"]*\"|\[[^\[\]{}<>]*\]|[\w.+-]+)(?=[,}])")
_ENGINE_LINE = re.compile(r"Initializing a V\d LLM engine \(\S+\) with config: (.*)")
_ENGINE_PAIR = re.compile(r"(?:^|, )(\w+)=('[^']*'|\d[\d.e+-]*|True|False|None|[\w./-]+)(?=,|$)")


class VLLM:
    """vLLM as tunebot knows it."""

    name = "vllm"
    words: tuple[str, ...] = _WORDS
    stop_grace_s = 20.0
    # The memory profile runs (and compiles) the model before the KV cache is sized.
    phases: tuple[Phase, ...] = (
        Phase.LAUNCH, Phase.IMPORT, Phase.ARGS, Phase.CONFIG, Phase.DIST_INIT, Phase.LOAD_WEIGHTS, Phase.PROFILE,
        Phase.COMPILE, Phase.KV_CACHE, Phase.GRAPH_CAPTURE, Phase.HTTP_START, Phase.READY, Phase.SERVING,
    )  # fmt: skip

    def __init__(self, http: httpx.AsyncClient) -> None:
        self._http = http

    def argv(self, config: LaunchConfig, port: int) -> tuple[str, ...]:
        """The command, the model as `vllm serve` takes it (first and bare), then every flag."""
        flags = dict(with_address(config.args, port))
        model = flags.pop("model", None)
        return (*config.command, *((model,) if isinstance(model, str) else ()), *flag_words(flags))

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
        """A failed bind may leave the engine processes alive."""
        if "[Errno 98]" in line and ("bind" in line or "ddress already in use" in line):
            return "the port is in use"
        return None

    @staticmethod
    def model_of(args: Args) -> str:
        """The model argument."""
        model = args.get("model")
        return model if isinstance(model, str) else ""

    async def ready(self, base_url: str) -> bool:
        """Whether one generation came back."""
        return await generates(self._http, base_url)

    async def effective_flags(self, base_url: str, config: LaunchConfig, log_head: str) -> tuple[FlagCheck, ...]:
        """Each requested flag against the engine's configuration, else against the arguments as parsed.

        The configuration is in the log, and whole in /server_info (only there with VLLM_SERVER_DEV_MODE=1). Of the
        arguments the log has those that differ from vLLM's defaults: another one is not reported.
        """
        info = await fetch_json(self._http, f"{base_url}/server_info?config_format=json")
        parsed, engine = _parsed_args(log_head), _engine_config(log_head) | _sections(info)
        checks = []
        for flag, plain, value in requested_flags(config):
            name, value = _positive(_FIELDS.get(plain, plain), value)
            field = next((known for known in (name, _ENGINE_FIELDS.get(name)) if known in engine), name)
            reported = engine if field in engine else parsed
            check = check_flag(flag, value, reported, field if field in reported else None, field in _ADJUSTED)
            checks.append(check)
        return tuple(checks)

    async def flush_cache(self, base_url: str) -> bool:
        """POST /reset_prefix_cache: only there with VLLM_SERVER_DEV_MODE=1, else 404."""
        return await post_ok(self._http, f"{base_url}/reset_prefix_cache")

    async def speculation(self, base_url: str) -> Speculation | None:
        """Of /metrics."""
        return await drafts_and_accepted(self._http, base_url)


def _positive(name: str, value: ArgValue) -> tuple[str, ArgValue]:
    """--no-enable-prefix-caching turns the field enable_prefix_caching off."""
    if name.startswith("no_") and value is True:
        return name.removeprefix("no_"), False
    return name, value


def _parsed_args(log_head: str) -> dict[str, Json]:
    """The dict of `non-default args: {...}`; from one that is no literal (objects, cut off) the plain pairs."""
    match = _ARGS_LINE.search(log_head)
    if match is None:
        return {}
    found: dict[str, Json] = {}
    try:
        found = cast(dict[str, Json], literal(match[1]))
    except Unparsable:
        found = {key: _literal(text) for key, text in _PAIR.findall(match[1])}
    return {key: value for key, value in found.items() if value != "***"}  # vLLM hides its secrets itself


def _engine_config(log_head: str) -> dict[str, Json]:
    """The plain pairs of the line `Initializing a V1 LLM engine ... with config: model='..', dtype=.., ...`."""
    match = _ENGINE_LINE.search(log_head)
    if match is None:
        return {}
    text = match[1]
    while (flat := re.sub(r"\([^()]*\)|\{[^{}]*\}|\[[^\[\]]*\]", "", text)) != text:  # nested configurations go
        text = flat
    return {key: _literal(value.removeprefix("torch.")) for key, value in _ENGINE_PAIR.findall(text)}


def _sections(info: Json) -> dict[str, Json]:
    """The values of {"vllm_config": {"model_config": {...}, "parallel_config": {...}}}, the sections put together."""
    config = info.get("vllm_config") if isinstance(info, dict) else None
    sections = config.values() if isinstance(config, dict) else ()
    values = {key: value for section in sections if isinstance(section, dict) for key, value in section.items()}
    return {key: v.removeprefix("torch.") if isinstance(v, str) else v for key, v in values.items()}


def _literal(text: str) -> Json:
    try:
        return cast(Json, literal(text))
    except Unparsable:
        return text
