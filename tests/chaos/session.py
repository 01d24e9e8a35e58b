"""Plays one session: runs tunebot, kills it by its plan, resumes it, until the session has ended."""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from agent.core.legal import IllegalTransition
from agent.core.state import Stage, State
from agent.journal.journal import FILE, JournalError
from agent.sessions import fold, session_folders
from agent.sim.ledger import alive_pids, read_ledger
from tests.chaos.ground import Ground, kill_all
from tests.chaos.plan import Life
from tests.chaos.victim import SIZE

REPOSITORY = Path(__file__).resolve().parents[2]
LIFE_LIMIT_S = 120.0
COMPLETE, UNUSABLE = 2, 3
"""Exit codes: nothing is left to resume; the target could not be used."""
RETRIES = 40
"""How often an operator resumes a session whose target could not be used."""


@dataclass(frozen=True, slots=True)
class Kill:
    """One kill: the state of the session by its journal, whether a research task ran, and by which cue."""

    state: str
    researching: bool
    cue: str


@dataclass(frozen=True, slots=True)
class Heard:
    """What one life said: lines with the time at which they came through the pipe, and whether power was lost after."""

    lines: list[tuple[float, str]]
    power_loss: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Without:
    """What is taken out of tunebot: `fsync`, and parts of the wrapper as pairs of old and new text."""

    fsync: bool = False
    wrapper: tuple[tuple[str, str], ...] = ()


