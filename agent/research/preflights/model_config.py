"""model-config: whether the model's own config.json fits the flags and the server."""

import ast
import asyncio
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agent.core.model import LaunchConfig, Quote
from agent.playbook.model import Args
from agent.playbook.preflights import ModelConfig
from agent.research.common import Progress, ResearchError
from agent.research.grep import search
from agent.research.preflights.reports import Report
from agent.research.read import load
from agent.research.sources import Sources
from agent.servers import KINDS
from agent.syntax import Unparsable, parse
from agent.text import one_line

_LARGEST = 4 << 20
_MAX_HITS = 40
_MAX_FILES = 8
_INNER = ("text_config", "llm_config", "language_config")
_EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts", "moe_num_experts")
_TP, _EP, _DP = (
    ("tp", "tp-size", "tensor-parallel-size"),
    ("ep", "ep-size", "expert-parallel-size"),
    ("dp", "dp-size", "data-parallel-size"),
)
_SPREADS_EXPERTS = ("deepep", "mooncake", "mori", "ascend_fuseep", "flashinfer")
"""All-to-all backends with which SGLang sets ep to tp."""
_FALLBACK = "TransformersForCausalLM"
_REGISTRY = {"sglang": "srt/models", "vllm": "model_executor/models/registry.py"}


@dataclass(frozen=True, slots=True)
class Division:
    """Something of the model that is shared out: `count` of it among `among`."""

    what: str
    count: int
    among: int

    def __str__(self) -> str:
        return f"{self.count} {self.what} by {self.among}"


async def check_model(sources: Sources, check: ModelConfig, config: LaunchConfig, progress: Progress) -> Report:
    """Raises ResearchError where it cannot tell, TargetUnusable as the target does."""
    folder = check.path or KINDS[config.kind].model_of(config.args)
    if not folder:
        raise ResearchError("the flags name no model")
    progress(f"reading config.json of {folder}")
    model = await _config(sources, folder)
    divisions = list(shared_out(model, config.kind, config.args))
    wrong = [f"{one.count} {one.what} do not divide by {one.among}" for one in divisions if one.count % one.among]
    method = quant_method(model)
    if check.quant and method not in check.quant:
        if method == "none" and await sources.target.exists(f"{folder}/hf_quant_config.json"):
            raise ResearchError("config.json does not say how the model is quantised, hf_quant_config.json does")
        wrong.append(f"quantised by {method}, not {' or '.join(check.quant)}")
    if wrong:
        return Report(check.otherwise, one_line("; ".join(wrong)))
    told = [str(division) for division in divisions if division.among > 1]
    told += [f"quantised by {method}"] if check.quant else []
    architectures = [str(name) for name in model.get("architectures") or ()]
    return await _with_architecture(sources, check, config.kind, architectures, told)


async def layers_of(sources: Sources, config: LaunchConfig) -> int:
    """The layers of the model of a launch. Raises ResearchError where that is not known, TargetUnusable."""
    folder = KINDS[config.kind].model_of(config.args)
    if not folder:
        raise ResearchError("the flags name no model")
    layers = _number(await _config(sources, folder), ("num_hidden_layers",))
    if layers is None:
        raise ResearchError(f"{folder}/config.json tells no number of layers")
    return layers


async def _config(sources: Sources, folder: str) -> Mapping[str, Any]:
    file = f"{folder}/config.json"
    if not await sources.target.exists(file):
        raise ResearchError(f"{file} is not on the host")
    try:
        model = json.loads(await sources.target.read_file(file, 0, _LARGEST))
    except ValueError as error:
        raise ResearchError(f"{file} is not JSON") from error
    if not isinstance(model, dict):
        raise ResearchError(f"{file} is no JSON object")
    return model


