"""Terms that are measured: what is run on the target, and what is made of what it prints."""

import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from agent.core.model import CallTimes, Finding, Task, TaskStatus
from agent.research.call_times import SCRIPT
from agent.research.researcher import TargetResearcher
from tests.research.conftest import Bench

GOOD = '{"sizes": {"14336": {"seconds": 3e-05}, "57344": {"seconds": 0.0002}}, "ranks": 8}'
ENTRY = CallTimes(sizes=(14336, 57344))


def python(folder: Path, script: str) -> tuple[str, ...]:
    """A server's Python that does as the shell script says."""
    program = folder / "python3"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return (str(program),)


async def timed(
    bench: Bench, run: tuple[str, ...], tp: str = "2", entry: CallTimes = ENTRY
) -> tuple[TaskStatus, Finding]:
    """What the task of a term comes to on a server with that Python and so many ranks."""
    args: dict[str, str | bool] = {"tp": tp, "model-path": "~/model"}
    config = replace(bench.config, args=args, env={"NCCL_PROTO": "LL"}, command=(*run, "-m", "server"))
    task = Task(
        id="base/term-ar", experiment="base", kind="probe", title="t", entry=entry, config=config, needed=True, gpu=True
    )
    return await TargetResearcher(bench.target, bench.host, bench.redact, None).run(task, bench.told.append)


async def test_the_servers_own_python_times_them_with_the_variables_of_the_launch(bench: Bench, tmp_path: Path) -> None:
    run = python(
        tmp_path, f"echo warming up; echo \"$NCCL_PROTO $3 $4 $5 $6\" > {tmp_path}/seen; echo '{GOOD}'; echo bye"
    )
    status, finding = await timed(bench, run)
    assert (status, finding.summary) == ("done", "2 GPUs: 14336 bytes 30 us, 57344 bytes 200 us")
    assert finding.calls_s == {"14336": 3e-05, "57344": 2e-4}
    assert (tmp_path / "seen").read_text() == "LL --ranks 2 14336 57344\n"


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("echo Traceback; echo no module named torch; exit 1", "could not be timed (exit 1): no module named torch"),
        ("exit 3", "could not be timed (exit 3): no output"),
        ("echo done", "what was printed is not the result"),
        ('echo \'{"sizes": {"14336": {"seconds": 1}}}\'', "what was printed is not the result"),
        (f"echo '{GOOD.replace('3e-05', '0')}'", "the times cannot be right"),
        (f"echo '{GOOD.replace('3e-05', 'NaN')}'", "the times cannot be right"),
    ],
)
async def test_what_is_no_time_is_never_taken_for_one(bench: Bench, tmp_path: Path, script: str, says: str) -> None:
    status, finding = await timed(bench, python(tmp_path, script))
    assert status == "failed" and says in finding.summary and not finding.calls_s


@pytest.mark.parametrize(
    ("config", "calls", "says"),
    [
        ('{"text_config": {"num_hidden_layers": 61}, "num_hidden_layers": 27}', 122, "; 122 in a step of 61 layers"),
        ('{"num_hidden_layers": 32}', 64, "; 64 in a step of 32 layers"),
        ('{"num_hidden_layers": "x"}', None, "; not counted: ~/model/config.json tells no number of layers"),
        (None, None, "; not counted: ~/model/config.json is not on the host"),
    ],
)
async def test_they_are_counted_by_the_layers_of_the_model(
    bench: Bench, tmp_path: Path, config: str | None, calls: int | None, says: str
) -> None:
    if config:
        (bench.home / "model").mkdir()
        (bench.home / "model" / "config.json").write_text(config)
    entry = replace(ENTRY, per_layer=2)
    status, finding = await timed(bench, python(tmp_path, f"echo '{GOOD}'"), entry=entry)
    assert (status, finding.calls, len(finding.calls_s)) == ("done", calls, 2)
    assert finding.summary.endswith(says)


async def test_one_gpu_has_nobody_to_reduce_with(bench: Bench, tmp_path: Path) -> None:
    status, finding = await timed(bench, python(tmp_path, "true"), tp="1")
    assert (status, finding.summary) == ("failed", "an all-reduce needs two GPUs; the server uses 1")


async def test_without_pytorch_the_script_itself_says_so_and_leaves_no_process(bench: Bench, tmp_path: Path) -> None:
    run = python(tmp_path, f'exec {sys.executable} -I -S "$@"')
    status, finding = await timed(bench, run)
    assert status == "failed" and "No module named 'torch'" in finding.summary
    assert SCRIPT.read_text().startswith('"""tunebot nccl-allreduce: ')
