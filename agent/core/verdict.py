"""Verdicts: what the rounds of two flag sets say of each other, in words."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import exp, log, sqrt
from statistics import fmean

from agent.core.guard import GuardResult, guard_failure
from agent.core.model import FlagCheck, LaunchNoise, RoundMetrics, Verdict
from agent.core.noise import (
    Difference,
    FlagSet,
    assumed_noise,
    difference,
    measured_noise,
    noise_text,
    pooled,
    squares,
    t_quantile,
)
from agent.core.state import ExperimentState, Launch, LaunchStage, State
from agent.playbook.metrics import LOWER_IS_BETTER, MetricName
from agent.playbook.model import Objective, VerdictWord

FINAL = 0.95
EARLY_LOW, EARLY_HIGH = 0.998, 0.99
"""One-sided confidence of the bounds. While launches are left a verdict is looked at again and again, and each look is
a chance to be wrong: only what holds at the stricter ones is decided early, and *keep*, which would be shipped, at the
strictest. `tests/core/campaigns.py` plays it out."""


def metric_of(rounds: Sequence[RoundMetrics], metric: MetricName) -> list[float]:
    """One value a round."""
    return [metrics.value(metric) for metrics in rounds]


def objective_values(launch: Launch, objective: Objective) -> list[float]:
    """The objective's metric in each measured round of its workload."""
    return metric_of([r.metrics for r in launch.rounds if r.workload == objective.workload], objective.metric)


def interval95(values: Sequence[float]) -> float:
    """Half the width of the 95 % confidence interval of the mean; 0 for a single value."""
    count = len(values)
    return t_quantile(0.975, count - 1) * sqrt(squares(values) / (count - 1) / count) if count > 1 else 0.0


def gain(candidate: Sequence[float], reference: Sequence[float], lower_is_better: bool) -> tuple[float, float, float]:
    """How much better the candidate's mean is, as a fraction, with its 95 % interval.

    The interval is Welch's for the difference of means, with whole Welch-Satterthwaite degrees of freedom, divided by
    the reference's mean. A single round has no spread of its own; it borrows the other side's. Noise between launches
    is not in it.
    """
    base = fmean(reference)
    spreads = [squares(v) / (len(v) - 1) if len(v) > 1 else None for v in (candidate, reference)]
    known = max((spread for spread in spreads if spread is not None), default=0.0)
    parts = [(known if s is None else s) / len(v) for s, v in zip(spreads, (candidate, reference), strict=True)]
    error = sqrt(sum(parts))
    weights = sum(p * p / max(len(v) - 1, 1) for p, v in zip(parts, (candidate, reference), strict=True))
    half = t_quantile(0.975, max(1, int(sum(parts) ** 2 / weights))) * error / base if weights else 0.0
    delta = (fmean(candidate) - base) / base
    if lower_is_better:
        delta = -delta
    return delta, delta - half, delta + half


def compare(candidate: Sequence[float], reference: Sequence[float], objective: Objective, against: str) -> Verdict:
    """The verdict from the rounds of one launch of each side, where no more are wanted."""
    bounds = gain(candidate, reference, objective.metric in LOWER_IS_BETTER)
    return _in_words(*bounds, objective.min_gain, against, "")


def _in_words(value: float, low: float, high: float, least: float, against: str, noise: str) -> Verdict:
    """keep: at least `least` and the low bound is above zero; worse: the mirror image; no-gain: `least` is excluded.

    Anything else is inconclusive. `noise` says what is known of the noise between launches; empty where it is not
    counted.
    """
    word: VerdictWord = "inconclusive"
    reason = f"{value:+.1%} ({low:+.1%} to {high:+.1%}) against {against}"
    if value >= least and low > 0:
        word = "keep"
    elif value <= -least and high < 0:
        word = "worse"
    elif high < least:
        word, reason = "no-gain", f"{reason}: a gain of {least:.1%} is excluded"
    else:
        reason = f"likely {reason}" if noise else f"{reason}: the rounds spread too much to tell"
    reason = f"{reason}; {noise}" if noise else reason
    return Verdict(word=word, against=against, reason=reason, gain=value, low=low, high=high)


def counted(state: State, experiment: ExperimentState) -> list[Launch]:
    """Its launches that use up `launches` of the playbook: all of its present flags, but those that were cut off.

    A smoke load is one of them only where it failed: then it is all that there will be.
    """
    launches = (state.launches[name] for name in experiment.launches[experiment.since :])
    ours = [one for one in launches if one.purpose != "serve" and (one.purpose != "smoke" or one.failure)]
    return [one for one in ours if not one.void and not _was_cut_off(state, one)]


