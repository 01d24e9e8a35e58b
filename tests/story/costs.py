"""What a session cost its host, by the host's own ledger."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from agent.sim.ledger import Span, launches, spans

STEPS = ("launch", "request", "stop", "prepare")
"""What a campaign cannot do without: its loads, its warm-ups and rounds, its stops, what it prepares."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Seconds on the host's clock, which goes faster than ours for all but rounds."""

    loads: int
    ready: int
    loading_s: float
    stopping_s: float
    preparing_s: float

    @property
    def host_s(self) -> float:
        """All of it but rounds."""
        return self.loading_s + self.stopping_s + self.preparing_s


def costs_of(ledger: Path, speed: float) -> Costs:
    """What the ledger of a host tells whose times are divided by `speed`."""
    found = spans(ledger)

    def seconds(kind: str) -> float:
        return speed * sum(span.end - span.start for span in found if span.kind == kind)

    started = launches(ledger)
    return Costs(
        loads=len(started),
        ready=sum(launch["ready"] is not None for launch in started),
        loading_s=seconds("launch"),
        stopping_s=seconds("stop"),
        preparing_s=seconds("prepare"),
    )


def loads_of(ledger: Path, speed: float) -> dict[str, tuple[float, bool]]:
    """Of each launch id the seconds that its load took on the host's clock, and whether it got ready."""
    names = {launch["pid"]: launch["launch_id"] for launch in launches(ledger)}
    loads = [span for span in spans(ledger) if span.kind == "launch" and span.launch is not None]
    return {names[span.launch]: (speed * (span.end - span.start), span.name == "ready") for span in loads}


def covered_s(found: Iterable[Span], kinds: tuple[str, ...] = STEPS) -> float:
    """Seconds of our clock in which anything of these kinds went on, however much of it at once."""
    total, until = 0.0, float("-inf")
    for start, end in sorted((span.start, span.end) for span in found if span.kind in kinds):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total
