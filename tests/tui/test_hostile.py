"""Ten thousand texts that try to act, on every screen of the real app: judged by the bytes that reach the terminal."""

import asyncio
import json
import os
import pty
import re
import struct
import sys
import termios
import unicodedata
from fcntl import ioctl
from pathlib import Path
from typing import Any

import pytest

ROWS, COLUMNS = 110, 230
DEADLINE_S = 60.0
LEAST = {"session": 10_000, "replay": 100, "start": 200}
"""Texts that have to be seen on the screen."""

_SEQUENCE = re.compile(
    r"\x1b\[(?P<csi>[0-?]*[ -/]*[@-~])|\x1b(?P<string>[\]PX^_])(?P<body>.*?)(?:\x07|\x1b\\)|\x1b(?P<other>[ -/]*.?)",
    re.DOTALL,
)
_PLACES = set("mHABCDGXJK")
"""CSI whose numbers are places, colours and counts: which ones says nothing."""


def kinds(output: str) -> set[str]:
    """What a terminal is told to do: escapes by kind, and characters that act or cannot be seen."""
    found = set()
    for match in _SEQUENCE.finditer(output):
        if csi := match["csi"]:
            found.add(f"CSI {csi[-1] if csi[-1] in _PLACES and csi[0] not in '<=>?' else csi}")
        elif match["string"]:
            found.add(f"string {match['string']}{match['body']}")
        else:
            found.add(f"ESC {match['other']}")
    rest = _SEQUENCE.sub("", output)
    return found | {f"U+{ord(c):04X}" for c in set(rest) if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")}


async def drawn(way: str, harm: bool, folder: Path) -> tuple[str, dict[str, Any]]:
    """All that the app wrote on a terminal until its end, and what it saw itself."""
    folder.mkdir()
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environ = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor", "TUNEBOT_BELL": "0"}
    for name in ("COLUMNS", "LINES"):
        environ.pop(name, None)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.tui.hostile", way, str(int(harm)), str(folder),
        stdin=theirs, stdout=theirs, stderr=theirs, env=environ,
    )  # fmt: skip
    os.close(theirs)
    output = bytearray()

    def read() -> None:
        try:
            while data := os.read(ours, 1 << 16):
                output.extend(data)
        except OSError:  # Linux says EIO once the other side is closed
            return

    reading = asyncio.create_task(asyncio.to_thread(read))
    try:
        async with asyncio.timeout(DEADLINE_S):
            code = await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        await reading
        os.close(ours)
    assert code == 0, output[-3000:].decode("utf-8", "replace")
    # Whatever is not UTF-8 would be another way to write C1 characters.
    return output.decode(), json.loads((folder / "result.json").read_text())


@pytest.mark.long
@pytest.mark.parametrize("way", ["session", "replay", "start"])
async def test_no_text_acts(tmp_path: Path, way: str) -> None:
    usual, _ = await drawn(way, False, tmp_path / "harmless")
    output, result = await drawn(way, True, tmp_path / "hostile")
    assert (result["error"], result["fault"], result["links"]) == ("", "None", [])
    assert result["at_the_end"], "no text made the app quit"
    asked = {"ExperimentSkipped", "PauseSet", "ResearchAdded", "ExperimentAdded"}
    assert set(result["submitted"]) <= asked, "only what the keys asked for"
    assert kinds(output) - kinds(usual) == set()
    seen = set(re.findall(r"q(\d{6})z", output))
    assert len(seen) >= LEAST[way], f"{len(seen)} of {result['made']} texts came to the screen"
