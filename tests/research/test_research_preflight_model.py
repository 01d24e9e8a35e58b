"""model-config: what config.json says against the flags and the server's registry."""

import json
from typing import Any

import pytest

from agent.research.preflights.model_config import entry_classes, quant_method, shared_out

from .conftest import Bench

KIMI: dict[str, Any] = {
    "architectures": ["KimiK25ForConditionalGeneration"],
    "vision_config": {"num_attention_heads": 16},
    "text_config": {
        "num_attention_heads": 64,
        "n_routed_experts": 384,
        "moe_intermediate_size": 2048,
        "quantization_config": {"quant_method": "compressed-tensors"},
    },
}


@pytest.mark.parametrize(
    ("kind", "args", "shares"),
    [
        ("sglang", {"tp": "8"}, ["64 attention heads by 8", "384 experts by 1", "2048 columns of an expert by 8"]),
        (
            "sglang",
            {"tp-size": "8", "ep-size": "8"},
            ["64 attention heads by 8", "384 experts by 8", "2048 columns of an expert by 1"],
        ),
        (
            "sglang",
            {"tp": "8", "moe-a2a-backend": "deepep", "ep-num-redundant-experts": "8"},
            ["64 attention heads by 8", "392 experts by 8", "2048 columns of an expert by 1"],
        ),
        (
            "sglang",
            {"tp": "16", "dp": "4", "enable-dp-attention": True},
            ["64 attention heads by 4", "384 experts by 1", "2048 columns of an expert by 16"],
        ),
        (
            "sglang",
            {"tp": "8", "attn-dp-size": "8", "ep": "3"},
            ["64 attention heads by 1", "384 experts by 3"],
        ),
        ("vllm", {"tensor-parallel-size": "6"}, ["64 attention heads by 6"]),
    ],
)
def test_what_is_shared_out(kind: str, args: dict[str, Any], shares: list[str]) -> None:
    assert [str(share) for share in shared_out(KIMI, kind, args)] == shares


def test_how_it_is_quantised() -> None:
    assert quant_method(KIMI) == "compressed-tensors"
    assert quant_method({"quantization_config": {"quant_method": "fp8"}}) == "fp8"
    assert quant_method({"quantization_config": None}) == "none"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("EntryClass = A\n", {"A": 1}),
        ("class B: pass\nEntryClass = [\n  A,\n  B,\n]\n", {"A": 3, "B": 4}),
        ("def (", {}),
        ("Other = [A]\n", {}),
    ],
)
def test_classes_that_a_module_registers(text: str, names: dict[str, int]) -> None:
    assert entry_classes(text) == names


def furnish(bench: Bench, model: dict[str, Any] | str, registry: str | None = "") -> None:
    folder = bench.home / "models" / "m"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(model if isinstance(model, str) else json.dumps(model))
    bench.args = {"model-path": "~/models/m", "tp": "8"}
    if registry is not None:
        (bench.tree / "srt" / "models").mkdir()
        (bench.tree / "srt" / "models" / "one.py").write_text(registry)


HAS = "class KimiK25ForConditionalGeneration: pass\nEntryClass = [KimiK25ForConditionalGeneration]\n"
FALLBACK = "EntryClass = [TransformersForCausalLM]\nmentioned = 'KimiK25ForConditionalGeneration'\n"


@pytest.mark.parametrize(
    ("registry", "outcome", "told"),
    [
        (HAS, "fine", "64 attention heads by 8; 2048 columns of an expert by 8; sglang has KimiK25ForConditionalG"),
        ("EntryClass = [Other]\n", "fails", "sglang has no KimiK25ForConditionalGeneration"),
        (FALLBACK, "unknown", "sglang has no KimiK25ForConditionalGeneration of its own; whether Transformers' code"),
        (None, "unknown", "none of the paths exists: sglang:srt/models"),
    ],
)
async def test_whether_the_server_has_the_architecture(
    bench: Bench, registry: str | None, outcome: str, told: str
) -> None:
    furnish(bench, KIMI, registry)
    _, finding = await bench.run({"model-config": {}})
    assert finding.outcome == outcome
    assert finding.summary.startswith(told)


@pytest.mark.parametrize(
    ("model", "check", "outcome", "told"),
    [
        (KIMI, {"quant": ["compressed-tensors"]}, "fine", "quantised by compressed-tensors"),
        (KIMI, {"quant": ["modelopt_fp4", "fp8"]}, "fails", "quantised by compressed-tensors, not modelopt_fp4 or fp8"),
        ({"num_attention_heads": 12}, {}, "fails", "12 attention heads do not divide by 8"),
        ({"num_attention_heads": 12}, {"otherwise": "no-effect"}, "no-effect", "12 attention heads do not divide"),
        ({}, {}, "fine", "whether the server has the architecture was not looked at"),
        ("[]", {}, "unknown", "~/models/m/config.json is no JSON object"),
        ("{", {}, "unknown", "~/models/m/config.json is not JSON"),
        (KIMI, {"path": "~/models/gone"}, "unknown", "~/models/gone/config.json is not on the host"),
    ],
)
async def test_what_does_not_fit(bench: Bench, model: Any, check: dict[str, Any], outcome: str, told: str) -> None:
    furnish(bench, model, HAS)
    _, finding = await bench.run({"model-config": check})
    assert finding.outcome == outcome
    assert told in finding.summary


async def test_a_model_that_says_elsewhere_how_it_is_quantised(bench: Bench) -> None:
    furnish(bench, {"architectures": ["A"]})
    (bench.home / "models" / "m" / "hf_quant_config.json").write_text("{}")
    _, finding = await bench.run({"model-config": {"quant": ["modelopt_fp4"]}})
    assert finding.outcome == "unknown"
    bench.args = {}
    _, finding = await bench.run({"model-config": {}})
    assert finding.summary == "the flags name no model"
