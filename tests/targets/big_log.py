"""A log with lines of 5 MB, NULs and bytes that are no UTF-8, followed over SSH while it is written.

`python -m tests.targets.big_log [MIB]` compares what arrived with what was written, and prints speed and memory.
"""

import asyncio
import hashlib
import re
import sys
import tempfile
import time
from pathlib import Path

from tests.targets.hosts import hosts
from tests.targets.kit import PYTHON, spec

LIMIT_MB = 150
WRITER = """
import random, sys
chance = random.Random(1)
block = b"".join([
    b"plain\\n" * 1000, b"bar 1%\\rbar 2%\\r" * 1000, b"m" * 5_000_000 + b"\\n", b"\\0" * 100_000,
    chance.randbytes(2_000_000), b"\\xff\\xfe\\xc3(\\xe2\\x82", b"\\x1b]0;title\\x07\\n", b"n" * 5_000_000, b"\\r\\n",
])
left = int(sys.argv[1]) << 20
while left > 0: left -= sys.stdout.buffer.write(block[:left])
"""


def _peak_kib() -> int:
    # Not getrusage: that begins with the size of whoever started this process.
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found
    return int(found[1])


async def main(mib: int) -> int:
    """Print how it went."""
    with tempfile.TemporaryDirectory() as folder:
        async with hosts(Path(folder)) as (_, target):
            began, got, offset = time.monotonic(), hashlib.sha256(), 0
            await target.launch(spec("l1", *PYTHON, "-c", WRITER, str(mib)))
            while offset < mib << 20:
                piece = await target.read_log("l1", offset)
                got.update(piece.data)
                offset += len(piece.data)
            seconds, breaks = time.monotonic() - began, target.reach.breaks
            memory_mb = _peak_kib() / 1024
            with (target.place.work / "runs/l1/server.log").open("rb") as log:
                same = hashlib.file_digest(log, "sha256").digest() == got.digest()
                size = log.tell()
    print(f"{offset} of {size} bytes arrived, {'the same' if same else 'OTHERS'}; the link broke {breaks} times")
    print(f"{offset / seconds / 1e6:.0f} MB/s while it was written; {memory_mb:.0f} MB of memory at most")
    return int(not (same and offset == size == mib << 20 and breaks == 0 and memory_mb < LIMIT_MB))


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 1024)))
