"""`tunebot bench` on the simulated server, whose speed is known: all of its APIs, and its own ledger."""

import json

import pytest

from agent.cli import main
from agent.sim.host import create_host, world_file
from agent.sim.ledger import read_ledger
from tests.sim.conftest import Server, free_port, kill_all


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    host = create_host(tmp_path_factory.mktemp("bench"), world_file("small"))
    yield Server(host, free_port()).ready()
    kill_all(host)


def bench(server, capsys, *options):
    code = main(["bench", f"http://127.0.0.1:{server.port}", "--json", "--input-len", "64", *options])
    return code, json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "options",
    [
        ("--api", "completions"),
        ("--api", "chat"),
        ("--api", "generate"),
        ("--api", "completions", "--data", "random-tokens"),
        ("--api", "generate", "--data", "random-tokens"),
    ],
    ids=" ".join,
)
def test_every_api_says_the_same_of_a_server(server, capsys, options):
    before = len(requests_of(server))
    code, told = bench(server, capsys, *options, "--requests", "3", "--output-len", "40", "--concurrency", "1")
    assert code == 0
    assert (told["completed"], told["total_output_tokens"], told["tokens_per_chunk"]) == (3, 120, 1.0)
    assert 1.5 < told["median_tpot_ms"] < 10  # 500 tok/s are 2 ms each, on a busy machine more
    seen = requests_of(server)[before + 1 :]  # behind the warm-up
    assert [request["completion_tokens"] for request in seen] == [40, 40, 40]
    assert told["total_input_tokens"] == sum(request["prompt_tokens"] for request in seen)


def requests_of(server):
    return [entry for entry in read_ledger(server.host.ledger) if entry["kind"] == "request"]


def test_a_shared_prefix_is_found_in_the_cache_and_is_no_reproach(server, capsys):
    options = ("--data", "shared-prefix", "--shared-prefix-len", "48", "--requests", "8", "--output-len", "8")
    code, told = bench(server, capsys, *options)
    assert code == 0 and told["cache_hit_rate"] > 0.3


def test_a_seed_for_the_second_time_is_found_in_the_cache(server, capsys):
    """Pitfall 1."""
    options = ("--seed", "3", "--requests", "4", "--output-len", "8")
    assert bench(server, capsys, *options)[0] == 0
    code, told = bench(server, capsys, *options)
    assert code == 5 and told["cache_hit_rate"] > 0.8
    assert "in the prefix cache" in told["not_comparable"]
