"""Negative controls: a part of tunebot is taken out, and the harness must notice. Else its zeros mean nothing."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from tests.chaos.case import Result, play
from tests.chaos.plan import Cue, Life, Schedule, SessionPlan
from tests.chaos.session import Without

# A second start of a launch id is a start like any other.
CLAIM = (
    (
        "        return outcome(run)\n    if os.fork()",
        '        claim = os.open(run / "claim", os.O_RDWR)\n    if os.fork()',
    ),
)
# Nobody holds the GPUs, and nobody asks who lives on them.
LOCK = (
    ('lock = _lock(Path(spec["lock"]))', 'lock = os.open(spec["lock"], os.O_RDWR | os.O_CREAT, 0o600)'),
    ("        left, _ = living(other)\n        if left:\n", "        left = []\n        if left:\n"),
)
WITHOUT = {"claim": Without(wrapper=CLAIM), "fsync": Without(fsync=True), "lock": Without(wrapper=LOCK)}
SHOWN_BY = {
    "claim": {"twice"},
    "fsync": {"lost"},
    "lock": {"overlap"},
}
"""The broken promises that show that each is missing."""


FAILING = 4
"""Which launch of the playbook fails soonest."""


def controls(seed: int) -> dict[str, list[Result]]:
    """Sessions without the claim, without fsync, and without the lock."""
    cases = [(name, plan) for name in WITHOUT for plan in _plans(name, seed)]
    with ThreadPoolExecutor(2) as pool:
        results = pool.map(lambda case: (case[0], play(case[1], WITHOUT[case[0]])), cases)
        found: dict[str, list[Result]] = {name: [] for name in WITHOUT}
        for name, result in results:
            found[name].append(result)
    for name, shown in found.items():
        for result in shown if is_seen(name, shown) else ():
            if result.kept:
                shutil.rmtree(result.kept)
    return found


def is_seen(name: str, results: list[Result]) -> bool:
    """Whether the harness noticed what is missing."""
    return any(violation.kind in SHOWN_BY[name] for result in results for violation in result.violations)


def _plans(name: str, seed: int) -> Iterator[SessionPlan]:
    if name == "claim":
        # The start of a server that soon dies is carried out; its answer is lost with the link, and tunebot is
        # suspended meanwhile. Then it asks again, when nobody holds the GPUs any more.
        lost = Cue(at="name", name="start", n=FAILING, moment="answered", delay_s=5.0, action="cut")
        yield _plan("step", seed, True, (Life(cues=(lost,)),))
    elif name == "fsync":
        for ssh in (False, True):
            lives = tuple(Life(cues=(Cue(at="name", name="RoundMeasured", n=2),), power_loss=True) for _ in range(2))
            yield _plan("state", seed, ssh, lives)
    else:
        life = Life(cues=(Cue(at="name", name="ServerReady", n=1),))
        for _ in range(2):
            yield _plan("pair", seed, True, (life,), (life,))


def _plan(
    schedule: Schedule, seed: int, ssh: bool, lives: tuple[Life, ...], second: tuple[Life, ...] = ()
) -> SessionPlan:
    return SessionPlan(
        number=0, schedule=schedule, ssh=ssh, serve=False, weather=False, seed=seed, lives=lives, second=second
    )
