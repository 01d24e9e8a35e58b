"""What the simulated model says to the guard's questions, and how probable it finds a given text."""

import random
import zlib
from typing import Any

from agent.bench.questions import LEAD, PROBE, questions
from agent.sim.plan import Setting
from agent.sim.text import WORDS

LOGPROB = -0.25
GARBLED_LOGPROB = -4.0
JITTER = 0.002
VOCABULARY_SIZE = 163840


def reply(prompt: str, setting: Setting, salt: str) -> str | None:
    """The whole answer to the shipped question that a prompt asks last; None where it asks none.

    The share `wrong` of the questions, the same ones at every launch, gets a wrong word; a garbled one gets it over
    and over. Of the rest, `error_rate` is wrong on this launch, which `salt` names.
    """
    _, marked, rest = prompt.rpartition(LEAD)
    asked = rest.partition("\n")[0]
    question = next((q for q in (PROBE, *questions()) if q.text == asked), None) if marked else None
    if question is None:
        return None
    broken = random.Random(f"{setting.world.seed}|{asked}")
    if broken.random() < setting.outcome.wrong:
        return " ".join([broken.choice(WORDS)] * broken.choice((1, 1, 12)))
    own = random.Random(f"{salt}|{asked}")
    return own.choice(WORDS) if own.random() < setting.world.error_rate else question.accepted[0]


def token_id(token: Any) -> int:
    """The id of a token of text; ids stay what they are."""
    return token if isinstance(token, int) else zlib.crc32(str(token).encode()) % VOCABULARY_SIZE


def input_logprobs(tokens: list[Any], start: int, setting: Setting, salt: str) -> list[list[Any]]:
    """[log-probability in nats, token id, null] of each token from `start` on, null for the first, as SGLang has it.

    A token's value is its own, but for a jitter between launches; a model that is wrong finds all text less probable.
    """
    entries: list[list[Any]] = []
    for place, token in enumerate(tokens[start:]):
        usual = 2 * LOGPROB * random.Random(f"{place + start}|{token}").random()
        jitter = random.Random(f"{salt}|{place + start}|{token}").uniform(-JITTER, JITTER)
        value = min(0.0, (GARBLED_LOGPROB if setting.outcome.garble else usual - setting.outcome.wrong) + jitter)
        entries.append([value if place else None, token_id(token), None])
    return entries
