"""The plan of a load: for each rank its phases with log lines, bars, memory and, where the world says so, an end."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.sim.dialect import Dialect, cache_dtype, dialect_of
from agent.sim.failures import rank_traceback
from agent.sim.parts import Environment
from agent.sim.rules import Outcome
from agent.sim.world import World

GIB = 1024
RANK_LAG_S = 0.003
DEFAULT_MAX_BS = 512
MULTITHREADED = "Multi-thread loading shards"


@dataclass(frozen=True)
class Setting:
    """What a load depends on. `site` is the site-packages folder of the environment, `shards` the steps of the weight
    bar, `args` the resolved ServerArgs."""

    world: World
    environment: Environment
    outcome: Outcome
    args: dict[str, Any]
    site: Path
    shards: int

    @property
    def speculative(self) -> bool:
        """True if a draft model is loaded too."""
        return self.args["speculative_algorithm"] not in (None, "NGRAM")

    @property
    def ranks(self) -> int:
        """Number of rank processes."""
        return self.world.ranks or int(self.args["tp_size"]) * int(self.args["pp_size"])

    @property
    def rows(self) -> int:
        """Tokens that one request puts into a step: those that a verify pass checks, else one."""
        drafted = self.args["speculative_num_draft_tokens"] if self.args["speculative_algorithm"] else None
        return int(drafted or 1)

    @property
    def words(self) -> Dialect:
        """How this version words its log."""
        return dialect_of(self.environment.generation)

    @property
    def tokens(self) -> int:
        """Tokens of the KV cache."""
        return int(self.world.max_total_tokens * self.outcome.kv)

    def seconds(self, phase: str) -> float:
        """Real seconds of a phase of the load."""
        return self.world.seconds(phase) * self.outcome.load.get(phase, 1.0)


def capture_sizes(max_bs: int, speculative: bool) -> list[int]:
    """Batch sizes that are captured, ascending: denser under speculation."""
    sizes = [*range(1, 9), *range(10, 33, 2)] if speculative else [1, 2, 4, 8, 12]
    sizes += [*range(sizes[-1] // 8 * 8 + 8, 257, 8), *range(272, 512, 16), *range(512, max_bs + 1, 32)]
    return [size for size in sizes if size <= max_bs]


def asked_sizes(args: dict[str, Any], speculative: bool) -> list[int]:
    """The batch sizes that the flags ask for, whatever this version calls them."""
    listed = args.get("cuda_graph_bs") or args.get("cuda_graph_bs_decode")
    largest = args.get("cuda_graph_max_bs") or args.get("cuda_graph_max_bs_decode")
    return sorted(map(int, listed)) if listed else capture_sizes(int(largest or DEFAULT_MAX_BS), speculative)


def rank_steps(setting: Setting, rank: int) -> list[dict[str, Any]]:
    """All phases of one rank."""
    steps = [*_phases(setting, setting.words, rank)]
    for step in steps:
        _apply_rules(setting, step, rank)
    return steps


def _phases(setting: Setting, words: Dialect, rank: int) -> Iterator[dict[str, Any]]:
    memory, free = setting.world.memory, _free(setting)
    context = memory.context_gib
    loaded = context + memory.weights_gib
    pooled, captured = loaded + memory.kv_gib, loaded + memory.kv_gib + memory.graph_gib
    yield _step(
        setting, "dist-init", words.dist_begin(rank, setting.environment.nccl), words.dist_end(context), (0, context)
    )
    yield _load(setting, words, context, loaded)
    yield _step(
        setting,
        "repack",
        [],
        [words.load_end("KimiK25ForConditionalGeneration", free - loaded, memory.weights_gib)],
        since=1,
    )
    if setting.speculative and words.draft_loads_first:
        yield _draft_load(setting, words, loaded)
    dtype, tokens = cache_dtype(setting.args["kv_cache_dtype"]), setting.tokens
    lines = words.kv_lines(rank, dtype, tokens, memory.kv_gib, free - pooled)
    yield _step(setting, "kv-cache", [], lines, (loaded, pooled))
    kinds = words.captures(setting.speculative)
    yield _capture(setting, words, kinds[0], "graph-capture", (pooled, captured), 1.0)
    if setting.speculative:
        if not words.draft_loads_first:
            yield _draft_load(setting, words, captured)
            lines = words.kv_lines(rank, dtype, tokens, 0.16, free - captured - memory.draft_gib)
            yield _step(setting, "kv-cache", [], lines)
        for kind in kinds[1:]:
            held = captured + memory.draft_gib
            yield _capture(setting, words, kind, "draft-capture", (held, held), 1 / len(kinds[1:]))


def _step(
    setting: Setting,
    phase: str,
    begin: list[str],
    end: list[str],
    memory: tuple[float, float] | None = None,
    since: int = 0,
    share: float = 1.0,
) -> dict[str, Any]:
    return {
        "phase": phase,
        "seconds": setting.seconds(phase) * share,
        "begin": begin,
        "end": end,
        "memory": None if memory is None else (memory[0] * GIB, memory[1] * GIB),
        "since": since,
        "bar": None,
        "until": 1.0,
        "fail": None,
        "hang": False,
        "jit": 0,
    }


def _load(setting: Setting, words: Dialect, low: float, high: float) -> dict[str, Any]:
    step = _step(setting, "load-weights", [words.load_begin(_free(setting) - low)], [], (low, high))
    if setting.args["load_format"] != "dummy":
        step["bar"] = _shard_bar(setting, setting.shards)
    return step


def _draft_load(setting: Setting, words: Dialect, low: float) -> dict[str, Any]:
    high = low + setting.world.memory.draft_gib
    begin = [*words.draft_begin(), words.load_begin(_free(setting) - low)]
    end = words.load_end("LlamaForCausalLMEagle3", _free(setting) - high, high - low)
    bar = None if setting.args["load_format"] == "dummy" else _shard_bar(setting, 1)
    return {**_step(setting, "draft-load", begin, [end], (low, high)), "bar": bar}


def _shard_bar(setting: Setting, total: int) -> dict[str, Any]:
    threads = "enable_multithread_load" in setting.args["model_loader_extra_config"]
    name = MULTITHREADED if threads else setting.words.bar
    return {"style": "shards", "desc": name, "total": total, "newline": setting.words.bar_newline}


def _capture(
    setting: Setting, words: Dialect, kind: str, phase: str, memory: tuple[float, float], share: float
) -> dict[str, Any]:
    free = _free(setting)
    if setting.args.get("disable_cuda_graph"):
        return _step(setting, phase, [], [], (memory[0], memory[0]), share=0)
    sizes = asked_sizes(setting.args, setting.speculative)
    share *= len(sizes) / len(capture_sizes(DEFAULT_MAX_BS, setting.speculative))
    rows = setting.rows if kind == "target verify" else 1
    begin = words.capture_begin(kind, sizes, rows, free - memory[0])
    end = words.capture_end(kind, memory[1] - memory[0], free - memory[1])
    items = [
        f"bs={size} avail_mem={free - memory[0] - (memory[1] - memory[0]) * index / len(sizes):.2f} GB"
        for index, size in enumerate(reversed(sizes))
    ]
    bar = {"style": "capture", "desc": "Capturing batches", "total": len(sizes), "items": items}
    return {**_step(setting, phase, [begin], [end], memory, share=share), "bar": bar}


def _free(setting: Setting) -> float:
    return setting.world.gpu.memory_mib / GIB


def _apply_rules(setting: Setting, step: dict[str, Any], rank: int) -> None:
    outcome, phase = setting.outcome, step["phase"]
    step["lag"] = rank * RANK_LAG_S
    if rank:
        step["bar"] = None
    step["begin"] = [*step["begin"], *(e.line for e in outcome.logs if e.phase == phase and _on(e.ranks, rank))]
    if outcome.hang and outcome.hang.phase == phase and _on(outcome.hang.ranks, rank):
        step["hang"], step["until"] = True, 0.5
    fail = outcome.fail
    if fail and fail.phase == phase and _on(fail.ranks, rank):
        text = "" if fail.signal else rank_traceback(setting.site, fail)
        step["fail"] = {"text": text, "signal": fail.signal, "before": list(fail.before)}
        step["until"] = fail.at
    for jit in outcome.jits:
        if jit.phase == phase and _on(jit.ranks, rank):
            step["jit"] = jit.seconds / setting.world.speed


def _on(ranks: tuple[int, ...] | None, rank: int) -> bool:
    return ranks is None or rank in ranks
