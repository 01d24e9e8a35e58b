"""What is sent when: prompts of files, token ids, shared prefixes, and the times of an open loop."""

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.bench.arrivals import send_times
from agent.bench.datafile import looking_from, records_of
from agent.bench.plan import plan_of, warm_up_plan
from agent.playbook.workload import DataFile, Workload

LINES = [
    {"prompt": "first"},
    {"messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "second"}], "output_len": 5},
    {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]},
    {"conversations": [{"from": "human", "value": "third"}, {"from": "gpt", "value": "answer"}], "id": "x"},
]


def shape(**changes) -> Workload:
    return Workload.model_validate({"name": "w", "requests": 4, **changes})


@pytest.fixture
def chats(tmp_path):
    file = tmp_path / "chats.jsonl"
    file.write_text("\n".join(map(json.dumps, LINES)) + "\n\n")
    return file


def test_a_plan_says_everything_that_is_sent():
    plan = plan_of(shape(concurrency=2, input_len=64, output_len=9, api="chat"), "m", 3)
    assert (plan.api, plan.model, plan.concurrency, plan.send_at_s) == ("chat", "m", 2, None)
    assert plan.output_lens == (9, 9, 9, 9)
    assert len(set(plan.prompts)) == 4 and {len(text) for text in plan.prompts} == {256}


def test_rounds_differ_and_a_seed_repeats():
    for data in ({"data": "mixed-text"}, {"data": "random-tokens"}, {"rate": 5.0}):
        workload = shape(**data)
        assert plan_of(workload, "m", 0) == plan_of(workload, "m", 0)
        assert not set(plan_of(workload, "m", 0).prompts) & set(plan_of(workload, "m", 1).prompts)
    times = [plan_of(shape(rate=5.0), "m", seed).send_at_s for seed in (0, 1)]
    assert times[0] != times[1]


def test_random_tokens_are_ids_in_a_safe_range():
    plan = plan_of(shape(data="random-tokens", input_len=200), "m", 0)
    assert {len(prompt) for prompt in plan.prompts} == {200}
    assert all(1000 <= token < 4000 for prompt in plan.prompts for token in prompt)
    assert len({prompt[:8] for prompt in plan.prompts}) == 4  # no prefix cache finds a block of them


def test_a_shared_prefix_is_shared_in_one_round_only():
    workload = shape(data="shared-prefix", shared_prefix_len=100, input_len=300)
    one, two = (plan_of(workload, "m", seed).prompts for seed in (0, 1))
    assert len({text[:400] for text in one}) == 1 and len({text[400:416] for text in one}) == 4
    assert one[0][:16] != two[0][:16] and {len(text) for text in one} == {1200}


def test_a_warm_up_has_the_batch_of_a_round_and_no_prompt_of_one():
    """Pitfall 2."""
    workload = shape(concurrency=3, output_len=1000)
    warm_up = warm_up_plan(workload, "m")
    assert (len(warm_up.prompts), warm_up.concurrency, warm_up.output_lens) == (3, 3, (128, 128, 128))
    rounds = {text[:16] for seed in range(20) for text in plan_of(workload, "m", seed).prompts}
    assert not rounds & {text[:16] for text in warm_up.prompts}
    opened = warm_up_plan(shape(rate=5.0, requests=4000), "m")
    assert opened.send_at_s is None and len(opened.prompts) == 256


def test_a_file_is_read_in_the_shapes_that_people_have(chats):
    assert [(record.prompt, record.output_len) for record in records_of(DataFile(file=str(chats)))] == [
        ("first", None),
        ("be brief\n\nsecond", 5),
        ("a", None),
        ("third", None),
    ]


