"""One launch, from the claim to its death: starts the server, or finds the one that was started before."""

import asyncio
import time
from dataclasses import dataclass, field
from functools import partial

from agent.core import commands as do
from agent.core import events as ev
from agent.core.model import Failure, Gpu, LaunchConfig, Phase
from agent.core.state import LaunchStage
from agent.following import LogFollower
from agent.patience import patiently
from agent.ports import LaunchSpec, LaunchVoid, Started, TargetBusy, TargetGone, TargetUnusable
from agent.targets.holders import holders
from agent.watching import Setting, Submit, Watcher, usual_phases_s

BUSY_RETRY_S = 15.0
"""How long one waits for GPUs that others hold before the next try."""

SHOWN = 4
"""Processes that are named where many hold the GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launcher:
    """Starts launches of one kind of server on one target.

    `owner` is who holds the GPUs, for others to see. Where another holds them, a launcher that `waits` does so, and
    so does one that has launched before: a campaign is not given up because somebody was quicker between two loads.
    """

    setting: Setting
    owner: str
    waits: bool
    launched: set[str] = field(default_factory=set)
    logs: dict[str, LogFollower] = field(default_factory=dict)

    async def run(self, launch: str, config: LaunchConfig, submit: Submit) -> None:
        """Start and watch until the server dies; ends in ServerFailed.

        Where the host refuses for now it ends in LaunchVoid after a wait, or in TargetLost.
        """
        target = self.setting.target
        try:
            port = await self._port(config)
            if await target.port_answers(port):
                reason = f"port {port} already answers: another server listens there"
                failure = Failure(phase=Phase.LAUNCH, reason=reason, category="port-in-use")
                submit(ev.ServerFailed(at=time.time(), launch=launch, failure=failure))
                return
            await self._check_gpus(config)
            spec = LaunchSpec(
                launch=launch,
                argv=self.setting.kind.argv(config, port),
                port=port,
                env={name: value for name, value in config.env.items() if value is not None},
                unset=tuple(name for name, value in config.env.items() if value is None),
                owner=self.owner,
            )
            started = await target.launch(spec)
        except LaunchVoid as error:
            submit(ev.LaunchVoid(at=time.time(), launch=launch, reason=str(error)))
        except TargetBusy as error:
            await self._busy(launch, error, submit)
        except TargetGone as error:
            submit(_lost(error))
        except TargetUnusable as error:
            submit(_not_started(launch, error))
        else:
            self._tell_started(launch, config, started, submit)
            log = self._log(launch, submit)
            await self._watch(Watcher(self.setting, launch, config, started.port, log, submit), launch, submit)

    async def rejoin(self, command: do.RejoinServer, submit: Submit) -> None:
        """Go on with a launch that was requested before; ends as `run`, or in LaunchVoid."""
        launch, config, seen, away_s = command.launch, command.config, command.seen, command.away_s
        port, age_s = seen.port, max(away_s, time.time() - seen.requested_at)
        if seen.stage is LaunchStage.REQUESTED:
            try:
                started = await patiently(self.setting.target, partial(self.setting.target.outcome, launch))
            except (LaunchVoid, TargetBusy) as error:  # it was refused then; it may not be now
                submit(ev.LaunchVoid(at=time.time(), launch=launch, reason=str(error)))
                return
            except TargetGone as error:
                submit(_lost(error))
                return
            except TargetUnusable as error:
                submit(_not_started(launch, error))
                return
            if started is None:
                await self.run(launch, config, submit)
                return
            port = started.port
            self._tell_started(launch, config, started, submit)
        assert port is not None, "a launch that was started has a port"
        watcher = Watcher(self.setting, launch, config, port, self._log(launch, submit), submit, age_s)
        watcher.rejoin(seen, away_s)
        await self._watch(watcher, launch, submit)

    async def finish_log(self, launch: str, submit: Submit) -> bool:
        """Copy what a stopped launch printed after its watch ended; whether the copy is complete."""
        return await self._log(launch, submit).finish()

    def _log(self, launch: str, submit: Submit) -> LogFollower:
        if launch not in self.logs:
            setting = self.setting
            tell = partial(_note, submit)
            self.logs[launch] = LogFollower(setting.target, launch, setting.folder, tell)
        return self.logs[launch]

    def _tell_started(self, launch: str, config: LaunchConfig, started: Started, submit: Submit) -> None:
        self.launched.add(launch)
        argv = tuple(self.setting.redact(word) for word in self.setting.kind.argv(config, started.port))
        usual_s = {phase: round(s, 1) for phase, s in (usual_phases_s(self.setting, config) or {}).items()}
        submit(
            ev.LaunchStarted(
                at=time.time(), launch=launch, pid=started.pid, port=started.port, argv=argv, usual_s=usual_s
            )
        )

    async def _watch(self, watcher: Watcher, launch: str, submit: Submit) -> None:
        try:
            await watcher.run()
        except TargetUnusable as error:
            submit(ev.TargetLost(at=time.time(), reason=f"{error}; launch {launch} may still run there"))

    async def _check_gpus(self, config: LaunchConfig) -> None:
        """Raises TargetBusy where somebody holds memory of the GPUs that this launch would use."""
        gpus = self.gpus_of(config)
        # What no process is said to hold may be a desktop's: a note after a stop, and no reason to refuse.
        held = [holder for holder in await holders(self.setting.target, gpus) if holder.pid is not None]
        # Whoever holds the lock has a better name than its processes, and the launch itself asks for the lock.
        if held and not (await self.setting.target.survey())["lock_owner"]:
            hint = "stop what uses them, or choose others: `gpus` in targets.yaml, CUDA_VISIBLE_DEVICES in the playbook"
            raise TargetBusy("; ".join(map(str, held[:SHOWN])), hint)

    def gpus_of(self, config: LaunchConfig) -> tuple[Gpu, ...]:
        """The GPUs that a launch of this configuration may use."""
        visible = config.env.get("CUDA_VISIBLE_DEVICES")
        if visible is None:
            return self.setting.gpus
        named = [word.strip() for word in visible.split(",")]
        return tuple(gpu for gpu in self.setting.gpus if str(gpu.index) in named)

    async def _busy(self, launch: str, error: TargetBusy, submit: Submit) -> None:
        """Others hold the GPUs: leave, or wait a while and have it launched anew."""
        if not (self.waits or self.launched):
            submit(_lost(error))
            return
        submit(ev.LoadDoubted(at=time.time(), launch=launch, text=f"waits for the GPUs: {error}"))
        await asyncio.sleep(BUSY_RETRY_S)
        submit(ev.LaunchVoid(at=time.time(), launch=launch, reason=str(error)))

    async def _port(self, config: LaunchConfig) -> int:
        asked = config.args.get("port")
        if isinstance(asked, str) and asked.isdigit():
            return int(asked)
        return await self.setting.target.free_port()


def _note(submit: Submit, text: str) -> None:
    submit(ev.Noted(at=time.time(), text=text))


def _lost(error: TargetUnusable) -> ev.Event:
    return ev.TargetLost(at=time.time(), reason=f"{error}; {error.hint}")


def _not_started(launch: str, error: TargetUnusable) -> ev.Event:
    reason = f"{error}; {error.hint}" if error.hint else str(error)
    failure = Failure(phase=Phase.LAUNCH, reason=reason, category="launch")
    return ev.ServerFailed(at=time.time(), launch=launch, failure=failure)
