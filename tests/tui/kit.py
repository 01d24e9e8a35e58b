"""A session that a test drives event by event, as a source for the screen; and how tests wait."""

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from textual.pilot import Pilot

from agent.core import events as ev
from agent.core.model import Failure, Finding, Gpu, Host, Phase, Quote
from agent.core.reduce import initial, reduce
from agent.core.schedule import next_decision
from agent.core.state import Launch, State
from agent.core.views.flag_help import FlagFacts
from agent.core.views.panels import GpuUse
from agent.logtimes import WHOLE, Shown
from agent.playbook.model import Playbook
from tests.core.conftest import metrics, playbook
from tui.source import no_flag_facts

START = 1_796_000_000.0
HOST = Host(
    name="gpu8",
    gpus=tuple(
        Gpu(index=n, name="RTX PRO 6000", sm_major=12, sm_minor=0, memory_mib=97887, driver="580.1") for n in range(8)
    ),
)
GPUS = tuple(GpuUse(index=n, used_mib=80_000 + 1_500 * n, total_mib=97_887, busy=0.5, power_w=300.0) for n in range(8))

STORY = playbook(
    {"id": "baseline"},
    {"id": "eagle3", "args": {"speculative-algorithm": "EAGLE3"}},
    {
        "id": "nccl-tree",
        "env": {"NCCL_ALGO": "Tree"},
        "preflight": [{"env": {"name": "NCCL_ALGO", "not_in": ["Tree"], "why": "bare Tree has no AllGather"}}],
    },
    {"id": "ep-plain", "args": {"ep-size": "8"}, "research": [{"grep": {"pattern": "ep_size", "in": ["sglang:srt"]}}]},
    {
        "id": "cuda13",
        "args": {"cuda-graph-max-bs": "64"},
        "prepare": [{"run": ["python3", "-m", "venv", "~/venvs/cu130"], "creates": "~/venvs/cu130"}],
    },
    name="kimi-k2.5-8x-rtx-pro-6000",
)


