"""The most that an experiment could gain, in words: on the board, on its page, in a report."""

from collections.abc import Iterator
from dataclasses import dataclass

from agent.core.state import ExperimentState, State
from agent.core.terms import Forecast, Part, brief, forecast, removed_of
from agent.playbook.metrics import unit_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What is expected of an experiment, beside what came of it.

    `best` and `measured` are fractions against its parent, None where they are not known; `removes` says of which
    terms, `lines` how it follows.
    """

    best: float | None
    measured: float | None
    removes: str
    lines: tuple[str, ...]


def percent_of(gain: float) -> str:
    """`+34 %` or `+1.3 %`."""
    return f"{gain * 100:+.{0 if abs(gain) >= 0.0995 else 1}f} %"


def best_of(state: State, experiment: ExperimentState) -> float | None:
    """The most that an experiment could gain, as a fraction; None where that is not known."""
    made = forecast(state, experiment)
    return made.gain if isinstance(made, Forecast) else None


def best_text(state: State, experiment: ExperimentState) -> str:
    """`at best +34 %`, that the terms are wrong, or nothing."""
    made = forecast(state, experiment)
    if not isinstance(made, Forecast):
        return ""
    return "the terms exceed the step" if made.gain is None else f"at best {percent_of(made.gain)}"


def expected_of(state: State, experiment: ExperimentState) -> Expected | None:
    """What is expected of an experiment; None where it says nothing of terms."""
    made = forecast(state, experiment)
    if made is None:
        return None
    removes = ", ".join(_removes(state, experiment, name) for name in experiment.spec.removes)
    if isinstance(made, str):
        return Expected(best=None, measured=None, removes=removes, lines=(f"at best: {made}",))
    near = experiment.planned.parent if experiment.planned else None
    verdict = experiment.verdict or near
    measured = verdict.gain if verdict else None
    lines = (*_head(state, made), *_result(made, measured), *map(_part_line, made.parts), _step_line(state, made))
    return Expected(best=made.gain, measured=measured, removes=removes, lines=lines)


def _removes(state: State, experiment: ExperimentState, name: str) -> str:
    removed, left = removed_of(state, experiment, name)
    return f"{removed} of {left} {name}"


def _head(state: State, made: Forecast) -> Iterator[str]:
    step = brief(made.step.seconds)
    if made.gain is None:
        terms = " and ".join(f"{part.left} x {brief(part.each_s)} of {part.term}" for part in made.parts)
        told = f"{terms} are {brief(made.terms_s)}, and the whole step takes {step}"
        yield f"the terms contradict the measurement: {told}; nothing is ruled out by them"
        return
    objective = state.playbook.objective
    lower = objective.metric.endswith("_ms")
    then = made.step.value * (1 - made.gain if lower else 1 + made.gain)
    change = f"{made.step.value:.1f} to {then:.1f} {unit_of(objective.metric)}"
    yield f"at best {percent_of(made.gain)} ({change}): {brief(made.removed_s)} of a step of {step} would go"


def _result(made: Forecast, measured: float | None) -> Iterator[str]:
    if measured is None:
        return
    share = ""
    if made.gain and measured > 0:
        beyond = " - more than the terms allow" if measured > made.gain else ""
        share = f", {measured / made.gain * 100:.0f} % of that{beyond}"
    yield f"measured {percent_of(measured)}{share}"


def _part_line(part: Part) -> str:
    each = f"{part.removed} of {part.left} {part.term}, {brief(part.each_s)} each"
    if part.measured:
        return f"{each}, measured (believed {brief(part.believed_s)})"
    return f"{each}, believed"


def _step_line(state: State, made: Forecast) -> str:
    objective, step = state.playbook.objective, made.step
    workload = next(w for w in state.playbook.workloads if w.name == objective.workload)
    tokens = f"{step.tokens:.2f} tokens (accept length)" if step.verifies else "one token, as no accept length is known"
    at = f"{step.value:.1f} {unit_of(objective.metric)}"
    if not objective.metric.endswith("_ms"):
        at += f" with {workload.concurrency} client{'' if workload.concurrency == 1 else 's'}"
    return f"a step: {tokens}, at {at}"
