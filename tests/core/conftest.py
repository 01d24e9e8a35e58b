"""A small playbook, and a driver that plays the world: it answers commands with events."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

import pytest

from agent.core import commands as do
from agent.core import events as ev
from agent.core.guard import GuardResult
from agent.core.model import Failure, Finding, Gpu, Host, Phase, RoundMetrics
from agent.core.reduce import initial, reduce
from agent.core.schedule import next_decision
from agent.core.state import LaunchStage, State
from agent.playbook.model import Playbook

HOST = Host(
    name="box",
    gpus=(Gpu(index=0, name="RTX PRO 6000", sm_major=12, sm_minor=0, memory_mib=97887, driver="580.1"),),
)


def playbook(*experiments: dict[str, Any], **changes: Any) -> Playbook:
    """A playbook whose first experiment is the baseline; the others are based on it unless they say otherwise."""
    first, *rest = experiments or ({"id": "base"},)
    made = [{"baseline": True, **first}, *({"based_on": first["id"], **other} for other in rest)]
    return Playbook.model_validate(
        {
            "tunebot": 1,
            "name": "test",
            "target": "local",
            "server": {"kind": "sglang", "command": ["python3", "-m", "sglang.launch_server"], "args": {"tp": "8"}},
            "objective": {"workload": "single", "min_gain": "2%"},
            "workloads": [{"name": "single", "rounds": 3}],
            "at_end": "stop",
            "accept": "resolver",
            "launches": 1,
            "experiments": made,
            **changes,
        }
    )


def started(book: Playbook, **changes: Any) -> ev.SessionStarted:
    fields: dict[str, Any] = {"approved": (), "keep": False, "attended": False, "seed": 7, "version": "0"} | changes
    return ev.SessionStarted(at=100.0, session="s", playbook=book, host=HOST, **fields)


def resumed(state: State, **changes: Any) -> ev.SessionResumed:
    fields: dict[str, Any] = {"approved": (), "keep": False, "attended": False, "version": "0"} | changes
    return ev.SessionResumed(at=state.now + 60.0, host=HOST, **fields)


def metrics(output_throughput: float) -> RoundMetrics:
    return RoundMetrics(
        requests=4,
        failed=0,
        duration_s=1.0,
        prompt_tokens=100,
        output_tokens=100,
        cached_tokens=0,
        output_throughput=output_throughput,
        request_throughput=1.0,
        ttft_ms=50.0,
        tpot_ms=1000 / output_throughput,
        tokens_per_chunk=1.0,
    )


def guard_result(right: str) -> GuardResult:
    """Twenty answers, all right ("1") or all wrong ("0")."""
    return GuardResult(question_set="q", asked_over="chat", right=right * 20, faults="-" * 20, answers=("x",) * 20)


Speed = Callable[[State, do.MeasureRound], float]


@dataclass
class World:
    """Answers every command at once. `fails` maps an experiment to the reason of its failed load.

    `speeds` and `fails` know launches by their ids too, which come before experiments.

    Rounds lie by turns the fraction `spread` above and below the speed of their launch.

    `voids`: where tunebot was cut off with a launch just requested, nothing of it had been started. Experiments of
    `wrong` answer the guard's questions wrongly.
    """

    speeds: dict[str, float] = field(default_factory=dict)
    fails: dict[str, str] = field(default_factory=dict)
    findings: dict[str, Finding] = field(default_factory=dict)
    prepare_ok: bool = True
    spread: float = 0.0
    voids: bool = False
    wrong: frozenset[str] = frozenset()
    done: list[do.Command] = field(default_factory=list)
    events: list[ev.Event] = field(default_factory=list)

    def answer(self, state: State, command: do.Command, at: float) -> list[ev.Event]:
        """The events in which a command ends."""
        match command:
            case do.RunTask(task):
                finding = self.findings.get(task.id, Finding(summary="nothing"))
                return [ev.TaskFinished(at=at, task=task.id, status="done", finding=finding)]
            case do.Prepare(experiment, index):
                return [
                    ev.PrepareFinished(at=at, experiment=experiment, step=index, ok=self.prepare_ok, summary="exit 0")
                ]
            case do.StartServer(launch):
                return self._start(state, launch, at)
            case do.RejoinServer(launch, _, seen):
                if seen.stage is LaunchStage.READY:
                    return []
                if seen.stage is LaunchStage.REQUESTED and self.voids:
                    return [ev.LaunchVoid(at=at, launch=launch, reason="the start was cut off")]
                # What was journalled before is not told again.
                told = 0 if seen.stage is LaunchStage.REQUESTED else 1 + len(seen.phases)
                return self._start(state, launch, at)[told:]
            case do.MeasureRound(launch, _, workload, index):
                speed = self.speeds.get(state.launches[launch].experiment, 100.0)
                value = self.speeds.get(launch, speed) * (1 + self.spread * (-1) ** index) + 0.1 * index
                return [
                    ev.RoundMeasured(at=at, launch=launch, workload=workload.name, index=index, metrics=metrics(value))
                ]
            case do.AskGuard(launch):
                right = "0" if state.launches[launch].experiment in self.wrong else "1"
                return [ev.GuardEnded(at=at, launch=launch, result=guard_result(right))]
            case do.StopServer(launch):
                return [ev.ServerStopped(at=at, launch=launch, exit_code=-9, left=())]
            case _:
                return []

    def _start(self, state: State, launch: str, at: float) -> list[ev.Event]:
        reason = self.fails.get(launch) or self.fails.get(state.launches[launch].experiment)
        begun: list[ev.Event] = [
            ev.LaunchStarted(at=at, launch=launch, pid=42, port=30000, argv=("python3",)),
            ev.PhaseEntered(at=at, launch=launch, phase=Phase.LOAD_WEIGHTS, remaining_s=None),
        ]
        if reason is not None:
            failure = Failure(phase=Phase.LOAD_WEIGHTS, reason=reason, category="oom-weights")
            return [*begun, ev.ServerFailed(at=at, launch=launch, failure=failure)]
        return [*begun, ev.ServerReady(at=at, launch=launch, load_s=60.0, flags=())]

    def play(self, book: Playbook, cuts: Collection[int] = (), **changes: Any) -> State:
        """Run a whole session; its final state. After each of `cuts` events tunebot is killed, and resumed later."""
        start = started(book, **changes)
        self.events = [start]
        state = initial(start)
        inbox: list[ev.Event] = []
        for _ in range(10_000):
            if len(self.events) in cuts and not state.ending:
                # What was about to be reported is lost; what runs on the host goes on.
                inbox = []
                event: ev.Event | None = resumed(state)
            else:
                event = next_decision(state)
            if event is None:
                if state.ending or not inbox:
                    return state
                event = inbox.pop(0)
            self.events.append(event)
            state, commands = reduce(state, event)
            for command in commands:
                self.done.append(command)
                inbox += self.answer(state, command, state.now + 1)
        raise AssertionError("the session does not end")

    def launched(self) -> list[str]:
        """The experiments that were launched, in order."""
        return [e.experiment for e in self.events if isinstance(e, ev.LaunchRequested)]


@pytest.fixture
def world() -> World:
    return World()
