"""`tunebot explain`: files as they come, one object of JSON, exit codes."""

import gzip
import io
import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent.cli import main
from agent.explain import kind_of

from .watch.samples import SAMPLES, Sample

OOM = next(sample for sample in SAMPLES if sample.name == "oom of one rank")
HEALTHY = next(sample for sample in SAMPLES if sample.name == "healthy")
KEYS = ("outcome", "category", "phase", "rank", "root_line", "root_line_number", "reason", "was_ready", "try")


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    code = main(["explain", *words, "--json"])
    loaded: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, loaded


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "server.log"
    path.write_text(OOM.log)
    return path


def test_the_json_of_a_failure(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, answer = told(capsys, str(log))
    assert code == 1
    assert [answer[key] for key in KEYS[:4]] == ["failed", "oom-weights", "load-weights", 2]
    assert OOM.log.splitlines()[answer["root_line_number"] - 1] == answer["root_line"]
    assert set(KEYS) <= set(answer)
    assert answer["try"] and not answer["was_ready"]
    assert any("other ranks that didn't" in aside["text"] for aside in answer["set_aside"])


def test_the_text_shows_the_line_and_those_around_it(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(log)]) == 1
    text = capsys.readouterr().out
    assert "failed in load-weights on rank 2" in text
    assert "> " in text and "set aside" in text


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_the_kind_of_server_is_found(sample: Sample) -> None:
    assert sample.category == "cli-arguments" or kind_of(sample.log.encode()) == sample.server


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda sample: sample.name)
def test_the_cause_is_not_set_aside_too(sample: Sample, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log").write_text(sample.log)
    _, answer = told(capsys, str(tmp_path / "log"))
    assert answer["root_line_number"] not in [aside["line"] for aside in answer["set_aside"]]


def test_a_healthy_log_is_zero(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "log").write_text(HEALTHY.log)
    code, answer = told(capsys, str(tmp_path / "log"))
    assert (code, answer["outcome"], answer["root_line"]) == (0, "ready", None)


def test_gzip_zstd_and_standard_input(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = tmp_path / "log.gz"
    packed.write_bytes(gzip.compress(OOM.log.encode()))
    plain = told(capsys, str(log))[1]
    for key in KEYS:
        assert told(capsys, str(packed))[1][key] == plain[key]
    torn = tmp_path / "torn.gz"
    torn.write_bytes(packed.read_bytes()[:-9])
    assert told(capsys, str(torn))[1]["category"] == "oom-weights"
    if shutil.which("zstd"):
        subprocess.run(["zstd", "-q", str(log)], check=True)
        assert told(capsys, f"{log}.zst")[1]["root_line"] == plain["root_line"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(packed.read_bytes())))
    assert told(capsys, "-")[1]["root_line"] == plain["root_line"]


@pytest.mark.parametrize(
    "content", [b"", b" \n", b"\x7fELF" + b"\0" * 500, b"\x28\xb5\x2f\xfdnot zstd at all", b"\x1f\x8bnot gzip"]
)
def test_what_is_no_log_is_two(content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_bytes(content)
    assert main(["explain", str(tmp_path / "x")]) == 2
    assert main(["explain", str(tmp_path)]) == 2
    assert main(["explain", str(tmp_path / "none")]) == 2
    assert "tunebot: " in capsys.readouterr().err


def test_of_several_nodes_the_one_with_the_cause(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    waiting = tmp_path / "node1.log"
    waiting.write_text(
        OOM.log.split("[2026-03-02 10:09")[0]
        + "[rank6]:[E302 10:29:36.7 ProcessGroupNCCL.cpp:616] [Rank 6] Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=2, OpType=ALLREDUCE) ran for 600050 milliseconds before timing out.\n"
    )
    failed = tmp_path / "node0.log"
    failed.write_text(OOM.log)
    code, answer = told(capsys, str(waiting), str(failed))
    assert (code, answer["category"], answer["file"]) == (1, "oom-weights", str(failed))
    assert [each["category"] for each in answer["files"]] == ["nccl-timeout", "oom-weights"]


def test_a_log_that_is_newest_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [f"2026-11-29T23:{n // 60:02d}:{n % 60:02d}Z {row}" for n, row in enumerate(OOM.log.splitlines()) if row]
    (tmp_path / "log").write_text("\n".join(reversed(rows)) + "\n")
    answer = told(capsys, str(tmp_path / "log"))[1]
    assert (answer["category"], answer["rank"]) == ("oom-weights", 2)
    assert list(reversed(rows))[answer["root_line_number"] - 1] == answer["root_line"]
