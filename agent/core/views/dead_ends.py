"""The dead ends that are known: of this session and of earlier ones, with what they stand on and whether they hold."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from typing import Literal

from agent.core import events as ev
from agent.core.actions import cannot_retry
from agent.core.known import (
    changes_of,
    dead_ends,
    elsewhere,
    environment_of,
    facts_for,
    facts_there,
    holds_secret,
    known_counts,
    known_for,
    same_as,
    standing_for,
    standing_of,
)
from agent.core.model import Quote
from agent.core.plan import flag_words
from agent.core.scope import Facts, KnownDeadEnd, Standing, standing
from agent.core.state import ExperimentState, Stage, State
from agent.core.views.flags import config_used
from agent.playbook.model import Args, Env, Experiment

Holds = Literal["holds", "may not hold", "known"]
HERE, EARLIER = "THIS SESSION", "EARLIER SESSIONS ON THIS HOST"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadEndView:
    """One dead end. `changed` says why it may not hold any more, `unknown` are facts that nobody can compare.

    It is only `known` where there is nothing to compare it with. `at` is when it ended, in seconds since the epoch;
    `does` is what bringing it back to TODO would do, or why nothing would.
    """

    key: str
    group: str
    experiment: str
    word: str
    reason: str
    at: float
    session: str
    changes: str
    holds: Holds
    changed: tuple[str, ...]
    unknown: tuple[str, ...]
    scope: tuple[tuple[str, str], ...]
    evidence: tuple[Quote, ...]
    does: str


def dead_end_views(state: State) -> tuple[DeadEndView, ...]:
    """Those of this session, then those of earlier ones on its host, the latest first."""
    there, owners = facts_there(state), _owners(state)
    here = {experiment.id: _here(state, experiment) for experiment in dead_ends(state)}
    earlier = []
    for number, known in reversed(tuple(enumerate(state.known))):
        owner = owners.get(number)
        if owner is None or owner.id not in here:
            now = standing_for(state, known, owner) if owner else standing_of(known, there)
            does = _does(_wish(state, known, owner, state.now))
            earlier.append(_kept(f"known/{number}", known, now, does))
    return (*here.values(), *earlier)


def _owners(state: State) -> dict[int, ExperimentState]:
    """The experiments of this session that were dead ends before, by the number of what is known."""
    numbers = {id(known): number for number, known in enumerate(state.known)}
    pairs = ((numbers[id(known)], e) for e in state.experiments.values() for known in same_as(state, e))
    return dict(reversed(tuple(pairs)))


def remembered(known: Sequence[KnownDeadEnd]) -> tuple[DeadEndView, ...]:
    """Those that a host's history keeps, the latest first, where no session tells what is so now."""
    nothing = Standing((), ())
    kept = (_kept(f"known/{n}", one, nothing, "") for n, one in reversed(tuple(enumerate(known))))
    return tuple(replace(view, holds="known") for view in kept)


def changed_since(state: State, experiment: ExperimentState) -> tuple[str, ...]:
    """Why a dead end of this session may not hold any more, or in which experiment's environment it may not."""
    changed = [str(change) for change in _now(state, experiment).changed]
    for base, found in elsewhere(state, experiment):
        changed += [f"on {base}: {change}" for change in found.changed]
    return tuple(changed)


def _now(state: State, experiment: ExperimentState) -> Standing:
    return standing(experiment.scope, facts_for(state, config_used(state, experiment)))


def _here(state: State, experiment: ExperimentState) -> DeadEndView:
    changed = changed_since(state, experiment)
    return DeadEndView(
        key=f"here/{experiment.id}",
        group=HERE,
        experiment=experiment.id,
        word=experiment.verdict.word if experiment.verdict else "",
        reason=experiment.given_up or experiment.reason,
        at=state.now if experiment.ended_at is None else experiment.ended_at,
        session=state.session,
        changes=changes_text(*changes_of(state, experiment)),
        holds="may not hold" if changed else "holds",
        changed=changed,
        unknown=_now(state, experiment).unknown,
        scope=scope_rows(experiment.scope, environment_of(config_used(state, experiment))),
        evidence=experiment.evidence,
        does="; ".join(filter(None, (_again(experiment), _does(_wish_here(state, experiment, state.now))))),
    )


def _kept(key: str, known: KnownDeadEnd, now: Standing, does: str) -> DeadEndView:
    return DeadEndView(
        key=key,
        group=EARLIER,
        experiment=known.experiment,
        word=known.word,
        reason=known.reason,
        at=known.at,
        session=known.session,
        changes=changes_text(known.args, known.env),
        holds="holds" if now.holds else "may not hold",
        changed=tuple(map(str, now.changed)),
        unknown=now.unknown,
        scope=scope_rows(known.scope, known.environment),
        evidence=known.evidence,
        does=does,
    )


def scope_rows(scope: Facts, environment: str) -> tuple[tuple[str, str], ...]:
    """What a dead end stands on, for people; `environment` is where that was read."""
    rows = [(name, " ".join(value.split("\n"))) for name, value in scope.items() if name != "environment"]
    return (*rows, ("environment", environment))


