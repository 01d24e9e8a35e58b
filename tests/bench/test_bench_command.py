"""`tunebot bench`: what it sends, prints and returns."""

import asyncio
import io
import json
import re
from itertools import pairwise

import pytest

from agent import bench_command
from agent.bench.load import Progress
from agent.bench.report import histogram
from agent.cli import main
from tests.bench.conftest import Answer, Request, Scripted

MODEL = "tiny"


@pytest.fixture
def bench(serve, capsys):
    """`await bench(*options)` benches a server that answers like `generation`; its exit code, stdout, stderr."""

    async def run(*options, **changes):
        server = await serve(generation(**changes))
        # The command runs a loop of its own.
        code = await asyncio.to_thread(main, ["bench", server.url, *options])
        told = capsys.readouterr()
        assert "Traceback" not in told.err
        return server, code, told.out, told.err

    return run


def generation(tokens_told=True, cached=0, gap_s=0.002, prompt_tokens=512, fails=(), per_chunk=1):
    """A handler that streams what is asked for. `fails` are the numbers of the completions that it refuses."""
    count = 0

    async def handle(request: Request, answer: Answer) -> None:
        nonlocal count
        if request.method == "GET":
            await answer.plain("200 OK", json.dumps({"data": [{"id": MODEL}]}).encode())
            return
        count += 1
        if count in fails:
            await answer.plain("500 Internal Server Error", b"out \x1b[31mof memory")
            return
        wanted = request.body["max_tokens"]
        await answer.head()
        for done in range(per_chunk, wanted + 1, per_chunk):
            await answer.token("word " * per_chunk, done if tokens_told else None)
            await asyncio.sleep(gap_s)
        if tokens_told:
            usage = {"prompt_tokens": prompt_tokens, "completion_tokens": wanted}
            await answer.event({"choices": [], "usage": usage | {"prompt_tokens_details": {"cached_tokens": cached}}})
        await answer.send(b"data: [DONE]\n\n")
        await answer.end()

    return handle


def prompts_of(server: Scripted) -> list:
    return [request.body["prompt"] for request in server.requests if request.method == "POST"]


async def test_a_table_for_a_person(bench):
    server, code, out, err = await bench("--output-len", "8", "--slo", "ttft:10000", "tpot:10000", "--seed", "5")
    assert code == 0 and err == ""
    lines = out.splitlines()
    assert lines[0] == f"{server.url}  tiny  completions"
    assert lines[1] == "mixed-text, 16 requests, 1 at once, seed 5"
    assert lines[3].split() == ["ms", "mean", "p50", "p90", "p95", "p99"]
    assert [line.split()[0] for line in lines[4:8]] == ["TTFT", "TPOT", "ITL", "E2E"]
    assert all(float(number) >= 0 for line in lines[4:8] for number in line.split()[1:])
    assert "within TTFT 10000 ms, TPOT 10000 ms" in out
    assert "tokens    512 in, 8 out, 1.00 a chunk, 0% of the input cached" in lines
    assert "0 of 16 requests failed" in out
    assert "\x1b" not in out


async def test_json_has_the_names_of_the_field(bench):
    _, code, out, _ = await bench("--json", "--output-len", "8", "--concurrency", "2")
    told = json.loads(out)
    assert code == 0
    assert (told["model_id"], told["num_prompts"], told["completed"], told["failed"]) == (MODEL, 16, 16, 0)
    assert (told["max_concurrency"], told["request_rate"], told["total_output_tokens"]) == (2, "inf", 128)
    assert told["output_throughput"] == pytest.approx(128 / told["duration"])
    assert told["total_throughput"] == pytest.approx((128 + 16 * 512) / told["duration"])
    for name in ("ttft", "tpot", "itl", "chunk_gap", "e2e_latency"):
        assert 0 <= told[f"median_{name}_ms"] <= told[f"p90_{name}_ms"] <= told[f"p99_{name}_ms"]
    assert told["units"]["output_throughput"] == "tok/s"
    assert told["request_goodput"] is None and told["not_comparable"] is None


