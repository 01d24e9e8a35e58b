"""A link that freezes: sshd's process for the connection stands still, so that nothing is refused and nothing comes.

`python -m tests.targets.frozen [N]` does that N times with the keepalive that users have, and prints how soon it was
noticed. The server and its log must not notice at all, a job neither.
"""

import asyncio
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.targets.hosts import hosts
from tests.targets.kit import PYTHON, lives, printed, spec, until

LIMIT_S = 20.0


async def main(n: int) -> int:
    """Print how it went."""
    noticed_s, ended = [], 0
    with tempfile.TemporaryDirectory() as folder:
        async with hosts(Path(folder)) as (_, target):
            sshd = target.place.sshd
            assert sshd
            leader = await target.launch(spec("l1", *PYTHON, "-c", "import time; print('up'); time.sleep(6000)"))
            await printed(target, "up")
            for index in range(n):
                job = asyncio.create_task(target.run_once(f"j{index}", ["sleep", "20"], timeout_s=60))
                await until(lambda: target.outcome(f"j{index}"))  # noqa: B023 it ends in this round
                await asyncio.sleep(index % 5)  # at another moment between two keepalives
                sshd.signal_connections(signal.SIGSTOP)
                began = time.monotonic()
                await until(lambda: not target.reach.up, 60.0)
                noticed_s.append(time.monotonic() - began)
                ended += (await job).exit_code != 0
                ended += not lives(leader.pid) or (await target.launch_status("l1")).state != "running"
    print(f"{n} frozen links noticed after {min(noticed_s):.1f} to {max(noticed_s):.1f} s; {ended} runs ended by them")
    return int(max(noticed_s) > LIMIT_S or ended > 0)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)))
