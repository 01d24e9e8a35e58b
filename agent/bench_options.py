"""The options of `tunebot bench`."""

import argparse

ABOUT = """\
Measure a running server: a closed loop of --concurrency clients, or with --rate an open loop. A warm-up with prompts of
its own comes first. TTFT counts from the send; in an open loop from the time when the request was due."""

EXAMPLES = """\
examples:
  tunebot bench http://127.0.0.1:30000                                one client, 16 requests of 512 tokens in, 128 out
  tunebot bench http://127.0.0.1:8000 --concurrency 64 --input-len 1024 --output-len 256
  tunebot bench http://127.0.0.1:8000 --rate 4 --requests 240 --slo ttft:200 tpot:20
  tunebot bench http://127.0.0.1:8000 --data chats.jsonl --api chat   lines with prompt, messages or conversations
  tunebot bench http://127.0.0.1:8000 --json > result.json            by the field's names, with units

exit codes: 0 measured, 2 a bad argument, 3 the server could not be measured (not there, or more than 1 % of requests
failed), 5 measured, but not to be compared (the client was the limit, the prompts were cached, …), 130 interrupted
"""


def add_bench_options(parser: argparse.ArgumentParser) -> None:
    """Everything that `tunebot bench` takes."""
    parser.add_argument("url", metavar="URL", help="the server, such as http://127.0.0.1:30000")
    add = parser.add_argument
    add("--data", default="mixed-text", help="mixed-text (default), random-tokens, shared-prefix, or a JSONL file")
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
    add("--json", action="store_true", help="print one JSON object")