def test_no_prompt_of_a_file_comes_twice_alike(chats):
    """Pitfall 1: the file is short, and is begun again behind other marks."""
    workload = shape(data={"file": str(chats)}, requests=10, output_len=7)
    plans = [plan_of(workload, "m", seed) for seed in range(3)]
    beginnings = [text[:16] for plan in plans for text in plan.prompts]
    assert len(set(beginnings)) == 30
    assert sorted(text[17:] for text in plans[0].prompts[:4]) == sorted(["first", "be brief\n\nsecond", "a", "third"])
    lengths = dict(zip((text[17:] for text in plans[0].prompts), plans[0].output_lens, strict=True))
    assert lengths == {"first": 7, "be brief\n\nsecond": 5, "a": 7, "third": 7}


def test_a_file_is_known_by_its_bytes(chats):
    look_at = looking_from(chats.parent)
    found = look_at("chats.jsonl")
    assert found.path == str(chats) and len(found.sha256) == 64
    assert look_at(str(chats)) == found
    records_of(DataFile(file=found.path, sha256=found.sha256))
    chats.write_text('{"prompt": "other"}\n')
    with pytest.raises(ValueError, match="other bytes than when it was first read"):
        records_of(DataFile(file=found.path, sha256=found.sha256))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "d.jsonl has no prompt"),
        ('{"prompt": "a"}\nnonsense\n', "d.jsonl:2: not a JSON object"),
        ("[1]\n", "d.jsonl:1: not a JSON object"),
        ("[" * 100_000, "d.jsonl:1: not a JSON object"),
        ('{"text": "a"}', "d.jsonl:1: needs prompt, messages or conversations"),
        ('\n{"prompt": " "}', "d.jsonl:2: the prompt must be text, and not empty"),
        ('{"prompt": ["a"]}', "d.jsonl:1: the prompt must be text, and not empty"),
        ('{"prompt": "a", "output_len": 1}', "d.jsonl:1: output_len must be a whole number of at least 2"),
        ('{"prompt": "a", "output_len": true}', "d.jsonl:1: output_len must be a whole number"),
        ('{"messages": [{"role": "user"}]}', "d.jsonl:1: each of messages must have its content as text"),
        ('{"messages": [{"role": "assistant", "content": "a"}]}', "d.jsonl:1: none of messages is by user"),
        ('{"conversations": ["a"]}', "d.jsonl:1: each of conversations must have its value as text"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_line(tmp_path, text, says):
    (tmp_path / "d.jsonl").write_text(text)
    with pytest.raises(ValueError) as raised:
        looking_from(tmp_path)("d.jsonl")
    assert str(raised.value).startswith(says)


def test_a_file_that_is_none(tmp_path):
    for name in ("missing.jsonl", "."):
        with pytest.raises(ValueError, match="there is no file"):
            looking_from(tmp_path)(name)


def test_constant_arrivals_are_equally_spaced():
    assert send_times(4.0, 4, "constant", 0.0, "k") == (0.0, 0.25, 0.5, 0.75)


def test_a_ramp_reaches_the_rate():
    # 10 requests a second after a ramp of 2 s, in which 10 are due: the n-th at sqrt(4 n / 10)
    times = send_times(10.0, 41, "constant", 2.0, "k")
    assert times[0] == 0.0 and times[5] == pytest.approx(2**0.5)
    assert times[10] == pytest.approx(2.0) and times[40] == pytest.approx(5.0)


def test_poisson_arrivals_have_the_rate_and_its_spread():
    times = send_times(8.0, 4001, "poisson", 0.0, "k")
    gaps = [b - a for a, b in pairwise(times)]
    assert times[0] == 0.0
    assert sum(gaps) / len(gaps) == pytest.approx(1 / 8, rel=0.05)
    assert sum(g * g for g in gaps) / len(gaps) == pytest.approx(2 / 64, rel=0.1)  # of an exponential


@given(
    st.floats(0.01, 1e4),
    st.integers(0, 50),
    st.sampled_from(["poisson", "constant"]),
    st.floats(0, 100),
    st.text(max_size=5),
)
def test_times_ascend(rate, count, arrivals, ramp_s, key):
    times = send_times(rate, count, arrivals, ramp_s, key)
    assert len(times) == count and list(times) == sorted(times)
    assert all(time >= 0 for time in times)
