"""What an LLM is told of a session so far: the goal, the board with its dead ends, what is still to come."""

from collections.abc import Iterator
from itertools import groupby

from agent.core.plan import flag_words
from agent.core.state import State
from agent.core.terms import believed, brief, measured_s
from agent.core.views.basics import Row, board
from agent.core.views.flags import shown_args, shown_env
from agent.core.views.strategy import pivot_text
from agent.playbook.metrics import unit_of

NEXT_QUESTION = (
    "Which experiment should be tried next, and why? Take the results and the dead ends into account, look into the "
    "source, and propose exactly one that is not on the board."
)

LONGEST = 6000
"""Characters; what is on the board last is cut off first."""

_REASON = 200


def briefing(state: State) -> str:
    """The board as plain lines, with its reasons; not redacted."""
    objective = state.playbook.objective
    goal = f"The goal is a better {objective.metric} ({unit_of(objective.metric)}) in workload {objective.workload}"
    lines = [f"{goal}; a gain below {objective.min_gain:.0%} does not count."]
    lines += [*_terms(state), *(pivot_text(state.playbook, pivot) for pivot in state.pivots)]
    for place, rows in groupby(board(state), key=lambda row: row.place):
        lines += [str(place), *(_line(state, row) for row in rows)]
    return "\n".join(lines)[:LONGEST]


def _terms(state: State) -> Iterator[str]:
    """What a step of the server is made of, by the playbook and by what was measured."""
    for name, term in state.playbook.terms.items():
        for kind, verifies in (("decode step", False), ("verify pass", True)):
            measured = measured_s(state, name, verifies)
            each = f"{brief(measured)}, measured" if measured else f"{brief(believed(term, verifies))}, believed"
            yield f"term {name}: {term.count} calls in a {kind} of {each} each"


def _line(state: State, row: Row) -> str:
    spec = state.experiments[row.experiment].spec
    on = f" (on {spec.based_on})" if spec.based_on else ""
    gone = [f"without --{flag}" for flag, value in spec.args.items() if value is None]
    env = [f"{name}={value}" for name, value in shown_env(spec.env).items()]
    changes = " ".join([*flag_words(shown_args(spec.args)), *gone, *env])
    parts = (row.word, row.value, row.change, "the incumbent" if row.incumbent else "", row.reason[:_REASON])
    return f"  {row.experiment}{on}: {changes or 'no change'}; {', '.join(part for part in parts if part)}"
