"""Carries the core's commands out on a target: research, preparation, launches, measurements, stops."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from agent.alongside import measured_with
from agent.attaching import attach
from agent.bench.tools import ToolLoad, tool_round
from agent.core import commands as do
from agent.core import events as ev
from agent.core.guard import GuardResult
from agent.core.model import LaunchConfig, RoundMetrics
from agent.engine import Submit
from agent.launching import Launcher
from agent.ports import (
    AnswerGuard,
    Bencher,
    CommandResult,
    LaunchVoid,
    Researcher,
    RoundError,
    ServerKind,
    Target,
    TargetUnusable,
)
from agent.targets.holders import settled
from agent.text import decode, one_line

Result = TypeVar("Result")

ROUND_DEADLINE_S = 3600.0

MEMORY_FREE_S = 20.0
"""How long a driver may take to free the memory of a process that is gone."""

# A server that never got ready, or failed, has nothing to finish: it often hangs with its GPU memory held.
STOP_GRACE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetEffects:
    """Effects on one target with one kind of server."""

    target: Target
    kind: ServerKind
    launcher: Launcher
    researcher: Researcher
    bencher: Bencher
    answers: AnswerGuard

    def quiet(self, on: bool) -> None:
        """Suspend (or let go on) background commands on the target."""
        self.target.quiet(on)

    async def run_task(self, command: do.RunTask, submit: Submit) -> None:
        """Run one research task or preflight; ends in TaskFinished."""
        task = command.task
        status, finding = await self.researcher.run(task, submit)
        submit(ev.TaskFinished(at=time.time(), task=task.id, status=status, finding=finding))

    async def prepare(self, command: do.Prepare, submit: Submit) -> None:
        """Run one approved step unless what it creates is there; ends in PrepareFinished."""
        ok, summary = await self._prepare(command)
        submit(
            ev.PrepareFinished(
                at=time.time(), experiment=command.experiment, step=command.index, ok=ok, summary=summary
            )
        )

    async def _prepare(self, command: do.Prepare) -> tuple[bool, str]:
        step = command.step
        try:
            result = await self._run_once(command)
            if result is None:
                return True, f"{step.creates} exists already"
            if result.exit_code is None:
                return False, "its end is unknown: the connection to the target broke meanwhile"
            if result.timed_out:
                return False, f"no end after {step.timeout:.0f} s"
            if result.exit_code != 0:
                lines = [line for line in decode(result.output).splitlines() if line.strip()]
                return False, f"exit {result.exit_code}: {one_line(lines[-1] if lines else 'no output')}"
            if step.creates and not await self.target.exists(step.creates):
                return False, f"it ended well but {step.creates} is not there"
        except TargetUnusable as error:
            return False, str(error)
        return True, f"exit 0{', made ' + step.creates if step.creates else ''}"

    async def _run_once(self, command: do.Prepare) -> CommandResult | None:
        """What became of a step; None where what it creates was there before it began."""
        step, job, more = command.step, command.job, 1
        while True:
            try:
                # No proof of a step that has begun: a folder is there long before all that belongs in it.
                there = step.creates is not None and await self.target.exists(step.creates)
                if there and await self.target.outcome(job) is None:
                    return None
                return await self.target.run_once(job, step.run, timeout_s=step.timeout)
            except LaunchVoid:  # cut off before it began: that id is spent
                more += 1
                job = f"{command.job}-{more}"

    async def start_server(self, command: do.StartServer, submit: Submit) -> None:
        """Start and watch a server; ends in ServerFailed unless a stop cancels it."""
        await self.launcher.run(command.launch, command.config, submit)

    async def rejoin_server(self, command: do.RejoinServer, submit: Submit) -> None:
        """Find out what became of a launch and watch on; ends as `start_server`, or in LaunchVoid."""
        await self.launcher.rejoin(command, submit)

    async def attach_server(self, command: do.AttachServer, submit: Submit) -> None:
        """Watch a server that is not ours; ends in ServerFailed unless a detach cancels it."""
        await attach(self.target, self.kind, command, submit)

    async def measure_round(self, command: do.MeasureRound, submit: Submit) -> None:
        """Measure one round; ends in RoundMeasured or RoundFailed."""
        launch, workload, index = command.launch, command.workload.name, command.index
        try:
            metrics = await self._asked(launch, lambda: self._measured(command))
        except RoundError as error:
            submit(ev.RoundFailed(at=time.time(), launch=launch, workload=workload, index=index, reason=str(error)))
            return
        submit(ev.RoundMeasured(at=time.time(), launch=launch, workload=workload, index=index, metrics=metrics))

    async def ask_guard(self, command: do.AskGuard, submit: Submit) -> None:
        """Put the guard's questions; ends in GuardEnded."""
        try:
            result = await self._asked(command.launch, lambda: self._examined(command))
        except RoundError as error:
            submit(ev.GuardEnded(at=time.time(), launch=command.launch, error=str(error)))
            return
        submit(ev.GuardEnded(at=time.time(), launch=command.launch, result=result))

    async def _asked(self, launch: str, ask: Callable[[], Awaitable[Result]]) -> Result:
        """What a server says once the link holds for all of the asking. Raises RoundError where it is its fault."""
        while True:
            await self.target.reach.wait()
            breaks = self.target.reach.breaks
            try:
                async with asyncio.timeout(ROUND_DEADLINE_S):
                    return await ask()
            except (RoundError, TimeoutError) as error:
                # Requests fail at once when the link breaks, before it is known to be broken: the same link is asked.
                status = await self.target.launch_status(launch)
                if status.state != "unknown" and self.target.reach.breaks == breaks:
                    raise RoundError(str(error) or f"no end after {ROUND_DEADLINE_S:.0f} s") from error

    async def _examined(self, command: do.AskGuard) -> GuardResult:
        url = await self.target.base_url(command.port)
        return await self.answers.examine(url, None, self.kind.name, command.baseline)

    async def _measured(self, command: do.MeasureRound) -> RoundMetrics:
        url = await self.target.base_url(command.port)
        if command.index == 0:
            await self.bencher.warm_up(url, None, command.workload)
        await self.kind.flush_cache(url)
        if command.workload.tool is not None:
            load = ToolLoad(
                workload=command.workload,
                port=command.port,
                native=self.kind.name == "sglang",
                seed=command.seed,
                timeout_s=ROUND_DEADLINE_S,
            )
            return await tool_round(self.target, load, f"{command.launch}-{command.workload.name}-{command.seed}")
        measuring = self.bencher.round(url, None, command.workload, command.seed)
        return await measured_with(self.target, self.kind, url, bool(self.launcher.setting.gpus), measuring)

    async def stop_server(self, command: do.StopServer, submit: Submit) -> None:
        """Stop a launch and verify that nothing is left; ends in ServerStopped, or TargetLost where nobody can say."""
        try:
            grace_s = self.kind.stop_grace_s if command.drains else STOP_GRACE_S
            report = await self.target.stop(command.launch, grace_s)
            if not await self.launcher.finish_log(command.launch, submit):
                text = f"the copy of the log of launch {command.launch} is not complete; all of it is on the target"
                submit(ev.Noted(at=time.time(), text=text))
        except TargetUnusable as error:
            submit(ev.TargetLost(at=time.time(), reason=str(error)))
            return
        await self._tell_holders(command.config, submit)
        left = tuple(process.pid for process in report.left)
        submit(ev.ServerStopped(at=time.time(), launch=command.launch, exit_code=report.exit_code, left=left))

    async def _tell_holders(self, config: LaunchConfig, submit: Submit) -> None:
        """Wait until the driver has freed the memory of the GPUs; say who still holds some."""
        try:
            held = await settled(self.target, self.launcher.gpus_of(config), MEMORY_FREE_S)
        except TargetUnusable as error:
            submit(ev.Noted(at=time.time(), text=f"nobody can say whether the GPU memory is free: {error}"))
            return
        for holder in held:
            submit(ev.Noted(at=time.time(), text=f"not free after the stop: {holder}"))
