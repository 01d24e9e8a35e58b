"""Make the result files in data/ anew: each real client, with a small load, on a server that takes 5 ms for a token.

    python -m tests.imports.make_data

What names this machine is taken out: paths, and the platform that GuideLLM notes.
"""

import re
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.bench_client.clients import (
    Load,
    aiperf_argv,
    environment,
    guidellm_argv,
    install,
    sglang_argv,
    tunebot_argv,
    vllm_argv,
    work_folder,
)
from tests.bench_client.runs import fast_server

DATA = Path(__file__).parent / "data"
STEP_MS = 5.0
NOWHERE = "http://127.0.0.1:9"


def commands(url: str, out: Path) -> Iterator[list[str]]:
    """What makes the files; sglang.bench_serving twice into one file."""
    load = Load(url, requests=6, concurrency=3, output_len=8)
    yield sglang_argv(load, out)
    yield [*sglang_argv(load, out), "--request-rate", "50", "--output-details", "--tag", "paced", "--cache-report"]
    yield [*vllm_argv(load, out), "--save-detailed", "--goodput", "ttft:200", "e2el:500"]
    failing = vllm_argv(Load(NOWHERE, requests=6, concurrency=3, output_len=8), out)
    yield [*failing, "--result-filename", "failed.json"]
    yield aiperf_argv(load, out)
    yield guidellm_argv(load, out)
    yield tunebot_argv(load, out)


def scrubbed(text: str, out: Path) -> str:
    """Without what names this machine."""
    text = text.replace(str(out), "out")
    text = re.sub(r'"platform": "[^"]*"', '"platform": "Linux"', text)
    return re.sub(r"http://127\.0\.0\.1:\d+", "http://127.0.0.1:8000", text)


def keep(out: Path, made: Sequence[tuple[str, str]]) -> None:
    """Copy results into data/ under new names."""
    for name, kept in made:
        text = (out / name).read_text(encoding="utf-8")
        (DATA / kept).write_text(scrubbed(text, out), encoding="utf-8")


def main() -> None:
    """Run every client, then keep what they wrote."""
    install()
    out = work_folder() / "data"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    with fast_server(STEP_MS) as url:
        for argv in commands(url, out):
            print(" ".join(argv)[:150], flush=True)
            done = subprocess.run(argv, cwd=work_folder(), env=environment(), check=True, stdout=subprocess.PIPE)
            (out / "stdout").write_bytes(done.stdout)
    keep(
        out,
        (
            ("result.jsonl", "sglang.jsonl"),
            ("result.json", "vllm.json"),
            ("failed.json", "vllm-failed.json"),
            ("profile_export_aiperf.json", "profile_export_aiperf.json"),
            ("profile_export.jsonl", "profile_export.jsonl"),
            ("benchmarks.json", "benchmarks.json"),
            ("stdout", "tunebot.json"),
        ),
    )


if __name__ == "__main__":
    main()
