"""A source tree as the resolver sees it: texts by relative path."""

import ast
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

MAX_BYTES = 2 << 20
"""A longer file is data rather than source."""


class Tree(Protocol):
    """The package folder of a server (`…/sglang`, `…/vllm`)."""

    parsed: dict[str, ast.Module]
    """What was parsed of it, by path: of a tree that is read several times every file is parsed once."""

    @property
    def complete(self) -> bool:
        """Whether all that it was asked for is at hand, or known to be missing."""

    def read(self, path: str) -> str | None:
        """The text of a file, or None where there is none (or nothing that is source)."""


class TextTree:
    """A tree of texts that are at hand."""

    complete = True

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self.parsed: dict[str, ast.Module] = {}

    def read(self, path: str) -> str | None:
        """The text of a file, or None."""
        return self._texts.get(path)


class FolderTree:
    """A folder of this machine. Links that lead out of it are not followed. `hashes` is of everything asked for."""

    complete = True

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()
        self.parsed: dict[str, ast.Module] = {}
        self.hashes: dict[str, str] = {}

    def read(self, path: str) -> str | None:
        """The text of a file, or None."""
        data = self._bytes(path)
        self.hashes[path] = digest(data)
        return None if data is None else data.decode("utf-8", "replace")

    def unchanged(self, hashes: Mapping[str, str]) -> bool:
        """Whether every file of an earlier reading is as it was."""
        return all(digest(self._bytes(path)) == known for path, known in hashes.items())

    def _bytes(self, path: str) -> bytes | None:
        file = (self._root / path).resolve()
        if not file.is_relative_to(self._root):
            return None
        try:
            return file.read_bytes() if file.is_file() and file.stat().st_size <= MAX_BYTES else None
        except OSError:
            return None


def digest(data: bytes | None) -> str:
    """SHA-256 of a file's bytes, "" for a file that is not there."""
    return "" if data is None else hashlib.sha256(data).hexdigest()
