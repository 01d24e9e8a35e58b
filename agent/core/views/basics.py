"""What people see of a state: the board, the servers' command lines, durations in words. Pure values, no widgets."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import fmean

from agent.core.relaunch import about
from agent.core.state import ExperimentState, Launch, LaunchStage, Stage, State
from agent.core.verdict import counted, interval95, objective_values
from agent.core.views.expected import best_of
from agent.playbook.metrics import unit_of


class Place(StrEnum):
    """Where an experiment stands on the board."""

    NOW = "NOW"
    TODO = "TODO"
    PROPOSALS = "PROPOSALS"
    RESULTS = "RESULTS"
    DEAD_ENDS = "DEAD ENDS"


BY_HAND = "by hand"
"""The word of what a person made a dead end."""

SMOKE_LOAD = "smoke load"
"""What a launch with dummy weights is called."""

GLYPHS = {
    "now": "●",
    "todo": "○",
    "proposals": "◇",
    "not-reached": "○",
    "near": "≈",
    "keep": "✔",
    "no-gain": "=",
    "inconclusive": "?",
    "invalid": "!",
    "worse": "▼",
    "failed": "✖",
    "ruled-out": "✖",
    BY_HAND: "✖",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One experiment on the board: `value` is its number with the interval, `change` against the baseline."""

    place: Place
    experiment: str
    glyph: str
    word: str
    value: str
    change: str
    reason: str
    incumbent: bool


def duration(seconds: float) -> str:
    """`0:07`, `6:52` or `1:02:10`."""
    whole = max(0, round(seconds))
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def measured(state: State, experiment: ExperimentState) -> list[float]:
    """The objective's values in all measured rounds of an experiment with its present flags."""
    launches = (state.launches[name] for name in experiment.launches[experiment.since :])
    return [v for launch in launches for v in objective_values(launch, state.playbook.objective)]


def value_text(state: State, experiment: ExperimentState) -> str:
    """`89.5 ±0.6 tok/s`, or nothing where it was not measured."""
    values = measured(state, experiment)
    if not values:
        return ""
    unit = unit_of(state.playbook.objective.metric)
    return f"{fmean(values):.1f} ±{interval95(values):.1f} {unit}"


def change_text(state: State, experiment: ExperimentState) -> str:
    """`+13.1 %`: the mean against the baseline's, however the metric counts."""
    baseline = state.baseline
    ours, theirs = measured(state, experiment), measured(state, baseline)
    if not ours or not theirs or experiment is baseline:
        return ""
    return f"{(fmean(ours) / fmean(theirs) - 1) * 100:+.1f} %"


def board(state: State) -> tuple[Row, ...]:
    """All experiments, each in its place; within a place in the order of the playbook.

    Of proposals those come first that could gain most.
    """
    order = list(Place)

    def rank(row: Row) -> tuple[int, float]:
        best = best_of(state, state.experiments[row.experiment]) if row.place is Place.PROPOSALS else None
        return order.index(row.place), -(best or 0.0)

    return tuple(sorted((_row(state, experiment) for experiment in state.experiments.values()), key=rank))


def _row(state: State, experiment: ExperimentState) -> Row:
    place = place_of(state, experiment)
    verdict = experiment.verdict
    near = place is Place.RESULTS and experiment.stage is Stage.NEAR
    ended = BY_HAND if experiment.given_up else verdict.word if verdict else ""
    word = ended or now_text(state, experiment)
    glyph = GLYPHS[ended or ("near" if near else place.lower())]
    return Row(
        place=place,
        experiment=experiment.id,
        glyph=glyph,
        word=word,
        value=value_text(state, experiment),
        change=change_text(state, experiment),
        reason=near_text(state, experiment)
        if near
        else experiment.given_up or experiment.reason or todo_reason(state, experiment),
        incumbent=state.incumbent == experiment.id,
    )


def place_of(state: State, experiment: ExperimentState) -> Place:
    """A worse experiment that others are based on is a result; without heirs it is a dead end.

    One that was measured and is near is a result so far. What a person gave up is a dead end whatever it measured.
    """
    if experiment.stage is Stage.TODO:
        return Place.TODO
    if experiment.stage is Stage.PROPOSED:
        return Place.PROPOSALS
    if experiment.stage is Stage.NEAR:
        return Place.RESULTS
    if _is_launched_again(state, experiment):
        return Place.NOW
    if experiment.stage is not Stage.ENDED or experiment.verdict is None:
        return Place.NOW
    if experiment.given_up:
        return Place.DEAD_ENDS
    word = experiment.verdict.word
    if word == "not-reached":
        return Place.TODO
    if word in ("failed", "ruled-out") or (word == "worse" and not _has_heirs(state, experiment)):
        return Place.DEAD_ENDS
    return Place.RESULTS


