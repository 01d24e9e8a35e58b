"""The launcher of the simulated server: it loads through its ranks, opens the port, and dies as the real one does."""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import time
from pathlib import Path

from agent.sim import failures
from agent.sim.children import Children
from agent.sim.decode import Decoder
from agent.sim.effects import Raised
from agent.sim.endpoints import Service
from agent.sim.ledger import read_ledger
from agent.sim.plan import Setting
from agent.sim.procs import append
from agent.sim.rules import launch_rate
from agent.sim.web import bind

logger = logging.getLogger(__name__)

# so long the launcher waits at most, after the first rank of a failure, for the others to have told of it
SIBLINGS_S = 5.0


class Launcher:
    """One start of the server, from the spawn of its ranks to its end."""

    def __init__(self, root: Path, setting: Setting, environment: str) -> None:
        self.root = root
        self.setting = setting
        self.world = setting.world
        self.ledger = root / ".sim" / "ledger.jsonl"
        self.children = Children(setting, root, self.on_death)
        self.phase = "load"
        self.exit_code: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        rate = self._draw_rate(environment)
        self.service = Service(root, setting, Decoder(setting, rate, self.children.stalled), self.children)

    def _draw_rate(self, environment: str) -> float:
        hidden = ("--port", "--host")
        shown = [a for a, before in zip(sys.argv[1:], ["", *sys.argv[1:]], strict=False) if not {a, before} & {*hidden}]
        variables = sorted(f"{k}={v}" for k, v in os.environ.items() if k.startswith(("NCCL_", "SGLANG_")))
        identity = " ".join([environment, *variables, *shown]).replace(str(self.root), "~")
        ordinal = sum(r["kind"] == "rate" and r["identity"] == identity for r in read_ledger(self.ledger))
        rate = launch_rate(self.world, self.setting.outcome, identity, ordinal)
        outcome, pace = self.setting.outcome, self.setting.outcome.pace
        truth = {"step_s": pace.step_s(), "accept": pace.accept, "allreduces": pace.count, "kernel": outcome.kernel}
        truth |= {"allreduce_s": pace.allreduce_s() if pace.count else 0.0, "spec_accept": outcome.spec_accept}
        append(self.ledger, "rate", tok_s=rate, identity=identity, ordinal=ordinal, **truth)
        return rate

    async def run(self) -> int:
        """Load and serve; the exit code, if it ends in order. Most ends are by signal and do not return."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGQUIT, self.on_sigquit)
        loop.add_signal_handler(signal.SIGTERM, self.on_sigterm)
        self.children.spawn()
        main = loop.create_task(self._main())
        main.add_done_callback(self._main_ended)
        return await self.exit_code

    def _main_ended(self, task: asyncio.Task[None]) -> None:
        error = None if task.cancelled() else task.exception()
        if error is not None and not self.exit_code.done():
            self.exit_code.set_exception(error)

    async def _main(self) -> None:
        await self.children.loaded.wait()
        for line in (self._capacity_line(), *self.setting.words.scheduler_ready()):
            self.children.log(line)
        began = time.time()
        await asyncio.sleep(self.world.seconds("http-start"))
        append(self.ledger, "phase", phase="http-start", start=began, end=time.time())
        say_info(f"Started server process [{os.getpid()}]")
        say_info("Waiting for application startup.")
        say_info("Application startup complete.")
        args = self.setting.args
        self.phase = "bind"
        try:
            server = await bind(self.service.handle, int(args["port"]))
        except OSError:
            at = f"('{args['host']}', {args['port']})"
            logger.info("ERROR:    [Errno 98] error while attempting to bind on address %s: address already in use", at)
            say_info("Waiting for application shutdown.")
            return
        async with server:
            say_info(f"Uvicorn running on http://{args['host']}:{args['port']} (Press CTRL+C to quit)")
            await self._warm_up(int(args["port"]))
            await self.exit_code

    def _capacity_line(self) -> str:
        args, memory = self.setting.args, self.world.memory
        used = memory.context_gib + memory.weights_gib + memory.kv_gib + memory.graph_gib
        free = self.world.gpu.memory_mib / 1024 - used
        return (
            f"max_total_num_tokens={self.setting.tokens}, chunked_prefill_size={args['chunked_prefill_size']}, "
            f"max_prefill_tokens={args['max_prefill_tokens']}, max_running_requests={self.service.decoder.limit}, "
            f"context_len={args['context_length'] or 262144}, available_gpu_mem={free:.2f} GB"
        )

    async def _warm_up(self, port: int) -> None:
        self.phase, began = "warmup", time.time()
        if not self.setting.args["skip_server_warmup"]:
            await asyncio.sleep(self.world.seconds("warmup") / 2)
            await request_self(port, "GET /model_info", "")
            await asyncio.sleep(self.world.seconds("warmup") / 2)
            await request_self(
                port, "POST /generate", '{"text": "The capital", "sampling_params": {"max_new_tokens": 8}}'
            )
        append(self.ledger, "phase", phase="warmup", start=began, end=time.time())
        self.phase, self.service.ready = "ready", True
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, self.on_sigint)
        logger.info("The server is fired up and ready to roll!")
        append(self.ledger, "ready", port=port)

    def on_sigterm(self) -> None:
        """While loading: die of it. Once ready: drain, then kill everything, this process last."""
        append(self.ledger, "signal", signal="SIGTERM", phase=self.phase)
        if self.phase in ("load", "warmup"):
            append(self.ledger, "exit", code=-15)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
        elif self.phase == "ready":
            self.phase, self.service.ready, self.service.draining = "drain", False, True
            logger.info("SIGTERM received. signum=None frame=None. Draining requests and shutting down...")
            self.drainer = asyncio.get_running_loop().create_task(self._drain())

    async def _drain(self) -> None:
        while True:
            await asyncio.sleep(self.world.seconds("drain-poll"))
            left = self.service.decoder.running
            logger.info(
                "Gracefully exiting... Remaining number of requests %d. Remaining requests remaining_rids=[].", left
            )
            if left == 0:
                self.kill_tree()

    def on_sigint(self) -> None:
        """Ctrl-C on a ready server: an orderly end with code 0."""
        append(self.ledger, "signal", signal="SIGINT", phase=self.phase)
        say_info("Shutting down")
        self.stopper = asyncio.get_running_loop().create_task(self._stop())

    async def _stop(self) -> None:
        await asyncio.sleep(self.world.seconds("int-stop"))
        say_info("Application shutdown complete.")
        say_info(f"Finished server process [{os.getpid()}]")
        self.phase = "stop"
        self.children.kill()
        self.exit_code.set_result(0)

    def on_sigquit(self) -> None:
        """A child says that it failed."""
        append(self.ledger, "signal", signal="SIGQUIT", phase=self.phase)
        settle = self.setting.environment.crash_settle / self.world.speed
        if self.phase == "load":
            self.phase = "stop"
            logger.info("Received sigquit from a child process. It usually means the child failed.")
            self.ender = asyncio.get_running_loop().create_task(self._end_together())
        if self.phase == "stop":
            return
        self.phase = "stop"
        logger.info("SIGQUIT received. signum=None, frame=None. It usually means one child failed.")
        if settle:
            logger.info("Sleeping 5 seconds before crash diagnostics to let GPU activity settle.")
        self.service.ready = False
        asyncio.get_running_loop().call_later(settle, self.kill_tree)

    async def _end_together(self) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self.children.all_failed.wait(), SIBLINGS_S)
        self.kill_tree()

    def kill_tree(self) -> None:
        """SIGKILL the children and this process: exit code -9 is how this server normally ends."""
        pid = os.getpid()
        logger.info("kill_process_tree called: parent_pid=%d, include_parent=True, pid=%d", pid, pid)
        self.children.kill()
        append(self.ledger, "exit", code=-9)
        os.kill(pid, signal.SIGKILL)

    def on_death(self, index: int) -> None:
        """A child ended without being told to."""
        loop, seconds = asyncio.get_running_loop(), self.world.seconds("dead-poll")
        if self.phase == "load" and self.setting.environment.dead_rank == "exit":
            loop.call_later(seconds, self._died_loading, index)
        elif self.phase in ("bind", "warmup", "ready", "drain"):
            self.service.broken = True
            alive = [i for i, p in enumerate(self.children.processes) if p.poll() is None and i < self.setting.ranks]
            if index < self.setting.ranks and alive:
                self.children.tell(alive[0], {"crash": self._peer_text()})
            else:
                name = "detokenizer" if index >= self.setting.ranks else "scheduler_0"
                pid = self.children.processes[index].pid
                code = self.children.processes[index].returncode
                logger.info(
                    "Subprocess %s (pid=%d) crashed with exit code %d. Triggering SIGQUIT for cleanup...",
                    name,
                    pid,
                    code,
                )
                os.kill(os.getpid(), signal.SIGQUIT)

    def _died_loading(self, index: int) -> None:
        code, pid = self.children.processes[index].returncode, os.getpid()
        logger.info("kill_process_tree called: parent_pid=%d, include_parent=False, pid=%d", pid, pid)
        self.phase = "stop"
        self.children.kill()
        name = f"Rank {index} scheduler" if index < self.setting.ranks else "Detokenizer"
        text = (
            f"{name} died during initialization (exit code: {code}). If exit code is -9 (SIGKILL), a common cause is "
            "the OS OOM killer. Run `dmesg -T | grep -i oom` to check."
        )
        frames = (
            ("sglang/launch_server.py", "<module>", "run_server(server_args)"),
            ("sglang/launch_server.py", "run_server", "launch_server(server_args)"),
        )
        sys.stderr.write(failures.traceback_text(self.setting.site, Raised("RuntimeError", text, frames)))
        self.exit_code.set_result(1)

    def _peer_text(self) -> str:
        frames = (
            (failures.SCHEDULER, "run_scheduler_process", "scheduler.run_event_loop()"),
            (failures.SCHEDULER, "run_event_loop", "recv_reqs = self.recv_requests()"),
            (failures.SCHEDULER, "recv_requests", "return broadcast_pyobj([], self.tp_rank, self.tp_cpu_group)"),
            (failures.SCHEDULER, "broadcast_pyobj", "work.wait()"),
        )
        text = "[/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:547] Connection closed by peer [127.0.0.1]:3472"
        return failures.traceback_text(self.setting.site, Raised("RuntimeError", text, frames))


def say_info(text: str) -> None:
    """Log a line as uvicorn does."""
    logger.info("INFO:     %s", text)


async def request_self(port: int, what: str, body: str) -> None:
    """The warm-up's own request over the port that was just opened."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    head = f"{what} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    writer.write((head + body).encode())
    await reader.read()
    writer.close()
