"""Plays whole campaigns on hosts whose launches differ: how often is a verdict wrong, and what does it cost?

`python -m tests.core.campaigns 500` plays so many for each noise between launches, through the scheduler and the
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
LAUNCH_SDS = (0.005, 0.015, 0.04)
ROUND_SD, MIN_GAIN, MOST = 0.007, 0.02, 3
DRIFTS = (-0.002, -0.004)
"""What every launch of a session is slower than the one before it."""
LOAD_S, ROUND_S = 600.0, 20.0


@dataclass
class Host:
    """Answers the commands of a session: every launch draws its own speed, every round its own."""

    launch_sd: float
    gains: dict[str, float]
    draw: random.Random
    drift: float = 0.0
    speeds: dict[str, float] = field(default_factory=dict)

    def answer(self, state: State, command: do.Command) -> Iterator[ev.Event]:
        """The events in which a command ends."""
        at = state.now
        match command:
            case do.StartServer(launch):
                gain = self.gains[state.launches[launch].experiment]
                noise = self.draw.gauss(0, self.launch_sd) + self.drift * len(state.launches)
                self.speeds[launch] = 100.0 * (1 + gain) * exp(noise)
                yield ev.LaunchStarted(at=at, launch=launch, pid=1, port=30000, argv=())
                yield ev.PhaseEntered(at=at, launch=launch, phase=Phase.LOAD_WEIGHTS, remaining_s=None)
                yield ev.ServerReady(at=at + LOAD_S, launch=launch, load_s=LOAD_S, flags=())
            case do.MeasureRound(launch, _, workload, index):
                speed = self.speeds[launch] * exp(self.draw.gauss(0, ROUND_SD))
                yield ev.RoundMeasured(
                    at=at + ROUND_S, launch=launch, workload=workload.name, index=index, metrics=metrics(speed)
                )
            case do.StopServer(launch):
                yield ev.ServerStopped(at=at, launch=launch, exit_code=0, left=())


def play(host: Host) -> State:
    """One session to its end."""
    ids = [name for name in host.gains if name != "base"]
    start = started(playbook({"id": "base"}, *({"id": name} for name in ids), launches=MOST))
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

    def share(self, wrong: str, gains: Iterator[float]) -> float:
        """Of the experiments with these gains, the fraction that is `keep`, or that is not (`other`)."""
        counts = [self.words[gain] for gain in gains]
        kept = sum(count["keep"] for count in counts) / sum(count.total() for count in counts)
        return kept if wrong == "keep" else 1 - kept

    @property
    def false_keeps(self) -> float:
        """The fraction of experiments without a gain that are kept."""
        return self.share("keep", (gain for gain in self.words if gain <= 0))

    @property
    def missed(self) -> float:
        """The fraction of experiments with a gain of 4 % or more that are not kept."""
        return self.share("other", (gain for gain in self.words if gain >= 0.04))


def campaigns(count: int, launch_sd: float, drift: float = 0.0) -> Tally:
    """Play `count` campaigns, each with the experiments in another order; the n-th is always the same."""
    tally = Tally({gain: Counter() for gain in sorted(set(GAINS))})
    for number in range(count):
        draw = random.Random(number)
        gains = draw.sample(GAINS, len(GAINS))
        truth = {"base": 0.0} | {f"e{index}": gain for index, gain in enumerate(gains)}
        state = play(Host(launch_sd, truth, draw, drift))
        tally.launches.append(len(state.launches))
        for name, experiment in state.experiments.items():
            if name != "base" and experiment.verdict:
                tally.words[truth[name]][experiment.verdict.word] += 1
    return tally


def launches_needed(launch_sd: float, gain: float = 0.04) -> int:
    """Launches of each side for 5 % false keeps and 10 % missed at this gain, were the noise known."""
    z = NormalDist().inv_cdf
    variance = launch_sd**2 + ROUND_SD**2 / 3
    needed = 2 * variance * ((z(0.95) + z(0.9)) / gain) ** 2
    # A keep also has to show `min_gain`.
    shown = 2 * variance * (z(0.9) / (gain - MIN_GAIN)) ** 2
    return ceil(max(needed, shown))


def main(count: int) -> None:
    """Play and print."""
    for launch_sd in LAUNCH_SDS:
        needed = launches_needed(launch_sd)
        print(f"launch sd {launch_sd:.1%}: to tell 4 % from 0 takes {needed} launches of each; {MOST} are granted")
        _print(campaigns(count, launch_sd), count)
    for drift in DRIFTS:
        print(f"launch sd {LAUNCH_SDS[0]:.1%}, and {drift:+.1%} with each launch of the session")
        _print(campaigns(count, LAUNCH_SDS[0], drift), count)


def _print(tally: Tally, count: int) -> None:
    for gain, words in tally.words.items():
        print(f"  {gain:+.0%}  " + ", ".join(f"{word} {n / words.total():.1%}" for word, n in words.most_common()))
    error = sqrt(0.05 * 0.95 / (sum(gain <= 0 for gain in GAINS) * count))
    print(f"  false keeps {tally.false_keeps:.1%} (at most 5 %, +-{error:.1%}), missed {tally.missed:.1%}")
    always = MOST * (len(GAINS) + 1)
    print(f"  launches: {fmean(tally.launches):.1f} on average; always three of each: {always}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 500)
