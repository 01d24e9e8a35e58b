"""Whether the client itself was the limit."""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time

_TICK_S = 0.02
_IDLE = (3, 4)
"""The places of idle and iowait in the first line of /proc/stat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How the load generator fared during a load.

    `cpu_fraction` is its CPU time over the wall time, 1 being a core: towards 1 it was the limit. `loop_lag_p99_ms` is
    how late its event loop woke up, 99th percentile, to about a millisecond. `host_load_others` is the fraction of the
    machine's cores that other processes used, the server among them where it runs here; None where that is not known.
    """

    cpu_fraction: float
    loop_lag_p99_ms: float
    host_load_others: float | None = None


class Gauge:
    """Takes the health of this process from `start` to `stop`. Only inside a running event loop."""

    def __init__(self) -> None:
        self._lags_s: list[float] = []
        self._handle: asyncio.TimerHandle | None = None
        self._due_s = self._wall_s = self._cpu_s = 0.0
        self._busy_s: float | None = None

    def start(self) -> None:
        """Begin."""
        self._wall_s, self._cpu_s, self._busy_s = perf_counter(), process_time(), _busy_s()
        self._wait()

    def stop(self) -> Health:
        """End, and tell."""
        assert self._handle is not None
        self._handle.cancel()
        wall_s, cpu_s, busy_s = perf_counter() - self._wall_s, process_time() - self._cpu_s, _busy_s()
        self._lags_s.append(max(0.0, perf_counter() - self._due_s))  # one that is still to come may be long overdue
        lags_s = sorted(self._lags_s)
        others = None
        if self._busy_s is not None and busy_s is not None:
            others = max(0.0, min(1.0, (busy_s - self._busy_s - cpu_s) / (wall_s * (os.cpu_count() or 1))))
        return Health(
            cpu_fraction=cpu_s / wall_s,
            loop_lag_p99_ms=lags_s[round(0.99 * (len(lags_s) - 1))] * 1000,
            host_load_others=others,
        )

    def _wait(self) -> None:
        self._due_s = perf_counter() + _TICK_S
        self._handle = asyncio.get_running_loop().call_later(_TICK_S, self._tick)

    def _tick(self) -> None:
        self._lags_s.append(max(0.0, perf_counter() - self._due_s))
        self._wait()


def _busy_s() -> float | None:
    """Seconds that the cores of this machine have not been idle; None where it does not tell."""
    try:
        counts = [int(x) for x in Path("/proc/stat").read_text("ascii").split("\n", 1)[0].split()[1:9]]
        ticks = os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return None
    return sum(count for place, count in enumerate(counts) if place not in _IDLE) / ticks