async def test_the_warm_up_has_prompts_of_its_own_and_so_has_each_run(bench):
    """Pitfalls 1 and 2."""
    first, *_ = await bench("--output-len", "4")
    second, *_ = await bench("--output-len", "4")
    sent = prompts_of(first) + prompts_of(second)
    assert len(prompts_of(first)) == 1 + 16
    warm_ups = {sent[0], sent[17]}
    assert len({text[:16] for text in sent if text not in warm_ups}) == 32


async def test_a_seed_repeats_a_run(bench):
    runs = [prompts_of((await bench("--output-len", "4", "--seed", "7"))[0]) for _ in range(2)]
    assert runs[0] == runs[1]


async def test_cached_prompts_are_not_comparable(bench):
    """Pitfall 1: exit code 5, and the reason."""
    _, code, out, _ = await bench("--output-len", "4", cached=500)
    assert code == 5
    assert "✖ bad  prefix cache: 98% of the prompt tokens were in the prefix cache" in out
    assert out.endswith("not comparable: hold these numbers against no others\n")


async def test_a_server_that_tells_no_usage_is_said(bench):
    """Pitfall 4: what was asked for is not what came."""
    _, code, out, _ = await bench("--output-len", "40", tokens_told=False, per_chunk=2)
    assert code == 5
    assert "usage: the server told no usage for 16 requests" in out
    assert "chunk gap" in out and "ITL" not in out


async def test_tokens_are_ids_where_random_tokens_are_asked_for(bench):
    server, code, *_ = await bench(
        "--data", "random-tokens", "--input-len", "50", "--output-len", "4", prompt_tokens=50
    )
    assert code == 0
    assert {len(prompt) for prompt in prompts_of(server)} == {50}
    assert all(isinstance(token, int) for prompt in prompts_of(server) for token in prompt)


async def test_speculation_on_random_tokens_is_not_real(bench):
    """Pitfall 12."""
    _, code, out, _ = await bench("--data", "random-tokens", "--output-len", "8", per_chunk=4)
    assert code == 5 and "4.00 tokens a step on random tokens" in out


async def test_an_open_loop_counts_the_wait_for_a_free_place(bench):
    """Pitfall 5: twenty requests a second, one place, fifty milliseconds each: the queue is part of TTFT."""
    options = ("--rate", "50", "--arrivals", "constant", "--concurrency", "1", "--requests", "20", "--output-len", "5")
    _, _, out, _ = await bench("--json", *options, gap_s=0.01)
    told = json.loads(out)
    assert told["request_rate"] == 50.0
    assert told["p99_ttft_ms"] > 300 and told["median_ttft_ms"] > 100
    assert told["median_tpot_ms"] < told["median_ttft_ms"]


async def test_an_open_loop_sends_when_requests_are_due(bench):
    options = ("--rate", "100", "--arrivals", "constant", "--requests", "20", "--output-len", "4")
    server, _, out, _ = await bench("--json", *options, gap_s=0.05)
    told = json.loads(out)
    assert told["max_concurrency"] == 20
    assert server.connections > 5  # nobody waited for the one before
    assert told["median_ttft_ms"] < 1000


async def test_a_file_of_prompts(bench, tmp_path):
    file = tmp_path / "chats.jsonl"
    asked = [{"prompt": "the first"}, {"messages": [{"role": "user", "content": "another"}], "output_len": 3}]
    file.write_text("\n".join(map(json.dumps, asked)))
    server, code, out, _ = await bench("--data", str(file), "--output-len", "4", "--requests", "4")
    assert code == 0 and str(file) in out
    assert {text.split("\n", 1)[1] for text in prompts_of(server)} == {"the first", "another"}
    assert {request.body["max_tokens"] for request in server.requests if request.method == "POST"} == {3, 4}


async def test_one_failure_in_a_hundred_is_told_and_more_are_no_measurement(bench):
    """Pitfall 7."""
    _, code, out, _ = await bench("--output-len", "4", "--requests", "100", fails={50})
    assert code == 0 and "! warn  failures: 1 of 100 requests failed" in out
    _, code, out, err = await bench("--output-len", "4", fails={5})
    assert code == 3 and out == ""
    assert re.search(r"1 of \d+ requests failed: HTTP 500: out of memory\n  hint:", err)


