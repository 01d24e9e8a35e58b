"""Strategies as people see them: which is tried, which were given up and why."""

from collections.abc import Iterator
from dataclasses import dataclass

from agent.core import events as ev
from agent.core.model import Tried
from agent.core.pivots import Standing, group_before, group_of, keeper, standing
from agent.core.state import State
from agent.playbook.model import Playbook

GLYPHS = {
    Standing.PRESENT: "▶",
    Standing.KEPT: "✔",
    Standing.GIVEN_UP: "✖",
    Standing.WAITS: "○",
    Standing.NOT_REACHED: "○",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """A group of experiments. `at` is when it was given up (seconds since the epoch), `to` the strategy after it.

    `trail` has its members that have ended, as they ended; of one that was given up, as that was then.
    """

    group: str
    title: str
    standing: Standing
    members: tuple[str, ...]
    kept: str
    to: str
    trail: tuple[Tried, ...]
    at: float | None

    @property
    def word(self) -> str:
        """`✖ given up`"""
        return f"{GLYPHS[self.standing]} {self.standing}"


def title_of(playbook: Playbook, group: str) -> str:
    """What people call a group; nothing for none."""
    return next((one.title for one in playbook.groups if one.id == group), "")


def strategies(state: State) -> Iterator[Strategy]:
    """All strategies of the playbook, in its order."""
    pivots = {pivot.group: pivot for pivot in state.pivots}
    for group in state.playbook.groups:
        pivot = pivots.get(group.id)
        yield Strategy(
            group=group.id,
            title=group.title,
            standing=standing(state, group),
            members=group.members,
            kept=keeper(state, group) or "",
            to=title_of(state.playbook, group.then or ""),
            trail=pivot.trail if pivot else tuple(_ended(state, group.members)),
            at=pivot.at if pivot else None,
        )


def _ended(state: State, members: tuple[str, ...]) -> Iterator[Tried]:
    for name in members:
        if verdict := state.experiments[name].verdict:
            yield Tried(experiment=name, word=verdict.word, reason=state.experiments[name].reason)


def strategy_title(state: State) -> str:
    """`strategy: expert parallelism, after ✖ all-reduce replacements`, nothing where the playbook has no groups.

    Where several are open the first that is not at its end; without any, how the last one ended.
    """
    all_of_them = list(strategies(state))
    if not all_of_them:
        return ""
    present = [one for one in all_of_them if one.standing is Standing.PRESENT]
    kept = [one for one in all_of_them if one.standing is Standing.KEPT]
    given_up = [one for one in all_of_them if one.standing is Standing.GIVEN_UP]
    trail = ", ".join(f"✖ {one.title}" for one in given_up)
    if not present and not kept:
        return f"strategies: {trail}" if trail else ""
    now = present[0].title if present else f"✔ {kept[-1].title}"
    return f"strategy: {now}" + (f", after {trail}" if trail else "")


def strategy_lines(state: State, experiment: str) -> tuple[str, ...]:
    """The strategy of an experiment and its trail, as sentences; nothing where it belongs to none."""
    group = group_of(state.playbook, experiment)
    if group is None:
        return ()
    mine = next(one for one in strategies(state) if one.group == group.id)
    before = group_before(state.playbook, group)
    head = f"{mine.title}: {mine.word}" + (f" ({mine.kept})" if mine.kept else "")
    lines = [head + (f"; it comes after {before.title}" if before else "")]
    lines += [f"{one.experiment} {one.word}: {one.reason}" for one in mine.trail if one.experiment != experiment]
    if mine.to:
        lines.append(f"where it is given up: {mine.to}")
    return tuple(lines)


def pivot_text(playbook: Playbook, pivot: ev.PivotReached) -> str:
    """`all-reduce replacements is given up (ar-fusion ruled-out, nccl-tree worse); next: expert parallelism`."""
    trail = ", ".join(f"{one.experiment} {one.word}" for one in pivot.trail)
    after = f"next: {title_of(playbook, pivot.to)}" if pivot.to else "nothing comes after it"
    return f"{title_of(playbook, pivot.group)} is given up ({trail}); {after}"
