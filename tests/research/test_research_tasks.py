"""Grep, read and probe through the researcher, with real processes on the local target."""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import pytest

from .conftest import SECRET, Bench, alive

Write = Callable[[str, str], str]
GREP = {"pattern": "flashinfer", "in": ["sglang:srt/server_args.py"]}


async def test_grep(bench: Bench) -> None:
    entry = {"grep": {"pattern": "a2a.*flashinfer|flashinfer.*cutlass", "in": ["sglang:srt", "sglang:srt/arg_groups"]}}
    status, finding = await bench.run(entry)
    assert status == "done"
    assert finding.summary == "3 hits  server_args.py:13  (missing: sglang:srt/arg_groups)"
    assert {quote.path for quote in finding.quotes} == {"sglang:srt/server_args.py"}
    assert [quote.line for quote in finding.quotes] == [13, 17, 18]
    assert finding.quotes[0].text == 'if self.moe_a2a_backend == "flashinfer":'
    assert bench.steps == ["searching srt, arg_groups"]


async def test_grep_without_hits_is_an_answer(bench: Bench) -> None:
    assert (await bench.run({"grep": {**GREP, "pattern": "nothing here"}}))[1].summary == "no hits"


async def test_grep_is_bounded_and_says_so(bench: Bench, write: Write) -> None:
    write("big.py", "flashinfer\n" * 5000)
    status, finding = await bench.run({"grep": {**GREP, "in": ["sglang:"], "max_hits": 5}})
    assert (status, len(finding.quotes)) == ("done", 5)
    assert finding.summary.startswith("5+ hits  big.py:1")


async def test_grep_of_a_flood_keeps_its_bounds(bench: Bench, write: Write) -> None:
    for n in range(60):
        write(f"flood/{n}.py", ("flashinfer" + "x" * 990 + "\n") * 201)
    status, finding = await bench.run({"grep": {**GREP, "in": ["sglang:flood"], "max_hits": 200}})
    assert (status, len(finding.quotes)) == ("done", 200)
    assert finding.summary.startswith("200+ hits")
    assert all(len(quote.text) <= 300 for quote in finding.quotes)


@pytest.mark.parametrize("pattern", ["foo(", "a{2,1}", "[z-a]", "(" * 200])
async def test_a_bad_pattern_fails_with_the_words_of_grep(bench: Bench, pattern: str) -> None:
    status, finding = await bench.run({"grep": {**GREP, "pattern": pattern}})
    assert status == "failed"
    assert finding.summary.startswith("grep failed: ")
    assert "no reason" not in finding.summary


@pytest.mark.parametrize("pattern", ["-e", "--version", "$(touch x)", "; touch x", "~/", "'\"`", "-f/etc/passwd"])
async def test_a_pattern_is_never_an_option_nor_a_command(bench: Bench, write: Write, pattern: str) -> None:
    write("odd.py", f"# {pattern}\n")
    literal = "".join(f"[{char}]" if char in "$()*" else char for char in pattern)
    status, finding = await bench.run({"grep": {"pattern": literal, "in": ["sglang:odd.py"]}})
    assert (status, finding.quotes[0].text) == ("done", f"# {pattern}")
    assert not (bench.home / "x").exists()


async def test_grep_reads_program_text_and_files_named_only(bench: Bench, write: Write) -> None:
    write("notes.md", "flashinfer")
    write("od[d]*.txt", "flashinfer")
    write(".env", "flashinfer")
    write("sub/.git/x.py", "flashinfer")
    write("sub/binary.py", "flashinfer\0flashinfer")
    (bench.tree / "out.py").symlink_to(bench.home / ".ssh" / "id_rsa")
    found = await bench.run(
        {"grep": {**GREP, "pattern": "flashinfer|PRIVATE", "in": ["sglang:sub", "sglang:od[d]*.txt"]}}
    )
    assert [quote.path for quote in found[1].quotes] == ["sglang:od[d]*.txt"]
    everything = await bench.run({"grep": {**GREP, "pattern": "flashinfer|PRIVATE", "in": ["sglang:"]}})
    assert {quote.path for quote in everything[1].quotes} == {"sglang:srt/server_args.py"}