def _was_cut_off(state: State, launch: Launch) -> bool:
    """Whether a person or the loss of the target ended it before it told anything."""
    told = launch.failure or launch.round_error or _contradicted(launch) or _is_whole(state, launch)
    return launch.stage is LaunchStage.STOPPED and not told


def _is_whole(state: State, launch: Launch) -> bool:
    return len(launch.rounds) == sum(workload.rounds for workload in state.playbook.workloads)


def _contradicted(launch: Launch) -> list[FlagCheck]:
    return [flag for flag in launch.flags if flag.status == "contradicted"]


def launches_left(state: State, experiment: ExperimentState) -> int:
    """How many more launches the playbook grants. A server that is not ours is never started again."""
    used = counted(state, experiment)
    ours = all(launch.purpose == "measure" for launch in used)
    return max(0, state.playbook.launches - len(used)) if ours else 0


def guard_of(state: State, experiment: str) -> GuardResult | None:
    """What the latest launch of its present flags that was asked answered to the guard."""
    found = [launch.guard for launch in counted(state, state.experiments[experiment]) if launch.guard]
    return found[-1] if found else None


def guard_reference(state: State, launch: Launch) -> GuardResult | None:
    """The baseline's answers, which a launch of another experiment is held against."""
    baseline = state.baseline.id
    return None if launch.experiment == baseline else guard_of(state, baseline)


def _wrong_answers(state: State, launch: Launch) -> str | None:
    guard, theirs = state.playbook.guard, guard_reference(state, launch)
    if guard is None or launch.guard is None or theirs is None:
        return None
    return guard_failure(
        launch.guard, theirs, answers=guard.answers is not None, max_logprob_drop=guard.max_logprob_drop
    )


def trouble(state: State, launch: Launch) -> tuple[VerdictWord, str] | None:
    """Why the numbers of a launch do not count, with the verdict that it gives where there are no others."""
    objective, whole = state.playbook.objective, _is_whole(state, launch)
    if launch.failure and not whole:
        return "failed", ("in the smoke load: " if launch.purpose == "smoke" else "") + launch.failure.reason
    if launch.round_error:
        return "failed", f"could not be measured: {launch.round_error}"
    if bad := _contradicted(launch):
        told = ", ".join(f"--{flag.flag} asked {flag.requested}, is {flag.effective}" for flag in bad)
        return "invalid", f"measured under other flags: {told}"
    if not whole:
        return "failed", "it is not measured to its end"
    if wrong := _wrong_answers(state, launch):
        return "invalid", wrong
    rounds = [r.metrics for r in launch.rounds if r.workload == objective.workload]
    if doubts := dict.fromkeys(metrics.not_comparable for metrics in rounds if metrics.not_comparable):
        return "inconclusive", f"not comparable: {'; '.join(map(str, doubts))}"
    try:
        positive = all(value > 0 for value in objective_values(launch, objective))
    except LookupError as error:
        return "inconclusive", f"not comparable: {error.args[0]}"
    return None if positive else ("inconclusive", f"not comparable: a round has a {objective.metric} of 0")


@dataclass(frozen=True, slots=True)
class Sample:
    """The launches of a flag set that count, under one contract, and their values on the logarithmic scale.

    More is better on it, whatever the metric is.
    """

    contract: str
    launches: tuple[Launch, ...]
    logs: FlagSet


