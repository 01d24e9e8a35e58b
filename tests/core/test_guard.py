"""Grading of answers, and the judgement over two launches: its false alarms and its power."""

import random
from collections.abc import Sequence
from dataclasses import replace
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from agent.core import commands as do
from agent.core import events as ev
from agent.core.guard import (
    ALPHA,
    GuardResult,
    Question,
    blind_spots,
    fault_of,
    guard_failure,
    guard_notes,
    is_right,
    logprob_change,
    mcnemar,
)
from agent.core.state import State
from agent.core.views.guard import guard_of_experiment
from tests.core.conftest import World, playbook

COUNT = 170


def result(right: Sequence[bool], **more: object) -> GuardResult:
    ones = "".join("1" if r else "0" for r in right)
    made = GuardResult(
        question_set="a", asked_over="chat", right=ones, faults="-" * len(ones), answers=("x",) * len(ones)
    )
    return replace(made, **more)  # type: ignore[arg-type]


def wrong_at(*places: int, count: int = COUNT) -> GuardResult:
    return result([place not in places for place in range(count)])


@pytest.mark.parametrize(
    ("answer", "accepted", "right"),
    [
        ("Paris", "Paris", True),
        (" paris.\n\nIt lies on the Seine.", "Paris", True),
        ("The answer is: **Paris**.", "Paris", True),
        ("Answer: 42", "42", True),
        ("\n 1,024 ", "1024", True),
        ("a dog", "dog", True),
        ("The final answer is the dog!", "dog", True),
        ("12:00.", "12:00", True),
        (".5", ".5", True),
        ("5", ".5", False),
        ("3", "-3", False),
        ("1,2", "12", False),
        ("Paris, France", "Paris", False),
        ("not Paris", "Paris", False),
        ("It is 42", "42", False),
        ("a", "A", True),
        ("", "Paris", False),
        ("1024", "24", False),
    ],
)
def test_grading(answer: str, accepted: str, right: bool) -> None:
    assert is_right(answer, Question(text="?", accepted=("never", accepted))) is right


@given(st.text(max_size=300), st.booleans())
def test_grading_takes_any_text(answer: str, truncated: bool) -> None:
    assert not is_right(answer, Question(text="?", accepted=("no such answer",)))
    assert fault_of(answer, truncated) in "elt-"


@pytest.mark.parametrize(
    ("answer", "truncated", "fault"),
    [
        (" \n", True, "e"),
        ("!" * 32, True, "l"),
        ("well the answer the answer the answer the answer", False, "l"),
        ("ha ha ha ha", False, "-"),
        ("1000000000000", False, "-"),
        ("one two three four five six seven", True, "t"),
        ("Paris", False, "-"),
    ],
)
def test_faults(answer: str, truncated: bool, fault: str) -> None:
    assert fault_of(answer, truncated) == fault


def test_mcnemar_by_hand() -> None:
    # 8, 9 and 10 heads of 10: (45 + 10 + 1) / 1024
    assert isclose(mcnemar(8, 2), 56 / 1024)
    assert mcnemar(0, 0) == 1 and mcnemar(0, 7) == 1 and mcnemar(10, 0) == 1 / 1024


