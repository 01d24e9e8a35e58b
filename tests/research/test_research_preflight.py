"""Preflights through the researcher, with real processes on the local target."""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agent.core.model import Host, LaunchConfig
from agent.research.preflights.used_gpus import used_gpus

from .conftest import BLACKWELLS, Bench

Write = Callable[[str, str], str]
TABLE = {
    "in": "sglang:srt/all_reduce_utils.py",
    "table": "TORCH_SYMM_MEM_ALL_REDUCE_MAX_SIZES",
    "key": "{gpu.sm_major}",
}
MAJORS = {"in": "sglang:srt/all_reduce_utils.py", "list": "supported_major_versions", "item": "{gpu.sm_major}"}


@pytest.mark.parametrize(
    ("entry", "outcome", "summary"),
    [
        ({"table-has-key": TABLE}, "fails", "TORCH_SYMM_MEM_ALL_REDUCE_MAX_SIZES has no key 12, only 9, 10"),
        ({"table-has-key": {**TABLE, "otherwise": "no-effect"}}, "no-effect", None),
        ({"table-has-key": {**TABLE, "key": "10"}}, "fine", "TORCH_SYMM_MEM_ALL_REDUCE_MAX_SIZES has key 10"),
        ({"table-has-key": {**TABLE, "key": "{gpu.tea}"}}, "unknown", "gpu.tea is not a fact of a host"),
        (
            {"table-has-key": {**TABLE, "table": "NOPE"}},
            "unknown",
            "all_reduce_utils.py has no literal named NOPE",
        ),
        ({"table-has-key": {**TABLE, "in": "sglang:gone.py"}}, "unknown", "sglang:gone.py does not exist"),
        (
            {"list-contains": {**MAJORS, "function": "gen_trtllm_comm_module"}},
            "fails",
            "supported_major_versions in gen_trtllm_comm_module does not contain 12, only 9, 10",
        ),
        (
            {"list-contains": {**MAJORS, "function": "gen_other_module"}},
            "fine",
            "supported_major_versions in gen_other_module contains 12",
        ),
        ({"list-contains": MAJORS}, "unknown", None),
        (
            {"env": {"name": "NCCL_ALGO", "not_in": ["Tree"], "why": "no AllGather"}},
            "fails",
            "NCCL_ALGO is Tree: no AllGather",
        ),
        ({"env": {"name": "NCCL_ALGO", "not_in": ["Ring"]}}, "fine", "NCCL_ALGO is Tree"),
        ({"env": {"name": "NCCL_PROTO", "not_in": ["LL"]}}, "fine", "NCCL_PROTO is not set"),
        ({"env": {"name": "NCCL_PROTO", "one_of": ["LL", "x"]}}, "fails", "NCCL_PROTO is not set: it must be LL or x"),
        ({"module-importable": {"module": "json.decoder"}}, "fine", "json.decoder imports in python3"),
        ({"module-importable": {"module": "deep_ep"}}, "fails", "deep_ep is not installed for python3"),
        ({"module-importable": {"module": "json.nope"}}, "fails", "json.nope is not installed for python3"),
        ({"module-importable": {"module": "-c"}}, "unknown", "-c is not the name of a module"),
        ({"module-importable": {"module": "json", "python": "/no/python"}}, "unknown", "no program /no/python"),
        ({"module-importable": {"module": "json", "python": "true"}}, "unknown", None),
    ],
)
async def test_preflights(bench: Bench, entry: dict[str, Any], outcome: str, summary: str | None) -> None:
    bench.env["NCCL_ALGO"] = "Tree"
    status, finding = await bench.run(entry)
    assert finding.outcome == outcome
    assert status in ("done", "failed")
    assert summary is None or finding.summary == summary


async def test_evidence_leads_to_the_table(bench: Bench) -> None:
    _, finding = await bench.run({"table-has-key": TABLE})
    assert [(quote.line, quote.text) for quote in finding.quotes] == [
        (4, "TORCH_SYMM_MEM_ALL_REDUCE_MAX_SIZES = {"),
        (5, "    9: {2: 64 * MiB, 12: 1},"),
        (6, "    10: {2: 64 * MiB},"),
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{gpu.sm}", "120"),
        ("{gpu.sm_major}.{gpu.sm_minor}", "12.0"),
        ("{gpu.count}", "8"),
        ("{gpu.name}", "RTX PRO 6000"),
    ],
)
async def test_facts_of_the_host(bench: Bench, write: Write, text: str, value: str) -> None:
    path = write("t.py", f"T = {{{value!r}: 1}}")
    assert (await bench.run({"table-has-key": {"in": path, "table": "T", "key": text}}))[1].outcome == "fine"


