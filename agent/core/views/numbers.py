"""What was measured on the launches of an experiment, round by round."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from agent.core.model import RoundMetrics
from agent.core.state import ExperimentState, State
from agent.core.verdict import interval95


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """One line of a table of rounds. Throughput in tok/s with its interval, times in ms."""

    label: str
    throughput: float
    spread: float | None
    ttft_ms: float
    ttft_spread: float | None
    tpot_ms: float
    tpot_spread: float | None
    tokens_per_chunk: float
    cached_tokens: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The rounds of one workload on one launch, and their mean with the half width of its 95 % interval."""

    title: str
    objective: bool
    rounds: tuple[Numbers, ...]
    mean: Numbers | None
    note: str


def measured_of(state: State, experiment: ExperimentState) -> Iterator[Measured]:
    """The rounds of each workload on each launch of an experiment."""
    several = len(experiment.launches) > 1
    for number, name in enumerate(experiment.launches, 1):
        launch = state.launches[name]
        for workload in state.playbook.workloads:
            measured = [r for r in launch.rounds if r.workload == workload.name]
            note = ""
            if launch.measuring and launch.measuring[0] == workload.name:
                note = f"round {launch.measuring[1] + 1} of {workload.rounds} runs"
            if launch.round_error and not note and len(measured) < workload.rounds:
                note = f"could not be measured: {launch.round_error}"
            if measured or note:
                yield Measured(
                    title=workload.name + (f" · launch {number}" if several else ""),
                    objective=workload.name == state.playbook.objective.workload,
                    rounds=tuple(_numbers(f"round {r.index + 1}", [r.metrics]) for r in measured),
                    mean=_numbers("mean", [r.metrics for r in measured]) if len(measured) > 1 else None,
                    note=note,
                )


def _numbers(label: str, rounds: Sequence[RoundMetrics]) -> Numbers:
    throughput, ttft, tpot = (
        [getattr(m, name) for m in rounds] for name in ("output_throughput", "ttft_ms", "tpot_ms")
    )
    several = len(rounds) > 1
    return Numbers(
        label=label,
        throughput=fmean(throughput),
        spread=interval95(throughput) if several else None,
        ttft_ms=fmean(ttft),
        ttft_spread=interval95(ttft) if several else None,
        tpot_ms=fmean(tpot),
        tpot_spread=interval95(tpot) if several else None,
        tokens_per_chunk=fmean(m.tokens_per_chunk for m in rounds),
        cached_tokens=sum(m.cached_tokens for m in rounds),
        failed=sum(m.failed for m in rounds),
    )