def _is_launched_again(state: State, experiment: ExperimentState) -> bool:
    """Whether one that has its verdict is loaded or measured, since another's is near."""
    launch = state.current
    if launch is None or launch.experiment != experiment.id or launch.purpose != "measure":
        return False
    open_rounds = len(launch.rounds) < sum(workload.rounds for workload in state.playbook.workloads)
    goes_on = open_rounds and not launch.failure and not launch.round_error
    return experiment.stage is Stage.ENDED and goes_on and len(counted(state, experiment)) > 1


def _has_heirs(state: State, experiment: ExperimentState) -> bool:
    return any(other.spec.based_on == experiment.id for other in state.experiments.values())


def now_text(state: State, experiment: ExperimentState) -> str:
    """What happens to an experiment at the moment, in a few words."""
    if experiment.stage in (Stage.TODO, Stage.PROPOSED, Stage.NEAR):
        return experiment.stage.value
    if experiment.stage is Stage.PREPARING:
        return f"preparing step {experiment.prepared + 1} of {len(experiment.spec.prepare)}"
    launch = state.launches[experiment.launches[-1]]
    if launch.stage is LaunchStage.LOADING:
        return load_text(launch)
    if launch.measuring:
        again = " again" if launch.repeats else ""
        return f"measuring {launch.measuring[0]} round {launch.measuring[1] + 1}{again}"
    return str(launch.stage)


def near_text(state: State, experiment: ExperimentState) -> str:
    """`likely +3.1%, launch 2 of 3 of base is planned, about 11 min`, for an experiment that is near."""
    planned = experiment.planned
    assert planned is not None, "an experiment is near by a plan"
    verdict = planned.incumbent if planned.parent.word != "inconclusive" else planned.parent
    gain = "" if verdict.gain is None else f"likely {verdict.gain:+.1%}, "
    launch = f"launch {planned.number} of {state.playbook.launches} of {planned.of}"
    return f"{gain}{launch} is planned, {about(planned.cost_s)}"


def load_text(launch: Launch) -> str:
    """`load-weights 3/8 · 71 % · 2:40 left`, with what is known of it."""
    smoke = f"{SMOKE_LOAD}, " if launch.purpose == "smoke" else ""
    parts = [smoke + str(launch.phase) + (f" {launch.done}/{launch.total}" if launch.total else "")]
    if launch.doubt:
        return f"{parts[0]} · {launch.doubt}"
    if launch.fraction is not None:
        parts.append(f"{launch.fraction * 100:.0f} %")
    parts.append("no ETA yet" if launch.remaining_s is None else f"{duration(launch.remaining_s)} left")
    return " · ".join(parts)


def todo_reason(state: State, experiment: ExperimentState) -> str:
    """Why an experiment that has not begun still waits."""
    spec = experiment.spec
    if spec.prepare and experiment.prepared < len(spec.prepare):
        return "changes the host"
    return f"when {', '.join((*spec.when.all_of, *spec.when.any_of))} ended" if spec.when else ""


def command_line(argv: Sequence[str]) -> str:
    """A command as one would type it in a shell. For people only: nothing is ever run from this text."""
    return " ".join(_quoted(word) for word in argv)


def _quoted(word: str) -> str:
    safe = word and all(c.isalnum() or c in "@%+=:,./-_~" for c in word)
    return word if safe else "'" + word.replace("'", "'\"'\"'") + "'"


def best_command(state: State) -> str | None:
    """The environment and argv of the incumbent's launch, as one would type them."""
    if state.incumbent is None:
        return None
    launches = [state.launches[name] for name in state.experiments[state.incumbent].launches]
    launch = next((other for other in reversed(launches) if other.argv), None)
    if launch is None:
        return None
    env = [f"{name}={_quoted(value)}" for name, value in launch.config.env.items() if value is not None]
    return " ".join([*env, command_line(launch.argv)])
