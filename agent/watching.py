"""Watches one started launch: its log, its processes, and whether it is ready."""

import asyncio
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from agent.core import events as ev
from agent.core.model import Failure, Gpu, LaunchConfig, Phase
from agent.core.smoke import is_dummy
from agent.core.state import Launch, LaunchStage
from agent.core.views.basics import duration
from agent.following import LogFollower
from agent.patience import patiently, while_it_held
from agent.playbook.smoke import DUMMY
from agent.ports import LaunchStatus, LoadHistory, ServerKind, Target, TargetUnreachable, WatchUpdate
from agent.redact import Redactor
from agent.session import SessionFolder
from agent.watch.host import activity
from agent.watch.shards import indexed_shards
from agent.watch.watch import LoadWatch

_PARALLEL = re.compile(r"^(tp|ep|dp|pp)(-size)?$|parallel|^speculative-(algorithm|config|model)|^load-format$|^nnodes$")
Submit = Callable[[ev.Event], None]

POLL_S = 0.2
READY_POLL_S = 0.5
# While the log is silent the host is asked about the processes; a doubt is told again as often as that.
LOOK_EVERY_S, SILENT_S, RETELL_S = 2.0, 8.0, 30.0
# What ranks still print after the first death is evidence: it is read before the tree is stopped.
AFTERMATH_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """What every launch of a session works with. `gpus` are those of the target that may be used."""

    target: Target
    gpus: tuple[Gpu, ...]
    kind: ServerKind
    folder: SessionFolder
    history: LoadHistory
    redact: Redactor


class Watcher:
    """Follows one started launch."""

    def __init__(
        self,
        setting: Setting,
        launch: str,
        config: LaunchConfig,
        port: int,
        log: LogFollower,
        submit: Submit,
        age_s: float = 0.0,
    ) -> None:
        """The launch was started `age_s` seconds ago."""
        self._with, self._launch, self._config, self._port, self._submit = setting, launch, config, port, submit
        self._started = time.monotonic() - age_s
        self._away_s = 0.0
        self._rejoined, self._ready = False, False
        self._gave_up = ""
        self._log = log
        self._reading = asyncio.Lock()
        self._model = setting.kind.model_of(config.args)
        self._how = _how(config)
        self._doubted, self._doubted_at, self._looked_at = "", 0.0, 0.0
        self._watch = LoadWatch(setting.kind, usual_phases_s(setting, config))

    def rejoin(self, seen: Launch, away_s: float) -> None:
        """Take up what an earlier run of tunebot saw of it; for `away_s` nobody watched."""
        self._rejoined, self._away_s = True, away_s
        self._ready = seen.stage is LaunchStage.READY
        now_s = time.monotonic() - self._started
        told = len(seen.phases)
        for data in self._log.kept():
            for update in self._watch.feed(data, now_s):
                if update.begins and told:
                    told -= 1
                elif update.begins and not self._ready:
                    self._submit(_event_of(self._launch, update))

    async def run(self) -> None:
        """Until the server died or cannot get ready; then ServerFailed."""
        self._watch.index_shards = await indexed_shards(self._with.target, self._model)
        # One that was ready needs nothing more than to be watched.
        ready = asyncio.sleep(0) if self._ready else self._become_ready()
        readiness = asyncio.create_task(ready, name=f"readiness {self._launch}")
        try:
            exit_code = await self._follow(readiness)
        finally:
            readiness.cancel()
            await asyncio.wait([readiness])
        await self._fail(exit_code)

    async def _follow(self, readiness: asyncio.Task[None]) -> int | None:
        """Read the log until there is proof of an end; the leader's exit code, None if it lives on."""
        while True:
            status = await self._look()
            if _is_dead(status):
                return status.leader_exit_code
            if self._watch.fatal:
                return None
            if readiness.done() and (error := readiness.exception()):
                raise error
            if status.state == "unknown":
                await self._out_of_reach()
                continue
            if not self._ready and time.monotonic() - self._started - self._away_s > self._config.load_timeout_s:
                self._gave_up = f"not ready after {duration(self._config.load_timeout_s)}"
                return None
            await self._doubt(status)
            await asyncio.sleep(POLL_S)

    async def _doubt(self, status: LaunchStatus) -> None:
        """Tell what makes the load suspect, where that changed; the host is evidence beyond silence."""
        now = time.monotonic()
        if self._ready or now - self._looked_at < LOOK_EVERY_S:
            return
        self._looked_at = now
        if self._watch.silent_s >= SILENT_S:
            seen = await activity(self._with.target, status.processes)
            if seen is not None:
                self._watch.look(seen)
        text = self._with.redact(self._watch.doubt())
        same = text.partition(" for ")[0] == self._doubted.partition(" for ")[0]
        if text != self._doubted and not self._ready and (not same or now - self._doubted_at >= RETELL_S):
            self._doubted, self._doubted_at = text, now
            self._submit(ev.LoadDoubted(at=time.time(), launch=self._launch, text=text))

    async def _look(self) -> LaunchStatus:
        """Read the log up to now, then ask for the status; unknown where the target cannot be reached."""
        try:
            await self._read_log()
            return await self._with.target.launch_status(self._launch)
        except TargetUnreachable:
            return LaunchStatus(state="unknown", leader_exit_code=None, processes=())

    async def _out_of_reach(self) -> None:
        """Wait. The load may go on meanwhile or not: the time does not count against it."""
        since = time.monotonic()
        await asyncio.sleep(POLL_S)
        await self._with.target.reach.wait()
        self._away_s += time.monotonic() - since

    async def _read_log(self) -> None:
        # Two readers at one offset would feed the same bytes twice.
        async with self._reading:
            await self._read_on()

    async def _read_on(self) -> None:
        async for data in self._log.news():
            self._feed(data)
        self._feed(b"")

    def _feed(self, data: bytes) -> None:
        updates = self._watch.feed(data, time.monotonic() - self._started)
        for update in () if self._ready else updates:
            self._submit(_event_of(self._launch, update))

    async def _become_ready(self) -> None:
        """Ready is: our process listens, nobody else does, and one real generation came back."""
        target, kind = self._with.target, self._with.kind
        url = await target.base_url(self._port)
        while True:
            owners = await target.port_owners(self._launch, self._port)
            if owners.ours and not owners.others and await kind.ready(url):
                break
            await asyncio.sleep(READY_POLL_S)
        load_s = time.monotonic() - self._started
        await patiently(target, self._read_log)
        head = self._watch.log_head()
        flags = await while_it_held(target, self._launch, lambda: kind.effective_flags(url, self._config, head))
        self._ready = True
        for note in (*self._remember(), *self._watch.notes()):
            self._submit(ev.Noted(at=time.time(), text=note))
        self._submit(ev.ServerReady(at=time.time(), launch=self._launch, load_s=load_s, flags=flags))

    def _remember(self) -> Iterator[str]:
        """Add the load to the history; why that could not be done, if so. Of a rejoined one nobody saw the phases."""
        if self._rejoined:
            return
        target, kind, took_s = self._with.target, _kind(self._with, self._config), self._watch.durations_s()
        problem = self._with.history.add(target.name, kind, self._model, took_s, self._how)
        if problem:
            yield problem

    async def _fail(self, exit_code: int | None) -> None:
        if self._gave_up:
            doubt = self._watch.doubt()
            reason = f"{self._gave_up}, last seen in {self._watch.phase}" + (f": {doubt}" if doubt else "")
            hung = Failure(phase=self._watch.phase, reason=reason, category="hang-silent")
            self._submit(ev.ServerFailed(at=time.time(), launch=self._launch, failure=hung))
            return
        deadline = time.monotonic() + AFTERMATH_S
        while time.monotonic() < deadline:
            await asyncio.sleep(POLL_S)
            status = await self._look()
            exit_code = status.leader_exit_code if exit_code is None else exit_code
            if status.state in ("exited", "gone"):
                await self._look()
                break
        failure = _redacted(self._watch.diagnose(exit_code, stopped_by_us=False), self._with.redact)
        self._submit(ev.ServerFailed(at=time.time(), launch=self._launch, failure=failure))


