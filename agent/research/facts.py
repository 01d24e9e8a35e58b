"""What a question to an LLM may know of its session: a frozen view, made anew whenever it is asked for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from agent.core.model import LaunchConfig
from agent.core.plan import config_of
from agent.core.state import Launch, LaunchStage, State
from agent.research.budget import Amount


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFacts:
    """One launch. `port` is None where none of ours listens; `log` is the session's own copy, which may not exist."""

    launch: str
    experiment: str
    stage: str
    is_up: bool
    port: int | None
    log: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts:
    """The launches, oldest first, what each question has used, by its task, and whether a round is measured now.

    `terms` has the calls of each term of the cost model. `config_of` is the configuration of an experiment on the
    board; None where it has no such experiment.
    """

    launches: tuple[LaunchFacts, ...] = ()
    asked: Mapping[str, Amount] = field(default_factory=dict)
    measuring: bool = False
    terms: Mapping[str, int] = field(default_factory=dict)
    config_of: Callable[[str], LaunchConfig | None] = lambda experiment: None


Facts = Callable[[], SessionFacts]


def facts_of(state: State, log_of: Callable[[str], Path]) -> SessionFacts:
    """What a state tells; `log_of` names the copy of a launch's log."""
    return SessionFacts(
        launches=tuple(_launch(launch, log_of(launch.id)) for launch in state.launches.values() if not launch.void),
        asked={
            task.task.id: Amount.of(task.spent, (task.ended_at or state.now) - task.started_at)
            for task in state.tasks.values()
            if task.spent
        },
        measuring=state.measuring,
        terms={name: term.count for name, term in state.playbook.terms.items()},
        config_of=lambda experiment: config_of(state, experiment) if experiment in state.experiments else None,
    )


def _launch(launch: Launch, log: Path) -> LaunchFacts:
    answers = launch.purpose != "attach" and launch.stage in (LaunchStage.READY, LaunchStage.MEASURING)
    return LaunchFacts(
        launch=launch.id,
        experiment=launch.experiment,
        stage=launch.stage,
        is_up=launch.is_up,
        port=launch.port if answers else None,
        log=log,
    )
