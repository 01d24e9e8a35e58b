"""Every number of docs/verdicts.md, computed again: by `compare`, and by the scheduler that plays its launches."""

import re
from dataclasses import dataclass, field

import pytest

from agent.bench import hygiene
from agent.bench.sample import ALLOWED_FAILURES
from agent.core import commands as do
from agent.core import events as ev
from agent.core.guard import ALPHA, GuardResult, guard_failure
from agent.core.state import State
from agent.core.verdict import compare
from agent.core.views.basics import GLYPHS
from agent.playbook.model import Objective
from tests.core.conftest import World, metrics, playbook
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "verdicts.md").read_text()
OBJECTIVE = Objective.model_validate({"workload": "w", "min_gain": "2%"})
LAUNCHES = [
    (found[1], tuple(map(float, found[2].split())))
    for found in re.finditer(r"^ ?\d+ ([\w-]+) +((?:\d+\.\d ?){3})$", PAGE, re.MULTILINE)
]
"""The launches of the long example, in their order: each experiment with its rounds."""


@dataclass
class Told(World):
    """Measures what the page says."""

    rounds: list[tuple[float, ...]] = field(default_factory=list)

    def answer(self, state: State, command: do.Command, at: float) -> list[ev.Event]:
        if not isinstance(command, do.MeasureRound):
            return super().answer(state, command, at)
        rounds = self.rounds[len(state.launches) - 1]
        values = metrics(rounds[command.index])
        workload = command.workload.name
        return [ev.RoundMeasured(at=at, launch=command.launch, workload=workload, index=command.index, metrics=values)]


def told(event: ev.Event) -> str | None:
    """A line of the page for what was decided."""
    match event:
        case ev.VerdictReached():
            return f"     {event.experiment} {event.parent.word}: {event.parent.reason}"
        case ev.LaunchPlanned():
            return f"     {event.experiment} near: {event.parent.reason} → {event.of}, launch {event.number}"
    return None


def test_the_long_example_is_what_the_scheduler_makes_of_these_rounds() -> None:
    world = Told(rounds=[rounds for _, rounds in LAUNCHES])
    world.play(playbook(*({"id": name} for name in dict.fromkeys(name for name, _ in LAUNCHES)), launches=3))
    lines: list[str] = []
    for event in world.events:
        if isinstance(event, ev.LaunchRequested):
            name, rounds = LAUNCHES[len([line for line in lines if line[:5].strip()])]
            assert event.experiment == name
            number = len([line for line in lines if line[:5].strip()]) + 1
            lines.append(f"{number:2} {name:<11} {' '.join(f'{value:.1f}' for value in rounds)}")
        elif line := told(event):
            lines.append(line)
    shown = [line for block in PAGE.split("```\n")[1:4:2] for line in block.splitlines()]
    assert shown == lines and len(LAUNCHES) == 10


ONE_LAUNCH = re.findall(r"^\| ([\w-]+) \| (\d[\d., ]+) \| ([\w-]+) \| (.+) \|$", PAGE, re.MULTILINE)


@pytest.mark.parametrize(("name", "rounds", "word", "reason"), ONE_LAUNCH, ids=[row[0] for row in ONE_LAUNCH])
def test_one_launch_of_each(name: str, rounds: str, word: str, reason: str) -> None:
    found = re.search(r"against a baseline of ([\d., ]+):", PAGE)
    assert found
    baseline, candidate = ([float(value) for value in text.split(", ")] for text in (found[1], rounds))
    verdict = compare(candidate, baseline, OBJECTIVE, "baseline")
    assert (verdict.word, verdict.reason) == (word, reason)


def test_there_is_an_example_of_each_word() -> None:
    assert [row[2] for row in ONE_LAUNCH] == ["keep", "worse", "no-gain", "inconclusive"]


def test_the_words_have_the_signs_of_the_board() -> None:
    shown = {word: sign for sign, word in re.findall(r"^\| (\S) ([a-z -]+) \|", PAGE, re.MULTILINE)}
    assert shown == {word: sign for word, sign in GLYPHS.items() if word not in ("now", "todo", "proposals")}


def test_the_guards_example() -> None:
    found = re.search(r"has (\d+) right. The candidate has (\d+) of those wrong, and (\d+)\s+right", PAGE)
    total = re.search(r"the same (\d+) short questions", PAGE)
    assert found and total
    right, lost, won = map(int, found.groups())
    rest = int(total[1]) - right

    def answered(marks: str) -> GuardResult:
        return GuardResult(question_set="q", asked_over="chat", right=marks, faults="-" * len(marks), answers=())

    baseline = answered("1" * right + "0" * rest)
    candidate = answered("0" * lost + "1" * (right - lost) + "1" * won + "0" * (rest - won))
    assert guard_failure(candidate, baseline, answers=True, max_logprob_drop=None) in PAGE.splitlines()
    assert ALPHA == 0.001


def test_the_limits_of_hygiene() -> None:
    for row in (
        f"| above {hygiene.CPU_WARN:.0%} of its core | above {hygiene.CPU_BAD:.0%} |",
        f"| more than {hygiene.LAG_WARN_MS:.0f} ms late | more than {hygiene.LAG_BAD_MS:.0f} ms late |",
        f"| above {hygiene.OTHERS_WARN:.0%} | |",
        f"above {ALLOWED_FAILURES:.0%} there is no round",
        f"above {hygiene.CACHED_WARN:.0%} | above {hygiene.CACHED_BAD:.0%}, ",
        f"in a chat above {hygiene.CACHED_BAD_CHAT:.0%} |",
        f"| more than {hygiene.LENGTH_WARN:.0%} off | |",
        f"above {hygiene.SPECULATES:g} tokens a step",
    ):
        # A person writes 70 %, Python 70%.
        assert row.replace("%", " %") in PAGE
