"""Generation: speed, formats, prefix cache."""

import http.client
import itertools
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from agent.sim.host import SimHost, create_host, world_file
from agent.sim.ledger import read_ledger
from tests.sim.conftest import Server, free_port, kill_all, wait_for

TEXT = "one two three four five six seven eight nine ten " * 40
USAGE = {"include_usage": True, "continuous_usage_stats": True}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One plain server for the tests that only read from it."""
    host = create_host(tmp_path_factory.mktemp("serving"), world_file("small"))
    yield Server(host, free_port()).ready()
    kill_all(host)


def median_rate(server: Server, tokens: int) -> float:
    """The middle of three, for the machine that runs the tests may be busy."""
    return sorted(decode_rate(server.stream("/v1/completions", request(max_tokens=tokens))) for _ in range(3))[1]


def decode_rate(events: list[tuple[float, Any]]) -> float:
    """Tokens/s after the first one, by the usage that each chunk carries."""
    chunks = [(at, data["usage"]["completion_tokens"]) for at, data in events if data != "[DONE]" and data["choices"]]
    return float((chunks[-1][1] - chunks[0][1]) / (chunks[-1][0] - chunks[0][0]))


def request(**more: Any) -> dict[str, Any]:
    return {"model": "m", "prompt": TEXT, "max_tokens": 200, "temperature": 0, "stream_options": USAGE, **more}


def test_rate_and_shape_of_a_stream(server: Server) -> None:
    events = server.stream("/v1/completions", request())
    assert median_rate(server, 300) == pytest.approx(500, rel=0.05)
    assert events[-1][1] == "[DONE]"
    usage = events[-2][1]
    assert usage["choices"] == [] and usage["usage"]["completion_tokens"] == 200
    texts = [data["choices"][0]["text"] for _, data in events[:-2]]
    assert len(texts) == 200 and all(text.startswith(" ") for text in texts)
    assert events[-3][1]["choices"][0]["finish_reason"] == "length"
    again = server.stream("/v1/completions", request())
    assert [data["choices"][0]["text"] for _, data in again[:-2]] == texts


def test_speculation_sends_several_tokens_a_chunk(host: SimHost, port: int) -> None:
    flags = ["--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", "/models/draft"]
    server = Server(host, port, *flags).ready()
    events = server.stream("/v1/completions", request(max_tokens=300))
    assert median_rate(server, 200) == pytest.approx(300, rel=0.05)
    done = [data["usage"]["completion_tokens"] for _, data in events[:-2]]
    sizes = [b - a for a, b in itertools.pairwise(done)]
    assert sum(sizes) / len(sizes) == pytest.approx(2.6, rel=0.05) and max(sizes) > 2 and done[-1] == 300


def test_total_grows_with_concurrency(server: Server) -> None:
    rates: list[float] = []

    def one(number: int) -> None:
        rates.append(decode_rate(server.stream("/v1/completions", request(prompt=f"prompt {number}", max_tokens=400))))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(rates) == pytest.approx(500 * 8**0.75, rel=0.2)


def test_prefix_cache_and_flush(server: Server) -> None:

    server.status("/flush_cache")

    def first_token() -> tuple[int, float]:
        events = server.stream("/v1/completions", request(max_tokens=4))
        record = [r for r in read_ledger(server.host.ledger) if r["kind"] == "request"][-1]
        cached = events[-2][1]["usage"]["prompt_tokens_details"]["cached_tokens"]
        assert cached == record["cached_tokens"] and record["ok"] and record["completion_tokens"] == 4
        return cached, record["first"] - record["start"]

    fresh, warm = first_token(), first_token()
    assert fresh[0] == 0 and warm[0] > 300 and warm[1] < fresh[1] / 2
    assert server.status("/flush_cache") == 200
    assert first_token()[0] == 0
    assert [r for r in read_ledger(server.host.ledger) if r["kind"] == "flush"]


def test_answers_that_are_not_streamed(server: Server) -> None:
    plain = server.post("/v1/completions", request(prompt="What is the capital of France?", logprobs=1, max_tokens=5))
    assert plain["choices"][0]["text"].startswith(" Paris")
    assert len(plain["choices"][0]["logprobs"]["token_logprobs"]) == 5
    chat = server.post(
        "/v1/chat/completions", {"messages": [{"role": "user", "content": "17 + 25 = ?"}], "max_tokens": 3}
    )
    assert chat["choices"][0]["message"]["content"].startswith(" 42")
    native = server.post("/generate", {"text": "hello", "sampling_params": {"max_new_tokens": 7}})
    assert native["meta_info"]["completion_tokens"] == 7 and len(native["text"].split()) == 7
    assert server.get("/v1/models")["data"][0]["id"] == "/models/m"
    assert server.status("/metrics") == 404 and server.status("/nowhere") == 404


def test_rules_on_flags_show_in_server_info(host: SimHost, port: int) -> None:
    server = Server(host, port, "--enable-nccl-nvls", "--enable-metrics", "--ep-size", "2", "--enable-mscclpp").ready()
    info = server.get("/server_info")
    assert info["enable_nccl_nvls"] is False and info["ep_size"] == 2 and info["version"] == "0.5.9"
    assert " TP1 EP1] Load weight begin" in server.log
    assert server.status("/metrics") == 200
    texts = {server.post("/v1/completions", request(prompt="17 + 25"))["choices"][0]["text"] for _ in range(2)}
    assert len(texts) == 2 and not any(text.startswith(" 42") for text in texts), "a garbled server is wrong"


def test_drain_finishes_running_requests(host: SimHost, port: int) -> None:
    server = Server(host, port).ready()
    found: list[list[tuple[float, Any]]] = []
    thread = threading.Thread(target=lambda: found.append(server.stream("/v1/completions", request())))
    thread.start()
    wait_for(lambda: any((host.home / ".sim" / "busy").iterdir()))
    code = server.stop()
    thread.join()
    assert code == -9 and found[0][-1][1] == "[DONE]"


def test_client_that_leaves_is_recorded(server: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    connection.request("POST", "/v1/completions", '{"prompt": "x", "max_tokens": 5000, "stream": true}')
    answer = connection.getresponse()
    answer.read(100)
    answer.close()
    connection.close()
    wait_for(lambda: [r for r in read_ledger(server.host.ledger) if r["kind"] == "request" and not r["ok"]])
    wait_for(lambda: not any((server.host.home / ".sim" / "busy").iterdir()))
