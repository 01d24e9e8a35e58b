"""Commands that need no session: about a machine, a running server, a log, another tool's results."""

import argparse
from pathlib import Path

from agent import verbs
from agent.commands import shared
from agent.commands.command import Command
from agent.commands.completing import complete, files

_BENCH_ABOUT = """\
Measure a running server: a closed loop of --concurrency clients, or with --rate an open loop. A warm-up with prompts of
its own comes first. TTFT counts from the send; in an open loop from the time when the request was due."""

_IMPORT_ABOUT = """\
Print the results of other benchmark clients. Each number keeps the key and the definition of its tool: TPOT, ITL and
E2E are not the same thing in each, and only numbers of one definition compare."""


def _doctor(parser: argparse.ArgumentParser) -> None:
    shared.add_on(parser)
    shared.add_json(parser)


def _bench(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("url", metavar="URL", help="the server, such as http://127.0.0.1:30000")
    add = parser.add_argument
    complete(
        add("--data", default="mixed-text", help="mixed-text (default), random-tokens, shared-prefix, or a JSONL file"),
        files("mixed-text", "random-tokens", "shared-prefix"),
    )
    add("--input-len", type=int, metavar="TOKENS", help="of a prompt (default: 512)")
    add("--shared-prefix-len", type=int, metavar="TOKENS", help="how many of them shared-prefix shares")
    add("--output-len", type=int, metavar="TOKENS", help="asked for, with ignore_eos (default: 128)")
    add("--requests", type=int, metavar="N", help="in all (default: 16, or four times the concurrency)")
    add("--concurrency", type=int, metavar="N", help="clients (default: 1); with --rate the most in flight")
    add("--rate", type=float, metavar="PER_S", help="requests a second, whatever is in flight")
    add("--arrivals", choices=("poisson", "constant"), help="of an open loop (default: poisson)")
    add("--api", choices=("completions", "chat", "generate"), help="default: completions; generate is SGLang's own")
    add("--model", help="default: the first that /v1/models lists")
    add("--seed", type=int, help="the same seed gives the same prompts, which a server may have cached (default: new)")
    add("--slo", nargs="+", metavar="NAME:MS", help="limits for goodput: ttft:200 tpot:20 e2e:5000")
    shared.add_json(parser)


def _import(parser: argparse.ArgumentParser) -> None:
    complete(
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a result file, uncompressed"), files()
    )
    shared.add_json(parser)


def _explain(parser: argparse.ArgumentParser) -> None:
    complete(
        parser.add_argument("files", nargs="*", default=["-"], metavar="FILE", help="plain, gzip or zstd; - is stdin"),
        files(),
    )
    shared.add_json(parser)
    parser.add_argument("--server", choices=("auto", "sglang", "vllm", "llamacpp"), default="auto")


DOCTOR = Command(
    name="doctor",
    help="whether a target can be used, and what to do where not",
    about="Look at a target: connection, Python, work folder, disk, who holds its GPUs.",
    handler=verbs.doctor,
    options=_doctor,
    examples=(
        ("tunebot doctor local", "this machine"),
        ("tunebot doctor gpu8 --json", "a name of targets.yaml, for machines"),
    ),
    exits=(("0", "it can be used"), ("3", "it cannot")),
    files=(
        *shared.TARGETS_FILES,
        ("~/.config/tunebot/known_hosts", "keys of hosts that you took (XDG_CONFIG_HOME)"),
        ("~/.ssh/config", "aliases, ProxyJump, keys"),
    ),
)

BENCH = Command(
    name="bench",
    help="measure a running server",
    about=_BENCH_ABOUT,
    handler=verbs.bench,
    options=_bench,
    examples=(
        ("tunebot bench http://127.0.0.1:30000", "one client, 16 requests of 512 tokens in, 128 out"),
        (
            "tunebot bench http://127.0.0.1:8000 --concurrency 64 --input-len 1024 --output-len 256",
            "64 clients at once",
        ),
        (
            "tunebot bench http://127.0.0.1:8000 --rate 4 --requests 240 --slo ttft:200 tpot:20",
            "an open loop, and how many requests a second kept the limits",
        ),
        (
            "tunebot bench http://127.0.0.1:8000 --data chats.jsonl --api chat",
            "lines with prompt, messages or conversations",
        ),
        ("tunebot bench http://127.0.0.1:8000 --json > result.json", "by the field's names, with units"),
    ),
    exits=(
        ("0", "measured"),
        ("2", "a bad argument"),
        ("3", "the server could not be measured: not there, or more than 1 % of requests failed"),
        ("5", "measured, but not to be compared: the client was the limit, the prompts were cached, …"),
        ("130", "interrupted"),
    ),
)

IMPORT = Command(
    name="import",
    help="results of other benchmark clients",
    about=_IMPORT_ABOUT,
    handler=verbs.import_,
    options=_import,
    examples=(
        ("tunebot import sglang.jsonl vllm.json", "what each measured, and what each means by it"),
        ("tunebot import benchmarks.json --json", "for machines: every number with its definition and unit"),
    ),
    exits=(("0", "all were read"), ("2", "one cannot be")),
    notes="Reads the result files of sglang.bench_serving (--output-file), vllm bench serve (--save-result), GuideLLM "
    "(benchmarks.json), AIPerf (profile_export_aiperf.json, profile_export.jsonl) and tunebot bench (--json).",
)

EXPLAIN = Command(
    name="explain",
    help="what became of the server whose log this is, and why",
    about="Say what became of a server, by which line of its log, and what to try.",
    handler=verbs.explain,
    options=_explain,
    examples=(
        ("tunebot explain server.log.gz", "plain, gzip or zstd"),
        ("docker logs sglang 2>&1 | tunebot explain", "what comes in on stdin"),
    ),
    exits=(("0", "healthy"), ("1", "failed or hung"), ("2", "not a log")),
)