def changes_text(args: Args, env: Env) -> str:
    """`--ep-size 8 NCCL_ALGO=Tree, without --enable-x`: what an experiment changes, as one would type it."""
    gone = [f"--{flag}" for flag, value in args.items() if value is None]
    gone += [name for name, value in env.items() if value is None]
    words = [*flag_words(args), *(f"{name}={value}" for name, value in env.items() if value is not None)]
    return ", ".join(filter(None, (" ".join(words), f"without {' '.join(gone)}" if gone else "")))


def day(at: float) -> str:
    """`11-28`, in UTC as in reports."""
    return datetime.fromtimestamp(at, UTC).strftime("%m-%d")


def moment(at: float) -> str:
    """`2026-11-28 14:02 UTC`."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def known_text(state: State) -> str:
    """`6 known dead ends hold here, 2 may not any more`; nothing where none is known."""
    held, doubtful = known_counts(state)
    if not state.known:
        return ""
    text = f"{held} known dead end{'s hold' if held != 1 else ' holds'} here"
    return f"{text}, {doubtful} may not any more" if doubtful else text


def known_short(state: State) -> str:
    """`x 8 known dead ends, 2 may not hold`, for the foot of the board; nothing where none is known."""
    _, doubtful = known_counts(state)
    count = f"x {len(state.known)} known dead end{'s' if len(state.known) != 1 else ''}"
    return "" if not state.known else f"{count}, {doubtful} may not hold" if doubtful else count


def known_mark(state: State, experiment: ExperimentState) -> str:
    """`ruled-out here 11-28`, or `ruled-out 11-28, may not hold`; nothing for what is no known dead end."""
    known = known_for(state, experiment) if state.known else None
    if known is None:
        return ""
    if standing_for(state, known, experiment).holds:
        return f"{known.word} here {day(known.at)}"
    return f"{known.word} {day(known.at)}, may not hold"


def known_notes(state: State, experiment: ExperimentState) -> tuple[str, ...]:
    """What an earlier session found of an experiment, in sentences."""
    known = known_for(state, experiment) if state.known else None
    if known is None:
        return ()
    now = standing_for(state, known, experiment)
    notes = [f"it was {known.word} here on {day(known.at)}, in session {known.session}: {known.reason}"]
    notes += [f"since then: {change}" for change in now.changed]
    if now.unknown:
        notes.append(f"not compared: {', '.join(now.unknown)}")
    return tuple(notes)


def wish_of(state: State, key: str, at: float) -> ev.Wish | str:
    """What brings a dead end back to TODO, or why nothing does."""
    where, _, name = key.partition("/")
    if where == "here":
        return _wish_here(state, state.experiments[name], at)
    return _wish(state, state.known[int(name)], _owners(state).get(int(name)), at)


def _wish_here(state: State, experiment: ExperimentState, at: float) -> ev.Wish | str:
    if (base := next((base for base, _ in elsewhere(state, experiment)), None)) is not None:
        return ev.DeadEndReopened(at=at, experiment=experiment.id, base=base)
    return _retried(state, experiment, at)


def _wish(state: State, known: KnownDeadEnd, owner: ExperimentState | None, at: float) -> ev.Wish | str:
    return _retried(state, owner, at) if owner else _added(state, known, at)


def _retried(state: State, experiment: ExperimentState, at: float) -> ev.Wish | str:
    if experiment.stage is Stage.TODO:
        return f"{experiment.id} is in line already"
    return cannot_retry(state, experiment.id) or ev.ExperimentRetried(at=at, experiment=experiment.id)


def _added(state: State, known: KnownDeadEnd, at: float) -> ev.Wish | str:
    baseline = state.baseline
    if holds_secret(known):
        return "it needs a value that no history keeps: n adds it"
    if not (known.args or known.env):
        return f"it changed nothing but the environment, {known.environment}: a playbook has to say that"
    names = (known.experiment if number == 1 else f"{known.experiment}-{number}" for number in count(1))
    name = next(name for name in names if name not in state.experiments)
    why = f"it was {known.word} here on {day(known.at)}: {known.reason}"
    try:
        spec = Experiment(id=name, based_on=baseline.id, args=known.args, env=known.env, why=why)
    except ValueError:
        return "the history does not have it whole: n adds it"
    return ev.ExperimentAdded(at=at, spec=spec)


def _again(experiment: ExperimentState) -> str:
    return f"it was tried again as {experiment.reopened_as}" if experiment.reopened_as else ""


def _does(wish: ev.Wish | str) -> str:
    match wish:
        case ev.DeadEndReopened():
            return f"r tries it again as {wish.experiment}@{wish.base}"
        case ev.ExperimentRetried():
            return f"r puts {wish.experiment} in line again"
        case ev.ExperimentAdded():
            return f"r adds it as {wish.spec.id}, on {wish.spec.based_on}"
        case _:
            return str(wish)