async def test_a_host_that_does_not_say(bench: Bench) -> None:
    bench.host = Host(name="bare")
    status, finding = await bench.run({"table-has-key": TABLE})
    assert (status, finding.outcome) == ("failed", "unknown")
    assert finding.summary == "gpu.sm_major is not known: no GPU of bare was found"
    bench.host = Host(name="mixed", gpus=(BLACKWELLS.gpus[0], replace(BLACKWELLS.gpus[1], sm_major=9)))
    assert (await bench.run({"table-has-key": TABLE}))[1].outcome == "unknown"


@pytest.mark.parametrize(
    ("code", "outcome", "said"),
    [
        ("import nothing_of_that_name", "fails", "mod does not import: ModuleNotFoundError: No module named"),
        ("raise ImportError('undefined symbol: x')", "fails", "mod does not import: ImportError: undefined symbol: x"),
        ("1 / 0", "fails", "mod does not import: ZeroDivisionError: division by zero"),
        ("raise RuntimeError('No CUDA GPUs are available')", "unknown", "mod does not import without a GPU"),
        ("import os; os._exit(3)", "unknown", "python3 ended with code 3 while importing mod"),
        ("import sys; sys.exit('no')", "fails", "mod does not import: SystemExit: no"),
        (
            "import os; assert os.environ['CUDA_VISIBLE_DEVICES'] == ''; assert os.environ['A'] == 'b'",
            "fine",
            "mod imports",
        ),
        ("print('TUNEBOT-ANSWER {')", "fine", "mod imports"),
    ],
)
async def test_modules_that_import_badly(bench: Bench, code: str, outcome: str, said: str) -> None:
    (bench.home / "modules").mkdir()
    (bench.home / "modules" / "mod.py").write_text(code)
    bench.env.update(PYTHONPATH="~/modules", A="b", CUDA_VISIBLE_DEVICES="0,1", GONE=None)
    _, finding = await bench.run({"module-importable": {"module": "mod"}})
    assert finding.outcome == outcome
    assert finding.summary.startswith(said)


@pytest.mark.parametrize("command", ["~/venv/bin/python3", "~/venv/bin/sglang"])
async def test_the_servers_own_python_is_asked(bench: Bench, command: str) -> None:
    (bench.home / "venv" / "bin").mkdir(parents=True)
    (bench.home / "venv" / "bin" / "python3").symlink_to(sys.executable)
    bench.command = (command, "serve")
    _, finding = await bench.run({"module-importable": {"module": "json"}})
    assert finding.summary == "json imports in ~/venv/bin/python3"


PIX = (("X", "PIX"), ("PIX", "X"))
NVLINK = (("X", "NV18"), ("NV18", "X"))
HALF = (("X", "NV18", "SYS"), ("NV18", "X", "SYS"), ("SYS", "SYS", "X"))


@pytest.mark.parametrize(
    ("count", "links", "wanted", "outcome", "told"),
    [
        (2, PIX, "full", "no-effect", "no pair of 2 GPUs has NVLink (PIX)"),
        (2, PIX, "none", "fine", "no pair of 2 GPUs has NVLink (PIX)"),
        (2, NVLINK, "full", "fine", "1 of 1 pairs of GPUs have NVLink"),
        (2, NVLINK, "none", "no-effect", "1 of 1 pairs of GPUs have NVLink"),
        (
            3,
            HALF,
            "full",
            "no-effect",
            "1 of 3 pairs of GPUs have NVLink (GPU 0 and 2 are connected by SYS)",
        ),
        (2, (), "full", "unknown", "how the GPUs of gpu8 are connected is not known"),
        (1, (("X",),), "full", "unknown", "gpu8 has 1 GPU: there is nothing to connect"),
    ],
)
async def test_topology(
    bench: Bench, count: int, links: tuple[tuple[str, ...], ...], wanted: str, outcome: str, told: str
) -> None:
    bench.host = replace(BLACKWELLS, gpus=BLACKWELLS.gpus[:count], links=links)
    _, finding = await bench.run({"topology": {"nvlink": wanted}})
    assert (finding.outcome, finding.summary) == (outcome, told)


