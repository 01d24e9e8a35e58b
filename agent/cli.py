"""The `tunebot` command: reads its arguments and hands over."""

import argparse
import errno
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from agent import __version__, verbs
from agent.bench_options import ABOUT as BENCH_ABOUT
from agent.bench_options import EXAMPLES as BENCH_EXAMPLES
from agent.bench_options import add_bench_options
from agent.diagnostics import Exit, UserError, complain
from agent.import_options import ABOUT as IMPORT_ABOUT
from agent.import_options import EXAMPLES as IMPORT_EXAMPLES
from agent.import_options import add_import_options

EXAMPLES = """\
examples:
  tunebot demo                                     the whole story on a simulated host, in about two minutes
  tunebot check playbooks/example.yaml             problems with their positions, or the plan
  tunebot run my.yaml --headless                   run a playbook, one line a change
  tunebot run my.yaml --detach                     run it without a terminal: it goes on when you log out
  tunebot attach                                   show and steer what runs detached, or anywhere else
  tunebot attach --host gpu8                       the same from the laptop, over SSH
  tunebot resume                                   go on with the last session that was cut off or interrupted
  tunebot replay logs/20261130-101500-my-1a2b      review a session: any moment of it, forwards and backwards
  tunebot try gpu8 cuda-graph-max-bs=256           one experiment on the baseline of the last session on gpu8
  tunebot doctor gpu8                              whether a target can be used, and what to do where not
  tunebot bench http://127.0.0.1:30000             how fast a running server is
  tunebot import result.json                       what another benchmark client measured
  tunebot explain server.log                       which line of a log is the reason
  tunebot                                          choose a playbook to run or a session to review
"""

RUN_EXAMPLES = """\
examples:
  tunebot run my.yaml                              on the screen
  tunebot run my.yaml --headless --approve cuda13@1f2e3d4c5b6a
  tunebot run my.yaml --detach                     exit code 0: it runs, and tunebot attach shows it
"""

ATTACH_EXAMPLES = """\
examples:
  tunebot attach                                   the newest session that runs here
  tunebot attach 20261130-1015                     one by the beginning of its name
  tunebot attach --host gpu8                       the newest on gpu8, over SSH
  tunebot attach --headless                        its lines so far, then as they come; ctrl+c stops nothing
"""

RESUME_EXAMPLES = """\
examples:
  tunebot resume                                   the newest session that has not ended, or was interrupted
  tunebot resume logs/20261130-101500-my-1a2b      this one
  tunebot resume --detach                          go on without a terminal
  tunebot resume --playbook my.yaml                where the playbook holds secrets: no journal keeps them
"""

DOCTOR_EXAMPLES = """\
examples:
  tunebot doctor local                             this machine
  tunebot doctor gpu8 --json                       a name of targets.yaml, for machines
"""

EXPLAIN_EXAMPLES = """\
examples:
  tunebot explain server.log.gz                    plain, gzip or zstd
  docker logs sglang 2>&1 | tunebot explain        what comes in on stdin
"""

CHECK_EXAMPLES = """\
examples:
  tunebot check my.yaml                            every problem with its position, or the plan
  tunebot check my.yaml --preflight --target gpu8  what would fail or change nothing, before any load

exit codes: 0 sound, 2 it has problems; with --preflight 3 the target could not be used, 4 an experiment would fail or
change nothing
"""

REPORT_EXAMPLES = """\
examples:
  tunebot report                                   the newest session as Markdown
  tunebot report logs/sample --output report.html  one page for colleagues: prints well, needs no network
  tunebot report 20261130-101500-my-1a2b --json    for machines: every number with its unit (docs/report.md)

works on a session that runs, and on one that was cut off
exit codes: 0 written, 2 no such session, not one, or of a newer version
"""

