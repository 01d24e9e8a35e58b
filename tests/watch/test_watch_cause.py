"""The one line that names why a launch failed, on logs written here in the formats of real servers."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.core.model import Failure, Phase
from agent.ports import PhaseMark
from agent.servers import KINDS
from agent.watch.watch import LoadWatch


def cause(log: str, exit_code: int | None = -9, phase: Phase = Phase.LOAD_WEIGHTS) -> Failure:
    watch = LoadWatch(KINDS["sglang"](None), None)  # type: ignore[arg-type]
    watch._engine.tracker.mark("-", None, PhaseMark(phase=phase))
    watch.feed(log.encode(), 1.0)
    return watch.diagnose(exit_code, stopped_by_us=False)


def crash(rank: int, exception: str, function: str = "load_model", source: str = "raise it") -> str:
    return f"""[2026-03-02 10:00:0{rank} TP{rank}] Scheduler hit an exception: Traceback (most recent call last):
  File "/opt/sglang/srt/managers/scheduler.py", line 4, in run_scheduler_process
    scheduler = Scheduler(
                ^^^^^^^^^^
  File "/opt/sglang/srt/some/file.py", line 45, in {function}
    {source}
{exception}

"""


SIGQUIT = "[2026-03-02 10:00:09] Received sigquit from a child process. It usually means the child failed.\n"
OOM = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.31 GiB. GPU 3 has a total capacity of 94.97 GiB"
ADVICE = "Possible solutions:\n1. set --mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)\n"


def test_the_earliest_true_exception_and_not_what_follows_from_it() -> None:
    others = "ValueError: TP rank 0 could finish the model loading, but there are other ranks that didn't."
    failure = cause(SIGQUIT + crash(3, OOM) + crash(0, others) + SIGQUIT)
    assert (failure.reason, failure.category, failure.phase) == (OOM, "oom-weights", Phase.LOAD_WEIGHTS)
    assert (failure.rank, failure.exit_code, failure.evidence[0].line) == (3, -9, 8)


def test_the_text_inside_the_capture_wrapper_and_not_the_advice_below() -> None:
    inner = crash(0, "RuntimeError: No supported CUDA architectures found for major versions [9, 10].", "capture")
    wrapper = crash(0, "Exception: Capture cuda graph failed: No supported CUDA architectures found" + "\n" + ADVICE)
    failure = cause(inner + "\nDuring handling of the above exception, another exception occurred:\n\n" + wrapper)
    assert "RuntimeError: No supported CUDA architectures" in failure.reason
    assert (failure.category, failure.phase) == ("gpu-arch-unsupported", Phase.GRAPH_CAPTURE)
    alone = cause(wrapper)
    assert alone.reason.endswith(": No supported CUDA architectures found")
    assert alone.category == "gpu-arch-unsupported"


def test_a_bare_assertion_is_named_by_its_source_line() -> None:
    failure = cause(crash(1, "AssertionError", source="assert self.total_num_heads % attn_tp_size == 0"))
    assert "assert self.total_num_heads % attn_tp_size == 0" in failure.reason
    assert (failure.category, failure.rank) == ("tp-sharding", 1)


def test_a_bare_key_is_named_with_its_place() -> None:
    failure = cause(crash(1, "KeyError: 12", "__init__").replace("some/file.py", "torch_symm_mem.py"))
    assert failure.reason.endswith("KeyError: 12 (torch_symm_mem.py:45 __init__)")
    assert failure.category == "symmetric-memory"


@pytest.mark.parametrize(
    ("log", "reason", "category", "phase"),
    [
        (
            "usage: serve [--tp N]\nsglang serve: error: unrecognized arguments: --foo\n",
            "sglang serve: error: unrecognized arguments: --foo",
            "cli-arguments",
            Phase.ARGS,
        ),
        (
            "n0:1:2 [0] enqueue.cc:9 NCCL WARN Error : no algorithm/protocol available for function AllGather\n"
            + crash(0, "RuntimeError: NCCL error: invalid usage (run with NCCL_DEBUG=WARN for details)"),
            "enqueue.cc:9 NCCL WARN Error : no algorithm/protocol available for function AllGather",
            "cli-arguments",
            Phase.LOAD_WEIGHTS,
        ),
        (
            "fine\nFatal Python error: Segmentation fault\n\nThread 0x1 (most recent call first):\n",
            "Fatal Python error: Segmentation fault",
            "native-crash",
            Phase.LOAD_WEIGHTS,
        ),
        (
            "(EngineCore pid=2) ERROR 11-30 00:45:52 [core.py:15] Traceback (most recent call last):\n"
            '(EngineCore pid=2) ERROR 11-30 00:45:52 [core.py:15]   File "/x/core.py", line 4, in load_model\n'
            "(EngineCore pid=2) ERROR 11-30 00:45:52 [core.py:15]     go()\n"
            "(EngineCore pid=2) ERROR 11-30 00:45:52 [core.py:15] ModuleNotFoundError: No module named 'deep_ep'\n"
            "(APIServer pid=1) Traceback (most recent call last):\n"
            '(APIServer pid=1)   File "/x/api.py", line 4, in run\n'
            "(APIServer pid=1) RuntimeError: Engine core initialization failed. See root cause above.\n",
            "ModuleNotFoundError: No module named 'deep_ep'",
            "import-error",
            Phase.LOAD_WEIGHTS,
        ),
        (
            'Traceback (most recent call last):\n  File "/x/arg_utils.py", line 2, in create_engine_config\n    C()\n'
            "pydantic_core.ValidationError: 1 validation error for VllmConfig\n"
            "  Value error, Total number of attention heads (4) must be divisible by tensor parallel size (3).\n",
            "Value error, Total number of attention heads (4) must be divisible by tensor parallel size (3).",
            "tp-sharding",
            Phase.LOAD_WEIGHTS,
        ),
        (
            "RuntimeError: Rank 1 scheduler died during initialization (exit code: -9).\n",
            "rank 1 died without a word (exit code -9): killed from outside, or by the kernel (dmesg)",
            "root-not-in-log",
            Phase.LOAD_WEIGHTS,
        ),
        (SIGQUIT, "a process died and the log does not say why", "root-not-in-log", None),
        ("hello\n", "killed (exit code -9) from outside, or by the kernel (dmesg); last line: hello", None, None),
    ],
)
def test_shapes(log: str, reason: str, category: str | None, phase: Phase | None) -> None:
    failure = cause(log)
    assert reason in failure.reason
    assert category in (None, failure.category)
    assert phase in (None, failure.phase)


def test_a_log_without_a_cause_is_said_to_have_none() -> None:
    assert cause("[2026-03-02 10:00:00] last words\n", 3).reason == "exited with code 3; last line: last words"
    assert cause("", 3).reason == "exited with code 3; it wrote nothing"
    assert cause("a\n", None).reason.endswith("last line: a")
    assert cause("a\n", -15).category == "none"
    assert cause("a\n", 3, Phase.READY).phase is Phase.SERVING


def test_routine_lines_do_not_push_the_cause_out() -> None:
    routine = "[2026-03-02 10:00:00 TP0] Decode batch, #running-req: 1\n" * 5000
    failure = cause("start\n" * 3000 + crash(0, OOM, "event_loop_overlap") + routine, phase=Phase.READY)
    assert (failure.category, failure.phase) == ("oom-runtime", Phase.SERVING)
    assert failure.evidence[0].line == 3007


@settings(deadline=None)
@given(st.lists(st.sampled_from([*crash(0, "KeyError: 1").splitlines(), SIGQUIT, "x", "", "[rank1]: A"]) | st.text()))
def test_any_log_has_an_answer(lines: list[str]) -> None:
    assert cause("\n".join(lines)).reason
