import random
from itertools import combinations
from pathlib import Path

import pytest

import agent.bench
from agent.bench.prompts import passages, requests_of
from agent.playbook.model import Workload


def prompts(workload, seed, count):
    return [prompt for prompt, _ in requests_of(workload, seed, count)]


def test_the_data_set_is_varied_and_licensed():
    texts = passages("mixed-text")
    assert 60 <= len(texts) <= 120
    assert len(set(texts)) == len(texts)
    folder = Path(agent.bench.__file__).parent / "data" / "mixed-text"
    sizes = {}
    for file in folder.iterdir():
        assert "Apache-2.0" in file.read_text("utf-8").splitlines()[0]
        sizes[file.name] = file.stat().st_size
    assert sizes.keys() == {"prose.txt", "code.txt", "chat.txt"}
    assert 60_000 <= sum(sizes.values()) <= 100_000
    assert max(sizes.values()) < 1.6 * min(sizes.values())


@pytest.mark.parametrize("tokens", [4, 5, 100, 1024, 40_000])
def test_the_length_follows_the_workload(tokens):
    assert {len(text) for text in prompts(Workload(name="w", input_len=tokens), 0, 3)} == {max(16, 4 * tokens)}


def test_the_same_seed_gives_the_same_prompts():
    shape = Workload(name="w", input_len=500)
    assert prompts(shape, 3, 5) == prompts(shape, 3, 5)
    assert prompts(shape, 3, 5) == prompts(shape, 3, 8)[:5]


def test_prompts_are_what_they_were():
    """Passages are drawn one by one; the order is that of a shuffled pile, taken from its end."""
    text = prompts(Workload(name="w", input_len=40_000), 3, 1)[0]
    order, drawn = random.Random("w:3:0"), []
    for _ in range(3):
        pile = list(passages("mixed-text"))
        order.shuffle(pile)
        drawn += reversed(pile)
    expected = "\n\n".join([text.split("\n\n", 1)[0], *drawn])
    assert len(expected) > len(text) and expected.startswith(text)


def test_no_two_prompts_begin_alike_in_any_round_or_workload():
    beginnings = [
        text[:16]
        for name in ("single", "batch")
        for seed in range(-1, 40)
        for text in prompts(Workload(name=name, input_len=64), seed, 32)
    ]
    assert len(set(beginnings)) == len(beginnings)


def test_prompts_differ_in_what_follows_the_mark():
    texts = prompts(Workload(name="w", input_len=1024), 0, 8)
    assert all(a[80:] != b[80:] for a, b in combinations(texts, 2))
