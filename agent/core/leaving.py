"""What a person should know, and decide, before the session ends by leaving it."""

from dataclasses import dataclass

from agent.core.state import Stage, State
from agent.core.views.basics import now_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaving:
    """What leaving now cuts short. `server` is the experiment whose server is up: to keep or to stop."""

    server: str
    doing: str
    unfinished: int
    tasks: int

    @property
    def asks(self) -> bool:
        """Whether there is anything to ask."""
        return bool(self.server or self.unfinished or self.tasks)


def leaving(state: State) -> Leaving:
    """What would be lost, or goes on, if a person left now."""
    if state.ending:
        return Leaving(server="", doing="", unfinished=0, tasks=0)
    launch = state.current
    doing = ""
    if launch is not None:
        experiment = state.experiments[launch.experiment]
        serves = "serving" if launch.load_s is not None else "loading"
        doing = serves if experiment.stage is Stage.ENDED else now_text(state, experiment)
    return Leaving(
        server=launch.experiment if launch else "",
        doing=doing,
        unfinished=sum(
            experiment.stage not in (Stage.ENDED, Stage.PROPOSED) for experiment in state.experiments.values()
        ),
        tasks=sum(task.status is None for task in state.tasks.values()),
    )
