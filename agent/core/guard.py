"""The guard against "faster and wrong": what a launch answered to fixed questions, held against the baseline."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import comb
from typing import Literal

ALPHA = 0.001
"""Chance at which an equally good launch may fail one of the tests below.

A session compares some twenty launches in two tests each: less than one session in twenty-five has a false alarm, and
fewer in fact, for the test is exact and its steps are coarse. Two launches of one configuration differ in a few
answers only, and fewer than ten differences never fail, whichever way they fall: 2^-9 is above this.
"""

_LEAST_DISCORDANT = 10  # the smallest n with 2^-n <= ALPHA

Way = Literal["chat", "completions"]

_MARKS = "*_`\"'“”‘’$"
_LEAD = re.compile(r"\A(the )?(correct )?(final )?answer( is|:)( |:)*")
_ARTICLE = re.compile(r"\A(the|an?) (?=\S)")
_DIGIT_GROUPS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_LOOP = re.compile(r"(.{1,40}?)\1{3,}", re.DOTALL)
_LOOP_CHARS = 16
_FAULT_WORDS = {"e": "empty", "l": "looping", "t": "truncated"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question with one short answer, in the ways in which it may be written."""

    text: str
    accepted: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardResult:
    """What one launch answered, greedily, to the questions of `question_set` (a digest of all their texts).

    `right`, `faults` and `answers` have one entry for each question, in the set's order: "1" right or "0" wrong; "e"
    empty, "l" looping, "t" truncated or "-" none of them; the text, cleaned and short. `mean_logprob` is how probable
    this launch finds the *baseline's* answers (the baseline its own), in nats a token over `scored_tokens` tokens of
    theirs; where it is None `unscored` says why.
    """

    question_set: str
    asked_over: Way
    right: str
    faults: str
    answers: tuple[str, ...]
    mean_logprob: float | None = None
    scored_tokens: int = 0
    unscored: str = ""

    @property
    def empty(self) -> int:
        """Answers without a word."""
        return self.faults.count("e")

    @property
    def looping(self) -> int:
        """Answers that say the same thing over and over."""
        return self.faults.count("l")

    @property
    def truncated(self) -> int:
        """Answers that did not come to an end within the tokens they were given."""
        return self.faults.count("t")


def normal(answer: str) -> str:
    """The first line of an answer in small letters, without quotes, emphasis, "The answer is", article, final marks."""
    line = next((line for line in answer.casefold().splitlines() if line.strip(f"{_MARKS} \t")), "")
    line = " ".join(line.split()).lstrip(f"{_MARKS} ")
    line = _ARTICLE.sub("", _LEAD.sub("", line, count=1).lstrip(f"{_MARKS} "), count=1)
    return _DIGIT_GROUPS.sub("", line.strip(f"{_MARKS} ").rstrip(f".,;!{_MARKS} "))


def is_right(answer: str, question: Question) -> bool:
    """Whether the answer is one of the accepted ones and nothing else."""
    return normal(answer) in {normal(accepted) for accepted in question.accepted}


def fault_of(answer: str, truncated: bool) -> str:
    """The letter in `GuardResult.faults` for an answer: its first fault in the order empty, looping, truncated.

    Looping: a piece of up to 40 characters comes at least four times in a row, in at least 16 characters.
    """
    if not answer.strip():
        return "e"
    if any(len(found[0]) >= _LOOP_CHARS for found in _LOOP.finditer(answer)):
        return "l"
    return "t" if truncated else "-"


def mcnemar(worse: int, better: int) -> float:
    """One-sided exact P value of McNemar's test: at least `worse` of all the discordant pairs by fair coin flips.

    McNemar, Psychometrika 12 (1947) 153-157; exact by the binomial distribution, which is the sign test.
    """
    pairs = worse + better
    return float(sum(comb(pairs, k) for k in range(worse, pairs + 1)) / 2**pairs)