class Evidence:
    """What a session has measured, ready to be compared."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._samples: dict[tuple[str, str | None], Sample] = {}

    def sample(self, name: str, contract: str | None = None) -> Sample:
        """What was measured of an experiment under `contract`, or under that of its latest launch that counts."""
        if (name, contract) not in self._samples:
            self._samples[name, contract] = self._sample(name, contract)
        return self._samples[name, contract]

    def _sample(self, name: str, contract: str | None) -> Sample:
        state, objective = self.state, self.state.playbook.objective
        fit = [launch for launch in counted(state, state.experiments[name]) if trouble(state, launch) is None]
        if contract is None:
            contract = _contract(state, fit[-1]) if fit else ""
        launches = tuple(launch for launch in fit if _contract(state, launch) == contract)
        sign = -1 if objective.metric in LOWER_IS_BETTER else 1
        logs = [[sign * log(value) for value in objective_values(launch, objective)] for launch in launches]
        return Sample(contract, launches, logs)

    @cached_property
    def assumed(self) -> LaunchNoise:
        """Noise between launches as it is assumed, by what the rounds of this session differ by."""
        return assumed_noise(self.sample(name).logs for name in self.state.experiments)

    def measured_noise(self, without: str = "") -> LaunchNoise | None:
        """Noise between launches as this session measured it, pooled over its flag sets but the one named."""
        several = (e.id for e in self.state.experiments.values() if e.id != without and len(e.launches) > 1)
        return measured_noise(self.sample(name).logs for name in several)

    @cached_property
    def noise(self) -> LaunchNoise:
        """Noise between launches: what is assumed, and what this session and earlier ones measured."""
        return pooled(self.assumed, self.state.noise, self.measured_noise())

    @cached_property
    def noise_text(self) -> str:
        """What is known of the noise between launches, in words."""
        return noise_text(self.assumed, self.state.noise, self.measured_noise())

    def drift(self, name: str) -> str:
        """What to say where the last launch of an experiment differs from its first beyond the noise of the others."""
        logs = self.sample(name).logs
        if len(logs) < 2:
            return ""
        noise = pooled(self.assumed, self.state.noise, self.measured_noise(without=name))
        moved = difference(logs[-1:], logs[:1], noise)
        if abs(moved.value) <= moved.reach(0.975):
            return ""
        return f"drift? the launches of {name} differ by {abs(as_gain(moved.value, False)):.1%}, beyond the noise"


def _contract(state: State, launch: Launch) -> str:
    """A launch that was measured under two contracts has one of its own, and is like no other."""
    workload = state.playbook.objective.workload
    return "+".join(dict.fromkeys(r.contract for r in launch.rounds if r.workload == workload))


def as_gain(value: float, lower_is_better: bool) -> float:
    """A difference of logarithms as a fraction: 0.5 is half as much again, or half the time."""
    return 1 - exp(-value) if lower_is_better else exp(value) - 1


def judge(evidence: Evidence, experiment: ExperimentState) -> tuple[Verdict, Verdict]:
    """The verdicts against the parent and against the incumbent, as far as its launches tell now."""
    state = evidence.state
    parent = experiment.spec.based_on or experiment.id
    incumbent = state.incumbent or parent
    launches = counted(state, experiment)
    troubles = [(number, trouble(state, launch)) for number, launch in enumerate(launches, 1)]
    spoilt = [(number, *found) for number, found in troubles if found]
    if len(spoilt) == len(launches):
        _, word, reason = spoilt[-1]
        return (
            Verdict(word=word, against=parent, reason=reason),
            Verdict(word=word, against=incumbent, reason=reason),
        )
    notes = "".join(f"; launch {number} does not count: {reason}" for number, _, reason in spoilt)
    against_parent = _against(evidence, experiment, parent, notes)
    return against_parent, against_parent if incumbent == parent else _against(evidence, experiment, incumbent, notes)


def _against(evidence: Evidence, experiment: ExperimentState, name: str, notes: str) -> Verdict:
    if name == experiment.id:
        return Verdict(word="keep", against=name, reason=f"the baseline{notes}")
    state = evidence.state
    ours = evidence.sample(experiment.id)
    theirs = evidence.sample(name, ours.contract)
    if not theirs.logs:
        measured = evidence.sample(name).logs
        why = "was measured under another contract: not comparable" if measured else "has no valid numbers"
        return Verdict(word="inconclusive", against=name, reason=f"{name} {why}{notes}")
    objective = state.playbook.objective
    if state.playbook.launches == 1:
        values = [[v for one in s.launches for v in objective_values(one, objective)] for s in (ours, theirs)]
        return compare(values[0], values[1], objective, name)
    early = bool(launches_left(state, experiment) or launches_left(state, state.experiments[name]))
    moved = evidence.drift(name)
    said = evidence.noise_text + (f"; {moved}" if moved else "") + notes
    found = difference(ours.logs, theirs.logs, evidence.noise)
    verdict = decide(found, objective, name, said, early=early)
    if early and verdict.word == "keep" and not evidence.noise.launches:
        # Where launches differ by 10 %, as on a busy host, an assumption would ship a gain that nobody made.
        return replace(verdict, word="inconclusive", reason=f"likely {verdict.reason}: no gain is kept on that")
    return verdict


def decide(found: Difference, objective: Objective, against: str, said: str, *, early: bool = False) -> Verdict:
    """The verdict that a difference gives, now or `early`; `said` is what there is to add."""
    lower = objective.metric in LOWER_IS_BETTER
    below, above = found.reach(EARLY_LOW if early else FINAL), found.reach(EARLY_HIGH if early else FINAL)
    value, low, high = (as_gain(at, lower) for at in (found.value, found.value - below, found.value + above))
    return _in_words(value, low, high, objective.min_gain, against, said)
