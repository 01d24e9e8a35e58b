"""`make real-messages`: a question to a real server's /v1/messages, vLLM's CPU build with random weights.

It writes nonsense, and never calls a tool: that must end as an unusable answer, with its tokens counted, and not as a
finding. Exit code 0 where all is right.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import httpx

from agent.core import events as ev
from agent.core.model import Finding, Host, LaunchConfig, Task, TaskStatus
from agent.playbook.model import AskEntry
from agent.redact import Redactor
from agent.research.ask import Asker
from agent.research.researcher import TargetResearcher
from agent.targets.local import LocalTarget

from .failures import ENV, MODEL, VLLM

START_LIMIT_S = 300.0
CONTEXT = "16384"
ARGV = (
    str(VLLM), "serve", str(MODEL), "--dtype", "bfloat16", "--enforce-eager", "--host", "127.0.0.1",
    "--enable-auto-tool-choice", "--tool-call-parser", "hermes", "--max-model-len", CONTEXT,
    # The tiny model was made for a shorter context than the tools and the prompt need, and has no end of its own.
    "--hf-overrides", f'{{"max_position_embeddings": {CONTEXT}}}',
    "--override-generation-config", '{"max_new_tokens": 400}',
)  # fmt: skip


async def ask(url: str, folder: Path, told: list[ev.Event]) -> tuple[TaskStatus, Finding]:
    """One question, without a key, as a session would ask it."""
    (folder / "sglang").mkdir()
    (folder / "sglang" / "server_args.py").write_text("assert self.moe_runner_backend in ['flashinfer_cutlass']\n")
    config = LaunchConfig(
        kind="vllm", command=("python3",), args={}, env={}, source={"vllm": str(folder / "sglang")}, version=None,
        load_timeout_s=60.0,
    )  # fmt: skip
    entry = AskEntry(ask="Which runner does the flashinfer backend demand?")
    task = Task(id="t1", experiment="e", kind="ask", title="", entry=entry, config=config, needed=False)
    asker = Asker.from_env({"ANTHROPIC_BASE_URL": url, "TUNEBOT_MODEL": str(MODEL)})
    target = LocalTarget("local", workdir=folder / "work")
    try:
        return await TargetResearcher(target, Host(name="here"), Redactor({}), asker).run(task, told.append)
    finally:
        await target.close()


def wait_until_ready(url: str, process: "subprocess.Popen[bytes]") -> None:
    """Raises RuntimeError where the server does not get ready."""
    began = time.monotonic()
    while time.monotonic() - began < START_LIMIT_S and process.poll() is None:
        try:
            if httpx.get(f"{url}/health", trust_env=False).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(1)
    raise RuntimeError("vLLM did not get ready")


def main() -> int:
    """Start the server, ask, and say what is wrong, if anything."""
    if not VLLM.exists() or not MODEL.exists():
        print(f"messages: no {VLLM} or {MODEL}; `make real-messages` makes them", file=sys.stderr)
        return 2
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        os.environ.pop(name, None)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    url, told = f"http://127.0.0.1:{port}", list[ev.Event]()
    with tempfile.TemporaryDirectory() as name:
        log = Path(name) / "server.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*ARGV, "--port", str(port)], stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
                env={**os.environ, **ENV},
            )  # fmt: skip
        began = time.monotonic()
        try:
            wait_until_ready(url, process)
            ready = time.monotonic()
            status, finding = asyncio.run(ask(url, Path(name), told))
        except RuntimeError as error:
            print(f"messages: {error}\n{log.read_text(errors='replace')[-2000:]}", file=sys.stderr)
            return 1
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(60)
    spent = [event.spent for event in told if isinstance(event, ev.LlmSpent)]
    print(f"messages: ready after {ready - began:.0f} s, answered after {time.monotonic() - ready:.0f} s: {status}, "
          f"{finding.summary!r}, {spent}")  # fmt: skip
    right = status == "failed" and finding.summary.startswith("unusable answer: ") and finding.answer is None
    right = right and bool(spent) and spent[-1].input_tokens > 100 and spent[-1].output_tokens > 0
    print("messages: nonsense is no finding" if right else "messages: WRONG")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
