"""States to look at: one of every kind of thing, and the same full of text that tries to act."""

from dataclasses import replace
from typing import Any

from agent.core import events as ev
from agent.core.model import Failure, Finding, FlagCheck, Gpu, Host, LaunchConfig, Phase, Quote, Task
from agent.core.plan import config_of
from agent.core.reduce import initial, reduce
from agent.core.schedule import next_decision
from agent.core.state import State
from agent.playbook.model import AskEntry, GrepEntry, ReadEntry
from tests.core.conftest import HOST, metrics, playbook

HOSTILE = [
    "[/nope] x",
    "[@click=app.quit]x[/]",
    "[ERROR] [b]bold[/b]",
    "\x1b[31mred\x1b[2J\x1b[H",
    "\x1b]52;c;aGVsbG8=\x07copied",
    "\u202etxt.exe\u2066\u200b",
    "a\nb\r\nc\td",
    "\ud800 lone",
    "x" * 1_000_000,
    "[" * 3000,
]


def solid(text: str) -> str:
    """Text that a playbook can hold: YAML has no lone surrogates."""
    return text.encode("utf-8", "replace").decode()


def book(text: str = "plain words", *, accept: str | None = None) -> Any:
    """A playbook with one of each: flags, variables, prepare steps."""
    text = solid(text)
    made = playbook(
        {"id": "base", "args": {"cuda-graph-max-bs": "128"}, "env": {"NCCL_ALGO": text}},
        {"id": "idea", "why": text, "args": {"cuda-graph-max-bs": None, "moe-a2a-backend": text, "tp": "4"}},
        {
            "id": "build",
            "why": text,
            "prepare": [
                {"run": ["python3", "-m", "venv", text], "creates": text},
                {"run": ["pip", "install", "x"]},
            ],
        },
        {"id": "later", "env": {"API_KEY": "very-secret-value", "LONG": text}},
        accept=accept,
    )
    return made.model_copy(
        update={"server": made.server.model_copy(update={"source": {"sglang": "~/s", "flashinfer": "~/f"}})}
    )


def task(state: State, experiment: str, key: str, kind: Any, entry: Any, title: str = "title") -> Task:
    return Task(
        id=f"{experiment}/{key}",
        experiment=experiment,
        kind=kind,
        title=title,
        entry=entry,
        config=config_of(state, experiment),
        needed=False,
    )


def play(state: State, *events: ev.Event) -> State:
    for event in events:
        state, _ = reduce(state, event)
    return state


def begun(text: str = "plain words", **changes: Any) -> State:
    """Before anything ran; nothing is approved."""
    gpu = Gpu(index=0, name=text, sm_major=12, sm_minor=0, memory_mib=97887, driver=text)
    start = ev.SessionStarted(
        at=100.0,
        session="s",
        playbook=book(text, **changes),
        host=Host(name=text, gpus=(gpu, *HOST.gpus)),
        approved=(),
        keep=False,
        seed=7,
        version="0",
        attended=True,
    )
    return initial(start)


def researched(text: str = "plain words", **changes: Any) -> State:
    """A grep runs; a read found a demand of `later`; a question of `build` needs a key."""
    state = begun(text, **changes)
    grep = GrepEntry.model_validate({"grep": {"pattern": solid(text), "in": ["sglang:a.py"]}})
    read = ReadEntry.model_validate({"read": {"in": "sglang:a.py", "around": "needs it"}})
    ask = AskEntry.model_validate({"ask": "xxx" + solid(text)})
    quotes = tuple(Quote(path=text, line=n, text=f"    {text}") for n in range(1, 5))
    found = Finding(
        summary=text,
        quotes=(*quotes, Quote(path=text, line=9, text="assert moe_runner_backend in ['cutlass'] needs it")),
        requires={"moe-runner-backend": "cutlass", "tp": "2"},
    )
    return play(
        state,
        ev.TaskRequested(at=101.0, task=task(state, "idea", "1", "grep", grep, text)),
        ev.TaskProgressed(at=102.0, task="idea/1", action=text),
        ev.TaskRequested(at=102.0, task=task(state, "later", "1", "read", read, text)),
        ev.TaskFinished(at=103.0, task="later/1", status="done", finding=found),
        ev.TaskRequested(at=103.0, task=task(state, "build", "1", "ask", ask, text)),
        ev.TaskFinished(at=103.0, task="build/1", status="needs-key", finding=Finding(summary=text)),
    )


def loading(state: State, experiment: str, launch: str, at: float) -> State:
    config: LaunchConfig = config_of(state, experiment)
    return play(
        state,
        ev.LaunchRequested(at=at, launch=launch, experiment=experiment, purpose="measure", config=config),
        ev.LaunchStarted(at=at + 1, launch=launch, pid=1, port=2, argv=(*config.command, "--tp", "8", "a b")),
        ev.PhaseEntered(at=at + 2, launch=launch, phase=Phase.IMPORT, remaining_s=None),
        ev.PhaseEntered(at=at + 5, launch=launch, phase=Phase.LOAD_WEIGHTS, remaining_s=None),
    )


def verdict_due(state: State) -> ev.VerdictReached:
    """The verdict that is due when no check holds it up."""
    flags = {f"{name}/flags": state.tasks["build/1"] for name in state.experiments}
    decision = next_decision(replace(state, tasks=flags))
    assert isinstance(decision, ev.VerdictReached)
    return decision


def ended(text: str = "plain words") -> State:
    """The baseline was measured and kept; `idea` failed in its load."""
    state = loading(researched(text), "base", "s-01", 110.0)
    flags = (
        FlagCheck(flag="tp", requested="8", effective="8", status="equal"),
        FlagCheck(flag="cuda-graph-max-bs", requested="128", effective=text, status="rewritten"),
    )
    state = play(state, ev.ServerReady(at=130.0, launch="s-01", load_s=19.0, flags=flags))
    for index in range(3):
        state = play(
            state,
            ev.RoundRequested(at=131.0, launch="s-01", workload="single", index=index, seed=1),
            ev.RoundMeasured(
                at=132.0, launch="s-01", workload="single", index=index, metrics=metrics(100.0 + 0.5 * index)
            ),
        )
    state = play(
        state,
        verdict_due(state),
        ev.StopRequested(at=133.0, launch="s-01", why="next"),
        ev.ServerStopped(at=134.0, launch="s-01", exit_code=0, left=()),
    )
    state = loading(state, "idea", "s-02", 140.0)
    failure = Failure(
        phase=Phase.LOAD_WEIGHTS,
        reason=text,
        category="oom",
        evidence=(Quote(path=text, line=3, text=text),),
        rank=3,
        exit_code=-9,
    )
    state = play(state, ev.ServerFailed(at=150.0, launch="s-02", failure=failure))
    return play(
        state,
        verdict_due(state),
        ev.StopRequested(at=151.0, launch="s-02", why="it failed"),
        ev.ServerStopped(at=152.0, launch="s-02", exit_code=-9, left=(77,)),
    )