def usual_phases_s(setting: Setting, config: LaunchConfig) -> Mapping[Phase, float] | None:
    """The seconds of each phase of earlier loads of such a launch, or None where there were none."""
    kind, model = _kind(setting, config), setting.kind.model_of(config.args)
    return setting.history.phases_s(setting.target.name, kind, model, _how(config))


def _kind(setting: Setting, config: LaunchConfig) -> str:
    """The kind of server, apart for dummy weights: their loads say nothing of real ones, nor the other way round."""
    return f"{setting.kind.name} {DUMMY}" if is_dummy(config) else setting.kind.name


def _how(config: LaunchConfig) -> str:
    """What, beside the model, decides how long a load takes."""
    told = {name: value for name, value in sorted(config.args.items()) if _PARALLEL.search(name)}
    return " ".join([config.version or "", *(f"{name}={value}" for name, value in told.items())]).strip()


def _redacted(failure: Failure, redact: Redactor) -> Failure:
    evidence = tuple(replace(quote, text=redact(quote.text)) for quote in failure.evidence)
    return replace(failure, reason=redact(failure.reason), evidence=evidence)


def _is_dead(status: LaunchStatus) -> bool:
    return status.state in ("exited", "gone") or status.leader_exit_code is not None


def _event_of(launch: str, update: WatchUpdate) -> ev.Event:
    if update.begins:
        return ev.PhaseEntered(at=time.time(), launch=launch, phase=update.phase, remaining_s=update.remaining_s)
    return ev.PhaseProgressed(
        at=time.time(),
        launch=launch,
        phase=update.phase,
        done=update.done,
        total=update.total,
        fraction=update.fraction,
        remaining_s=update.remaining_s,
    )
