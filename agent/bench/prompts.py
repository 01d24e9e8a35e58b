"""Prompts of a workload: of about the right length, no two beginning alike but where a prefix is to be shared."""

import random
from collections.abc import Iterator
from functools import cache
from hashlib import blake2b
from importlib.resources import files
from itertools import chain, repeat

from agent.bench.api import Prompt
from agent.bench.datafile import Record, records_of
from agent.playbook.workload import DataFile, Workload

CHARS_PER_TOKEN = 4
"""Characters of mixed English and code that a usual tokenizer makes one token of, roughly."""

SAFE_TOKENS = (1000, 4000)
"""Token ids that are plain text everywhere: above the bytes and marks with which vocabularies begin, below the end of
the smallest ones."""

_MARK_LENGTH = 16


@cache
def passages(data: str) -> tuple[str, ...]:
    """Every passage of a shipped data set, in the order of its files."""
    folder = files("agent.bench") / "data" / data
    texts = [entry.read_text("utf-8") for entry in sorted(folder.iterdir(), key=lambda x: x.name)]
    return tuple(passage.strip("\n") for text in texts for passage in text.split("\n%%\n")[1:])


def requests_of(workload: Workload, seed: int, count: int) -> list[tuple[Prompt, int]]:
    """`count` prompts and how many tokens to ask for, the same for the same workload and seed.

    The prompts of mixed-text and of files begin with a mark of 16 characters that belongs to this workload, seed and
    place alone, so that a prefix cache finds nothing in it: not from another prompt, another round, or another
    workload on the same launch. Random tokens need no mark. The prefix of shared-prefix is the same for one seed and
    differs between seeds. A file is shuffled for each seed, and begun again where it is too short. Raises ValueError
    for a file that cannot be used.
    """
    keys = [f"{workload.name}:{seed}:{index}" for index in range(count)]
    if isinstance(workload.data, DataFile):
        taken = _taken(records_of(workload.data), f"{workload.name}:{seed}", count)
        marked = [f"{_mark(key)}\n{record.prompt}" for key, record in zip(keys, taken, strict=True)]
        return [(text, r.output_len or workload.output_len) for text, r in zip(marked, taken, strict=True)]
    made: list[Prompt]
    if workload.data == "random-tokens":
        made = [tuple(random.Random(key).choices(range(*SAFE_TOKENS), k=workload.input_len)) for key in keys]
    else:
        prefix_len = workload.shared_prefix_len or 0 if workload.data == "shared-prefix" else 0
        prefix = _text(f"{workload.name}:{seed}:prefix", prefix_len) if prefix_len else ""
        made = [prefix + _text(key, workload.input_len - prefix_len) for key in keys]
    return [(prompt, workload.output_len) for prompt in made]


def _taken(given: tuple[Record, ...], key: str, count: int) -> list[Record]:
    order = random.Random(key).sample(given, len(given))
    return [order[index % len(order)] for index in range(count)]


def _mark(key: str) -> str:
    return blake2b(key.encode(), digest_size=_MARK_LENGTH // 2).hexdigest()


def _text(key: str, tokens: int) -> str:
    length = max(_MARK_LENGTH, tokens * CHARS_PER_TOKEN)
    parts = [f"{_mark(key)} is the reference of this collection of notes."]
    size = len(parts[0])
    order = random.Random(key)
    more = chain.from_iterable(_shuffled(passages("mixed-text"), order) for _ in repeat(None))
    while size < length:
        parts.append(next(more))
        size += len(parts[-1]) + 2
    return "\n\n".join(parts)[:length]


def _shuffled(given: tuple[str, ...], order: random.Random) -> Iterator[str]:
    """All of them in random order, each drawn when it is asked for: few prompts take them all."""
    pool = list(given)
    for last in reversed(range(1, len(pool))):
        drawn = order.randrange(last + 1)
        pool[last], pool[drawn] = pool[drawn], pool[last]
        yield pool[last]
    yield pool[0]
