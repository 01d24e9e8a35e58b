"""Noise between launches and between rounds, and what it leaves of a difference: closed forms, on a relative scale.

The value of a launch is the mean of the logarithms of its rounds; a difference of such values is a relative effect.
A launch's value varies by sd_launch^2 + sd_round^2 / rounds. The rounds of both sides tell sd_round. Few launches tell
little of sd_launch, so it is pooled over every flag set that was launched more than once, over earlier sessions on the
same target, and over a weak assumption (`assumed_noise`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import exp, pi, sqrt, tan
from statistics import NormalDist, fmean

from agent.core.model import LaunchNoise

FlagSet = Sequence[Sequence[float]]
"""The launches of one flag set, each as the logarithms of its rounds."""

ASSUMED = LaunchNoise(sd=0.015, degrees=3.0)
"""What is assumed before anything is measured: 1 to 2 % is usual between starts of one server. Three degrees of freedom
let a single launch decide a loss of 10 %, not less; a gain waits until something is measured (`verdict.py`)."""

LEAST_DEGREES = 2.0
"""What was measured counts as at least so many degrees of freedom, the assumption steadying it: Student's t with one
would decide nothing."""

HISTORY_DEGREES = 20.0
"""Earlier sessions count as at most so many degrees of freedom: a host changes."""


def t_quantile(probability: float, degrees: float) -> float:
    """The quantile of Student's t for a probability above 0.5; fewer than two degrees of freedom count as one.

    G. W. Hill, Algorithm 396: Student's t-quantiles, CACM 13 (1970) 619-620, with its closed forms for 1 and 2.
    """
    tail = 2.0 * (1.0 - probability)
    n = degrees
    if n < 2:
        return 1.0 / tan(tail * pi / 2)
    if n == 2:
        return sqrt(2.0 / (tail * (2.0 - tail)) - 2.0)
    a = 1.0 / (n - 0.5)
    b = 48.0 / a**2
    c = ((20700.0 * a / b - 98.0) * a - 16.0) * a + 96.36
    d = ((94.5 / (b + c) - 3.0) / b + 1.0) * sqrt(a * pi / 2.0) * n
    y = (d * tail) ** (2.0 / n)
    if y > 0.05 + a:
        x = NormalDist().inv_cdf(tail / 2.0)
        y = x * x
        if n < 5:
            c += 0.3 * (n - 4.5) * (x + 0.6)
        c += (((0.05 * d * x - 5.0) * x - 7.0) * x - 2.0) * x + b
        y = (((((0.4 * y + 6.3) * y + 36.0) * y + 94.5) / c - y - 3.0) / b + 1.0) * x
        y = exp(a * y * y) - 1.0
    else:
        y = ((1.0 / (((n + 6.0) / (n * y) - 0.089 * d - 0.822) * (n + 2.0) * 3.0) + 0.5 / (n + 4.0)) * y - 1.0) * (
            n + 1.0
        ) / (n + 2.0) + 1.0 / y
    return sqrt(n * y)


def squares(values: Sequence[float]) -> float:
    """The sum of the squared distances from the mean. In floats: that of `statistics` takes a hundred times as long."""
    mean = fmean(values)
    return sum((value - mean) ** 2 for value in values)


def assumed_noise(flag_sets: Iterable[FlagSet]) -> LaunchNoise:
    """sd_launch as it is assumed: `ASSUMED`, or what the rounds of these launches differ by where that is more.

    Whatever slows one round and not the next slows a launch as well: on busy two-core hosts rounds differed by 17 %,
    and launches of one flag set by as much.
    """
    variance, _ = round_variance([launch for flag_set in flag_sets for launch in flag_set])
    return replace(ASSUMED, sd=max(ASSUMED.sd, sqrt(variance)))


def measured_noise(flag_sets: Iterable[FlagSet]) -> LaunchNoise | None:
    """sd_launch as the flag sets with at least two launches tell it, pooled; None where there is none.

    The mean square between launches less what the rounds explain, and never below zero.
    """
    between, degrees, explained, launches = 0.0, 0, 0.0, 0
    for flag_set in flag_sets:
        if len(flag_set) < 2:
            continue
        extra = len(flag_set) - 1
        between += squares([fmean(rounds) for rounds in flag_set])
        within, _ = round_variance(flag_set)
        explained += extra * fmean(within / len(rounds) for rounds in flag_set)
        degrees += extra
        launches += len(flag_set)
    if not degrees:
        return None
    return LaunchNoise(sd=sqrt(max(0.0, between - explained) / degrees), degrees=degrees, launches=launches)


def pooled(*known: LaunchNoise | None) -> LaunchNoise:
    """One sd_launch from several, each with the weight of its degrees of freedom.

    An assumption steadies what little was measured, but lends it no certainty: the degrees of freedom are those of
    what was measured, if anything was.
    """
    parts = [noise for noise in known if noise is not None]
    weight = sum(noise.degrees for noise in parts)
    square = sum(noise.degrees * noise.sd**2 for noise in parts) / weight
    measured = sum(noise.degrees for noise in parts if noise.launches)
    degrees = max(measured, LEAST_DEGREES) if measured else weight
    return LaunchNoise(sd=sqrt(square), degrees=degrees, launches=sum(noise.launches for noise in parts))


def noise_text(assumed: LaunchNoise, earlier: LaunchNoise | None, measured: LaunchNoise | None) -> str:
    """`launch noise assumed 1.5%`, or `launch noise measured 0.8% over 7 launches`.

    `measured` is what this session tells, `earlier` what earlier ones on the same target did.
    """
    if earlier is None and measured is None:
        as_rounds = ", as rounds differ by as much" if assumed != ASSUMED else ""
        return f"launch noise assumed {assumed.sd:.1%}{as_rounds}"
    known = pooled(earlier, measured)
    of_them = f", {earlier.launches} of them in earlier sessions" if earlier else ""
    return f"launch noise measured {known.sd:.1%} over {known.launches} launches{of_them}"


def round_variance(flag_set: FlagSet) -> tuple[float, int]:
    """The variance of one round within its launch, pooled over the launches, and its degrees of freedom."""
    several = [rounds for rounds in flag_set if len(rounds) > 1]
    degrees = sum(len(rounds) - 1 for rounds in several)
    return sum(map(squares, several)) / degrees if degrees else 0.0, degrees


@dataclass(frozen=True, slots=True)
class Difference:
    """Candidate less reference, as a difference of logarithms, with its standard error and degrees of freedom."""

    value: float
    error: float
    degrees: float

    def reach(self, confidence: float) -> float:
        """How far a bound that holds with this one-sided confidence lies from the value."""
        return t_quantile(confidence, self.degrees) * self.error


def difference(
    candidate: FlagSet, reference: FlagSet, noise: LaunchNoise, more: tuple[int, int] = (0, 0)
) -> Difference:
    """The difference of two flag sets, each the mean of its launches; degrees of freedom by Satterthwaite's formula.

    With `more` launches of the one and the other it is what they would leave, if the value stayed the same.
    """
    parts = [*_parts(candidate, noise, more[0]), *_parts(reference, noise, more[1])]
    between = parts[0][0] + parts[2][0]
    square = sum(part for part, _ in parts)
    # Both sides share one estimate of the noise between launches: its parts are not independent.
    pairs = [(between, noise.degrees), parts[1], parts[3]]
    weights = sum(part**2 / degrees for part, degrees in pairs if degrees)
    value = mean_of(candidate) - mean_of(reference)
    return Difference(value, sqrt(square), square**2 / weights if weights else noise.degrees)


def _parts(flag_set: FlagSet, noise: LaunchNoise, more: int) -> list[tuple[float, float]]:
    """What launches and rounds add to the variance of the mean, each with its degrees of freedom."""
    launches = len(flag_set) + more
    rounds = sum(map(len, flag_set)) / len(flag_set) * launches
    within, degrees = round_variance(flag_set)
    return [(noise.sd**2 / launches, noise.degrees), (within / rounds, degrees)]


def mean_of(flag_set: FlagSet) -> float:
    """The mean over launches of the means over rounds."""
    return fmean(fmean(rounds) for rounds in flag_set)