@dataclass
class Operator:
    """One session and what became of it."""

    ground: Ground
    name: str
    book: dict[str, Any]
    lives: tuple[Life, ...]
    without: Without
    rng: random.Random
    partner: "Operator | None" = None
    folder: Path | None = None
    heard: list[Heard] = field(default_factory=list)
    kills: list[Kill] = field(default_factory=list)
    prefixes: list[bytes] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    trouble: list[str] = field(default_factory=list)
    calm: threading.Event = field(default_factory=threading.Event)
    """Set when the last planned life has ended."""
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def logs(self) -> Path:
        return self.ground.root / self.name

    @property
    def ledger(self) -> Path:
        return self.ground.ledger(self.folder)

    def play(self) -> None:
        """The whole session. What went wrong is in `trouble`."""
        try:
            self._play()
        finally:
            self.over.set()

    def _play(self) -> None:
        for life in self.lives:
            code = self._live_on(life)
            if code != -signal.SIGKILL:
                return self._check_end(code)
            self._after_kill(life)
        self.calm.set()
        return self._check_end(self._live_on(Life()))

    def _live_on(self, life: Life) -> int:
        """A life, again and again while the target cannot be used: the link is down, or another holds the GPUs."""
        for _ in range(RETRIES):
            code = self._live(life)
            if code != UNUSABLE or not self.ground.ssh:
                break
            time.sleep(self.rng.uniform(0.1, 0.6))
        return code

    def _check_end(self, code: int) -> None:
        state = self.state()
        ended = state.ending if state else None
        if (code, ended) not in ((0, "completed"), (COMPLETE, "completed")):
            self._complain(f"exit {code}, and the session is {ended or 'not at its end'}")

    def _complain(self, text: str) -> None:
        errors = (self.logs / "stderr").read_text(errors="replace").strip()
        said = [line for _, line in self.heard[-1].lines][-3:] if self.heard else []
        self.trouble.append(" | ".join([text, *said, errors[-1500:]]))

    def _live(self, life: Life) -> int:
        """Run tunebot once; its exit code."""
        self.logs.mkdir(exist_ok=True)
        plan = {
            "trace": str(self.logs / "trace"),
            "synced": str(self.logs / "synced"),
            "cues": [asdict(cue) for cue in life.cues],
            "harsh": life.harsh,
            "fsync": not self.without.fsync,
            "cuts": self.without.wrapper,
        }
        file = self.logs / "plan.json"
        file.write_text(json.dumps(plan))
        words = ["resume", str(self.folder), "--headless"] if self.folder else None
        words = words or self.ground.run_words(self.book, self.logs)
        heard = Heard([], life.power_loss)
        self.heard.append(heard)
        with (self.logs / "stderr").open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.victim", str(file), *words],
                cwd=REPOSITORY,
                env=self.ground.env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        listener = threading.Thread(target=_listen, args=(process, heard), daemon=True)
        listener.start()
        if life.hit and life.hit_when == "up":
            threading.Thread(target=self._hit_in, args=(life,), daemon=True).start()
        try:
            code = process.wait(LIFE_LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
            self._complain(f"no end after {LIFE_LIMIT_S:.0f} s")
        listener.join(10)
        self._find_folder()
        return code

    def _find_folder(self) -> None:
        if self.folder is None:
            begun = [f for f in session_folders(self.logs) if b"\n" in (f / FILE).read_bytes()]
            self.folder = begun[0] if begun else None

    def _after_kill(self, life: Life) -> None:
        state = self.state()
        cue = life.cues[-1] if life.cues else None
        place = f"{cue.at} {cue.name or cue.n or f'{cue.delay_s:.2f} s'} {cue.moment}" if cue else "not planned"
        running = state is not None and any(task.status is None for task in state.tasks.values())
        self.kills.append(Kill(state_name(state), running, place))
        if life.hit and life.hit_when == "down":
            self._hit(life)
        if self.folder is None:
            return
        journal = self.folder / FILE
        size, told = journal.stat().st_size, (self.logs / "synced").read_text()
        synced = min(size, int(told or 0))
        self.prefixes.append(journal.read_bytes()[:synced])
        if life.power_loss:
            os.truncate(journal, synced + int(life.torn * (size - synced)))
            self.faults["power losses"] += 1
            # What is left is on the disk. A record that is torn is not.
            left = journal.read_bytes().rfind(b"\n") + 1
            (self.logs / "synced").write_text(SIZE % left)
            if left == 0 and not any(heard.lines for heard in self.heard):
                self.folder = None  # it never began: nobody knows of it

    def state(self) -> State | None:
        """The state by the journal; None where there is none."""
        try:
            return fold(self.folder) if self.folder else None
        except (JournalError, ValueError, IllegalTransition):
            return None

    def _hit_in(self, life: Life) -> None:
        """As `_hit`, with the next launch that begins."""
        before = len(self._leaders())
        while len(self._leaders()) == before:
            if self.over.wait(0.05):
                return
        time.sleep(life.hit_delay_s)
        self._hit(life)

    def _leaders(self) -> list[dict[str, Any]]:
        self._find_folder()
        return [record for record in read_ledger(self.ledger) if record["kind"] == "launch"]

    def _hit(self, life: Life) -> None:
        """Kill the leader or a rank of the launch that runs, if one does."""
        alive = set(alive_pids(self.ledger))
        leader = next((record for record in reversed(self._leaders()) if record["pid"] in alive), None)
        if leader is None:
            return
        starts = [record for record in read_ledger(self.ledger) if record["kind"] == "rank_start"]
        ranks = [r["pid"] for r in starts if r["launcher"] == leader["pid"] and r["pid"] in alive]
        pid = self.rng.choice(ranks) if life.hit == "rank" and ranks else leader["pid"]
        self.ground.hit.add(leader["launch_id"])
        kill_all([pid])
        self.faults[f"{life.hit}s killed"] += 1


def state_name(state: State | None) -> str:
    """The state of a session in one word."""
    if state is None:
        return "not begun"
    if state.ending:
        return "ended"
    if launch := state.current:
        return "serving" if launch.purpose == "serve" else str(launch.stage)
    preparing = any(experiment.stage is Stage.PREPARING for experiment in state.experiments.values())
    return "preparing" if preparing else "between"


def _listen(process: "subprocess.Popen[bytes]", heard: Heard) -> None:
    assert process.stdout
    for line in process.stdout:
        if line.endswith(b"\n"):
            heard.lines.append((time.time(), line.decode(errors="replace").rstrip("\n")))


def weather(ground: Ground, seed: int, stop: threading.Event, faults: Counter[str]) -> None:
    """Until `stop`: the connection is killed, cut and stalled at random times."""
    rng = random.Random(seed)
    assert ground.sshd and ground.proxy
    while not stop.wait(rng.uniform(1.0, 6.0)):
        what = rng.choice(("sshd killed", "cut", "stalled"))
        faults[f"links {what}" if what != "sshd killed" else "sshd connections killed"] += 1
        if what == "sshd killed":
            ground.sshd.signal_connections(signal.SIGKILL)
        elif what == "cut":
            ground.proxy.cut()
        else:
            ground.proxy.stall(True)
            stop.wait(rng.uniform(0.2, 4.0))
            ground.proxy.stall(False)
