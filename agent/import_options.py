"""The options of `tunebot import`."""

import argparse
from pathlib import Path

ABOUT = """\
Print the results of other benchmark clients. Each number keeps the key and the definition of its tool: TPOT, ITL and
E2E are not the same thing in each, and only numbers of one definition compare."""

EXAMPLES = """\
examples:
  tunebot import sglang.jsonl vllm.json            what each measured, and what each means by it
  tunebot import benchmarks.json --json            for machines: every number with its definition and unit

reads the result files of sglang.bench_serving (--output-file), vllm bench serve (--save-result), GuideLLM
(benchmarks.json), AIPerf (profile_export_aiperf.json, profile_export.jsonl) and tunebot bench (--json)
exit codes: 0 all were read, 2 one cannot be
"""


def add_import_options(parser: argparse.ArgumentParser) -> None:
    """Everything that `tunebot import` takes."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="a result file, uncompressed")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
