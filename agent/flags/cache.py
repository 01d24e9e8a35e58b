"""Flag tables in the cache folder, good as long as the files that they were read from are as they were."""

import hashlib
import json
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

from agent.flags.model import Clause, Flag, FlagTable, Kind, Place, Test, Use
from agent.flags.resolve import flag_table
from agent.flags.tree import FolderTree


def cached_table(root: Path, kind: Kind, folder: Path) -> FlagTable:
    """The flags of a tree of this machine, from `folder` if nothing has changed. Raises NoFlags.

    A cache that cannot be read or written is none: the tree is read again.
    """
    file = folder / f"{_key(root, kind)}.json"
    known = _load(file)
    if known and FolderTree(root).unchanged(known.files):
        return known
    tree = FolderTree(root)
    table = replace(flag_table(tree, kind), files=tree.hashes)
    _store(file, table)
    return table


def _key(root: Path, kind: Kind) -> str:
    return hashlib.sha256(f"{kind}\0{root.resolve()}\0{_reader()}".encode()).hexdigest()[:32]


@cache
def _reader() -> str:
    """A digest of the resolver itself: what another version of it has read is read again."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def _load(file: Path) -> FlagTable | None:
    try:
        return decode(json.loads(file.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _store(file: Path, table: FlagTable) -> None:
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=file.parent, suffix=".new", delete=False, encoding="utf-8") as new:
            json.dump(encode(table), new, separators=(",", ":"))
        Path(new.name).replace(file)
    except OSError:
        return


def encode(table: FlagTable) -> dict[str, Any]:
    """A table as JSON-ready values."""
    return asdict(table)


def decode(data: Mapping[str, Any]) -> FlagTable:
    """The table that `encode` made this of. Raises KeyError, TypeError, ValueError where it is none."""
    return FlagTable(
        kind=data["kind"],
        version=data["version"],
        flags=tuple(_flag(item) for item in data["flags"]),
        uses=tuple(_use(item) for item in data["uses"]),
        unnamed=tuple(Place(**item) for item in data["unnamed"]),
        files=dict(data["files"]),
    )


def _flag(item: Mapping[str, Any]) -> Flag:
    listed = ("names", "instead", "unresolved")
    tuples = {name: tuple(item[name]) for name in listed}
    choices = None if item["choices"] is None else tuple(item["choices"])
    return Flag(**{**item, **tuples, "choices": choices, "place": Place(**item["place"])})


def _use(item: Mapping[str, Any]) -> Use:
    made = {
        "when": tuple(map(_clause, item["when"])),
        "reached": tuple(map(_clause, item["reached"])),
        "clause": _clause(item["clause"]),
        "place": Place(**item["place"]),
        "block": Place(**item["block"]),
    }
    return Use(**{**item, **made})


def _clause(items: list[Mapping[str, Any]]) -> Clause:
    return tuple(Test(**{**item, "values": tuple(item["values"]), "about": tuple(item["about"])}) for item in items)
