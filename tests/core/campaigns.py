"""Plays whole campaigns on hosts whose launches differ: how often is a verdict wrong, and what does it cost?

`python -m tests.core.campaigns 500` plays so many on each kind of host, through the scheduler and the
reducer. The truth is drawn here and compared with the words that the session ends with.
"""

import random
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import ceil, exp, sqrt
from statistics import NormalDist, fmean

from agent.core import commands as do
from agent.core import events as ev
from agent.core.model import Phase
from agent.core.reduce import initial, reduce
from agent.core.schedule import next_decision
from agent.core.state import State
from tests.core.conftest import metrics, playbook, started

GAINS = (0.0, 0.0, -0.03, 0.01, 0.04, 0.08)
MIN_GAIN, MOST = 0.02, 3
LOAD_S, ROUND_S = 600.0, 20.0


@dataclass(frozen=True)
class Kind:
    """How launches and rounds of one flag set differ on a host: relative standard deviations.

    Each launch is `drift` faster than the one before it. The gains and `min_gain` are taken `times` as large.
    """

    launch_sd: float
    round_sd: float = 0.007
    drift: float = 0.0
    times: int = 1

    def __str__(self) -> str:
        told = f"launch sd {self.launch_sd:.1%}, round sd {self.round_sd:.1%}"
        told += f", {self.drift:+.1%} with each launch of the session" if self.drift else ""
        return told + (f"; gains and min_gain {self.times} times as large" if self.times > 1 else "")


KINDS = (Kind(0.005), Kind(0.015), Kind(0.04))
DRIFTING = (Kind(0.005, drift=-0.002), Kind(0.005, drift=-0.004))
BUSY = Kind(0.13, round_sd=0.17, times=10)
"""A two-core host with other work on it."""


@dataclass
class Host:
    """Answers the commands of a session: every launch draws its own speed, every round its own."""

    kind: Kind
    gains: dict[str, float]
    draw: random.Random
    speeds: dict[str, float] = field(default_factory=dict)

    def answer(self, state: State, command: do.Command) -> Iterator[ev.Event]:
        """The events in which a command ends."""
        at = state.now
        match command:
            case do.StartServer(launch):
                gain = self.gains[state.launches[launch].experiment]
                noise = self.draw.gauss(0, self.kind.launch_sd) + self.kind.drift * len(state.launches)
                self.speeds[launch] = 100.0 * (1 + gain * self.kind.times) * exp(noise)
                yield ev.LaunchStarted(at=at, launch=launch, pid=1, port=30000, argv=())
                yield ev.PhaseEntered(at=at, launch=launch, phase=Phase.LOAD_WEIGHTS, remaining_s=None)
                yield ev.ServerReady(at=at + LOAD_S, launch=launch, load_s=LOAD_S, flags=())
            case do.MeasureRound(launch, _, workload, index):
                speed = self.speeds[launch] * exp(self.draw.gauss(0, self.kind.round_sd))
                yield ev.RoundMeasured(
                    at=at + ROUND_S, launch=launch, workload=workload.name, index=index, metrics=metrics(speed)
                )
            case do.StopServer(launch):
                yield ev.ServerStopped(at=at, launch=launch, exit_code=0, left=())


def play(host: Host) -> State:
    """One session to its end."""
    ids = [name for name in host.gains if name != "base"]
    objective = {"workload": "single", "min_gain": MIN_GAIN * host.kind.times}
    start = started(playbook({"id": "base"}, *({"id": name} for name in ids), launches=MOST, objective=objective))
    state = initial(start)
    inbox: list[ev.Event] = []
    while not state.ending:
        event = next_decision(state) or inbox.pop(0)
        state, commands = reduce(state, event)
        for command in commands:
            inbox += host.answer(state, command)
    return state


@dataclass
class Tally:
    """What campaigns came to: the words by true gain, and the launches of each campaign."""

    words: dict[float, Counter[str]] = field(default_factory=dict)
    launches: list[int] = field(default_factory=list)

    def share(self, word: str, gains: Iterator[float]) -> float:
        """Of the experiments with these gains, the fraction with this verdict."""
        counts = [self.words[gain] for gain in gains]
        return sum(count[word] for count in counts) / sum(count.total() for count in counts)

    @property
    def false_keeps(self) -> float:
        """The fraction of experiments without a gain that are kept."""
        return self.share("keep", (gain for gain in self.words if gain <= 0))

    @property
    def false_losses(self) -> float:
        """The fraction of experiments without a loss that are called worse."""
        return self.share("worse", (gain for gain in self.words if gain >= 0))

    @property
    def missed(self) -> float:
        """The fraction of experiments with a gain of 4 % or more that are not kept."""
        return 1 - self.share("keep", (gain for gain in self.words if gain >= 0.04))


def campaigns(count: int, kind: Kind) -> Tally:
    """Play `count` campaigns, each with the experiments in another order; the n-th is always the same."""
    tally = Tally({gain: Counter() for gain in sorted(set(GAINS))})
    for number in range(count):
        draw = random.Random(number)
        gains = draw.sample(GAINS, len(GAINS))
        truth = {"base": 0.0} | {f"e{index}": gain for index, gain in enumerate(gains)}
        state = play(Host(kind, truth, draw))
        tally.launches.append(len(state.launches))
        for name, experiment in state.experiments.items():
            if name != "base" and experiment.verdict:
                tally.words[truth[name]][experiment.verdict.word] += 1
    return tally


def launches_needed(kind: Kind) -> int:
    """Launches of each side for 5 % false keeps and 10 % missed at a gain of 4 %, were the noise known."""
    z = NormalDist().inv_cdf
    gain, variance = 0.04 * kind.times, kind.launch_sd**2 + kind.round_sd**2 / 3
    needed = 2 * variance * ((z(0.95) + z(0.9)) / gain) ** 2
    # A keep also has to show `min_gain`.
    shown = 2 * variance * (z(0.9) / (gain - MIN_GAIN * kind.times)) ** 2
    return ceil(max(needed, shown))


def main(count: int) -> None:
    """Play and print."""
    for kind in (*KINDS, *DRIFTING, BUSY):
        needed = f"{launches_needed(kind)} launches of each are needed, {MOST} are granted"
        print(f"{kind}; to tell {0.04 * kind.times:.0%} from 0 {needed}")
        _print(campaigns(count, kind), count)


def _print(tally: Tally, count: int) -> None:
    for gain, words in tally.words.items():
        print(f"  {gain:+.0%}  " + ", ".join(f"{word} {n / words.total():.1%}" for word, n in words.most_common()))
    error = sqrt(0.05 * 0.95 / (sum(gain <= 0 for gain in GAINS) * count))
    print(f"  false keeps {tally.false_keeps:.1%} (at most 5 %, +-{error:.1%}), missed {tally.missed:.1%}")
    print(f"  called worse without a loss {tally.false_losses:.1%}")
    always = MOST * (len(GAINS) + 1)
    print(f"  launches: {fmean(tally.launches):.1f} on average; always three of each: {always}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
