"""Bytes arrive as they are: output, arguments, variables, files. And where the work folder may be."""

import os
import random
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from agent.ports import LogPiece, TargetUnusable
from tests.targets.kit import PYTHON, SLEEP, Placed, log_bytes, serve, spec, until

NASTY = (
    b"plain\n"
    + b"bar 1%\rbar 2%\r"
    + b"\0\0"
    + b"\xff\xfe\xc3("
    + b"\x1b]0;title\x07"
    + b"m" * 5_000_000
    + b"\r\n\xe2\x82"
)


async def test_output_is_read_back_byte_for_byte(target: Placed) -> None:
    (target.place.home / "nasty").write_bytes(NASTY)
    await serve(target, "import sys; sys.stdout.buffer.write(open('nasty', 'rb').read())")
    read = bytearray()

    async def follow() -> bool:
        read.extend(await log_bytes(target, "l1", len(read), random.Random(len(read)).choice((1, 4096, 1 << 20))))
        return len(read) >= len(NASTY)

    assert await log_bytes(target, "other", 0) == b""
    await until(follow)
    assert bytes(read) == NASTY
    assert await log_bytes(target, "l1", len(read)) == b""
    assert await log_bytes(target, "l1", len(read) + 1000) == b""


async def test_a_piece_says_which_file_it_is_from(target: Placed) -> None:
    """A log that is renamed, even with a new one in its place, is followed; truncated or replaced, it is told."""
    assert await target.read_log("l1", 0) == LogPiece(data=b"", inode=0, size=0)
    os.mkfifo(target.place.home / "fifo")
    await serve(target, "for line in open('fifo'): print('x' * 99)")
    log = target.place.work / "runs/l1/server.log"
    inode, renamed = log.stat().st_ino, log.with_name("server.log.1")
    with (target.place.home / "fifo").open("w", buffering=1) as order:

        async def another(offset: int) -> LogPiece:
            order.write("\n")

            async def read() -> LogPiece | None:
                found = await target.read_log("l1", offset)
                return found if found.data else None

            found: LogPiece = await until(read)
            return found

        line = b"x" * 99 + b"\n"
        assert await another(0) == LogPiece(data=line, inode=inode, size=100)
        log.rename(renamed)
        assert await another(100) == LogPiece(data=line, inode=inode, size=200)
        log.write_bytes(b"another")
        assert await another(200) == LogPiece(data=line, inode=inode, size=300)
        os.truncate(renamed, 0)
        assert await target.read_log("l1", 300) == LogPiece(data=b"", inode=inode, size=0)
        assert await another(0) == LogPiece(data=line, inode=inode, size=100)
        renamed.unlink()
        assert await target.read_log("l1", 3) == LogPiece(data=b"ther", inode=log.stat().st_ino, size=7)
        log.unlink()
        assert await target.read_log("l1", 3) == LogPiece(data=b"", inode=0, size=0)


async def test_after_a_truncation_output_begins_anew(target: Placed) -> None:
    await serve(
        target, "import os, time\nprint('x' * 999)\nwhile not os.path.exists('go'): time.sleep(0.01)\nprint('on')"
    )
    log = target.place.work / "runs/l1/server.log"
    await until(lambda: log.stat().st_size == 1000)
    os.truncate(log, 0)
    (target.place.home / "go").touch()
    await until(lambda: log.stat().st_size > 0)
    assert await log_bytes(target, "l1", 0) == b"on\n"


def awkward() -> list[str]:
    words = [
        "",
        " ",
        "-",
        "--",
        "-c",
        "'",
        '"',
        "\\",
        "\n",
        "a\nb",
        "$HOME",
        "${x}",
        "`id`",
        "$(id)",
        "!!",
        "!a",
        "#",
        "*",
    ]
    words += [
        "?",
        "[a]",
        "{a,b}",
        "~",
        "~root",
        "a~/",
        "%s",
        "%%",
        ";",
        "&",
        "|",
        "<",
        ">",
        "é",
        "日本",
        "🚀",
        "\u202e",
        "\x1b[0m",
    ]
    words += [
        "\x01",
        "\x7f",
        "\udcff\udc80",
        '{"a": {"b": [1, "x y"]}}',
        "a=b=c",
        "=",
        "\t",
        "\r",
        "x" * 20000,
        "\\n",
        "\ufeff",
    ]
    rng = random.Random(1)
    alphabet = "".join(chr(n) for n in range(1, 256)) + "日🚀\u2028"
    while len(words) < 100:
        words.append("".join(rng.choices(alphabet, k=rng.randrange(1, 40))))
    assert not any(word.startswith("~/") for word in words)
    return words


