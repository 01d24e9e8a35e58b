"""When the requests of an open loop are due. Pure."""

import random
from math import sqrt
from typing import Literal


def send_times(
    rate: float, count: int, arrivals: Literal["poisson", "constant"], ramp_s: float, key: str
) -> tuple[float, ...]:
    """Seconds from the start at which each of `count` requests is due; ascending, the same for the same `key`.

    The rate grows linearly from 0 to `rate` requests per second during `ramp_s` and stays there. By the time t, then,
    rate t^2 / (2 ramp) requests are expected during the ramp and rate (t - ramp / 2) after it; the inverse of that
    turns arrivals at unit rate (time rescaling), equally spaced or exponentially, into the times.
    """
    random_gap = random.Random(key).expovariate
    times, expected = [], 0.0
    for index in range(count):
        if arrivals == "constant":
            expected = float(index)
        elif index:
            expected += random_gap(1.0)
        in_ramp = expected < rate * ramp_s / 2
        times.append(sqrt(2 * expected * ramp_s / rate) if in_ramp else expected / rate + ramp_s / 2)
    return tuple(times)
