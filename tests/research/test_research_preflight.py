"""Preflights through the researcher, with real processes on the local target."""

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agent.core.model import Host

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


KEYED = {"in": "sglang:tables.py", "table": "SIZES", "key": "{gpu.sm_major}"}
WARNS = "class C:\n  def f(self):\n    sizes = SIZES.get(self.cap)\n    if sizes is None:\n      warn()\n      return\n"
RAISES = "class C:\n  def f(self):\n    self.size = SIZES[self.cap][self.world]\n"
DEFAULTS = "def f(cap):\n  if cap in SIZES:\n    return SIZES[cap]\n  return 64\n"


@pytest.mark.parametrize(
    ("users", "outcome", "told"),
    [
        ({}, "fails", ""),
        ({"use.py": WARNS}, "no-effect", ": use.py:6 gives it up without an error"),
        ({"use.py": RAISES}, "fails", ": KeyError: 12 at use.py:3"),
        ({"deep/down/use.py": WARNS, "other.py": RAISES}, "fails", ": KeyError: 12 at other.py:3"),
        ({"use.py": DEFAULTS}, "unknown", ": use.py:2 has another way for that"),
        ({"use.py": "def ("}, "fails", ""),
        (
            {"namesake.py": "SIZES = {}\n" + RAISES, "use.py": WARNS},
            "no-effect",
            ": use.py:6 gives it up without an error",
        ),
        ({"use.txt": WARNS, "use.py": "X = OTHER_SIZES[1]"}, "fails", ""),
    ],
)
async def test_what_a_missing_key_leads_to_is_read_from_what_looks_it_up(
    bench: Bench, write: Write, users: dict[str, str], outcome: str, told: str
) -> None:
    write("tables.py", "SIZES = {9: 1, 10: 2}\n")
    for path, text in users.items():
        write(path, text)
    _, finding = await bench.run({"table-has-key": KEYED})
    assert (finding.outcome, finding.summary) == (outcome, f"SIZES has no key 12, only 9, 10{told}")
    # The playbook's word comes first.
    _, finding = await bench.run({"table-has-key": {**KEYED, "otherwise": "no-effect"}})
    assert (finding.outcome, finding.summary) == ("no-effect", "SIZES has no key 12, only 9, 10")


async def test_the_lines_that_decide_are_evidence(bench: Bench, write: Write) -> None:
    write("tables.py", "SIZES = {9: 1}\n")
    write("use.py", WARNS)
    _, finding = await bench.run({"table-has-key": KEYED})
    assert [(quote.path, quote.line) for quote in finding.quotes] == [
        ("sglang:tables.py", 1),
        ("sglang:use.py", 4),
        ("sglang:use.py", 6),
    ]


async def test_a_list_that_is_asked_for_membership(bench: Bench, write: Write) -> None:
    write("worlds.py", "WORLDS = [2, 4]\ndef f(world):\n  if world not in WORLDS:\n    warn()\n    return\n")
    _, finding = await bench.run({"list-contains": {"in": "sglang:worlds.py", "list": "WORLDS", "item": "8"}})
    assert finding.outcome == "no-effect"
    assert finding.summary == "WORLDS does not contain 8, only 2, 4: worlds.py:5 gives it up without an error"


GATES = """
def fused(batch):
    return (_is_sm90_supported or _is_sm100_supported) and batch > 0
def resolve(backend):
    if not (get().is_sm90 or get().is_sm100):
        raise ValueError("requires SM90 or SM10X")
def sometimes(backend):
    if backend == "x":
        assert is_sm100(), "no"
def blackwell():
    return is_sm120_supported() and fast()
def other():
    return 1
"""


@pytest.mark.parametrize(
    ("function", "outcome", "told"),
    [
        ("fused", "no-effect", "fused (gates.py) gives up on SM120 without an error, line 3"),
        ("resolve", "fails", "resolve (gates.py) raises ValueError on SM120, line 6"),
        ("sometimes", "unknown", "sometimes (gates.py) raises AssertionError on SM120 under a condition, line 9"),
        ("blackwell", "fine", "blackwell (gates.py) lets SM120 pass"),
        ("other", "unknown", "other (gates.py) tests nothing that says SM in its name"),
        ("gone", "unknown", "gates.py has no function gone"),
    ],
)
async def test_a_gate(bench: Bench, write: Write, function: str, outcome: str, told: str) -> None:
    write("gates.py", GATES)
    _, finding = await bench.run({"gpu-gate": {"in": "sglang:gates.py", "function": function}})
    assert (finding.outcome, finding.summary) == (outcome, told)


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


FLAGS = """
class ServerArgs:
    tp_size: int = 1
    cuda_graph_max_bs_decode: int = 1
    cuda_graph_max_bs_prefill: int = 1

    @staticmethod
    def add_cli_args(parser):
        parser.add_argument("--tp-size", "--tp", type=int, default=1, help="Tensor parallel size.")
        parser.add_argument("--moe-a2a-backend", choices=["none", "deepep"], default="none")
        parser.add_argument("--cuda-graph-max-bs-decode", type=int)
        parser.add_argument("--cuda-graph-max-bs-prefill", type=int)
"""


@pytest.mark.parametrize(
    ("flag", "args", "outcome", "told"),
    [
        ("tp", {"tp": "8"}, "fine", "knows 'tp'"),
        ("tp", {}, "fine", "knows 'tp'"),
        ("moe-a2a-backend", {}, "fine", "knows 'moe-a2a-backend'"),
        ("moe-a2a-backend", {"moe-a2a-backend": "flashinfer"}, "fails", "no choice of 'moe-a2a-backend'"),
        ("cuda-graph-max-bs", {"cuda-graph-max-bs": "8"}, "fails", "'cuda-graph-max-bs' is short for several flags"),
        ("tea", {}, "fails", "has no flag 'tea'"),
        (None, {"tp": "8", "moe-a2a-backend": "deepep"}, "fine", "knows every flag"),
        (None, {"tp": "8", "tea": True}, "fails", "has no flag 'tea'"),
    ],
)
async def test_flags(
    bench: Bench, write: Write, flag: str | None, args: dict[str, Any], outcome: str, told: str
) -> None:
    write("srt/server_args.py", FLAGS)
    bench.args = args
    _, finding = await bench.run({"flag-known": {} if flag is None else {"flag": flag}})
    assert finding.outcome == outcome, finding.summary
    assert told in finding.summary
