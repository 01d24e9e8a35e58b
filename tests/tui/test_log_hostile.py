"""What a log may hold never reaches the terminal but as text: judged by the bytes on a real one, and what they draw."""

import asyncio
import os
import pty
import struct
import sys
import termios
from fcntl import ioctl
from pathlib import Path

import pyte
import pytest

ROWS, COLUMNS = 24, 100
DEADLINE_S = 30.0
END = "the end of it"

HOSTILE = {
    "clipboard": b"\x1b]52;c;ZXZpbA==\x07copied",
    "clipboard-c1": b"\xc2\x9d52;c;ZXZpbA==\xc2\x9ccopied",
    "title": b"\x1b]0;owned\x1b\\titled",
    "link": b"\x1b]8;;http://evil\x07link\x1b]8;;\x07",
    "clear": b"\x1b[2J\x1b[1;1Hcleared",
    "clear-c1": b"\xc2\x9b2Jcleared",
    "raw-c1": b"\x9b2Jcleared",
    "reset": b"\x1bcreset",
    "alternate": b"\x1b[?1049lleft",
    "answer": b"\x1b[6n\x1b[c\x05asked",
    "download": b"\x1bP+q544e\x1b\\string",
    "backspace": b"ab\x08\x08\x08\x08over",
    "bell": b"ding\x07\x07",
    "shift": b"\x0e\x0fshifted",
    "bidi": "safe \u202eevil\u202c".encode(),
    "zero-width": "pay\u200bload\u2066x\u2069".encode(),
    "separator": "one\u2028two".encode(),
    "markup": b"[red]red[/red] [@click=app.quit]click[/] [/nope]",
    "unfinished": b"\x1b[",
    "wide": "漢字かな交じり文🚀".encode(),
    "combining": ("e" + "\u0301" * 50).encode(),
    "invalid": b"\xff\xfe\xf0\x9f",
    "tabs": b"\ta\tb",
    "huge": b"h" * 1_000_000,
}
FORBIDDEN = (
    b"\x1b]52",
    b"\x1b]0;owned",
    b"evil\x07",
    b"\x1bc",
    b"\x1b[6n",
    b"\x1bP+q",
    b"\x05",
    b"\x0e",
    b"\x0f",
    *(chr(code).encode() for code in range(0x80, 0xA0)),
    *("\u202e\u202c\u200b\u2066\u2069\u2028"[n].encode() for n in range(6)),
)

PROGRAM = """
import sys
from pathlib import Path
from textual.app import App
from tui.widgets.log_pane import LogPane

class Pane(App):
    ENABLE_COMMAND_PALETTE = False
    CSS = "LogPane { border: round $primary; }"
    source = type("Source", (), {"redact": staticmethod(str)})
    def compose(self):
        yield LogPane()
    def on_mount(self):
        pane = self.query_one(LogPane)
        pane.show(Path(sys.argv[1]), "[b]Log[/b] \\x1b]0;owned\\x07", 1.0)
        pane.focus()

Pane().run()
"""


async def drawn(log: Path, keys: bytes = b"") -> tuple[bytes, list[str]]:
    """All that the app wrote until the end of the log was on the screen, and the rows of that screen."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environ = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROGRAM, str(log), stdin=theirs, stdout=theirs, stderr=theirs, env=environ
    )
    os.close(theirs)
    os.set_blocking(ours, False)
    screen = pyte.Screen(COLUMNS, ROWS)
    stream = pyte.ByteStream(screen)
    output = b""
    try:
        async with asyncio.timeout(DEADLINE_S):
            while not any(END in row for row in screen.display):
                try:
                    data = os.read(ours, 1 << 16)
                except BlockingIOError:
                    await asyncio.sleep(0.01)
                    continue
                if keys and b"\x1b[?1049h" in output:
                    os.write(ours, keys)
                    keys = b""
                output += data
                stream.feed(data)
    finally:
        process.kill()
        await process.wait()
        os.close(ours)
    return output, list(screen.display)


@pytest.mark.parametrize("keys", [b"", b"w"], ids=["cut", "wrapped"])
async def test_nothing_of_a_log_acts_on_the_terminal(tmp_path: Path, keys: bytes) -> None:
    log = tmp_path / "log"
    lines = [HOSTILE[name] for name in HOSTILE if name != "huge"]
    log.write_bytes(HOSTILE["huge"] + b"\n" + b"\n".join(lines[:12] if keys else lines[-20:]) + b"\n" + END.encode())
    output, rows = await drawn(log, keys)
    found = [bad for bad in FORBIDDEN if bad in output]
    assert found == []
    # The frame is whole: nothing moved the cursor, cleared a row or broke its width.
    assert rows[0].startswith("╭─ [b]Log[/b]")
    assert rows[-1].startswith("╰─")
    assert all(row.startswith("│") and row.rstrip().endswith("│") for row in rows[1:-1] if "漢" not in row)


async def test_what_is_drawn_is_the_text_as_it_is(tmp_path: Path) -> None:
    log = tmp_path / "log"
    names = ("clipboard", "title", "clear", "clear-c1", "bidi", "markup", "reset", "alternate", "backspace", "tabs")
    log.write_bytes(b"\n".join(HOSTILE[name] for name in names) + b"\n" + END.encode())
    _, rows = await drawn(log)
    assert [row.strip("│ ") for row in rows[1 : len(names) + 1]] == [
        "copied",
        "titled",
        "cleared",
        "cleared",
        "safe ⟨U+202E⟩evil⟨U+202C⟩",
        "[red]red[/red] [@click=app.quit]click[/] [/nope]",
        "reset",
        "left",
        "abover",
        "a       b",
    ]