async def test_arguments_and_variables_arrive_as_they_are(target: Placed) -> None:
    words = awkward()
    code = (
        "import os, sys; raw = open('/proc/self/cmdline', 'rb').read().split(b'\\0')[-102:-2]; "
        "env = [os.environb[b'V%d' % n] for n in range(100)]; "
        "sys.stdout.buffer.write(b'\\0'.join(raw + env) + b'\\0end')"
    )
    await target.launch(
        spec("l1", *PYTHON, "-c", code, *words, "last", env={f"V{n}": word for n, word in enumerate(words)})
    )

    async def output() -> bytes:
        read = await log_bytes(target, "l1", 0)
        return read if read.endswith(b"\0end") else b""

    got = (await until(output)).split(b"\0")[:-1]
    expected = [word.encode("utf-8", "surrogateescape") for word in words]
    assert got == expected + expected


async def test_arguments_of_commands_too(target: Placed) -> None:
    words = awkward()
    code = "import os, sys; sys.stdout.buffer.write(b'\\0'.join(map(os.fsencode, sys.argv[1:])))"
    result = await target.run([*PYTHON, "-c", code, *words, "~/x"], timeout_s=30)
    expected = [word.encode("utf-8", "surrogateescape") for word in [*words, f"{target.place.home}/x"]]
    assert result.output.split(b"\0") == expected


async def test_reading_files(target: Placed) -> None:
    (target.place.home / "notes").write_bytes(b"0123456789")
    assert await target.read_file("~/notes") == b"0123456789"
    assert await target.read_file("notes", 8, 5) == b"89"
    assert await target.read_file(str(target.place.home / "notes"), 3, 2) == b"34"
    assert (await target.read_file("/proc/self/status")).startswith(b"Name:")
    os.mkfifo(target.place.home / "fifo")
    for path, reason in {
        "~/fifo": "not a regular file",
        "/dev/zero": "not a regular file",
        "~/": "not a regular file",
        "~/none": "No such file",
        "a\0b": "null byte",
    }.items():
        with pytest.raises(TargetUnusable, match=reason):
            await target.read_file(path)
    assert [await target.exists(path) for path in ("~/notes", "~/", "~/none", "a\0b")] == [True, True, False, False]


async def test_folders_and_files_are_private(target: Placed) -> None:
    await serve(target, "import os, time; os.umask(os.umask(0)); open('made', 'w').close(); " + SLEEP)
    await until((target.place.home / "made").exists)
    assert stat.S_IMODE((target.place.home / "made").stat().st_mode) == 0o666 & ~_umask()  # the server keeps its own
    for path in [target.place.work, *target.place.work.rglob("*")]:
        assert path.stat().st_mode & 0o077 == 0, path


def _umask() -> int:
    value = os.umask(0)
    os.umask(value)
    return value


@pytest.mark.parametrize("kind", ["link", "writable", "file"])
async def test_a_work_folder_that_others_control_is_refused(
    build: Callable[[Path], Placed], tmp_path: Path, kind: str
) -> None:
    work = tmp_path / "work"
    if kind == "link":
        (tmp_path / "real").mkdir()
        work.symlink_to(tmp_path / "real")
    elif kind == "writable":
        work.mkdir()
        work.chmod(0o777)
    else:
        work.write_text("")
    target = build(work)
    with pytest.raises(TargetUnusable) as caught:
        await serve(target, SLEEP)
    assert caught.value.hint
    await target.close()
