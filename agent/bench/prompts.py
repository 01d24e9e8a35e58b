"""Prompts of a workload: made of the shipped passages, of about the right length, no two beginning alike."""

import random
from functools import cache
from hashlib import blake2b
from importlib.resources import files

from agent.playbook.model import Workload

CHARS_PER_TOKEN = 4
"""Characters of mixed English and code that a usual tokenizer makes one token of, roughly."""

_MARK_LENGTH = 16


@cache
def passages(data: str) -> tuple[str, ...]:
    """Every passage of a shipped data set, in the order of its files."""
    folder = files("agent.bench") / "data" / data
    texts = [entry.read_text("utf-8") for entry in sorted(folder.iterdir(), key=lambda x: x.name)]
    return tuple(passage.strip("\n") for text in texts for passage in text.split("\n%%\n")[1:])


def prompts(workload: Workload, seed: int, count: int) -> list[str]:
    """`count` prompts of about `input_len` tokens each, the same for the same workload name, lengths and seed.

    Each begins with a mark of 16 characters that belongs to this workload, seed and place alone, so that a prefix
    cache finds nothing in it: not from another prompt, another round, or another workload on the same launch.
    """
    return [_prompt(workload, f"{workload.name}:{seed}:{index}") for index in range(count)]


def _prompt(workload: Workload, key: str) -> str:
    length = max(_MARK_LENGTH, workload.input_len * CHARS_PER_TOKEN)
    mark = blake2b(key.encode(), digest_size=_MARK_LENGTH // 2).hexdigest()
    parts = [f"{mark} is the reference of this collection of notes."]
    size = len(parts[0])
    order = random.Random(key)
    pool: list[str] = []
    while size < length:
        if not pool:
            pool = list(passages(workload.data))
            order.shuffle(pool)
        parts.append(pool.pop())
        size += len(parts[-1]) + 2
    return "\n\n".join(parts)[:length]