PAIRS = tuple(tuple("X" if a == b else "NV18" if a // 2 == b // 2 else "SYS" for b in range(8)) for a in range(8))


@pytest.mark.parametrize(
    ("args", "visible", "outcome", "told"),
    [
        ({"tp": "8"}, None, "no-effect", "4 of 28 pairs of GPUs have NVLink (GPU 0 and 2 are connected by SYS)"),
        ({"tp": "2"}, None, "fine", "1 of 1 pairs of GPUs have NVLink"),
        ({"tp": "8"}, "2,3", "fine", "1 of 1 pairs of GPUs have NVLink"),
        ({"tp": "2"}, "7,1,6", "no-effect", "no pair of 2 GPUs has NVLink (SYS)"),
        ({"tp": "2", "base-gpu-id": "4"}, None, "fine", "1 of 1 pairs of GPUs have NVLink"),
        ({}, None, "unknown", "the launch has 1 GPU of the 8 of gpu8: there is nothing to connect"),
        ({"tp": "2"}, "GPU-1a,GPU-2b", "unknown", "which GPUs CUDA_VISIBLE_DEVICES=GPU-1a,GPU-2b means is not known"),
    ],
)
async def test_only_the_gpus_of_the_launch_are_looked_at(
    bench: Bench, args: dict[str, Any], visible: str | None, outcome: str, told: str
) -> None:
    bench.host, bench.args = replace(BLACKWELLS, links=PAIRS), args
    bench.env["CUDA_VISIBLE_DEVICES"] = visible
    _, finding = await bench.run({"topology": {"nvlink": "full"}})
    assert (finding.outcome, finding.summary) == (outcome, told)


@pytest.mark.parametrize(
    ("kind", "args", "visible", "used"),
    [
        ("sglang", {}, None, [0]),
        ("sglang", {"tp-size": "2", "pp-size": "2"}, None, [0, 1, 2, 3]),
        ("sglang", {"tp": "2", "dp": "3"}, None, [0, 1, 2, 3, 4, 5]),
        ("sglang", {"tp": "4", "dp": "4", "enable-dp-attention": True}, None, [0, 1, 2, 3]),
        ("sglang", {"tp": "2", "base-gpu-id": "1", "gpu-id-step": "3"}, None, [1, 4]),
        ("sglang", {"tp": "4", "nnodes": "2"}, "6,5,4", [6, 5]),
        ("sglang", {"tp": "16"}, "1,2,9,3", [1, 2]),
        ("sglang", {"tp": "many"}, None, list(range(8))),
        ("sglang", {"tp": "0"}, "", []),
        ("sglang", {"config": "a.yaml"}, "1, 2", [1, 2]),
        ("vllm", {"tensor-parallel-size": "2", "data-parallel-size": "2"}, None, [0, 1, 2, 3]),
        ("vllm", {"tp": "2", "data-parallel-size": "8", "data-parallel-size-local": "1"}, None, [0, 1]),
        ("llamacpp", {"split-mode": "none"}, "3,4", [3, 4]),
    ],
)
def test_which_gpus_a_launch_uses(kind: str, args: dict[str, Any], visible: str | None, used: list[int]) -> None:
    env = {"CUDA_VISIBLE_DEVICES": visible}
    config = LaunchConfig(kind=kind, command=("s",), args=args, env=env, source={}, version=None, load_timeout_s=1.0)
    assert [gpu.index for gpu in used_gpus(config, BLACKWELLS.gpus)] == used


@pytest.mark.parametrize(
    ("check", "outcome", "told"),
    [
        ({"count": 8}, "fine", "8 GPUs, SM 12.0"),
        ({"count": 16}, "fails", "gpu8 has 8 GPUs, not 16"),
        ({"sm": ">=9,<11"}, "fails", "GPU 0 (RTX PRO 6000) is SM 12.0, not >=9,<11"),
        ({"sm": ">=12", "otherwise": "no-effect"}, "fine", "8 GPUs, SM 12.0"),
    ],
)
async def test_gpus(bench: Bench, check: dict[str, Any], outcome: str, told: str) -> None:
    _, finding = await bench.run({"gpu": check})
    assert (finding.outcome, finding.summary) == (outcome, told)


@pytest.mark.parametrize(
    ("check", "args", "visible", "outcome", "told"),
    [
        ({"sm": ">=12"}, {"tp": "4"}, None, "fine", "4 GPUs, SM 12.0"),
        ({"sm": ">=12"}, {"tp": "8"}, None, "fails", "GPU 7 (old) is SM 8.0, not >=12"),
        ({"sm": ">=12"}, {"tp": "1"}, "7", "fails", "GPU 7 (old) is SM 8.0, not >=12"),
        ({"count": 8, "sm": ">=12"}, {"tp": "4"}, None, "fine", "4 GPUs, SM 12.0"),
        ({"count": 8}, {"tp": "4"}, "0,1,2,3", "fails", "the launch has 4 GPUs of the 8 of gpu8, not 8"),
        ({"sm": ">=12"}, {"tp": "4"}, "", "unknown", "the launch has 0 GPUs of the 8 of gpu8"),
    ],
)
async def test_gpus_of_the_launch(
    bench: Bench, check: dict[str, Any], args: dict[str, Any], visible: str | None, outcome: str, told: str
) -> None:
    old = replace(BLACKWELLS.gpus[7], name="old", sm_major=8)
    bench.host, bench.args = replace(BLACKWELLS, gpus=(*BLACKWELLS.gpus[:7], old)), args
    bench.env["CUDA_VISIBLE_DEVICES"] = visible
    _, finding = await bench.run({"gpu": check})
    assert (finding.outcome, finding.summary) == (outcome, told)
