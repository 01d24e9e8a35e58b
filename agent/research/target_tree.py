"""The source tree of a server on a target, as the resolver of flags reads it.

A program on the target reads what is asked for and, since that is most of what is asked for next, what it imports: two
rounds are enough for the real servers. It opens regular Python files inside the root only, however links lead.
"""

import ast
import base64
import binascii
import hashlib
import json
import zlib
from collections.abc import Mapping
from contextlib import suppress

from agent.flags.model import Kind
from agent.flags.tree import MAX_BYTES
from agent.research.common import Progress, ResearchError
from agent.research.sources import Place, Sources, parse_path, refuse_outside

_OPEN = f"""
import base64, hashlib, json, os, re, stat, sys, zlib
root = os.path.realpath(os.path.expanduser(sys.argv[1]))

def look(path):
    real = os.path.realpath(os.path.join(root, path))
    inner = os.path.relpath(real, root)
    if not real.startswith(root.rstrip("/") + "/") or not inner.endswith(".py") or "/." in "/" + inner:
        return real, False, None
    try:
        with open(os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            fits = stat.S_ISREG(os.fstat(file.fileno()).st_mode)
            data = file.read({MAX_BYTES + 1}) if fits else b""
            return real, True, data if fits and len(data) <= {MAX_BYTES} else None
    except OSError:
        return real, True, None

def digest(data):
    return "" if data is None else hashlib.sha256(data).hexdigest()
"""
_READ = (
    _OPEN
    + r"""
package, count = sys.argv[2], int(sys.argv[3])
wanted, had = sys.argv[4:4 + count], set(sys.argv[4 + count:])
FROM = re.compile(r"^[ \t]*from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n]*)", re.M)
IMPORT = re.compile(r"^[ \t]*import[ \t]+([\w.]+)", re.M)

def leads(path, text):
    here = [package] + path.split("/")[:-1]
    names = [(name.split("."), ()) for name in IMPORT.findall(text)]
    for name, rest in FROM.findall(text):
        inner = name.lstrip(".")
        up = len(name) - len(inner)
        names.append(((here[:len(here) - up + 1] if up else []) + inner.split("."), re.findall(r"\w+", rest)))
    for parts, rest in names:
        if parts[0] == package:
            module = "/".join(part for part in parts[1:] if part)
            for one in [module] + [module + "/" + name for name in rest]:
                yield from ((one + ".py").lstrip("/"), (one + "/__init__.py").lstrip("/"))

found, level, size = {}, wanted, 0
for depth in range(4):
    following = []
    for path in level:
        if path in found or depth and (path in had or len(found) > 4000 or size > 8 << 20):
            continue
        real, allowed, data = look(path)
        if depth and not allowed:
            continue
        text = None if data is None else data.decode("utf-8", "replace")
        found[path] = [real, digest(data), text]
        size += len(text or "")
        following += leads(path, text or "")
    level = following
print()
print(base64.b64encode(zlib.compress(json.dumps(found).encode(), 1)).decode())
"""
)
_DIGEST = (
    _OPEN
    + r"""
known = hashlib.sha256()
for path in sys.argv[2:]:
    known.update((path + "\0" + digest(look(path)[2]) + "\n").encode())
print()
print(json.dumps(known.hexdigest()))
"""
)
_TIMEOUT_S = 60.0
_MAX_OUTPUT_BYTES = 32 << 20
_MAX_TEXT_BYTES = 64 << 20
_MOST_FILES = 8000


class TargetTree:
    """The package folder of a server on a target. `hashes` is of everything asked for, as a FolderTree has it."""

    def __init__(self, sources: Sources, kind: Kind, root: Place) -> None:
        self._sources = sources
        self._kind = kind
        self._root = root
        self._asked: set[str] = set()
        self._files: dict[str, tuple[str, str | None]] = {}
        self.parsed: dict[str, ast.Module] = {}

    @property
    def complete(self) -> bool:
        """Whether all that it was asked for is at hand, or known to be missing."""
        return self._asked <= self._files.keys()

    @property
    def hashes(self) -> dict[str, str]:
        """SHA-256 of the files asked for, "" for one that is missing."""
        return {path: self._files[path][0] for path in sorted(self._asked)}

    def read(self, path: str) -> str | None:
        """The text of a file that is at hand, or None."""
        self._asked.add(path)
        return self._files[path][1] if path in self._files else None

    async def fetch(self, progress: Progress) -> None:
        """Get what was asked for and is not at hand.

        Raises ResearchError where a path is refused or the target cannot read, TargetUnusable as the target does.
        """
        wanted = sorted(self._asked - self._files.keys())
        for path in wanted:
            parse_path(f"{self._kind}:{path}", self._sources.roots)
        progress(f"reading the flags of {self._kind}: {len(self._asked)} files looked at")
        for path, (real, known, text) in (await self._ask(wanted)).items():
            try:
                refuse_outside(f"{self._kind}:{path}", self._root.real, real, False)
            except ResearchError:
                if path in wanted:
                    raise
                continue
            self._files[path] = known, text
        if len(self._files) > _MOST_FILES or not self._files.keys() >= set(wanted):
            raise ResearchError(f"the flags of {self._kind} cannot be read: its files lead to ever more files")

    async def _ask(self, wanted: list[str]) -> Mapping[str, tuple[str, str, str | None]]:
        had = [path for path, (_, text) in self._files.items() if text is not None]
        argv = ["python3", "-I", "-S", "-c", _READ, self._root.real, self._kind, str(len(wanted)), *wanted, *had]
        result = await self._sources.target.run(
            argv, timeout_s=_TIMEOUT_S, background=True, max_output_bytes=_MAX_OUTPUT_BYTES
        )
        if result.timed_out:
            raise ResearchError("the target did not read the files in time", "timeout")
        with suppress(ValueError, TypeError, AttributeError, binascii.Error, zlib.error):
            packed = base64.b64decode(result.output.rstrip().rpartition(b"\n")[2], validate=True)
            found = json.loads(zlib.decompressobj().decompress(packed, _MAX_TEXT_BYTES))
            return {
                str(path): (str(real), str(known), None if text is None else str(text))
                for path, (real, known, text) in found.items()
            }
        raise ResearchError("the target could not read the files (is python3 there?)")


async def target_tree(sources: Sources, kind: Kind) -> TargetTree:
    """The tree of the source named as its kind. Raises ResearchError where it is not there or refused."""
    located = await sources.locate([f"{kind}:."])
    if not located.places:
        raise ResearchError(f"{sources.roots[kind]} does not exist, so the flags of {kind} are not known")
    return TargetTree(sources, kind, located.places[0])


async def is_unchanged(sources: Sources, kind: Kind, files: Mapping[str, str]) -> bool:
    """Whether the files of an earlier reading are as they were. Raises as `Sources.answer_of`."""
    known = "".join(f"{path}\0{digest}\n" for path, digest in files.items())
    there = await sources.answer_of(_DIGEST, sources.roots[kind], *files)
    return bool(there == hashlib.sha256(known.encode()).hexdigest())