class Session:
    """A Source whose events come from the test. Decisions are made as the engine makes them."""

    read_only = ""
    elsewhere = False
    trouble = ""

    def __init__(self, book: Playbook = STORY, folder: Path = Path(), host: Host = HOST, attended: bool = True) -> None:
        start = ev.SessionStarted(
            at=START,
            session="s",
            playbook=book,
            host=host,
            approved=(),
            keep=False,
            attended=attended,
            seed=7,
            version="0",
        )
        self.state: State = initial(start)
        self.version = 0
        self.folder = folder
        self.gpus: tuple[GpuUse, ...] = GPUS
        self.redact: Callable[[str], str] = str
        self.known_flags: Sequence[Sequence[str]] = ()
        self.flag_facts: Callable[[str], FlagFacts | None] = no_flag_facts
        self.submitted: list[ev.Event] = []
        self.ahead_s = 0.0

    def now(self) -> float:
        """Frozen: the time of the last event, and as much as the test lets pass."""
        return self.state.now + self.ahead_s

    def log_shown(self, launch: Launch, now: float) -> Shown:
        """All of it."""
        return WHOLE

    def submit(self, event: ev.Event) -> None:
        """What a person did, carried out at once."""
        self.submitted.append(event)
        self.give(event)

    @property
    def launch(self) -> Launch:
        """The launch that is up."""
        assert self.state.current is not None
        return self.state.current

    @property
    def at(self) -> float:
        """A second after the last event."""
        return self.state.now + 1

    def begin(self) -> "Session":
        """Make the decisions of the start: the baseline is launched."""
        return self.give(ev.Noted(at=START, text="begin"))

    def give(self, *events: ev.Event) -> "Session":
        """Reduce events, and the decisions that follow from each."""
        for event in events:
            self.state, _ = reduce(self.state, event)
            while (decision := next_decision(self.state)) is not None:
                self.state, _ = reduce(self.state, decision)
            self.version += 1
        return self

    def loading(self, fraction: float | None = 0.43, remaining_s: float | None = 400.0) -> "Session":
        """The present launch comes to its weights."""
        name = self.launch.id
        self.give(ev.LaunchStarted(at=self.at, launch=name, pid=4711, port=30_000, argv=("python3", "-m", "sglang")))
        self.give(ev.PhaseEntered(at=self.state.now + 12, launch=name, phase=Phase.DIST_INIT, remaining_s=remaining_s))
        self.give(
            ev.PhaseEntered(at=self.state.now + 30, launch=name, phase=Phase.LOAD_WEIGHTS, remaining_s=remaining_s)
        )
        return self.progress(23, fraction, remaining_s)

    def progress(self, done: int, fraction: float | None, remaining_s: float | None) -> "Session":
        """How far the weights are, of 64."""
        return self.give(
            ev.PhaseProgressed(
                at=self.at,
                launch=self.launch.id,
                phase=Phase.LOAD_WEIGHTS,
                done=done,
                total=64,
                fraction=fraction,
                remaining_s=remaining_s,
            )
        )

    def ready(self) -> "Session":
        """The present launch gets ready; its first round begins."""
        load_s = self.at - self.launch.requested_at
        return self.give(ev.ServerReady(at=self.at, launch=self.launch.id, load_s=load_s, flags=()))

    def round(self, value: float) -> "Session":
        """The round that is being measured ends."""
        assert self.launch.measuring is not None
        workload, index = self.launch.measuring
        return self.give(
            ev.RoundMeasured(
                at=self.at, launch=self.launch.id, workload=workload, index=index, metrics=metrics(value + 0.1 * index)
            )
        )

    def fail(self, reason: str) -> "Session":
        """The present launch fails."""
        log = Quote(path="launch.log", line=2, text=reason)
        failure = Failure(phase=self.launch.phase, reason=reason, category="oom", evidence=(log,), rank=3)
        return self.give(ev.ServerFailed(at=self.at, launch=self.launch.id, failure=failure))

    def stopped(self) -> "Session":
        """The present stop ends."""
        return self.give(ev.ServerStopped(at=self.at, launch=self.launch.id, exit_code=0, left=()))

    def measured(self, *values: float) -> "Session":
        """The present launch is measured to its end, and stopped where another one is next."""
        self.loading().ready()
        for value in values:
            self.round(value)
        if self.state.current is not None and self.state.current.stage == "stopping":
            self.stopped()
        return self

    def finish_tasks(self, **findings: Finding) -> "Session":
        """Every running task ends, with the finding of its experiment (`-` is written `_`)."""
        for task in [t for t in self.state.tasks.values() if t.status is None]:
            finding = findings.get(task.task.experiment.replace("-", "_"), Finding(summary="3 hits  server_args.py:7"))
            self.give(ev.TaskFinished(at=self.at, task=task.task.id, status="done", finding=finding))
        return self


FAILS = Finding(summary="NCCL_ALGO is Tree: bare Tree has no AllGather", outcome="fails")


def story(upto: str, folder: Path = Path()) -> Session:
    """The story up to a moment: start, begun, loading, measuring, failed, waiting, finished."""
    session = Session(folder=folder)
    steps: dict[str, Callable[[], Any]] = {
        "start": lambda: None,
        "begun": session.begin,
        "loading": lambda: session.loading().finish_tasks(nccl_tree=FAILS),
        "measuring": lambda: session.ready().round(89.5).round(89.4),
        "second": lambda: session.round(89.6) and session.stopped(),
        "failed": lambda: session.loading().fail("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"),
        "third": session.stopped,
        "waiting": lambda: session.measured(101.0, 101.3, 100.8),
        "finished": lambda: session.give(ev.ExperimentSkipped(at=session.at, experiment="cuda13")).stopped(),
    }
    for name, step in steps.items():
        step()
        if name == upto:
            return session
    raise KeyError(upto)


async def until(pilot: Pilot[Any], holds: Callable[[], object], seconds: float = 5.0) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "the condition does not come true"
        await pilot.pause()
        await asyncio.sleep(0.01)
