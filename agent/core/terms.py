"""The cost model: what a step of the server is made of, and the most that an experiment could gain.

A step is a decode step, or a verify pass of speculation. In a closed loop of C clients every step yields `tokens` of
each request in flight, so output_throughput = C x tokens / step. The step that follows from a measured throughput
holds its share of prefill too, as the throughput does; TPOT, which has none, tells the step of a TPOT alone.
An experiment that takes `removed` seconds off a step makes of it step - removed at best: nothing else gets faster.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from agent.core.metrics import RoundMetrics
from agent.core.model import Finding
from agent.core.state import ExperimentState, Stage, State
from agent.core.verdict import Evidence
from agent.playbook.metrics import MetricName
from agent.playbook.model import Term, Workload

SEVERAL = 1.2
"""Tokens in a chunk of a stream from which on more than one at a time was generated: now and then two fall together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step as it was measured: its `seconds`, and the `tokens` of a request that it yields.

    `verifies`: speculation was at work, and the server told how much a pass keeps. Without that a step counts as one
    token. `value` is the metric that it follows from, a mean over rounds.
    """

    seconds: float
    tokens: float
    verifies: bool
    value: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """What an experiment takes of one term: `removed` of the `left` calls of a step, each of `each_s`.

    `believed_s` is what the playbook says of one; it is used where none was `measured`.
    """

    term: str
    removed: int
    left: int
    each_s: float
    believed_s: float
    measured: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The most that an experiment could gain over its parent, as a fraction as verdicts have it.

    None where the terms say of the parent's step that it must take longer than it does: they are wrong then.
    """

    step: Step
    parts: tuple[Part, ...]
    gain: float | None

    @property
    def removed_s(self) -> float:
        """Seconds of a step that would go at best."""
        return sum(part.removed * part.each_s for part in self.parts)

    @property
    def terms_s(self) -> float:
        """Seconds of a step that the same terms take before."""
        return sum(part.left * part.each_s for part in self.parts)


def best_gain(step_s: float, removed_s: float, lower_is_better: bool) -> float:
    """What is gained by a step without `removed_s` of its `step_s`, as a fraction: of the rate, or of the time."""
    return removed_s / step_s if lower_is_better else step_s / (step_s - removed_s) - 1


def says_nothing_of(metric: MetricName, workload: Workload) -> str | None:
    """Why a step tells nothing of an objective, None where it does."""
    if metric.startswith("tpot_"):
        return None
    if metric != "output_throughput":
        return f"what a step costs says nothing of {metric}"
    return None if workload.rate is None else "in an open loop the rate of requests decides, not the step"


def unclear(rounds: Sequence[RoundMetrics]) -> str | None:
    """Why rounds do not tell what a step yields, None where they do.

    Without an accept length a step is one token, unless tokens come several at once: that may be speculation, or a
    server that holds them back.
    """
    chunk = fmean(one.tokens_per_chunk for one in rounds)
    if chunk < SEVERAL or any(one.accept_length is not None for one in rounds):
        return None
    return f"the server does not tell how many tokens a step yields, and {chunk:.1f} come at once"


def step_of(rounds: Sequence[RoundMetrics], workload: Workload, metric: MetricName) -> Step:
    """The step that follows from rounds of one flag set. Raises LookupError where a round lacks the metric.

    Of a throughput the window with all clients at work is taken where it is known: while a round runs out, fewer
    are, and a step would seem longer than it is.
    """
    accepted = [one.accept_length for one in rounds if one.accept_length is not None]
    tokens = fmean(accepted) if accepted else 1.0
    if metric.startswith("tpot_"):
        value = fmean(one.value(metric) for one in rounds)
        seconds = tokens * value / 1000
    else:
        value = fmean(one.steady_output_throughput or one.output_throughput for one in rounds)
        seconds = tokens * workload.concurrency / value
    return Step(seconds=seconds, tokens=tokens, verifies=bool(accepted), value=value)


