"""What befalls which session: from a seed to lives and the cues that end them. Pure.

A session is a row of lives: each but the last is ended by a kill, and the next one resumes. Five schedules: `time` (a
random time), `state` (a random moment of a chosen state), `write` and `step` (the k-th journal write and the k-th
request to the target, for each k), `server` (the leader or a rank of the running launch is killed as well), and `pair`
(two operators at once on one host). A state that was hit too seldom gets sessions that are aimed at it.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

Place = Literal["write", "step"]
Schedule = Literal["time", "state", "write", "step", "server", "pair"]
MOMENTS: dict[Place, tuple[str, str, str]] = {
    "write": ("before", "written", "after"),
    "step": ("before", "sent", "answered"),
}
KILLS = 8
"""Kills of one session."""
ALL = 1000
"""From so many kills on, the exhaustive schedules are not thinned."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cue:
    """When to kill tunebot, or to cut its connection.

    `start`: `delay_s` after the start of its process; `begun`: after its first journal write. `write`, `step`: at the
    `n`-th of the session. `name`: at the `n`-th write or step of that name in this life, and `delay_s` later. After a
    cut that swallows an answer, tunebot is suspended for `delay_s`.
    """

    at: Literal["start", "begun", "write", "step", "name"]
    n: int = 0
    name: str = ""
    moment: str = "after"
    delay_s: float = 0.0
    action: Literal["kill", "cut"] = "kill"


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """One run of tunebot, and what happens right after its end.

    `harsh`: its commands and a start under way are killed with it. `power_loss`: of what was not synced, only the
    fraction `torn` is left. `hit`: who of the running launch is killed, `down` after the kill or `up` before it.
    """

    cues: tuple[Cue, ...] = ()
    harsh: bool = False
    power_loss: bool = False
    torn: float = 0.0
    hit: Literal["", "leader", "rank"] = ""
    hit_when: Literal["down", "up"] = "down"
    hit_delay_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionPlan:
    """One session. `weather`: its connection is killed, cut and stalled at random times too.

    `serve`: the baseline's server is left running at the end. `second`: the lives of another operator's session.
    `launches` of each flag set are granted at most; with a `guard` each flag set answers its questions.
    """

    number: int
    schedule: Schedule
    ssh: bool
    serve: bool
    weather: bool
    seed: int
    lives: tuple[Life, ...]
    second: tuple[Life, ...] = ()
    launches: int = 1
    guard: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """How many journal writes and requests to the target a session has that nobody disturbs."""

    writes: int
    local_steps: int
    ssh_steps: int


