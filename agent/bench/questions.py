"""The questions that ship with tunebot for the guard, and how they are put to a server."""

import json
from functools import cache
from hashlib import blake2b
from importlib.resources import files

from agent.core.guard import Question

LEAD = "Question: "

_EXAMPLES = (("What is 1 + 1?", "2"), ("What is the opposite of big?", "small"), ("Which pet barks?", "dog"))
_ORDER = "Answer with the answer alone: one word or number, no sentence."

PROBE = Question(text=_EXAMPLES[0][0], accepted=(_EXAMPLES[0][1],))
"""A question so easy that a server which cannot answer it over an endpoint is better asked over another."""


@cache
def questions() -> tuple[Question, ...]:
    """Every question, in the order of the file."""
    lines = (files("agent.bench") / "data" / "questions.jsonl").read_text("utf-8").splitlines()
    found = (json.loads(line) for line in lines)
    return tuple(Question(text=q["text"], accepted=tuple(q["accepted"])) for q in found)


@cache
def question_set() -> str:
    """A digest of all the questions, the accepted answers and the form in which they are put."""
    parts = [(q.text, q.accepted, chat_text(q), completion_text(q)) for q in questions()]
    return blake2b(repr(parts).encode(), digest_size=8).hexdigest()


def chat_text(question: Question) -> str:
    """The message of a user that asks the question. Some chat templates take no message of a system."""
    return f"{_ORDER}\n{LEAD}{question.text}\n"


def completion_text(question: Question) -> str:
    """A text which the answer continues, after a space; three examples show a base model the form. It ends a line."""
    examples = "".join(f"{LEAD}{text}\nAnswer: {answer}\n" for text, answer in _EXAMPLES)
    return f"{examples}{LEAD}{question.text}\nAnswer:"
