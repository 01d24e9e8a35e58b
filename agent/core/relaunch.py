"""Planned relaunches: which verdicts are near, which further launch says most for its cost, when it is decided."""

from collections.abc import Iterator
from dataclasses import replace

from agent.core import events as ev
from agent.core.model import Verdict
from agent.core.noise import difference
from agent.core.state import ExperimentState, Stage, State
from agent.core.verdict import Evidence, counted, decide, judge, launches_left

Pair = tuple[str, str]
"""An experiment and what it is compared with, where the comparison is near."""

_FAR = 20
"""So many more launches of each nobody will pay for."""


def next_outcome(state: State, settled: ExperimentState | None) -> ev.VerdictReached | ev.LaunchPlanned | None:
    """What is to be said of an experiment whose launch has been measured (or failed), and of those that are near.

    `settled` is the one whose launch came to its end; something is always said of it. A verdict is reached where it
    is decided or no launch is left that could decide it. None where nothing has changed.
    """
    near = [e for e in state.experiments.values() if e.stage is Stage.NEAR]
    evidence = Evidence(state)
    pairs: list[Pair] = []
    verdicts: dict[str, tuple[Verdict, Verdict]] = {}
    for experiment in near if settled is None else [settled, *near]:
        parent, incumbent = judge(evidence, experiment)
        found = list(_open_pairs(evidence, experiment, parent, incumbent))
        if not found:
            parent, incumbent = (_last_word(evidence, experiment, verdict) for verdict in (parent, incumbent))
            return ev.VerdictReached(at=state.now, experiment=experiment.id, parent=parent, incumbent=incumbent)
        verdicts[experiment.id] = parent, incumbent
        pairs += found
    for name, (parent, incumbent) in verdicts.items():
        experiment = state.experiments[name]
        of = _best(evidence, pairs, {other for pair in pairs if pair[0] == name for other in pair})
        plan = ev.LaunchPlanned(
            at=state.now,
            experiment=name,
            of=of,
            number=len(counted(state, state.experiments[of])) + 1,
            cost_s=cost_s(evidence, of),
            parent=parent,
            incumbent=incumbent,
        )
        if experiment is settled or experiment.planned is None or _key(plan) != _key(experiment.planned):
            return plan
    return None


def _key(plan: ev.LaunchPlanned) -> tuple[object, ...]:
    """What makes another plan worth telling; bounds alone move with every launch of the session."""
    return plan.of, plan.number, plan.parent.gain, plan.incumbent.against, plan.incumbent.gain


def chosen(state: State) -> str:
    """The flag set to launch next, among those that are planned."""
    near = [e for e in state.experiments.values() if e.stage is Stage.NEAR]
    evidence = Evidence(state)
    pairs = [pair for e in near for pair in _open_pairs(evidence, e, *judge(evidence, e))]
    return _best(evidence, pairs, {name for pair in pairs for name in pair})


def _open_pairs(evidence: Evidence, experiment: ExperimentState, parent: Verdict, incumbent: Verdict) -> Iterator[Pair]:
    """The comparisons of an experiment that are not decided, and that a launch is left for.

    That with the incumbent is one only where the experiment may replace it: more would be paid for nothing.
    """
    state = evidence.state
    if not evidence.sample(experiment.id).logs:
        return
    wanted = [parent]
    if incumbent.against != parent.against and (incumbent.gain or 0.0) >= state.playbook.objective.min_gain:
        wanted.append(incumbent)
    for verdict in wanted:
        reference = state.experiments[verdict.against]
        # Without any gain a reference that was measured under another contract is launched anew.
        known = verdict.gain is not None or (evidence.sample(reference.id).logs and launches_left(state, reference))
        left = launches_left(state, experiment) or launches_left(state, reference)
        if verdict.word == "inconclusive" and known and left:
            yield experiment.id, reference.id


def _best(evidence: Evidence, pairs: list[Pair], among: set[str]) -> str:
    """The flag set, of those named, whose next launch takes most off the standard errors of all pairs for its cost.

    Of equals it is the reference: a later launch of it shows drift as well.
    """
    references = dict.fromkeys(reference for _, reference in pairs)
    order = [*references, *(name for name, _ in pairs if name not in references)]
    state = evidence.state
    able = [name for name in order if name in among and launches_left(state, state.experiments[name])]
    return max(able, key=lambda name: sum(_saved(evidence, pair, name) for pair in pairs) / cost_s(evidence, name))


def _saved(evidence: Evidence, pair: Pair, name: str) -> float:
    """By how much one more launch of `name` would lower the standard error of a pair."""
    if name not in pair:
        return 0.0
    ours = evidence.sample(pair[0])
    theirs = evidence.sample(pair[1], ours.contract)
    if not theirs.logs:
        return 1.0 if name == pair[1] else 0.0
    more = (int(name == pair[0]), int(name == pair[1]))
    now, then = (difference(ours.logs, theirs.logs, evidence.noise, extra) for extra in ((0, 0), more))
    return now.error - then.error


def cost_s(evidence: Evidence, name: str) -> float:
    """Seconds that another launch of a flag set takes: to load and to measure, as its last one that counts did."""
    launch = evidence.sample(name).launches[-1]
    return max(1.0, (launch.load_s or 0.0) + sum(r.metrics.duration_s for r in launch.rounds))


def about(seconds: float) -> str:
    """`about 40 s` or `about 11 min`."""
    return f"about {seconds:.0f} s" if seconds < 90 else f"about {seconds / 60:.0f} min"


def _last_word(evidence: Evidence, experiment: ExperimentState, verdict: Verdict) -> Verdict:
    """An inconclusive verdict, with what it would take to decide it."""
    playbook = evidence.state.playbook
    if verdict.word != "inconclusive" or verdict.gain is None or playbook.launches == 1:
        return verdict
    ours = evidence.sample(experiment.id)
    theirs = evidence.sample(verdict.against, ours.contract)
    objective = playbook.objective
    for more in range(1, _FAR + 1):
        found = difference(ours.logs, theirs.logs, evidence.noise, (more, more))
        if decide(found, objective, verdict.against, "").word != "inconclusive":
            break
    else:
        return replace(verdict, reason=f"{verdict.reason}; {_FAR} more launches of each would hardly decide")
    cost = about(more * (cost_s(evidence, experiment.id) + cost_s(evidence, verdict.against)))
    launches = "one more launch" if more == 1 else f"{more} more launches"
    return replace(verdict, reason=f"{verdict.reason}; {launches} of each ({cost}) could still decide")