def plans(seed: int, kills: int, places: Places) -> list[SessionPlan]:
    """Sessions for about so many kills or more: half of them by the exhaustive schedules, thinned where needed."""
    made: list[SessionPlan] = []
    for (kind, ssh), cues in exhaustive(places).items():
        stride = thinning(kills, places)
        thinned = cues[random.Random(f"{seed}:{kind}:{ssh}").randrange(stride) :: stride]
        rows = -(-len(thinned) // KILLS)
        for row in range(rows):
            # Far apart, so that each life gets a good part of the way.
            made.append(_plan(seed, len(made), kind, ssh, thinned[row::rows]))
    # A tenth more than asked for: some sessions end before they are killed as often as planned.
    left = max(kills // 2, kills + kills // 10 - sum(len(plan.lives) for plan in made))
    while left > 0:
        made.append(_plan(seed, len(made), MIX[len(made) % len(MIX)]))
        left -= len(made[-1].lives) + len(made[-1].second)
    return made


MIX: tuple[Schedule, ...] = (
    *("state", "time", "state", "server", "state", "pair", "state", "time", "state", "server", "state", "time"),
)


GUARDED = 0.25
"""The share of the other sessions that have a guard: its 510 requests a flag set take longer than a load here."""


def _plan(seed: int, number: int, schedule: Schedule, ssh: bool | None = None, cues: Sequence[Cue] = ()) -> SessionPlan:
    rng = random.Random(f"{seed}:{number}")
    over_ssh = schedule == "pair" or (rng.random() < 0.5 if ssh is None else ssh)
    serve = schedule in ("time", "state") and rng.random() < 0.5
    # The exhaustive schedules know the places of the plain session.
    launches, guard = (1, False) if schedule in MOMENTS else (rng.choice((1, 1, 2, 3)), rng.random() < GUARDED)
    count = KILLS if schedule == "time" else KILLS // 2
    if schedule == "state" and not cues:
        cues = list(_in_states(rng, serve, launches, guard))
    if schedule == "server":
        cues = _with_server(rng)
    first, second = cues or _any_times(rng, count), _any_times(rng, count if schedule == "pair" else 0)
    return SessionPlan(
        number=number,
        schedule=schedule,
        ssh=over_ssh,
        serve=serve,
        weather=over_ssh and schedule not in MOMENTS and rng.random() < 0.8,
        seed=rng.getrandbits(32),
        lives=tuple(_life(cue, rng, hit=schedule == "server" and cue.name in (*HIT_DOWN, HIT_UP)) for cue in first),
        second=tuple(_life(cue, rng, hit=False) for cue in second),
        launches=launches,
        guard=guard,
    )


def thinning(kills: int, places: Places) -> int:
    """Every how many of the exhaustive schedules' points are taken."""
    total = sum(map(len, exhaustive(places).values()))
    return 1 if kills >= ALL else max(1, -(-total // max(1, kills // 2)))


def exhaustive(places: Places) -> dict[tuple[Place, bool], list[Cue]]:
    """A cue for each moment of each place, by its kind and whether it is over SSH."""
    counts: dict[tuple[Place, bool], int] = {
        ("write", False): places.writes,
        ("step", False): places.local_steps,
        ("step", True): places.ssh_steps,
    }
    return {
        (kind, ssh): [Cue(at=kind, n=n, moment=moment) for n in range(1, count + 1) for moment in MOMENTS[kind]]
        for (kind, ssh), count in counts.items()
    }


def _life(cue: Cue, rng: random.Random, hit: bool) -> Life:
    if cue.moment == "sent":
        cue = replace(cue, delay_s=rng.uniform(0, 0.1))
    who: Literal["leader", "rank"] = rng.choice(("leader", "rank"))
    return Life(
        cues=(cue,),
        harsh=rng.random() < 0.5,
        power_loss=rng.random() < 0.5,
        torn=rng.random(),
        hit=who if hit else "",
        hit_when="up" if cue.name == HIT_UP else "down",
        hit_delay_s=rng.uniform(0.0, 1.0),
    )


def _any_times(rng: random.Random, count: int) -> list[Cue]:
    """Mostly while a session runs, sometimes before it does."""
    starts = [Cue(at="start", delay_s=rng.uniform(0.05, 1.0)) for _ in range(count)]
    return [cue if rng.random() < 0.15 else Cue(at="begun", delay_s=rng.uniform(0.0, 3.0)) for cue in starts]


# A server is killed right after tunebot, which one of these begins; or before, and tunebot sees it die.
HIT_DOWN, HIT_UP = ("LaunchStarted", "RoundRequested"), "ServerFailed"


def _with_server(rng: random.Random) -> list[Cue]:
    """Cues with which the servers of the idea and of the last experiment are killed, and others between."""
    one, two = (rng.choice((*HIT_DOWN, HIT_UP)) for _ in range(2))
    return [
        Cue(at="name", name=name, n=1, delay_s=rng.uniform(0, LASTS_S.get(name, 0)))
        for name in ("VerdictReached", one, "PrepareRequested", two)
    ]


# How long (s) the states last about that these events begin.
LASTS_S = {
    "TaskRequested": 0.6,
    "LaunchRequested": 0.1,
    "LaunchStarted": 1.0,
    "RoundRequested": 0.3,
    "GuardRequested": 1.5,
    "StopRequested": 0.15,
    "PrepareRequested": 0.5,
    "SessionEnded": 0.05,
}
# The way of a session in parts, in each of which it is killed once; before it is the event that begins a state.
PARTS: tuple[tuple[str, ...], ...] = (
    ("TaskRequested", "LaunchRequested", "LaunchStarted"),
    ("ServerReady", "VerdictReached"),
    ("StopRequested", "StopRequested", "ServerStopped", "LaunchRequested"),
    ("ServerReady", "RoundRequested", "VerdictReached"),
    ("ServerFailed",),
    ("ServerFailed",),
    ("PrepareRequested",),
    ("PrepareRequested",),
    ("TaskRequested", "LaunchStarted", "ServerReady", "RoundRequested", "VerdictReached"),
    ("SessionEnded",),
)
SERVING = ("StopRequested", "LaunchStarted", "ServerReady", "SessionEnded")
AGAIN = ("LaunchPlanned", "LaunchStarted", "RoundRequested", "StopRequested")
"""Where a session is hit whose last experiment, or its baseline, is launched again."""


AIMS = {
    "between": "ServerStopped",
    "preparing": "PrepareRequested",
    "requested": "LaunchRequested",
    "loading": "LaunchStarted",
    "ready": "ServerReady",
    "measuring": "RoundRequested",
    "failed": "ServerFailed",
    "stopping": "StopRequested",
    "researching": "TaskRequested",
    "serving or ended": "SessionEnded",
}
"""The states, and the event with which each begins."""
LAST_LAUNCH = 6
"""Which launch of the plain session is the one that is left running."""


def aimed(seed: int, number: int, state: str) -> SessionPlan:
    """A plain session that is killed in one state, once in each of its lives."""
    rng = random.Random(f"{seed}:{number}:{state}")
    name, serve = AIMS[state], state == "serving or ended"
    names = [("LaunchStarted", LAST_LAUNCH), ("ServerReady", 1), (name, 1)] if serve else [(name, 1)] * (KILLS // 2)
    cues = [Cue(at="name", name=at, n=n, delay_s=rng.uniform(0, LASTS_S.get(at, 0.0))) for at, n in names]
    return replace(_plan(seed, number, "state", ssh=False, cues=cues), serve=serve, launches=1, guard=False)


def _in_states(rng: random.Random, serve: bool, launches: int, guard: bool) -> Iterator[Cue]:
    """Cues along the way of a session, each at a random moment of a state."""
    first = [("GuardRequested",)] if guard else []
    last = [AGAIN] if launches > 1 else []
    parts = (*PARTS[:1], *first, *PARTS[1:-1], *last, *(((name,) for name in SERVING) if serve else PARTS[-1:]))
    for part in parts:
        name = rng.choice(part)
        yield Cue(at="name", name=name, n=1, delay_s=rng.uniform(0, LASTS_S.get(name, 0.0)))