async def _with_architecture(
    sources: Sources, check: ModelConfig, kind: str, architectures: list[str], told: list[str]
) -> Report:
    if not architectures or kind not in _REGISTRY or kind not in sources.roots:
        told.append("whether the server has the architecture was not looked at")
        return Report("fine", one_line("; ".join(told)))
    known = await _registered(sources, kind, [*architectures, _FALLBACK])
    name = architectures[0]
    if quote := next((known[found] for found in architectures if found in known), None):
        return Report("fine", one_line("; ".join([*told, f"{kind} has {name}"])), (quote,))
    if _FALLBACK in known:
        summary = f"{kind} has no {name} of its own; whether Transformers' code would do is not known"
        return Report("unknown", one_line(summary), (known[_FALLBACK],))
    return Report(check.otherwise, one_line(f"{kind} has no {name}"))


async def _registered(sources: Sources, kind: str, names: list[str]) -> dict[str, Quote]:
    """Those of the architectures that the server's source registers, each with its line."""
    words = "|".join(re.escape(name) for name in names if name.isidentifier())
    where = [f"{kind}:{_REGISTRY[kind]}"]
    if kind == "vllm":
        hits = await search(sources, f'"({words})"', where, _MAX_HITS)
        return {name: hit for name in names for hit in hits.quotes if f'"{name}"' in hit.text}
    hits = await search(
        sources, rf"^(class|EntryClass *=.*[^A-Za-z0-9_]) ?({words})([^A-Za-z0-9_]|$)", where, _MAX_HITS
    )
    found: dict[str, Quote] = {}
    for path in list(dict.fromkeys(hit.path for hit in hits.quotes))[:_MAX_FILES]:
        file = await load(sources, path)
        entries = await asyncio.to_thread(entry_classes, file.text)
        found |= {name: file.quotes(sources, entries[name], 1)[0] for name in names if name in entries}
    return found


def entry_classes(text: str) -> Mapping[str, int]:
    """The classes that a module of SGLang's models registers as `EntryClass`, and their lines."""
    try:
        tree = parse(text)
    except Unparsable:
        return {}
    values = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "EntryClass" for t in node.targets)
    ]
    names = [node for value in values for node in ast.walk(value) if isinstance(node, ast.Name)]
    return {node.id: node.lineno for node in names}


def quant_method(model: Mapping[str, Any]) -> str:
    """How the weights are quantised, "none" where config.json does not say."""
    for part in _parts(model):
        for key in ("quantization_config", "compression_config"):
            settings = part.get(key)
            if isinstance(settings, dict) and settings.get("quant_method"):
                return str(settings["quant_method"])
    return "none"


def shared_out(model: Mapping[str, Any], kind: str, args: Args) -> Iterator[Division]:
    """What must divide, as far as config.json and the flags say."""
    tp = _flag(args, _TP)
    heads = _number(model, ("num_attention_heads",))
    if heads:
        yield Division("attention heads", heads, _attention_tp(kind, args, tp))
    experts = _number(model, _EXPERTS)
    if kind != "sglang" or not experts:
        return  # vLLM shares experts out unevenly where it must
    ep = tp if args.get("moe-a2a-backend") in _SPREADS_EXPERTS else _flag(args, _EP)
    yield Division("experts", experts + _flag(args, ("ep-num-redundant-experts",), 0), ep)
    width = _number(model, ("moe_intermediate_size",))
    if width and tp % ep == 0:
        yield Division("columns of an expert", width, tp // ep)


def _attention_tp(kind: str, args: Args, tp: int) -> int:
    if kind != "sglang":
        return tp
    copies = _flag(args, ("attn-dp-size",)) if "attn-dp-size" in args else 1
    if args.get("enable-dp-attention") is True:
        copies = max(copies, _flag(args, _DP))
    return max(1, tp // copies)


def _flag(args: Args, names: tuple[str, ...], default: int = 1) -> int:
    value = next((args[name] for name in names if name in args), None)
    return int(value) if isinstance(value, str) and value.isdigit() and int(value) > 0 else default


def _number(model: Mapping[str, Any], names: tuple[str, ...]) -> int | None:
    for part in _parts(model):
        for name in names:
            value = part.get(name)
            if isinstance(value, int) and not isinstance(value, bool) and value > 0:
                return value
    return None


def _parts(model: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The language model's part first: beside it, a picture encoder has heads of its own."""
    yield from (part for name in _INNER if isinstance(part := model.get(name), dict))
    yield model
