"""Whether what a person asks for can be done now; if not, why, in a few words."""

from agent.core import events as ev
from agent.core.legal import ALIVE
from agent.core.state import Launch, Stage, State
from agent.core.views.briefing import NEXT_QUESTION
from agent.playbook.model import AskEntry


def cannot_skip(state: State, experiment: str) -> str | None:
    """Why an experiment cannot be skipped, None if it can."""
    found = state.experiments[experiment]
    if found.stage is Stage.ENDED:
        return f"{experiment} has ended"
    may = found.stage in (Stage.PROPOSED, Stage.TODO, Stage.NEAR)
    return None if may else f"{experiment} runs: e ends its launch"


def cannot_retry(state: State, experiment: str) -> str | None:
    """Why an experiment cannot be tried again, None if it can."""
    found = state.experiments[experiment]
    if found.stage is Stage.PROPOSED:
        return f"{experiment} is proposed: y shows what it would run"
    if found.stage is not Stage.ENDED:
        return f"{experiment} has not ended"
    return f"{experiment} is kept: nothing to retry" if found.verdict and found.verdict.word == "keep" else None


def question_for_next(state: State, at: float) -> ev.ResearchAdded:
    """The wish to have an LLM look for the experiment to try next, asked about the best one so far."""
    about = state.incumbent or state.baseline.id
    entry = AskEntry.model_validate({"ask": NEXT_QUESTION})
    return ev.ResearchAdded(at=at, experiment=about, entry=entry)


def launch_to_end(state: State) -> Launch | None:
    """The launch that a person can end now: one that loads or is measured."""
    launch = state.current
    return launch if launch and launch.stage in ALIVE else None