def guard_failure(
    candidate: GuardResult, baseline: GuardResult, *, answers: bool, max_logprob_drop: float | None
) -> str | None:
    """Why the candidate is wrong, in one line for the board; None where nothing shows that it is.

    With `answers` it fails where significantly more of its answers are wrong, or empty, looping or truncated, than of
    the baseline's to the same questions; and where `mean_logprob` is more than `max_logprob_drop` nats below. Other
    words alone are no fault: greedy decoding repeats itself only where every kernel does. Raises ValueError for other
    questions.
    """
    if candidate.question_set != baseline.question_set:
        raise ValueError("the two sides were asked other questions")
    found = [*(_worse_answers(candidate, baseline) if answers else ())]
    change = logprob_change(candidate, baseline)
    if change is not None and max_logprob_drop is not None and -change > max_logprob_drop:
        allowed = f"-{max_logprob_drop:g} is allowed"
        found.append(f"it finds the baseline's answers less probable: {change:+.3f} nats a token, where {allowed}")
    return "; ".join(found) or None


def _worse_answers(candidate: GuardResult, baseline: GuardResult) -> Iterator[str]:
    p = _worse(candidate.right, baseline.right, good="1")
    if p <= ALPHA:
        yield f"its answers are worse: {right_of(candidate)} right, the baseline's {right_of(baseline)} (p = {p:.0e})"
    p = _worse(candidate.faults, baseline.faults, good="-")
    if p <= ALPHA:
        yield f"its answers break down: {_faults(candidate)}; the baseline's: {_faults(baseline)} (p = {p:.0e})"


def _worse(candidate: str, baseline: str, good: str) -> float:
    sides = [(c == good, b == good) for c, b in zip(candidate, baseline, strict=True)]
    return mcnemar(sides.count((False, True)), sides.count((True, False)))


def logprob_change(candidate: GuardResult, baseline: GuardResult) -> float | None:
    """By how many nats a token the candidate finds the baseline's answers more probable than the baseline does.

    None where either has no score, or where the answers are not the same number of tokens for both (another tokenizer).
    """
    if candidate.mean_logprob is None or baseline.mean_logprob is None:
        return None
    if candidate.scored_tokens != baseline.scored_tokens:
        return None
    return candidate.mean_logprob - baseline.mean_logprob


def guard_notes(candidate: GuardResult, baseline: GuardResult) -> tuple[str, ...]:
    """What the comparison saw and what it could not see, one short sentence each. Never a reason to fail."""
    same = sum(normal(c) == normal(b) for c, b in zip(candidate.answers, baseline.answers, strict=True))
    change = logprob_change(candidate, baseline)
    if change is not None:
        score = f"log-probability of the baseline's answers {change:+.4f} nats a token over {baseline.scored_tokens}"
    else:
        score = f"log-probability not compared: {candidate.unscored or baseline.unscored or 'other tokens'}"
    notes = (
        f"{right_of(candidate)} right, the baseline's {right_of(baseline)}",
        f"{same} of {len(baseline.answers)} answers are the same words",
        score,
    )
    return notes + blind_spots(baseline)


def blind_spots(baseline: GuardResult) -> tuple[str, ...]:
    """Which faults of a candidate could not show against this baseline, since it has them itself."""
    spots = []
    if baseline.right.count("1") < _LEAST_DISCORDANT:
        spots.append(f"the baseline has only {right_of(baseline)} right, so worse answers cannot show")
    if baseline.faults.count("-") < _LEAST_DISCORDANT:
        spots.append(f"the baseline's answers break down themselves: {_faults(baseline)}")
    return tuple(spots)


def right_of(result: GuardResult) -> str:
    """`165 of 170`."""
    return f"{result.right.count('1')} of {len(result.right)}"


def _faults(result: GuardResult) -> str:
    counts = [(result.faults.count(letter), word) for letter, word in _FAULT_WORDS.items()]
    return ", ".join(f"{count} {word}" for count, word in counts if count) or "no fault"
