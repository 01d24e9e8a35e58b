"""Verdicts: closed forms over the rounds of two launches."""

from collections.abc import Sequence
from math import sqrt
from statistics import fmean, variance

from agent.core.model import FlagCheck, RoundMetrics, Verdict
from agent.core.state import ExperimentState, Launch, State
from agent.playbook.model import MetricName, Objective, VerdictWord

# Two-sided 95 % quantiles of Student's t for 1 to 30 degrees of freedom (NIST/SEMATECH e-Handbook, 1.3.6.7.2).
_T95 = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
    2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
    2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
)  # fmt: skip

LOWER_IS_BETTER: frozenset[MetricName] = frozenset({"ttft_ms", "tpot_ms"})


def t95(degrees: float) -> float:
    """The 97.5 % quantile of Student's t; beyond 30 degrees of freedom that of the normal distribution."""
    return _T95[max(1, int(degrees)) - 1] if degrees <= 30 else 1.960


def metric_of(rounds: Sequence[RoundMetrics], metric: MetricName) -> list[float]:
    """One value a round."""
    return [getattr(metrics, metric) for metrics in rounds]


def objective_values(launch: Launch, objective: Objective) -> list[float]:
    """The objective's metric in each measured round of its workload."""
    return metric_of([r.metrics for r in launch.rounds if r.workload == objective.workload], objective.metric)


def interval95(values: Sequence[float]) -> float:
    """Half the width of the 95 % confidence interval of the mean; 0 for a single value."""
    count = len(values)
    return t95(count - 1) * sqrt(variance(values) / count) if count > 1 else 0.0


def gain(candidate: Sequence[float], reference: Sequence[float], lower_is_better: bool) -> tuple[float, float, float]:
    """How much better the candidate's mean is, as a fraction, with its 95 % interval.

    The interval is Welch's for the difference of means, with Welch-Satterthwaite degrees of freedom, divided by the
    reference's mean. A single round has no spread of its own; it borrows the other side's.
    """
    base = fmean(reference)
    spread = max((variance(v) for v in (candidate, reference) if len(v) > 1), default=0.0)
    parts = [(variance(v) if len(v) > 1 else spread) / len(v) for v in (candidate, reference)]
    error = sqrt(sum(parts))
    weights = sum(p * p / max(len(v) - 1, 1) for p, v in zip(parts, (candidate, reference), strict=True))
    half = t95(sum(parts) ** 2 / weights) * error / base if weights else 0.0
    delta = (fmean(candidate) - base) / base
    if lower_is_better:
        delta = -delta
    return delta, delta - half, delta + half


def compare(candidate: Sequence[float], reference: Sequence[float], objective: Objective, against: str) -> Verdict:
    """The verdict in words, from the rounds of both sides.

    keep: at least `min_gain` and the interval is above zero; worse: the mirror image; no-gain: the interval excludes
    `min_gain`; anything else is inconclusive.
    """
    value, low, high = gain(candidate, reference, objective.metric in LOWER_IS_BETTER)
    least = objective.min_gain
    span = f"{value:+.1%} ({low:+.1%} to {high:+.1%}) against {against}"
    if value >= least and low > 0:
        return Verdict(word="keep", against=against, reason=span, gain=value, low=low, high=high)
    if value <= -least and high < 0:
        return Verdict(word="worse", against=against, reason=span, gain=value, low=low, high=high)
    if high < least:
        reason = f"{span}: a gain of {least:.1%} is excluded"
        return Verdict(word="no-gain", against=against, reason=reason, gain=value, low=low, high=high)
    reason = f"{span}: the rounds spread too much to tell"
    return Verdict(word="inconclusive", against=against, reason=reason, gain=value, low=low, high=high)


def judge(state: State, experiment: ExperimentState, launch: Launch) -> tuple[Verdict, Verdict]:
    """The verdicts against the parent and against the incumbent, for a launch that failed or was measured."""
    parent = experiment.spec.based_on or experiment.id
    incumbent = state.incumbent or parent
    word: VerdictWord
    if launch.failure:
        word, reason = "failed", launch.failure.reason
    elif launch.round_error:
        word, reason = "failed", f"could not be measured: {launch.round_error}"
    elif bad := [flag for flag in launch.flags if flag.status == "contradicted"]:
        word, reason = "invalid", f"measured under other flags: {_contradictions(bad)}"
    else:
        return _against(state, launch, parent), _against(state, launch, incumbent)
    return (
        Verdict(word=word, against=parent, reason=reason),
        Verdict(word=word, against=incumbent, reason=reason),
    )


def _contradictions(flags: Sequence[FlagCheck]) -> str:
    return ", ".join(f"--{flag.flag} asked {flag.requested}, is {flag.effective}" for flag in flags)


def _against(state: State, launch: Launch, reference: str) -> Verdict:
    if reference == launch.experiment:
        return Verdict(word="keep", against=reference, reason="the baseline")
    objective = state.playbook.objective
    launches = [state.launches[name] for name in state.experiments[reference].launches]
    judged = state.experiments[reference].verdict
    values = [v for other in launches if other.purpose != "serve" for v in objective_values(other, objective)]
    if not values or judged is None or judged.word == "invalid":
        return Verdict(word="inconclusive", against=reference, reason=f"{reference} has no valid numbers")
    return compare(objective_values(launch, objective), values, objective, reference)
