"""The exit code of a command whose session has ended."""

from agent.core.state import State
from agent.diagnostics import Exit

_OF_ENDING = {"interrupted": Exit.INTERRUPTED, "target-lost": Exit.TARGET_UNUSABLE}


def exit_of(state: State) -> Exit:
    """By how the session ended; one that came to its end without a single round is told from the others."""
    if state.ending in _OF_ENDING:
        return _OF_ENDING[state.ending]
    is_measured = any(launch.rounds for launch in state.launches.values())
    return Exit.OK if is_measured else Exit.NOTHING_MEASURED