def forecast(state: State, experiment: ExperimentState) -> Forecast | str | None:
    """The most that an experiment could gain; in words why that is not known; None where it says nothing of terms."""
    spec, objective = experiment.spec, state.playbook.objective
    if not spec.removes or spec.based_on is None:
        return None
    workload = next(w for w in state.playbook.workloads if w.name == objective.workload)
    if reason := says_nothing_of(objective.metric, workload):
        return reason
    launches = Evidence(state).sample(spec.based_on).launches
    rounds = [r.metrics for launch in launches for r in launch.rounds if r.workload == workload.name]
    if not rounds:
        return f"known once {spec.based_on} is measured"
    if reason := unclear(rounds):
        return reason
    step = step_of(rounds, workload, objective.metric)
    parts = tuple(_parts(state, experiment, step.verifies))
    made = Forecast(step=step, parts=parts, gain=None)
    if made.terms_s >= step.seconds:
        return made
    gain = best_gain(step.seconds, made.removed_s, objective.metric.endswith("_ms"))
    return Forecast(step=step, parts=parts, gain=gain)


def _parts(state: State, experiment: ExperimentState, verifies: bool) -> Iterator[Part]:
    for name in experiment.spec.removes:
        term = state.playbook.terms[name]
        removed, left = removed_of(state, experiment, name)
        each_s = measured_s(state, name, verifies)
        believed_s = believed(term, verifies)
        yield Part(
            term=name,
            removed=removed,
            left=left,
            each_s=believed_s if each_s is None else each_s,
            believed_s=believed_s,
            measured=each_s is not None,
        )


def removed_of(state: State, experiment: ExperimentState, name: str) -> tuple[int, int]:
    """The calls of a term that an experiment takes off a step, and those that were there before it.

    The playbook counts both against its own `count`; where the calls were counted on the target, it is that share.
    """
    term, told = state.playbook.terms[name], _found(state, name)
    calls = told.calls if told and told.calls else term.count
    removed = experiment.spec.removes[name]
    left = max(removed, term.count - _removed_before(state, experiment, name))
    return round(removed * calls / term.count), round(left * calls / term.count)


def _removed_before(state: State, experiment: ExperimentState, term: str) -> int:
    """The calls that what an experiment is based on has taken away already."""
    count, parent = 0, experiment.spec.based_on
    while parent is not None:
        spec = state.experiments[parent].spec
        count, parent = count + spec.removes.get(term, 0), spec.based_on
    return count


def believed(term: Term, verifies: bool) -> float:
    """Seconds of a call, as the playbook has it."""
    return term.each_verify if verifies and term.each_verify is not None else term.each


def measured_s(state: State, name: str, verifies: bool) -> float | None:
    """Seconds of a call as they were measured on the target; None where they were not."""
    term, told = state.playbook.terms[name], _found(state, name)
    size = term.bytes_verify if verifies else term.bytes
    return told.calls_s.get(str(size)) if told else None


def _found(state: State, name: str) -> Finding | None:
    """What the task that measures a term found."""
    task = state.tasks.get(task_of_term(state, name))
    return task.finding if task else None


def task_of_term(state: State, name: str) -> str:
    """The id of the task that measures a term; it belongs to the baseline."""
    baseline = state.baseline.id
    return f"{baseline}/term-{name}"


NOT_WORTH = "not worth a load"
"""How the reason begins of what ended because of its best case."""


def set_aside(experiment: ExperimentState) -> bool:
    """Whether an experiment ended without a load because all that it could gain was too little."""
    verdict = experiment.verdict
    return verdict is not None and verdict.word == "not-reached" and experiment.reason.startswith(NOT_WORTH)


def not_worth_a_load(state: State, experiment: ExperimentState) -> str | None:
    """Why an experiment need not be launched: all that it could gain is less than what counts. None where it may.

    Nothing is said before its parent has a verdict, nor where the terms contradict what was measured.
    """
    parent = experiment.spec.based_on
    if not experiment.spec.removes or parent is None or state.experiments[parent].stage is not Stage.ENDED:
        return None
    least, made = state.playbook.objective.min_gain, forecast(state, experiment)
    if not isinstance(made, Forecast) or made.gain is None or made.gain >= least:
        return None
    return f"{NOT_WORTH}: {made.gain:+.1%} at best, if {parts_text(made)} vanished, and {least:.1%} is the least"


def parts_text(made: Forecast) -> str:
    """`61 of 122 allreduce (187 us each, measured)`."""
    parts = (
        f"{part.removed} of {part.left} {part.term} ({brief(part.each_s)} each, {_source(part)})" for part in made.parts
    )
    return " and ".join(parts)


def _source(part: Part) -> str:
    return "measured" if part.measured else "believed"


def brief(seconds: float) -> str:
    """`187 us` or `24.4 ms`."""
    return f"{seconds * 1e6:.3g} us" if seconds < 0.9995e-3 else f"{seconds * 1e3:.3g} ms"
