"""The judge: compares what tunebot said and journalled with the simulator's ledger, which tunebot never reads."""

import hashlib
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from agent.core import events as ev
from agent.core.legal import IllegalTransition
from agent.core.reduce import initial, reduce
from agent.core.state import Launch, State
from agent.core.verdict import guard_of
from agent.headless import Printer
from agent.journal.journal import FILE, JournalError, read_journal
from agent.sim.ledger import alive_pids, read_ledger
from tests.chaos.ground import REQUESTS, ROUNDS, WORDS, WORKLOAD
from tests.chaos.session import REPOSITORY, Operator

_EVENT = re.compile(r" {0,6}\d+:\d\d(:\d\d)?  ")
_TICK = re.compile(r"loading: .* · ")
"""Progress may be lost when power is: it is not synced."""
_MARK = re.compile(r"[0-9a-f]{16}")
QUESTION = "<|user|>"
"""How a prompt of the guard begins, and no other: only the guard asks over chat."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A broken promise: one of lost, orphan, twice, overlap, again, unasked, prepare, result, trouble."""

    kind: str
    text: str


@dataclass
class Evidence:
    """A session's journal with the line of each event, and its part of the ledger."""

    operator: Operator
    events: list[ev.Event]
    lines: list[tuple[ev.Event, str]]
    state: State
    records: list[dict[str, Any]]
    acknowledged: dict[tuple[str, int], float] = field(default_factory=dict)
    """When a round, by launch and index, was acknowledged."""
    guarded: dict[str, float] = field(default_factory=dict)
    """When the answers of a launch to the guard were acknowledged."""

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [record for record in self.records if record["kind"] == kind]

    def all(self, kind: type[ev.Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


def judge(operator: Operator) -> list[Violation]:
    """Every promise that a session broke."""
    found = [Violation("trouble", text) for text in operator.trouble]
    for ledger in operator.ground.root.glob("**/.sim/ledger.jsonl"):
        if ledger != operator.ledger and (left := alive_pids(ledger)):
            found.append(Violation("orphan", f"{left} live in {ledger}"))
    if operator.folder is None:
        return [*found, Violation("lost", "there is no session")]
    try:
        evidence = _gather(operator)
    except (JournalError, ValueError, IllegalTransition) as error:
        left = alive_pids(operator.ledger)
        found.append(Violation("lost", f"the journal cannot be folded: {error}"))
        return [*found, Violation("orphan", f"{left} live")] if left else found
    for check in (_lost, _launches, _overlap, _left, _rounds, _guarded, _prepared, _results):
        found += check(evidence)
    return found


def _gather(operator: Operator) -> Evidence:
    assert operator.folder
    events = read_journal(operator.folder)
    start = events[0]
    assert isinstance(start, ev.SessionStarted)
    state, out = initial(start), []
    lines: list[tuple[ev.Event, str]] = []
    printer = Printer(lambda line: out.append(line))
    for event in events:
        before = state
        if event is not start:
            state, _ = reduce(before, event)
        out.clear()
        printer(before, event, state)
        lines += [(event, line) for line in out]
    records = read_ledger(operator.ledger)
    partner = operator.partner.folder if operator.partner else None
    owner = {r["pid"]: r["launcher"] for r in records if r["kind"] == "rank_start"}
    launched = [r for r in records if r["kind"] == "launch"]
    others = {r["pid"] for r in launched if partner and r["launch_id"].startswith(partner.name)}
    kept = [r for r in records if owner.get(r["pid"], r["pid"]) not in others]
    return Evidence(operator, events, lines, state, kept)


def _lost(evidence: Evidence) -> Iterator[Violation]:
    """Every line that was printed is in the journal, in that order; what was written stays written."""
    folder = evidence.operator.folder
    assert folder
    at, power_loss = 0, any(heard.power_loss for heard in evidence.operator.heard)
    for heard in evidence.operator.heard:
        for when, line in heard.lines:
            if not _EVENT.match(line) or (power_loss and _TICK.search(line)):
                continue
            place = next((n for n in range(at, len(evidence.lines)) if evidence.lines[n][1] == line), None)
            if place is None:
                yield Violation("lost", f"printed, and not in the journal: {line}")
                continue
            at = place + 1
            event = evidence.lines[place][0]
            if isinstance(event, ev.RoundMeasured):
                evidence.acknowledged[event.launch, event.index] = when
            if isinstance(event, ev.GuardEnded):
                evidence.guarded[event.launch] = when
    data = (folder / FILE).read_bytes()
    for prefix in evidence.operator.prefixes:
        if not data.startswith(prefix):
            yield Violation("lost", f"the journal does not begin any more as it did at byte {len(prefix)}")
    command = [sys.executable, "-m", "agent.cli", "replay", str(folder), "--headless"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=REPOSITORY, timeout=60)
    if done.stdout.splitlines() != [line for _, line in evidence.lines]:
        yield Violation("lost", f"replay prints other lines: {done.stderr[-300:]}")


def _launches(evidence: Evidence) -> Iterator[Violation]:
    """A launch id is started once, and nothing is started without an intent, or that is said to be void.

    No flag set is started more often than the playbook grants, and again only where that was planned.
    """
    started = Counter(record["launch_id"] for record in evidence.of("launch"))
    intents = {e.launch: e for e in evidence.all(ev.LaunchRequested)}
    void = {e.launch for e in evidence.all(ev.LaunchVoid)}
    for launch, times in started.items():
        if times > 1:
            yield Violation("twice", f"{launch} was started {times} times")
        if launch not in intents:
            yield Violation("unasked", f"{launch} was started, and the journal knows no such launch")
        if launch in void:
            yield Violation("unasked", f"{launch} was started, and the journal says that it was not")
    runs = Counter(i.experiment for launch, i in intents.items() if i.purpose == "measure" and launch in started)
    planned = Counter(of for of, _ in {(e.of, e.number) for e in evidence.all(ev.LaunchPlanned)})
    for experiment, times in runs.items():
        if times > min(evidence.state.playbook.launches, 1 + planned[experiment]):
            yield Violation("again", f"{experiment} was launched {times} times")
    ready = {r["pid"] for r in evidence.of("ready")}
    really = {r["launch_id"] for r in evidence.of("launch") if r["pid"] in ready}
    for event in evidence.all(ev.ServerReady):
        if event.launch not in really:
            yield Violation("result", f"{event.launch} is said to be ready and never was")


def _overlap(evidence: Evidence) -> Iterator[Violation]:
    """Never two launches alive on one host: the next begins after the last sign of the one before."""
    records = read_ledger(evidence.operator.ledger)
    leader = {r["pid"]: r["launcher"] for r in records if r["kind"] == "rank_start"}
    last: dict[int, float] = {}
    for record in records:
        pid = leader.get(record["pid"], record["pid"])
        last[pid] = max(last.get(pid, 0.0), record["t"])
    starts = sorted((r["t"], r["pid"], r["launch_id"]) for r in records if r["kind"] == "launch")
    for (_, one, name), (begun, _, other) in pairwise(starts):
        if last[one] > begun:
            yield Violation("overlap", f"{name} still lived {last[one] - begun:.3f} s after {other} began")


def _left(evidence: Evidence) -> Iterator[Violation]:
    """Nothing lives at the end but what the journal says is left running."""
    alive = set(alive_pids(evidence.operator.ledger))
    ends = evidence.all(ev.SessionEnded)
    serving = ends[-1].serving if ends else None
    leader = {r["pid"]: r["launcher"] for r in evidence.of("rank_start")}
    names = {r["pid"]: r["launch_id"] for r in evidence.of("launch")}
    for pid in alive:
        name = names.get(leader.get(pid, pid))
        if name is not None and name != serving:
            yield Violation("orphan", f"process {pid} of {name} lives; left running is {serving}")
    living = {names[pid] for pid in alive if pid in names}
    if serving and serving not in living | evidence.operator.ground.hit:
        yield Violation("result", f"{serving} is said to be left running and does not live")


def _rounds(evidence: Evidence) -> Iterator[Violation]:
    """Each request was asked for by a journalled round, none after that was acknowledged; and none is missing."""
    asked: dict[str, ev.RoundRequested] = {}
    warm_up = {_mark(-1, n) for n in range(REQUESTS)}
    for event in evidence.all(ev.RoundRequested):
        asked |= {_mark(event.seed, n): event for n in range(REQUESTS)}
    names = {r["pid"]: r["launch_id"] for r in evidence.of("launch")}
    served: dict[str, int] = defaultdict(int)
    for request in evidence.of("request"):
        mark = request["prompt"]
        if not _MARK.fullmatch(mark) or mark in warm_up:
            continue
        if mark not in asked:
            yield Violation("unasked", f"a request of {names.get(request['pid'])} that no journalled round asked for")
            continue
        event = asked[mark]
        served[mark] += bool(request["ok"])
        acknowledged = evidence.acknowledged.get((event.launch, event.index))
        if acknowledged is not None and request["start"] > acknowledged:
            yield Violation("again", f"round {event.index} of {event.launch} was measured again")
    breaks = any(isinstance(event, ev.LinkLost) for event in evidence.events)
    measured = Counter((e.launch, e.index) for e in evidence.all(ev.RoundMeasured))
    spoilt = Counter((e.launch, e.index) for e in evidence.all(ev.RoundSpoilt))
    for event in evidence.all(ev.RoundMeasured):
        if measured[event.launch, event.index] > 1 + spoilt[event.launch, event.index]:
            yield Violation("again", f"round {event.index} of {event.launch} has two results")
        seeds = [e.seed for e in asked.values() if (e.launch, e.index) == (event.launch, event.index)]
        counts = [served[_mark(seeds[-1], n)] for n in range(REQUESTS)] if seeds else [0]
        if min(counts) < 1 or (max(counts) > 1 and not breaks):
            yield Violation("result", f"round {event.index} of {event.launch}: served {counts}, and not once each")


def _guarded(evidence: Evidence) -> Iterator[Violation]:
    """The guard's questions are put to who was journalled to be asked, and to nobody whose answers are acknowledged."""
    names = {r["pid"]: r["launch_id"] for r in evidence.of("launch")}
    asked = {event.launch for event in evidence.all(ev.GuardRequested)}
    for request in evidence.of("request"):
        launch = names.get(request["pid"], "")
        if not request["prompt"].startswith(QUESTION):
            continue
        if launch not in asked:
            yield Violation("unasked", f"a question to {launch} that no journalled guard asked for")
        elif request["start"] > evidence.guarded.get(launch, request["start"]):
            yield Violation("again", f"{launch} was asked again though its answers were acknowledged")
    answers = Counter(event.launch for event in evidence.all(ev.GuardEnded))
    for launch, times in answers.items():
        if times > 1:
            yield Violation("again", f"{launch} has {times} results of the guard")
    hit = evidence.operator.ground.hit
    for name, experiment in evidence.state.experiments.items():
        if evidence.state.playbook.guard is None or not experiment.verdict or experiment.verdict.gain is None:
            continue
        if not hit.intersection(experiment.launches) and guard_of(evidence.state, name) is None:
            yield Violation("result", f"{name} is {experiment.verdict.word}, and was never asked by the guard")


def _mark(seed: int, index: int) -> str:
    """How the prompt of a round's request begins: worked out here anew, not by tunebot."""
    return hashlib.blake2b(f"{WORKLOAD}:{seed}:{index}".encode(), digest_size=8).hexdigest()


def _prepared(evidence: Evidence) -> Iterator[Violation]:
    """A step that changes the host succeeds at most once."""
    done = Counter(f"venv {r['folder']}" for r in evidence.of("venv"))
    done += Counter(f"pip {r['requirement']}" for r in evidence.of("pip") if r["code"] == 0)
    for step, times in done.items():
        if times > 1:
            yield Violation("prepare", f"{step} was done {times} times")


def _results(evidence: Evidence) -> Iterator[Violation]:
    """Kills change no result: who was to run ran, and a server that was killed is a dead end with its reason."""
    hit = {
        evidence.state.launches[name].experiment for name in evidence.operator.ground.hit & {*evidence.state.launches}
    }
    for name, experiment in evidence.state.experiments.items():
        word = experiment.verdict.word if experiment.verdict else "open"
        if name in hit or ("base" in hit and word == "not-reached"):
            continue
        if (word == "failed") != (WORDS[name] == "failed") or word in ("open", "not-reached", "invalid"):
            yield Violation("result", f"{name} is {word} and should be {WORDS[name]}: {experiment.reason}")
    for name in evidence.operator.ground.hit & {*evidence.state.launches}:
        launch = evidence.state.launches[name]
        experiment = evidence.state.experiments[launch.experiment]
        verdict, launches = experiment.verdict, (evidence.state.launches[other] for other in experiment.launches)
        failed = verdict is not None and verdict.word == "failed" and bool(verdict.reason)
        # Where another launch of it was measured, the verdict stands on that one, and this one tells why it has none.
        told = any(map(_is_measured, launches)) and bool(launch.failure or launch.round_error)
        if launch.purpose != "serve" and not _is_measured(launch) and not failed and not told:
            yield Violation("result", f"{name} was killed, and {launch.experiment} is {verdict}")


def _is_measured(launch: Launch) -> bool:
    return len(launch.rounds) == ROUNDS
