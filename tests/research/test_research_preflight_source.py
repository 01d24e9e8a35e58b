"""Preflights that read what the server's code does: where a key is missing, at a gate for GPUs, with its flags."""

from collections.abc import Callable
from typing import Any

import pytest

from .conftest import Bench

Write = Callable[[str, str], str]
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
