"""Text of the simulated model: its tokenizer, its deterministic answers, its prefix cache."""

import random
import re
import zlib
from collections.abc import Mapping
from typing import Any

BLOCK = 16
VOCABULARY = (
    "the of and to in is that for it as was with be by on not he his but at are this have from or had an they which "
    "one you were all her she there would their we him been has when who will no more if out so up said what its "
    "about than into them can only other time new some could these two may first then do any like my now over such "
    "our man me even most made after also did many before must through back years where much your way well down "
    "should because each just those people how too little state good very make world still see own work long here "
    "get both between life being under three never know same last another while us off might great go come since "
    "against right came take used himself few house use place during high without again home around small however "
    "found part school every number water less "
)
WORDS = VOCABULARY.split()
PIECES = re.compile(r"\s?\w{1,6}|[^\w\s]|\s")
SUM = re.compile(r"(\d+)\s*([-+*x×])\s*(\d+)")


def tokenize(prompt: Any) -> list[Any]:
    """Tokens of a prompt: text, or token ids as they are."""
    if isinstance(prompt, str):
        return PIECES.findall(prompt) or [""]
    return list(prompt) or [0]


def answer(prompt: str, answers: Mapping[str, str]) -> str:
    """The known start of an answer: of the world's answers, or a small sum; else nothing."""
    for fragment, known in answers.items():
        if fragment.lower() in prompt.lower():
            return known
    found = SUM.search(prompt)
    if found is None:
        return ""
    left, right = int(found[1]), int(found[3])
    return str({"+": left + right, "-": left - right}.get(found[2], left * right))


def generate(tokens: list[Any], known: str, count: int, salt: str) -> list[str]:
    """`count` tokens that follow a prompt, the same for the same prompt and salt."""
    source = random.Random(zlib.crc32(repr(tokens).encode()) ^ zlib.crc32(salt.encode()))
    start = [f" {word}" for word in known.split()][:count]
    return start + [f" {source.choice(WORDS)}" for _ in range(count - len(start))]


class PrefixCache:
    """Which prompt prefixes the server has seen since the last flush, in blocks of 16 tokens."""

    def __init__(self) -> None:
        self.seen: set[int] = set()

    def add(self, tokens: list[Any]) -> int:
        """Remember a prompt; the number of its tokens that were cached already (never the last one)."""
        chain, cached, known = 0, 0, True
        for start in range(0, len(tokens) - BLOCK + 1, BLOCK):
            chain = hash((chain, tuple(tokens[start : start + BLOCK])))
            known = known and chain in self.seen
            cached = start + BLOCK if known else cached
            self.seen.add(chain)
        return min(cached, len(tokens) - 1)

    def flush(self) -> None:
        """Forget everything."""
        self.seen.clear()
