"""Which configuration is best among those that keep the limits of a workload."""

from collections.abc import Iterable, Iterator
from statistics import fmean

from agent.core.metrics import RoundMetrics
from agent.core.state import ExperimentState, State
from agent.core.verdict import counted, trouble
from agent.playbook.workload import Slo, Workload

KEPT = 0.99
"""The fraction of requests that must meet every limit: the p99 of each limited quantity is then within it."""


def slo_lines(state: State) -> tuple[str, ...]:
    """A sentence for each workload with limits, as far as it was measured."""
    made = ((workload, list(_measured(state, workload))) for workload in state.playbook.workloads if workload.slo)
    return tuple(_line(workload, found) for workload, found in made if found)


def _measured(state: State, workload: Workload) -> Iterator[tuple[str, float, float]]:
    """Each experiment whose numbers count: output throughput in tok/s, and the fraction of requests within limits."""
    for experiment in state.experiments.values():
        rounds = [metrics for metrics in _rounds(state, experiment, workload.name) if metrics.goodput is not None]
        if (kept := kept_share(rounds)) is not None:
            yield experiment.id, fmean(m.output_throughput for m in rounds), kept


def kept_share(rounds: Iterable[RoundMetrics]) -> float | None:
    """The fraction of requests that met every limit of the workload, over rounds; None where no round tells."""
    shares = [m.goodput / m.request_throughput for m in rounds if m.goodput is not None]
    return fmean(shares) if shares else None


def _rounds(state: State, experiment: ExperimentState, workload: str) -> Iterator[RoundMetrics]:
    launches = [launch for launch in counted(state, experiment) if trouble(state, launch) is None]
    return (r.metrics for launch in launches for r in launch.rounds if r.workload == workload)


def limits_text(slo: Slo) -> str:
    """`TTFT 200 ms, TPOT 20 ms`"""
    limits = slo.model_dump(exclude_none=True)
    return ", ".join(f"{name.removesuffix('_ms').upper()} {limit:g} ms" for name, limit in limits.items())


def _line(workload: Workload, found: list[tuple[str, float, float]]) -> str:
    assert workload.slo is not None
    words = limits_text(workload.slo)
    keeping = [(speed, name) for name, speed, kept in found if kept >= KEPT]
    if not keeping:
        name, _, kept = max(found, key=lambda one: one[2])
        return f"{workload.name} within {words}: none; {name} comes nearest with {kept:.0%} of its requests"
    speed, name = max(keeping)
    return f"{workload.name} within {words}: {name}, {speed:.1f} tok/s ({len(keeping)} of {len(found)} keep it)"
