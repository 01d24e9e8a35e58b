"""The values of a report. All frozen; units are in the names, times are seconds since the session began."""

from dataclasses import dataclass
from typing import Literal

from agent.core.model import Answer, Quote, RoundMetrics, Spent, Verdict
from agent.core.state import Todo
from agent.core.views.details import Details
from agent.core.views.flags import FlagRow
from agent.core.views.loads import Load
from agent.core.views.strategy import Strategy
from agent.report.lane import Span

NOT_AS_ASKED = ("rewritten", "contradicted")
"""How a flag is told whose effective value is another than the requested one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """Which session this is. `began_at` and `now` are seconds since the epoch.

    `gpus` has a line for each kind of GPU, `host_facts` one for each thing that was read of the host beside them, such
    as driver options. `ending` is in words: completed, interrupted, target-lost, still running, or cut off.
    `min_gain` is a fraction.
    """

    session: str
    playbook: str
    host: str
    simulated: bool
    gpus: tuple[str, ...]
    host_facts: tuple[str, ...]
    began_at: float
    now: float
    ending: str
    resumes: int
    metric: str
    unit: str
    workload: str
    min_gain: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BoardLine:
    """An experiment on the board. `mean` is of the objective over all its rounds, with half its 95 % interval.

    `change` is a fraction against the baseline, however the metric counts. What was not measured has no numbers.
    """

    place: str
    experiment: str
    glyph: str
    word: str
    incumbent: bool
    mean: float | None
    half_width_95: float | None
    change: float | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The incumbent, and the command that launches it as one would type it."""

    experiment: str
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mean:
    """The mean of a metric over rounds, with half its 95 % interval (None for a single round)."""

    metric: str
    unit: str
    mean: float
    half_width_95: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The rounds of a workload on one launch, in their order.

    `repeated` are those that were spoilt and measured again: `round 3: why`.
    """

    workload: str
    rounds: tuple[RoundMetrics, ...]
    means: tuple[Mean, ...]
    repeated: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchFacts:
    """One start of the server. `number` counts those of the session from one; `load` has its phases.

    `load_s` is the time from the start of the process until ready, None where it never was; `reason` says why it
    failed, or could not be measured.
    """

    id: str
    number: int
    load: Load
    load_s: float | None
    reason: str
    measured: tuple[Measured, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """An experiment with all that became of it. `place` is that on the board, `evidence` what its end stands on."""

    place: str
    details: Details
    parent: Verdict | None
    incumbent: Verdict | None
    evidence: tuple[Quote, ...]
    launches: tuple[LaunchFacts, ...]

    @property
    def changes(self) -> tuple[FlagRow, ...]:
        """Flags and variables that it changes against its parent, or that the server did not take as asked."""
        rows = (*self.details.flags, *self.details.env)
        return tuple(row for row in rows if row.mark != " " or row.status in NOT_AS_ASKED)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFacts:
    """A background task with what it found; `requires` are flags that it says are demanded."""

    id: str
    experiment: str
    kind: str
    title: str
    status: str
    outcome: str | None
    summary: str
    requires: tuple[tuple[str, str], ...]
    quotes: tuple[Quote, ...]
    gist: int
    answer: Answer | None
    spent: Spent | None
    start_s: float
    end_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """An experiment whose load was never paid: a check ruled it out, or its best case was not worth one.

    `estimate_s` is what the load would have taken, `basis` by what that is estimated; None where nothing was loaded.
    """

    experiment: str
    by: Literal["check", "best case"]
    estimate_s: float | None
    basis: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LlmSpent:
    """What all questions to an LLM used. `cost_usd` counts those with known prices; `unpriced` are the others."""

    questions: int
    calls: int
    read_bytes: int
    input_tokens: int
    output_tokens: int
    cost_usd: float
    unpriced: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """Where the time went. The times of the server lane (loading to away) add up to `elapsed_s`.

    `loads` are starts of a server that tunebot made, without smoke loads. `mean_load_s` is over those that got ready.
    `smoke_s` is what the `smoke_loads` took of the server lane; `smoke_failed` did not start.
    Times of tasks are summed up over tasks, which run beside each other; `tasks_in_loads_s` is the part inside loads.
    `spoilt_s` is what the `spoilt_rounds` took that were repeated, a part of `measuring_s`.
    """

    elapsed_s: float
    loading_s: float
    measuring_s: float
    spoilt_rounds: int
    spoilt_s: float
    stopping_s: float
    preparing_s: float
    idle_s: float
    away_s: float
    loads: int
    loads_ready: int
    mean_load_s: float | None
    smoke_loads: int
    smoke_failed: int
    smoke_s: float
    saved: tuple[Saved, ...]
    saved_s: float
    tasks: tuple[tuple[str, int], ...]
    tasks_s: float
    tasks_in_loads: int
    tasks_in_loads_s: float
    llm: LlmSpent


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A whole session at one moment. `todos` are what a person wrote down to do."""

    head: Head
    board: tuple[BoardLine, ...]
    todos: tuple[Todo, ...]
    strategies: tuple[Strategy, ...]
    best: Best | None
    trials: tuple[Trial, ...]
    tasks: tuple[TaskFacts, ...]
    lane: tuple[Span, ...]
    ledger: Ledger
