"""`tunebot bench URL`: measures a server on its own, without a playbook or a session."""

import argparse
import gc
import json
import os
import secrets
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

import uvloop
from pydantic import ValidationError

from agent.bench.client import Server, first_model
from agent.bench.datafile import looking_from
from agent.bench.http import HttpError
from agent.bench.load import Load, Plan, Progress, run_load
from agent.bench.metrics import NotMeasurable, measured, times_of
from agent.bench.plan import plan_of, warm_up_plan
from agent.bench.report import Benched, as_json, lines_of
from agent.diagnostics import Exit, UserError
from agent.playbook.workload import Workload
from agent.redact import Redactor
from agent.text import clean, one_line

MADE = ("mixed-text", "random-tokens", "shared-prefix")
_OPTIONS = ("api", "concurrency", "rate", "arrivals", "input_len", "shared_prefix_len", "output_len", "requests")
_SLO = ("ttft", "tpot", "e2e")


def run(arguments: argparse.Namespace, say: Callable[[str], None]) -> Exit:
    """Measure, and print what came of it; the exit code. Raises UserError."""
    workload = workload_of(arguments)
    if arguments.seed is not None and arguments.seed < 0:
        raise UserError(f"--seed: must be 0 or more, found {arguments.seed}", "the warm-up has those below")
    seed = secrets.randbelow(1 << 31) if arguments.seed is None else arguments.seed
    server = _server(arguments.url.rstrip("/"))
    benched = uvloop.run(_bench(server, arguments.model, workload, seed))
    if arguments.json:
        say(json.dumps(as_json(benched), ensure_ascii=False, indent=2))
    else:
        for line in lines_of(benched, colour=sys.stdout.isatty() and "NO_COLOR" not in os.environ):
            say(line)
    return Exit.NOT_COMPARABLE if benched.metrics.not_comparable else Exit.OK


def workload_of(arguments: argparse.Namespace) -> Workload:
    """The workload that the options describe. Raises UserError."""
    given = {name: getattr(arguments, name) for name in _OPTIONS if getattr(arguments, name) is not None}
    given.setdefault("requests", max(16, 4 * given.get("concurrency", 1)))
    if arguments.slo:
        given["slo"] = dict(map(_limit, arguments.slo))
    try:
        workload = Workload.model_validate({"name": "bench", "data": _data(arguments.data), **given})
    except ValidationError as error:
        first = error.errors()[0]
        option = str(first["loc"][0]).replace("_", "-")
        raise UserError(f"--{option}: {first['msg'][:1].lower()}{first['msg'][1:]}", "tunebot bench --help") from error
    for message, hint in _misfits(workload):
        raise UserError(message, hint)
    return workload


def _data(name: str) -> object:
    if name in MADE:
        return name
    try:
        found = looking_from(Path())(name)
    except ValueError as error:
        raise UserError(f"--data: {error}", f"one of {', '.join(MADE)}, or a JSONL file") from error
    return {"file": found.path, "sha256": found.sha256}


def _limit(text: str) -> tuple[str, float]:
    name, _, number = text.partition(":")
    try:
        if name in _SLO:
            return f"{name}_ms", float(number)
    except ValueError:
        pass
    raise UserError(f"--slo: not a limit: {one_line(text)}", "write for example --slo ttft:200 tpot:20 e2e:5000 (ms)")


def _misfits(workload: Workload) -> Iterator[tuple[str, str]]:
    """What the options do not allow together, and what to do."""
    prefix = workload.shared_prefix_len
    if workload.concurrency > workload.requests:
        message = f"--concurrency {workload.concurrency} is never reached with {workload.requests} requests"
        yield message, f"write --requests {4 * workload.concurrency} or more"
    if workload.data == "random-tokens" and workload.api == "chat":
        yield "a chat takes text, and random-tokens are token ids", "use --api completions"
    if (workload.data == "shared-prefix") is not (prefix is not None):
        yield "--data shared-prefix and --shared-prefix-len TOKENS go together", "give both, or neither"
    if prefix is not None and prefix >= workload.input_len:
        message = f"a prefix of {prefix} tokens leaves nothing of an input of {workload.input_len}"
        yield message, f"write --input-len {2 * prefix} or more"


def _server(url: str) -> Server:
    server = Server(url)
    try:
        server.address()
    except HttpError as error:
        raise UserError(_cleaned(str(error)), "write for example http://127.0.0.1:30000") from error
    except ValueError as error:
        raise UserError(f"not an address: {_cleaned(url)}", "write for example http://127.0.0.1:30000") from error
    return server


async def _bench(server: Server, model: str | None, workload: Workload, seed: int) -> Benched:
    try:
        name = model or await first_model(server)
    except HttpError as error:
        hint = "is the server up? The address is that before /v1, such as http://127.0.0.1:30000"
        raise UserError(_cleaned(str(error)), hint, Exit.TARGET_UNUSABLE) from error
    warm_up = await _told("warm-up", server, warm_up_plan(workload, name))
    if failed := [sample.error for sample in warm_up.samples if sample.error is not None]:
        message = f"warm-up: {len(failed)} of {len(warm_up.samples)} requests failed: {_cleaned(failed[0])}"
        raise UserError(message, "the server's log says more", Exit.TARGET_UNUSABLE)
    load = await _told("measures", server, plan_of(workload, name, seed))
    try:
        metrics = measured(load.samples, load.health, workload, server.refused)
    except NotMeasurable as error:
        raise UserError(_cleaned(str(error)), "the server's log says more", Exit.TARGET_UNUSABLE) from error
    times = times_of([sample for sample in load.samples if sample.ok], workload)
    return Benched(
        url=_cleaned(server.base_url),
        model=one_line(name),
        workload=workload,
        seed=seed,
        metrics=metrics,
        times=times,
    )


async def _told(what: str, server: Server, plan: Plan) -> Load:
    """The load, with a line on stderr that says how far it is."""
    ticker = Ticker(what=what, requests=len(plan.prompts))
    gc.disable()  # a collection would stop the stamps
    try:
        return await run_load(server, plan, ticker.tell)
    finally:
        gc.enable()
        ticker.end()


@dataclass(slots=True)
class Ticker:
    """Says how far a load is: on a terminal in place, elsewhere with a line every five seconds."""

    what: str
    requests: int
    told_at: float = 0.0
    in_place: bool = False

    def tell(self, progress: Progress) -> None:
        """Say it, if it is time."""
        tty, now = sys.stderr.isatty(), monotonic()
        if not self.told_at:
            self.told_at = now
        if now - self.told_at < (0.2 if tty else 5.0):
            return
        self.told_at, self.in_place = now, tty
        rate = progress.output_chunks / progress.elapsed_s if progress.elapsed_s else 0.0
        parts = (
            f"{self.what} {progress.done}/{self.requests}",
            f"{progress.in_flight} in flight",
            f"{progress.failed} failed",
            f"{rate:.0f} chunks/s",
            f"{progress.elapsed_s:.0f} s",
        )
        line = " · ".join(parts)
        sys.stderr.write(f"\r\x1b[2K{line}" if tty else f"{line}\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Leave the terminal's line empty."""
        if self.in_place:
            sys.stderr.write("\r\x1b[2K")
            sys.stderr.flush()


def _cleaned(text: str) -> str:
    # Cleaned before it is redacted, lest an escape inside a secret hides it; cut last, lest half of one is left.
    return one_line(Redactor.of(os.environ)(clean(text)))