async def test_a_warm_up_that_fails_is_said(bench):
    _, code, _, err = await bench(fails={1})
    assert code == 3 and "warm-up: 1 of 1 requests failed: HTTP 500: out of memory" in err and "hint:" in err


def complaint(capsys, *words):
    code = main(["bench", *words])
    error = capsys.readouterr().err
    assert "Traceback" not in error and "hint:" in error
    return code, error


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (("http://127.0.0.1:9",), 3, "127.0.0.1:9"),
        (("https://127.0.0.1:9",), 2, "not an http:// address"),
        (("http://127.0.0.1:99999",), 2, "not an address: http://127.0.0.1:99999"),
        (("http://[",), 2, "not an address"),
        (("http://ann:secret-1@127.0.0.1:0x",), 2, "not an address: http://‹redacted›@127.0.0.1:0x"),
        (("http://x", "--data", "none.jsonl"), 2, "--data: there is no file"),
        (("http://x", "--slo", "ttft=200"), 2, "--slo: not a limit: ttft=200"),
        (("http://x", "--slo", "ttft:fast"), 2, "--slo: not a limit: ttft:fast"),
        (("http://x", "--requests", "0"), 2, "--requests: input should be greater than or equal to 1"),
        (("http://x", "--rate", "-1"), 2, "--rate: input should be greater than 0"),
        (("http://x", "--seed", "-1"), 2, "--seed"),
        (("http://x", "--concurrency", "64", "--requests", "8"), 2, "--concurrency 64 is never reached"),
        (("http://x", "--data", "random-tokens", "--api", "chat"), 2, "a chat takes text"),
        (("http://x", "--data", "shared-prefix"), 2, "go together"),
        (("http://x", "--shared-prefix-len", "5"), 2, "go together"),
        (("http://x", "--data", "shared-prefix", "--shared-prefix-len", "512"), 2, "leaves nothing of an input of 512"),
    ],
)
def test_what_cannot_be_done_has_a_reason_and_a_hint(capsys, words, code, says):
    found, error = complaint(capsys, *words)
    assert found == code and says in error


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("stderr", "written"),
    [
        (io.StringIO(), "measures 3/9 · 2 in flight · 1 failed · 10 chunks/s · 6 s\n"),
        (Terminal(), "\r\x1b[2Kmeasures 3/9 · 2 in flight · 1 failed · 10 chunks/s · 6 s\r\x1b[2K"),
    ],
    ids=["file", "terminal"],
)
def test_progress_is_told_in_place_or_every_five_seconds(monkeypatch, stderr, written):
    monkeypatch.setattr("sys.stderr", stderr)
    times = iter([100.0, 100.1, 105.9, 106.0])
    monkeypatch.setattr(bench_command, "monotonic", lambda: next(times))
    ticker = bench_command.Ticker(what="measures", requests=9)
    for _ in range(4):
        ticker.tell(Progress(done=3, failed=1, in_flight=2, output_chunks=60, elapsed_s=6.0))
    ticker.end()
    assert stderr.getvalue() == written


def test_help_has_examples_and_exit_codes(capsys):
    with pytest.raises(SystemExit):
        main(["bench", "--help"])
    out = capsys.readouterr().out
    assert "examples:" in out and "exit codes:" in out and "--slo ttft:200 tpot:20" in out


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([], "none"),
        ([5.0, 5.0], "all 5.0 ms"),
        ([0.0] * 8 + [32.0], "       0.0 █" + "·" * 30 + "▁ 32.0 ms"),
        ([0.0] * 4 + [16.5] * 2 + [32.0] * 4, "       0.0 █" + "·" * 15 + "▄" + "·" * 14 + "█ 32.0 ms"),
    ],
)
def test_a_histogram_shows_single_requests_too(values, line):
    assert histogram(values) == line


def test_no_block_is_lost_in_a_histogram():
    line = histogram([float(n % 7) for n in range(100)])
    assert sum(c in "▁▂▃▄▅▆▇█" for c in line) == 7
    assert all(a != b or a == "·" for a, b in pairwise(line.split()[1]))