async def test_what_files_say_is_cleaned_and_redacted(bench: Bench, write: Write) -> None:
    write("odd.py", f"\x1b[2Jkey = '{SECRET}' \u202e marker \x9b31m{'x' * 500}\n")
    for entry in (
        {"grep": {"pattern": "marker", "in": ["sglang:odd.py"]}},
        {"read": {"in": "sglang:odd.py", "around": "marker"}},
    ):
        _, finding = await bench.run(entry)
        text = finding.quotes[0].text
        assert SECRET not in text
        assert text.startswith("key = '‹redacted›' ⟨U+202E⟩ marker")
        assert len(text) == 300


async def test_read_and_what_it_requires(bench: Bench) -> None:
    entry = {"read": {"in": "sglang:srt/server_args.py", "around": 'moe_a2a_backend == "flashinfer"', "lines": 9}}
    status, finding = await bench.run(entry)
    assert (status, finding.summary) == ("done", "needs --moe-runner-backend flashinfer_cutlass")
    assert finding.requires == {"moe-runner-backend": "flashinfer_cutlass"}
    assert [quote.line for quote in finding.quotes] == list(range(10, 19))  # a third stands before line 13
    bench.args["moe-runner-backend"] = "flashinfer_cutlass"
    status, finding = await bench.run(entry)
    assert (finding.summary, finding.requires) == ("server_args.py:10-18", {})


async def test_a_short_block_still_quotes_the_assertion(bench: Bench) -> None:
    entry = {"read": {"in": "sglang:srt/server_args.py", "around": 'moe_a2a_backend == "fl', "lines": 2}}
    _, finding = await bench.run(entry)
    assert [quote.line for quote in finding.quotes] == [13, 14, 16]


async def test_several_choices_are_named(bench: Bench, write: Write) -> None:
    path = write("a.py", "def f(self):\n  if self.tp == 8:\n    assert self.mode in ('a', 'b', 'c')\n")
    _, finding = await bench.run({"read": {"in": path, "around": "self.mode"}})
    assert finding.summary == "needs --mode a (or b, c)"
    assert finding.requires == {"mode": "a"}


async def test_read_takes_a_pattern_where_the_text_is_not_there(bench: Bench, write: Write) -> None:
    path = write("a.txt", "one\r\ntwo\r\nthree 33\n")
    status, finding = await bench.run({"read": {"in": path, "around": "thr.* [0-9]+", "lines": 1}})
    assert (status, finding.summary, finding.quotes[0].text) == ("done", "a.txt:3-3", "three 33")


@pytest.mark.parametrize(
    ("path", "around", "reason"),
    [
        ("sglang:srt/server_args.py", "not in there", "server_args.py has no line with not in there"),
        ("sglang:srt/server_args.py", "bad (", "server_args.py has no line with bad ("),
        ("sglang:srt/server_args.py", "two\nlines", "server_args.py has no line with two lines"),
        ("sglang:gone.py", "x", "sglang:gone.py does not exist"),
        ("sglang:srt", "x", "sglang:srt is a folder"),
        ("sglang:../../.ssh/id_rsa", "x", "sglang:../../.ssh/id_rsa is refused: it must stay inside the source"),
    ],
)
async def test_read_fails_with_a_sentence(bench: Bench, path: str, around: str, reason: str) -> None:
    status, finding = await bench.run({"read": {"in": path, "around": around}})
    assert (status, finding.summary, finding.outcome) == ("failed", reason, None)


async def test_an_empty_and_a_huge_file(bench: Bench, write: Write) -> None:
    assert (await bench.run({"read": {"in": write("empty.py", ""), "around": "x"}}))[0] == "failed"
    path = write("huge.txt", "line\n" * (1 << 20) + "needle\n")
    assert (await bench.run({"read": {"in": path, "around": "needle"}}))[0] == "failed"  # beyond what is looked at
    assert (await bench.run({"read": {"in": path, "around": "line"}}))[0] == "done"


