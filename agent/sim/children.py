"""The processes of the simulated server: ranks and detokenizer, their pipes, their deaths."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agent.sim.plan import Setting, rank_steps
from agent.sim.procs import append, stopped
from agent.sim.venvs import CHECKOUT, interpreter

CODE = "import sys; sys.path.insert(0, sys.argv[1]); from agent.sim.rank import main; main()"
STALL_CACHE_S = 0.05


class Children:
    """All children of one launcher. `on_death` is called with the index of a rank whose process ended."""

    def __init__(self, setting: Setting, root: Path, on_death: Callable[[int], None]) -> None:
        self.setting = setting
        self.root = root
        self.ledger = root / ".sim" / "ledger.jsonl"
        self.on_death = on_death
        self.processes: list[subprocess.Popen[bytes]] = []
        self.done: dict[int, int] = {}
        self.loaded = asyncio.Event()
        self.failing = {rank for rank in range(setting.ranks) if any(s["fail"] for s in rank_steps(setting, rank))}
        self.all_failed = asyncio.Event()
        """Set once every rank that the plan lets fail has told of it."""
        if not self.failing:
            self.all_failed.set()
        self.checked = (0.0, False)

    def spawn(self) -> None:
        """Start the ranks and the detokenizer as fresh interpreters."""
        loop = asyncio.get_running_loop()
        read_end, write_end = os.pipe()
        for rank in range(self.setting.ranks):
            self._start({**self._base(), **self._rank(rank), "status": write_end}, write_end)
        self._start({**self._base(), "rank": -1, "title": "sglang::detokenizer", "prefix": "", "steps": []}, None)
        os.close(write_end)
        os.set_blocking(read_end, False)
        self.buffer = b""
        loop.add_reader(read_end, self._read_status, read_end)
        for index, process in enumerate(self.processes):
            descriptor = os.pidfd_open(process.pid)
            loop.add_reader(descriptor, self._ended, index, descriptor)

    def _base(self) -> dict[str, Any]:
        world = self.setting.world
        return {
            "launcher": os.getpid(),
            "ledger": str(self.ledger),
            "gpu_folder": str(self.root / ".sim" / "gpu"),
            "gpu": None,
            "pdeathsig": world.pdeathsig,
            "orphan_limit_s": world.orphan_limit_s,
            "status": -1,
        }

    def _rank(self, rank: int) -> dict[str, Any]:
        args = self.setting.args
        width = self.setting.ranks // int(args["pp_size"])
        stage, shard = divmod(rank, width)
        parts = [f"PP{stage}"] if args["pp_size"] > 1 else []
        parts += [f"TP{shard}"] if width > 1 else []
        parts += [f"EP{shard * int(args['ep_size']) // width}"] if args["ep_size"] > 1 else []
        return {
            "rank": rank,
            "title": "_".join(["sglang::scheduler", *parts]),
            "prefix": "".join(f" {part}" for part in parts),
            "gpu": gpu_of_rank(rank, args),
            "steps": rank_steps(self.setting, rank),
        }

    def _start(self, plan: dict[str, Any], status: int | None) -> None:
        command = [str(interpreter()), "-I", "-S", "-c", CODE, str(CHECKOUT)]
        keep = () if status is None else (status,)
        process = subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0, pass_fds=keep)
        self.processes.append(process)
        self.tell(len(self.processes) - 1, plan)

    def tell(self, index: int, message: dict[str, Any]) -> None:
        """Send one message; a dead child does not matter."""
        pipe = self.processes[index].stdin
        assert pipe is not None
        with contextlib.suppress(OSError):
            pipe.write(json.dumps(message).encode() + b"\n")

    def log(self, text: str) -> None:
        """Have rank 0 log a line."""
        self.tell(0, {"log": text})

    def _read_status(self, descriptor: int) -> None:
        data = os.read(descriptor, 65536)
        if not data:
            asyncio.get_running_loop().remove_reader(descriptor)
            return
        *lines, self.buffer = (self.buffer + data).split(b"\n")
        for line in lines:
            self._told(json.loads(line))

    def _told(self, message: dict[str, Any]) -> None:
        if "begun" in message:
            for rank in range(1, self.setting.ranks):
                self.tell(rank, {"begin": message["begun"]})
        elif "failed" in message:
            self.failing.discard(message["rank"])
            if not self.failing:
                self.all_failed.set()
        else:
            number = message["done"]
            self.done[number] = self.done.get(number, 0) + 1
            if self.done[number] == self.setting.ranks:
                self._release(number)

    def _release(self, number: int) -> None:
        for rank in range(self.setting.ranks):
            self.tell(rank, {"go": number})
        if number == len(rank_steps(self.setting, 0)):
            self.loaded.set()

    def _ended(self, index: int, descriptor: int) -> None:
        asyncio.get_running_loop().remove_reader(descriptor)
        os.close(descriptor)
        code = self.processes[index].poll()
        append(self.ledger, "rank_end", rank=index, child=self.processes[index].pid, code=code)
        self.on_death(index)

    def stalled(self) -> bool:
        """True while a rank is stopped by a signal: the others wait for it in a collective."""
        now = time.monotonic()
        if now - self.checked[0] > STALL_CACHE_S:
            self.checked = (now, any(stopped(process.pid) for process in self.processes))
        return self.checked[1]

    def kill(self) -> None:
        """SIGKILL all children and reap them."""
        for process in self.processes:
            with contextlib.suppress(OSError):
                process.send_signal(signal.SIGKILL)
        for process in self.processes:
            process.wait()


def gpu_of_rank(rank: int, args: dict[str, Any]) -> int:
    """Index, as nvidia-smi counts, of the GPU that a rank uses."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    index = int(args["base_gpu_id"]) + rank
    if visible:
        listed = [item for item in visible.split(",") if item.strip().isdigit()]
        return int(listed[index]) if index < len(listed) else index
    return index
