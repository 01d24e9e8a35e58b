"""Which files of the target research may read: `name:relative/path` under the roots that playbook and target name.

Names are checked twice: as written, and again after the target has resolved symbolic links. Between that and the
read, somebody who can write the tree could still swap a link; who can do that can edit the server as well.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from agent.ports import Target
from agent.research.common import Redact, ResearchError

SOURCE_SUFFIXES = (".py", ".pyi", ".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".inc", ".jinja", ".rs")
"""Files that are program text. Their names may speak of tokens without holding one."""

SECRET_FOLDERS = (".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".huggingface", "gcloud", ".git")
_SECRET_FILE = re.compile(
    r"\.env.*|[._]netrc|\.pgpass|\.pypirc|\.npmrc|\.git-credentials|\..*history"
    r"|id_(?:rsa|dsa|ecdsa|ed25519).*|.*\.(?:pem|key|p12|pfx|kdbx)"
)
_SECRET_DATA = re.compile(r"token(?!iz)|secret|passw|credential")
_KERNEL_FOLDERS = ("/proc", "/sys", "/dev")

_RESOLVE = """
import json, os, stat, sys
found = []
for root, path in zip(sys.argv[1::2], sys.argv[2::2]):
    root = os.path.realpath(os.path.expanduser(root))
    real = os.path.realpath(os.path.join(root, path))
    kind, size = "missing", 0
    try:
        info = os.stat(real)
        kind = "file" if stat.S_ISREG(info.st_mode) else "folder" if stat.S_ISDIR(info.st_mode) else "other"
        size = info.st_size
    except OSError:
        pass
    found.append([root, real, kind, size])
print()
print(json.dumps(found))
"""
_SCRIPT_TIMEOUT_S = 30.0
_Answer = tuple[str, str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A file or folder that may be read: as the person knows it (`sglang:srt/x.py`), and where it really is."""

    label: str
    real_root: str
    real: str
    is_folder: bool
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Located:
    """The places that exist, and the paths (as written) that do not."""

    places: tuple[Place, ...]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Sources:
    """The trees of one task on its target, and the redactor through which all text of them goes."""

    target: Target
    roots: Mapping[str, str]
    redact: Redact = field(repr=False)

    async def locate(self, paths: Sequence[str]) -> Located:
        """Resolve paths on the target. Raises ResearchError where one is refused, TargetUnusable as the target does."""
        named = [(path, *parse_path(path, self.roots)) for path in paths]
        words = [word for _, name, relative in named for word in (self.roots[name], relative)]
        answers: list[_Answer] = await self.answer_of(_RESOLVE, *words)
        places: list[Place] = []
        missing: list[str] = []
        for (path, name, _), answer in zip(named, answers, strict=True):
            place = _place(path, name, answer)
            if place:
                places.append(place)
            else:
                missing.append(path)
        return Located(places=tuple(places), missing=tuple(missing))

    async def answer_of(self, script: str, *words: str) -> Any:
        """What a script of ours, run by the target's Python with `words`, prints as JSON on its last line.

        Raises ResearchError where it prints none, TargetUnusable as the target does.
        """
        argv = ["python3", "-I", "-S", "-c", script, *words]
        result = await self.target.run(argv, timeout_s=_SCRIPT_TIMEOUT_S, background=True)
        if result.timed_out:
            raise ResearchError("the target did not look at the paths in time", "timeout")
        # The marker of the answer is that it is the last line: a python3 that warns does so before it.
        last = result.output.decode("utf-8", "replace").rstrip().rpartition("\n")[2]
        try:
            return json.loads(last)
        except ValueError as error:
            raise ResearchError("the target could not look at the paths (is python3 there?)") from error

    async def locate_one(self, path: str) -> Place:
        """The place of a path that must exist. Raises as `locate`, and ResearchError where it does not."""
        located = await self.locate([path])
        if not located.places:
            raise ResearchError(f"{path} does not exist")
        return located.places[0]

    async def locate_file(self, path: str) -> Place:
        """The place of a path that must be a file. Raises as `locate_one`, and ResearchError where it is not one."""
        place = await self.locate_one(path)
        if place.is_folder:
            raise ResearchError(f"{path} is a folder")
        return place


def parse_path(path: str, roots: Mapping[str, str]) -> tuple[str, str]:
    """The source's name and the relative path in it. Raises ResearchError where the path is refused as written."""
    name, colon, relative = path.partition(":")
    if not colon or name not in roots:
        known = ", ".join(sorted(roots)) or "none"
        raise ResearchError(f"{path} does not begin with the name of a source (there are: {known})")
    parts = PurePosixPath(relative).parts
    if relative.startswith(("/", "~")) or ".." in parts:
        raise ResearchError(f"{path} is refused: it must stay inside the source")
    if not relative.isprintable():
        raise ResearchError(f"{path} is refused: it has characters that no path here has")
    # Whether a name without a suffix is a file is known only later, when `refuse_outside` looks again.
    if is_secret_path(relative, is_folder=not PurePosixPath(relative).suffix):
        raise ResearchError(f"{path} is refused: such files hold secrets")
    return name, relative


def _place(path: str, name: str, answer: _Answer) -> Place | None:
    root, real, kind, size = answer
    is_folder = kind == "folder"
    refuse_outside(path, root, real, is_folder)
    if kind == "missing":
        return None
    if kind == "other":
        raise ResearchError(f"{path} is refused: it is neither a file nor a folder")
    label = f"{name}:{real[len(root) :].lstrip('/')}"
    return Place(label=label, real_root=root, real=real, is_folder=is_folder, size=size)


def is_secret_path(relative: str, is_folder: bool) -> bool:
    """Whether a path inside a source looks like one that holds secrets."""
    parts = [part.lower() for part in PurePosixPath(relative).parts]
    if any(part in SECRET_FOLDERS or part.startswith(".env") for part in parts):
        return True
    name = parts[-1] if parts else ""
    if _SECRET_FILE.fullmatch(name):
        return True
    # token_dispatcher/ and token_dispatcher.py are what research is about.
    return not is_folder and not name.endswith(SOURCE_SUFFIXES) and _SECRET_DATA.search(name) is not None


def refuse_outside(path: str, root: str, real: str, is_folder: bool) -> None:
    """Raises ResearchError where `path`, which really is `real` below `root`, may not be read."""
    if real != root and not real.startswith(root.rstrip("/") + "/"):
        raise ResearchError(f"{path} is refused: it leads out of the source")
    if any(real == folder or real.startswith(folder + "/") for folder in _KERNEL_FOLDERS):
        raise ResearchError(f"{path} is refused: it is not part of a source tree")
    in_secret_root = any(part.lower() in SECRET_FOLDERS for part in PurePosixPath(root).parts)
    if in_secret_root or is_secret_path(real[len(root) :].lstrip("/"), is_folder):
        raise ResearchError(f"{path} is refused: such files hold secrets")