def py(code: str, **more: Any) -> dict[str, Any]:
    return {"probe": {"run": ["python3", "-c", code], **more}}


@pytest.mark.parametrize(
    ("code", "summary"),
    [
        ("import deep_ep", "exit 1 · ModuleNotFoundError: No module named 'deep_ep'"),
        ("print('5 passed, 1 skipped in 0.10s'); print('bye')", "exit 0 · 5 passed, 1 skipped"),
        ("print('=== 2 failed, 1 passed in 61.00s (0:01:01) ==='); exit(1)", "exit 1 · 2 failed, 1 passed"),
        ("print('no tests ran in 0.01s'); exit(5)", "exit 5 · no tests ran"),
        ("print('Ran 5 tests in 0.01s\\n\\nOK (skipped=1)')", "exit 0 · 4 passed, 1 skipped"),
        ("print('Ran 1 test in 0.01s\\n\\nOK')", "exit 0 · 1 passed"),
        (
            "print('Ran 9 tests in 0.01s\\n\\nFAILED (failures=1, errors=2, expected failures=3)'); exit(1)",
            "exit 1 · 3 passed, 1 failed, 2 errors, 3 xfailed",
        ),
        ("print('10%\\r100% done')", "exit 0 · 100% done"),
        ("pass", "exit 0"),
        ("import os; os.kill(os.getpid(), 11)", "signal 11"),
        ("import os; print(repr(os.environ['CUDA_VISIBLE_DEVICES']))", "exit 0 · ''"),
        ("import os; print(os.environ['NCCL_ALGO'])", "exit 0 · Tree"),
        (f"print('token={SECRET}\\x1b[31m red')", "exit 0 · token=‹redacted› red"),
    ],
)
async def test_probes(bench: Bench, code: str, summary: str) -> None:
    bench.env["NCCL_ALGO"] = "Tree"
    status, finding = await bench.run(py(code))
    assert (status, finding.summary) == ("done", summary)


async def test_the_real_test_runners(bench: Bench, write: Write) -> None:
    write(
        "test_it.py",
        "import unittest\nclass T(unittest.TestCase):\n  def test_a(self): pass\n  def test_b(self): self.fail()\n",
    )
    bench.env["PYTHONPATH"] = "~/sglang"
    for module in ("pytest", "unittest"):
        run = [sys.executable, "-m", module, *(["-q", "sglang/test_it.py"] if module == "pytest" else ["test_it"])]
        status, finding = await bench.run({"probe": {"run": run}})
        assert status == "done"
        assert finding.summary in ("exit 1 · 1 failed, 1 passed", "exit 1 · 1 passed, 1 failed")


async def test_a_probe_on_the_gpus_sees_the_choice_of_the_launch(bench: Bench) -> None:
    bench.env["CUDA_VISIBLE_DEVICES"] = "2,3"
    _, finding = await bench.run(py("import os; print(os.environ['CUDA_VISIBLE_DEVICES'])", gpu=True))
    assert finding.summary == "exit 0 · 2,3"


async def test_a_probe_that_does_not_start_or_end(bench: Bench) -> None:
    assert (await bench.run({"probe": {"run": ["no-such-program"]}}))[0] == "failed"
    status, finding = await bench.run(py("print('so far', flush=True); import time; time.sleep(60)", timeout="1s"))
    assert (status, finding.summary) == ("timeout", "no end within 1 s")
    assert finding.quotes[-1].text == "so far"


async def test_cancelling_ends_the_command(bench: Bench) -> None:
    code = "import os, time; open('pid', 'w').write(str(os.getpid())); os.rename('pid', 'ready'); time.sleep(60)"
    task = asyncio.create_task(bench.run(py(code)))
    async with asyncio.timeout(10):
        while not (bench.home / "ready").exists():
            await asyncio.sleep(0.02)
    pid = int((bench.home / "ready").read_text())
    assert alive(pid)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not alive(pid)
