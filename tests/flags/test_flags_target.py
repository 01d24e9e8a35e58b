"""The flags of a tree on a target: those of the folder, in a few rounds, from the cache, only from inside its root."""

import base64
import os
import zlib
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent.flags.cache import tables_folder
from agent.flags.model import FlagTable
from agent.flags.resolve import flag_table
from agent.flags.tree import MAX_BYTES, FolderTree
from agent.ports import CommandResult
from agent.redact import Redactor
from agent.research.common import ResearchError
from agent.research.resolver import FlagResolver
from agent.research.sources import Sources
from agent.targets.local import LocalTarget

from .trees import SERVER_ARGS, monolith, simulated, written

CHOICES = '        parser.add_argument("--x", choices=CHOICES)'


@pytest.fixture
async def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[LocalTarget]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    target = LocalTarget("local", workdir=tmp_path / "work", home=tmp_path)
    yield target
    await target.close()


async def read(target: LocalTarget, root: Path) -> tuple[FlagTable, int]:
    """The table of a tree as a new session gets it, and how many times files were read for it."""
    steps: list[str] = []
    sources = Sources(target, {"sglang": str(root)}, Redactor({}))
    return await FlagResolver().table(sources, "sglang", steps.append), len(steps)


@pytest.mark.parametrize("version", ["0.5.9", "0.5.23"])
async def test_it_is_what_the_folder_says(target: LocalTarget, tmp_path: Path, version: str) -> None:
    root = written(simulated(version), tmp_path / "sglang")
    folder = FolderTree(root)
    expected = flag_table(folder, "sglang")
    table, rounds = await read(target, root)
    assert replace(table, files={}) == expected
    assert folder.hashes.items() <= table.files.items()
    assert rounds <= 3


async def test_imports_are_followed_before_they_are_asked_for(target: LocalTarget, tmp_path: Path) -> None:
    texts = monolith(CHOICES, above="from .far.away import CHOICES")
    texts |= {f"srt/far/{name}.py": f"from {above} import CHOICES\n" for name, above in
              (("away", ".one"), ("one", "sglang.srt.far.two"), ("two", ".three"), ("three", ".four"))}  # fmt: skip
    texts |= {"srt/far/__init__.py": "", "srt/far/four.py": "CHOICES = ['a', 'b']\n"}
    table, rounds = await read(target, written(texts, tmp_path / "sglang"))
    assert (flag := table.find("x")) and flag.choices == ("a", "b")
    assert rounds == 2


async def test_a_tree_is_read_again_when_a_file_of_it_changes(
    target: LocalTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = monolith(CHOICES, above="from sglang.srt.names import CHOICES")
    root = written({**texts, "srt/names.py": "CHOICES = ['a']\n"}, tmp_path / "sglang")
    first, rounds = await read(target, root)
    assert rounds
    asked: list[str] = []
    run = target.run

    async def counted(argv: list[str], **limits: Any) -> CommandResult:
        asked.append(argv[4])
        return await run(argv, **limits)

    monkeypatch.setattr(target, "run", counted)
    assert await read(target, root) == (first, 0)
    assert len(asked) == 1 and "zlib.compress" not in asked[0]
    resolver, steps = FlagResolver(), list[str]()
    sources = Sources(target, {"sglang": str(root)}, Redactor({}))
    assert await resolver.table(sources, "sglang", steps.append) == first
    (root / "srt" / "names.py").write_text("CHOICES = ['a', 'b']\n")
    # In the session that goes on, and in the next one.
    for table in (await resolver.table(sources, "sglang", steps.append), (await read(target, root))[0]):
        assert (flag := table.find("x")) and flag.choices == ("a", "b")
    (root / "srt" / "names.py").unlink()
    table, rounds = await read(target, root)
    assert rounds and (flag := table.find("x")) and flag.choices is None
    for stored in tables_folder().iterdir():
        stored.write_text("{torn")
    assert await read(target, root) == (table, rounds)


async def test_what_leads_out_is_refused_where_it_is_needed(target: LocalTarget, tmp_path: Path) -> None:
    root = written(monolith(CHOICES, above="from .out import CHOICES"), tmp_path / "sglang")
    (tmp_path / "out.py").write_text("CHOICES = ['secret']\n")
    (root / "srt" / "out.py").symlink_to(tmp_path / "out.py")
    with pytest.raises(ResearchError, match=r"sglang:srt/out\.py is refused: it leads out of the source"):
        await read(target, root)
    # Where only an import leads there, and no flag, it is not read and nobody minds.
    text = (root / SERVER_ARGS).read_text().replace("choices=CHOICES", "choices=['a']")
    (root / SERVER_ARGS).write_text(text)
    table, _ = await read(target, root)
    assert table.find("x") and "srt/out.py" not in table.files


@pytest.mark.parametrize("what", ["secret", "fifo", "huge", "device", "text"])
async def test_what_is_no_source_is_not_read(target: LocalTarget, tmp_path: Path, what: str) -> None:
    texts = {**monolith(CHOICES, above="from .odd import CHOICES"), ".ssh/key.py": "CHOICES = ['secret']\n"}
    root = written({**texts, "srt/odd.txt": "CHOICES = ['secret']\n"}, tmp_path / "sglang")
    odd = root / "srt" / "odd.py"
    match what:
        case "fifo":
            os.mkfifo(odd)
        case "huge":
            odd.write_text("CHOICES = ['secret']\n" + "#" * MAX_BYTES)
        case _:
            leads = {"secret": root / ".ssh" / "key.py", "device": Path("/dev/zero"), "text": root / "srt" / "odd.txt"}
            odd.symlink_to(leads[what])
    try:
        table, _ = await read(target, root)
    except ResearchError as error:
        assert what in ("secret", "device") and "is refused" in str(error)
    else:
        assert what not in ("secret", "device")
        assert (flag := table.find("x")) and flag.choices is None and table.files["srt/odd.py"] == ""


def packed(text: str) -> bytes:
    return base64.b64encode(zlib.compress(text.encode()))


@pytest.mark.parametrize(
    "output",
    [b"", b"Traceback", packed("[]"), packed('{"a.py": 3}'), packed("{")[:-6], packed('{"a.py": ["/", "", null]}')],
)
async def test_a_target_that_talks_nonsense(
    target: LocalTarget, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: bytes
) -> None:
    root = written(simulated("0.5.9"), tmp_path / "sglang")
    run = target.run

    async def nonsense(argv: list[str], **limits: Any) -> CommandResult:
        reads = "zlib.compress" in argv[4]
        return CommandResult(exit_code=0, output=output) if reads else await run(argv, **limits)

    monkeypatch.setattr(target, "run", nonsense)
    with pytest.raises(ResearchError, match=r"could not read the files|lead to ever more files"):
        await read(target, root)
    assert not tables_folder().exists()


async def test_a_root_that_is_not_there_is_named(target: LocalTarget, tmp_path: Path) -> None:
    with pytest.raises(ResearchError, match="nowhere does not exist, so the flags of sglang are not known"):
        await read(target, tmp_path / "nowhere")
