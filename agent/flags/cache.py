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
from agent.paths import cache_folder


def tables_folder() -> Path:
    """Where tables are kept."""
    return cache_folder() / "flag-tables"


def cached_table(root: Path, kind: Kind, folder: Path) -> FlagTable:
    """The flags of a tree of this machine, from `folder` if nothing has changed. Raises NoFlags.

    A cache that cannot be read or written is none: the tree is read again.
    """
    file = table_file(folder, kind, str(root.resolve()))
    known = load_table(file)
    if known and FolderTree(root).unchanged(known.files):
        return known
    tree = FolderTree(root)
    table = replace(flag_table(tree, kind), files=tree.hashes)
    store_table(file, table)
    return table


def table_file(folder: Path, kind: Kind, where: str) -> Path:
    """The file of `folder` for the tree that is called `where`."""
    key = hashlib.sha256(f"{kind}\0{where}\0{_reader()}".encode()).hexdigest()[:32]
    return folder / f"{key}.json"


@cache
def _reader() -> str:
    """A digest of the resolver itself: what another version of it has read is read again."""
    digest = hashlib.sha256()
    for file in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def load_table(file: Path) -> FlagTable | None:
    """The table that `store_table` wrote, None where there is none that can be read."""
    try:
        return decode(json.loads(file.read_bytes()))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def store_table(file: Path, table: FlagTable) -> None:
    """Write a table, or nothing where that cannot be done."""
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
