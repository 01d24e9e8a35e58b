"""A log is followed through renames without a gap; what a truncation may have lost is told."""

import os
from pathlib import Path

from agent.following import LogFollower
from agent.session import SessionFolder
from tests.targets.kit import Placed, serve, until

ECHO = "import sys\nfor line in open('fifo'): sys.stdout.write(line); sys.stdout.flush()"
ROTATIONS = 100


async def test_a_hundred_renames_lose_nothing(target: Placed, tmp_path: Path) -> None:
    folder = SessionFolder.create(tmp_path / "logs", "follow")
    told: list[str] = []
    follower = LogFollower(target, "l1", folder, told.append)
    os.mkfifo(target.place.home / "fifo")
    await serve(target, ECHO)
    log, read, written = target.place.work / "runs/l1/server.log", bytearray(), bytearray()
    with (target.place.home / "fifo").open("w", buffering=1) as order:
        for number in range(ROTATIONS):
            line = f"{number} {'x' * (number % 7)}\n"
            written += line.encode()
            order.write(line)
            named = next(log.parent.glob("server.log*"))
            named.rename(log.with_name(f"server.log.{number}"))
            if number % 10 == 0:
                async for data in follower.news():
                    read += data

        async def all_of_it() -> bool:
            async for data in follower.news():
                read.extend(data)
            return len(read) == len(written)

        await until(all_of_it)
    assert read == written and folder.log_of("l1").read_bytes() == written
    assert told == []


async def test_a_truncation_is_told_and_read_on(target: Placed, tmp_path: Path) -> None:
    folder = SessionFolder.create(tmp_path / "logs", "follow")
    told: list[str] = []
    follower = LogFollower(target, "l1", folder, told.append)
    os.mkfifo(target.place.home / "fifo")
    await serve(target, ECHO)
    log, read = target.place.work / "runs/l1/server.log", bytearray()

    async def ends_with(text: bytes) -> bool:
        async for data in follower.news():
            read.extend(data)
        return read.endswith(text)

    with (target.place.home / "fifo").open("w", buffering=1) as order:
        order.write("a long line before\n")
        await until(lambda: ends_with(b"before\n"))
        os.truncate(log, 0)
        order.write("after\n")
        await until(lambda: ends_with(b"after\n"))
    assert bytes(read) == b"a long line before\nafter\n" == folder.log_of("l1").read_bytes()
    (text,) = told
    assert "cut from 19 to" in text and "lost" in text
    assert await follower.finish()
    assert folder.log_of("l1").read_bytes() == bytes(read)


async def test_a_resumed_follower_goes_on_behind_its_copy(target: Placed, tmp_path: Path) -> None:
    folder = SessionFolder.create(tmp_path / "logs", "follow")
    await serve(target, "print('one'); print('two')")
    folder.append_log("l1", b"one\n")
    follower = LogFollower(target, "l1", folder, lambda text: None)
    assert b"".join(follower.kept()) == b"one\n"
    read = bytearray()

    async def two() -> bool:
        async for data in follower.news():
            read.extend(data)
        return bytes(read) == b"two\n"

    await until(two)
    assert folder.log_of("l1").read_bytes() == b"one\ntwo\n"