@given(st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_is_a_probability_and_symmetric(worse: int, better: int) -> None:
    p = mcnemar(worse, better)
    assert 0 < p <= 1 and mcnemar(worse + 1, better) <= p <= mcnemar(worse, better + 1)
    assert isclose(p + mcnemar(better + 1, worse - 1) if worse else p, 1)


def test_ten_answers_worse_and_none_better_is_the_least_that_fails() -> None:
    assert guard_failure(wrong_at(*range(9)), wrong_at(), answers=True, max_logprob_drop=None) is None
    said = guard_failure(wrong_at(*range(10)), wrong_at(), answers=True, max_logprob_drop=None)
    assert said == "its answers are worse: 160 of 170 right, the baseline's 170 of 170 (p = 1e-03)"
    assert guard_failure(wrong_at(*range(10)), wrong_at(50, 51, 52), answers=True, max_logprob_drop=None) is None


def test_a_better_candidate_never_fails() -> None:
    assert guard_failure(wrong_at(), wrong_at(*range(100)), answers=True, max_logprob_drop=0.02) is None


def test_answers_that_break_down_fail_though_they_are_right() -> None:
    looping = replace(wrong_at(), faults="l" * 8 + "e" * 3 + "t" * 4 + "-" * 155)
    assert (looping.looping, looping.empty, looping.truncated) == (8, 3, 4)
    said = guard_failure(looping, wrong_at(), answers=True, max_logprob_drop=None)
    assert said is not None and "3 empty, 8 looping, 4 truncated; the baseline's: no fault" in said
    assert guard_failure(looping, looping, answers=True, max_logprob_drop=None) is None


def test_log_probability() -> None:
    baseline = replace(wrong_at(), mean_logprob=-0.25, scored_tokens=400)
    near = replace(baseline, mean_logprob=-0.268)
    far = replace(baseline, mean_logprob=-0.275)
    assert (
        guard_failure(near, baseline, answers=True, max_logprob_drop=0.02) is None
        and guard_failure(far, baseline, answers=True, max_logprob_drop=None) is None
    )
    said = guard_failure(far, baseline, answers=True, max_logprob_drop=0.02)
    assert said == "it finds the baseline's answers less probable: -0.025 nats a token, where -0.02 is allowed"
    assert guard_failure(replace(far, mean_logprob=-0.1), baseline, answers=True, max_logprob_drop=0.02) is None


def test_what_is_not_comparable_is_said() -> None:
    baseline = replace(wrong_at(), mean_logprob=-0.25, scored_tokens=400)
    other_tokens = replace(baseline, mean_logprob=-9.0, scored_tokens=401)
    unscored = replace(wrong_at(), unscored="llamacpp gives no log-probabilities of a given text")
    assert (
        logprob_change(other_tokens, baseline) is None
        and guard_failure(other_tokens, baseline, answers=True, max_logprob_drop=0.02) is None
    )
    assert "log-probability not compared: other tokens" in guard_notes(other_tokens, baseline)
    assert any("not compared: llamacpp gives no" in note for note in guard_notes(unscored, baseline))
    with pytest.raises(ValueError, match="other questions"):
        guard_failure(replace(baseline, question_set="b"), baseline, answers=True, max_logprob_drop=0.02)


def test_notes_count_the_same_words_and_name_blind_spots() -> None:
    baseline = replace(wrong_at(), answers=("Paris",) * 100 + ("42",) * 70)
    candidate = replace(wrong_at(3), answers=(" paris.",) * 100 + ("41",) * 70)
    notes = guard_notes(candidate, baseline)
    assert notes[:2] == ("169 of 170 right, the baseline's 170 of 170", "100 of 170 answers are the same words")
    assert not blind_spots(baseline)
    hopeless = replace(wrong_at(*range(COUNT)), faults="t" * COUNT)
    assert [spot.split(",")[0] for spot in blind_spots(hopeless)] == [
        "the baseline has only 0 of 170 right",
        "the baseline's answers break down themselves: 170 truncated",
    ]


def test_it_survives_the_journal() -> None:
    adapter = TypeAdapter(GuardResult)
    scored = replace(wrong_at(3), mean_logprob=-0.25, scored_tokens=400)
    assert adapter.validate_json(adapter.dump_json(scored)) == scored


@pytest.mark.parametrize(
    ("accuracy", "flips", "loss", "least", "most"),
    [
        # two launches of one configuration, from steady to a sampler that tosses a coin for each answer
        (0.95, 0.02, 0.00, 0.0, ALPHA),
        (0.95, 0.10, 0.00, 0.0, ALPHA),
        (0.60, 0.50, 0.00, 0.0, ALPHA),
        (0.50, 1.00, 0.00, 0.0, ALPHA),
        # a candidate that spoils a share of the right answers
        (0.95, 0.02, 0.05, 0.0, 0.40),
        (0.95, 0.02, 0.10, 0.85, 1.0),
        (0.95, 0.02, 0.20, 0.999, 1.0),
        (0.95, 0.10, 0.20, 0.99, 1.0),
    ],
)
def test_false_alarms_and_power(accuracy: float, flips: float, loss: float, least: float, most: float) -> None:
    """`flips` is the share of answers that each launch draws anew, `loss` that of right ones which come out wrong."""
    draw, runs = random.Random(f"{accuracy} {flips} {loss}"), 1000

    def launch(model: list[bool]) -> list[bool]:
        return [draw.random() < accuracy if draw.random() < flips else known for known in model]

    failed = 0
    for _ in range(runs):
        model = [draw.random() < accuracy for _ in range(COUNT)]
        spoiled = [right and draw.random() >= loss for right in launch(model)]
        failed += guard_failure(result(spoiled), result(launch(model)), answers=True, max_logprob_drop=None) is not None
    assert least <= failed / runs <= most


@pytest.mark.parametrize(("length", "told"), [(2.1, "accept length 2.10, that of base 2.60"), (2.55, "")])
def test_an_accept_length_that_moved_is_told(length: float, told: str) -> None:
    lengths = {"base": 2.6, "idea": length}

    class Speculating(World):
        def answer(self, state: State, command: do.Command, at: float) -> list[ev.Event]:
            events = super().answer(state, command, at)
            return [
                replace(e, metrics=replace(e.metrics, accept_length=lengths[state.launches[e.launch].experiment]))
                if isinstance(e, ev.RoundMeasured)
                else e
                for e in events
            ]

    state = Speculating().play(playbook({"id": "base"}, {"id": "idea"}, guard={"answers": "builtin"}, launches=1))
    said = "; ".join(guard_of_experiment(state, state.experiments["idea"]))
    assert told in said and ("accept length" in said) == bool(told)