FLAGS_EXAMPLES = """\
examples:
  tunebot flags moe --source ~/sglang/python       every flag with moe in its name, with type, default and choices
  tunebot flags --uses moe-a2a-backend --source DIR   what the blocks that test it assert, set or refuse
  tunebot flags --playbook my.yaml --json          those of the source that a playbook names
"""

TRY_EXAMPLES = """\
examples:
  tunebot try local ep-size=2                      one flag on top of the last baseline
  tunebot try gpu8 disable-cuda-graph ENV:NCCL_ALGO=Ring
"""

EXITS = """
exit codes: 0 the playbook ran to its end (dead ends are results), 1 a fault in tunebot, 2 a bad playbook or argument,
3 the target could not be used, 130 interrupted. With --detach 0 says that the session runs; otherwise nothing does.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; its exit code."""
    arguments = _parser().parse_args(argv)
    try:
        try:
            return int(arguments.handler(arguments))
        except UserError as error:
            complain(str(error), error.hint)
            return error.code
    except OSError as error:
        if error.errno not in (errno.EPIPE, errno.EIO):
            raise
        return Exit.INTERRUPTED
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    finally:
        _let_go()


def _let_go() -> None:
    """Where the reader or the terminal went away, Python would complain when it flushes at exit, with a code of 120."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="tunebot",
        description="Tunes an LLM inference server: runs a playbook of experiments, researches while the model loads.",
        epilog=EXAMPLES + EXITS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tunebot {__version__}")
    parser.set_defaults(
        handler=verbs.start,
        headless=False,
        detach=False,
        target=None,
        host=None,
        playbook=None,
        approve=[],
        keep=False,
        logs=Path("logs"),
    )
    commands = parser.add_subparsers(metavar="COMMAND")

    def command(
        name: str, handler: Callable[[argparse.Namespace], int], help_: str, about: str = "", epilog: str = ""
    ) -> argparse.ArgumentParser:
        made = commands.add_parser(
            name,
            help=help_,
            description=about or f"{help_[0].upper()}{help_[1:]}.",
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.set_defaults(handler=handler)
        return made

    run = command("run", verbs.run, "run a playbook", "Run a playbook to its end.", RUN_EXAMPLES + EXITS)
    run.add_argument("playbook", help="a playbook file, or the name of a shipped one")
    _add_target(run)
    _add_run_options(run)

    demo = command("demo", verbs.demo, "run the story on a simulated host", "Run the shipped demo.")
    _add_target(demo)
    _add_run_options(demo)

    attach = command(
        "attach",
        verbs.attach,
        "show and steer a session that runs",
        "Show and steer a session that another tunebot runs, here or on another machine. Leaving stops nothing.",
        ATTACH_EXAMPLES + EXITS,
    )
    attach.add_argument("session", nargs="?", metavar="SESSION", help="its id, the beginning of that, or its folder")
    attach.add_argument("--host", metavar="NAME", help="ssh:HOST, HOST, or a name of targets.yaml")
    attach.add_argument("--headless", action="store_true", help="print its lines instead of the screen")

    resume = command(
        "resume",
        verbs.resume,
        "go on with a session that was cut off or interrupted",
        "Go on with a session: what still runs on the target is rejoined.\n"
        "One that another tunebot runs is shown, read-only.",
        RESUME_EXAMPLES + EXITS,
    )
    resume.add_argument("session", nargs="?", type=Path, metavar="SESSION", help="a session's folder, or its name")
    resume.add_argument("--playbook", metavar="FILE", help="the session's playbook, where it holds secrets")
    _add_run_options(resume)

    check = command("check", verbs.check, "problems of a playbook, or its plan", "", CHECK_EXAMPLES)
    check.add_argument("playbook")
    check.add_argument(
        "--preflight", action="store_true", help="run its preflights and needed research; nothing is launched"
    )
    _add_target(check)
    _add_json(check)

    doctor = command(
        "doctor",
        verbs.doctor,
        "whether a target can be used, and what to do where not",
        "Look at a target: connection, Python, work folder, disk, who holds its GPUs.\n"
        "Exit code 0: it can be used, 3: it cannot.",
        DOCTOR_EXAMPLES,
    )
    _add_on(doctor)
    _add_json(doctor)

    command("schema", verbs.schema, "print the JSON Schema of playbooks")

    replay = command("replay", verbs.replay, "review a recorded session")
    replay.add_argument("session", type=Path, help="a session's folder")
    replay.add_argument("--headless", action="store_true", help="print the lines that the session printed")

    report = command(
        "report",
        verbs.report,
        "a session written out, for others or for machines",
        "Write out a session: board, best launch command, verdicts with their evidence, dead ends, timeline, ledger.",
        REPORT_EXAMPLES,
    )
    report.add_argument("session", nargs="?", type=Path, metavar="SESSION", help="a session's folder, or its name")
    how = report.add_mutually_exclusive_group()
    how.add_argument("--format", choices=("markdown", "html", "json"), help="default: by the name of FILE, or markdown")
    how.add_argument("--json", action="store_const", dest="format", const="json", help="the same as --format json")
    report.add_argument("--output", type=Path, metavar="FILE", help="write it there instead of to stdout")

    flags = command("flags", verbs.flags, "the flags of a server, read from its source", "", FLAGS_EXAMPLES)
    flags.add_argument("pattern", nargs="?", default="", metavar="PATTERN", help="part of a flag's name")
    flags.add_argument("--source", type=Path, metavar="DIR", help="the installed package, or its repository")
    flags.add_argument("--playbook", metavar="FILE", help="take server.source of this playbook")
    flags.add_argument("--uses", metavar="FLAG", help="the blocks that test it, and what they assert, set or refuse")
    _add_json(flags)

    explain = command(
        "explain",
        verbs.explain,
        "what became of the server whose log this is, and why",
        "Say what became of a server, by which line of its log, and what to try.\n"
        "Exit code 0: healthy, 1: failed or hung, 2: not a log.",
        EXPLAIN_EXAMPLES,
    )
    explain.add_argument("files", nargs="*", default=["-"], metavar="FILE", help="plain, gzip or zstd; - is stdin")
    _add_json(explain)
    explain.add_argument("--server", choices=("auto", "sglang", "vllm", "llamacpp"), default="auto")

    imported = command("import", verbs.import_, "results of other benchmark clients", IMPORT_ABOUT, IMPORT_EXAMPLES)
    add_import_options(imported)

    bench = command("bench", verbs.bench, "measure a running server", BENCH_ABOUT, BENCH_EXAMPLES)
    add_bench_options(bench)

    attempt = command(
        "try",
        verbs.attempt,
        "run one experiment on the last baseline",
        "Run one experiment on the baseline of the last session on a target.",
        TRY_EXAMPLES + EXITS,
    )
    _add_on(attempt)
    attempt.add_argument("changes", nargs="+", metavar="FLAG=VALUE", help="or FLAG, FLAG=null, ENV:NAME=VALUE")
    _add_run_options(attempt)
    return parser


def _add_on(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("on", metavar="TARGET", help="local, simulated, ssh:HOST or a name of targets.yaml")


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _add_target(parser: argparse.ArgumentParser) -> None:
    help_ = "local, simulated, simulated:WORLD, ssh:HOST or a name of targets.yaml, instead of the playbook's"
    parser.add_argument("--target", help=help_)


def _add_run_options(parser: argparse.ArgumentParser) -> None:
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--headless", action="store_true", help="print one line a change instead of the screen")
    how.add_argument("--detach", action="store_true", help="run without a terminal; tunebot attach shows it")
    parser.add_argument("--approve", action="append", default=[], metavar="ID@HASH", help="approve a prepare step")
    parser.add_argument("--keep", action="store_true", help="when interrupted, leave the server running")
    parser.add_argument("--logs", type=Path, default=Path("logs"), help="where session folders go (default: logs)")


if __name__ == "__main__":
    sys.exit(main())
