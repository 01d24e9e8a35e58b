"""What was measured on the launches of an experiment, round by round."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean

from agent.core.model import RoundMetrics
from agent.core.state import ExperimentState, Launch, Round, State
from agent.core.verdict import interval95

WAITING_BUSY, WAITING_WATTS = 0.95, 0.3
"""GPUs that are busy for so much of the time at so little of their power limit wait for each other.

Where that was the cause, 600 W cards drew 120 to 140 W (local-inference-lab/rtx6kpro#25); decoding as it should, about
300 W (gpu-configs of the same repository).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Numbers:
    """One line of a table of rounds. Throughput in tok/s with its interval, times in ms."""

    label: str
    throughput: float
    spread: float | None
    ttft_ms: float
    ttft_spread: float | None
    tpot_ms: float
    tpot_spread: float | None
    tokens_per_chunk: float
    cached_tokens: int
    failed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """What speaks against the numbers of some rounds; `word` is `warn`, `not comparable`, or `repeated`."""

    glyph: str
    word: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The rounds of one workload on one launch, and their mean with the half width of its 95 % interval.

    `more` are lines of what else is known of them, as means over the rounds.
    """

    title: str
    objective: bool
    rounds: tuple[Numbers, ...]
    mean: Numbers | None
    note: str
    more: tuple[str, ...]
    doubts: tuple[Doubt, ...]


def measured_of(state: State, experiment: ExperimentState) -> Iterator[Measured]:
    """The rounds of each workload on each launch of an experiment."""
    several = len(experiment.launches) > 1
    for number, name in enumerate(experiment.launches, 1):
        launch = state.launches[name]
        for workload in state.playbook.workloads:
            measured = in_order(launch, workload.name)
            spoilt = [r for r in launch.spoilt if r.workload == workload.name]
            note = ""
            if launch.measuring and launch.measuring[0] == workload.name:
                note = f"round {launch.measuring[1] + 1} of {workload.rounds} runs{' again' if launch.repeats else ''}"
            if launch.round_error and not note and len(measured) < workload.rounds:
                note = f"could not be measured: {launch.round_error}"
            if measured or spoilt or note:
                yield Measured(
                    title=workload.name + (f" · launch {number}" if several else ""),
                    objective=workload.name == state.playbook.objective.workload,
                    rounds=tuple(_numbers(f"round {r.index + 1}", [r.metrics]) for r in measured),
                    mean=_numbers("mean", [r.metrics for r in measured]) if len(measured) > 1 else None,
                    note=note,
                    more=tuple(line for tell in (_tails, _rates, _lengths, _waiting) if (line := tell(measured))),
                    doubts=(*_doubts(measured), *map(_repeated, spoilt)),
                )


def in_order(launch: Launch, workload: str) -> list[Round]:
    """The rounds of a workload that count, by their numbers: one that was repeated was measured after later ones."""
    return sorted((r for r in launch.rounds if r.workload == workload), key=lambda r: r.index)


def _numbers(label: str, rounds: Sequence[RoundMetrics]) -> Numbers:
    throughput, ttft, tpot = (
        [getattr(m, name) for m in rounds] for name in ("output_throughput", "ttft_ms", "tpot_ms")
    )
    several = len(rounds) > 1
    return Numbers(
        label=label,
        throughput=fmean(throughput),
        spread=interval95(throughput) if several else None,
        ttft_ms=fmean(ttft),
        ttft_spread=interval95(ttft) if several else None,
        tpot_ms=fmean(tpot),
        tpot_spread=interval95(tpot) if several else None,
        tokens_per_chunk=fmean(m.tokens_per_chunk for m in rounds),
        cached_tokens=sum(m.cached_tokens for m in rounds),
        failed=sum(m.failed for m in rounds),
    )


def doubts_text(metrics: RoundMetrics) -> str:
    """What speaks against a round, for the end of a line: the reason where it is not comparable, else its names."""
    if reason := metrics.not_comparable:
        return f"✖ not comparable: {reason}"
    return f"! {', '.join(item.name for item in metrics.hygiene)}" if metrics.hygiene else ""


def _doubts(rounds: Sequence[Round]) -> Iterator[Doubt]:
    """Each thing once, in the words of the first round that has it at its worst."""
    for level, glyph, word in (("bad", "✖", "not comparable"), ("warn", "!", "warn")):
        items = [(r.index, item) for r in rounds for item in r.metrics.hygiene if item.level == level]
        for name in dict.fromkeys(item.name for _, item in items):
            of_name = [(index, item) for index, item in items if item.name == name]
            index, item = of_name[0]
            more = f" and {len(of_name) - 1} more" if len(of_name) > 1 else ""
            yield Doubt(glyph=glyph, word=word, text=f"{name}: {item.text} (round {index + 1}{more})")


def _repeated(spoilt: Round) -> Doubt:
    return Doubt(glyph="!", word="repeated", text=f"round {spoilt.index + 1}: {spoilt.metrics.not_comparable}")


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _tails(rounds: Sequence[Round]) -> str:
    """`p99  TTFT 62.1 · TPOT 12.40 · ITL 30.10 · E2E 1800.0 ms`"""
    parts = []
    for name, part, digits in (("TTFT", "ttft", 1), ("TPOT", "tpot", 2), ("ITL", "itl", 2), ("E2E", "e2e", 1)):
        spreads = [getattr(r.metrics, part) for r in rounds]
        p99 = _mean(spread.p99 for spread in spreads if spread)
        parts += [] if p99 is None else [f"{name} {p99:.{digits}f}"]
    return f"p99  {' · '.join(parts)} ms" if parts else ""


def _rates(rounds: Sequence[Round]) -> str:
    """What was done in a second, beside the output throughput."""
    steady = _mean(r.metrics.steady_output_throughput for r in rounds)
    goodput = _mean(r.metrics.goodput for r in rounds)
    watts = _mean(r.metrics.watts_per_gpu for r in rounds)
    parts = [f"{fmean(r.metrics.request_throughput for r in rounds):.2f} req/s"] if rounds else []
    parts += [] if goodput is None else [f"goodput {goodput:.2f} req/s"]
    parts += [] if steady is None else [f"{steady:.1f} tok/s steady"]
    parts += [] if watts is None else [f"{watts:.0f} W a GPU"]
    return " · ".join(parts) if any(r.metrics.ttft for r in rounds) else ""


def _lengths(rounds: Sequence[Round]) -> str:
    """The achieved lengths of a request, in tokens, and what came of speculation and the prefix cache."""
    asked, made = _mean(r.metrics.prompt_len for r in rounds), _mean(r.metrics.output_len for r in rounds)
    hits, accepted = _mean(r.metrics.cache_hit_rate for r in rounds), _mean(r.metrics.accept_length for r in rounds)
    parts = [] if asked is None or made is None else [f"{asked:.0f} tokens in, {made:.0f} out"]
    parts += [f"{hits:.0%} of the input cached"] if hits else []
    parts += [] if accepted is None else [f"accept length {accepted:.2f}"]
    return " · ".join(parts)


def _waiting(rounds: Sequence[Round]) -> str:
    """`100 % busy at 130 W a card: waiting on communication`, where that is what the GPUs look like."""
    uses = [r.metrics.gpu_use for r in rounds if r.metrics.gpu_use]
    if not uses or min(use.count for use in uses) < 2:
        return ""
    busy, watts, limit = (fmean(getattr(use, name) for use in uses) for name in ("busy", "watts", "limit_watts"))
    if busy < WAITING_BUSY or watts > WAITING_WATTS * limit:
        return ""
    return f"{100 * busy:.0f} % busy at {watts:.0f} W a card: waiting on communication"
