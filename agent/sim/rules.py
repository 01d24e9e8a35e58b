"""What the rules of a world say about one launch."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent.sim.world import Fail, Hang, Jit, LogLine, When, World


@dataclass(frozen=True)
class Outcome:
    """The fate of one launch. `tok_s` is decode tokens/s at concurrency 1 before noise; `spec_accept` is tokens of one
    verify pass (None without speculation)."""

    tok_s: float
    spec_accept: float | None
    garble: bool
    wrong: float
    effective: Mapping[str, Any]
    logs: tuple[LogLine, ...]
    fail: Fail | None
    hang: Hang | None
    jits: tuple[Jit, ...]


def outcome_of(world: World, args: Mapping[str, Any], env: Mapping[str, str], environment: str) -> Outcome:
    """Apply all rules that match the resolved arguments, the environment variables and the environment's name."""
    found = [rule.then for rule in world.rules if matches(rule.when, args, env, environment)]
    tok_s = world.rates.tok_s
    for then in found:
        tok_s = (tok_s if then.tok_s is None else then.tok_s) * then.factor
    accepts = [then.spec_accept for then in found if then.spec_accept is not None]
    fails = [then.fail for then in found if then.fail is not None]
    hangs = [then.hang for then in found if then.hang is not None]
    return Outcome(
        tok_s=tok_s,
        spec_accept=accepts[-1] if accepts else None,
        garble=any(then.garble for then in found),
        wrong=max((then.wrong for then in found), default=0.0),
        effective={key.replace("-", "_"): value for then in found for key, value in then.effective.items()},
        logs=tuple(line for then in found for line in then.log),
        fail=fails[0] if fails else None,
        hang=hangs[0] if hangs else None,
        jits=tuple(then.jit for then in found if then.jit is not None),
    )


def matches(when: When, args: Mapping[str, Any], env: Mapping[str, str], environment: str) -> bool:
    """True if every condition holds."""
    if when.environment is not None and when.environment != environment:
        return False
    flags = ((args.get(name.replace("-", "_")), wanted) for name, wanted in when.flags.items())
    variables = ((env.get(name), wanted) for name, wanted in when.env.items())
    return all(_fits(value, wanted) for value, wanted in (*flags, *variables))


def launch_rate(world: World, outcome: Outcome, identity: str, ordinal: int) -> float:
    """The true decode rate of one launch in tokens/s: the same identity and ordinal draw the same noise."""
    noise = random.Random(f"{world.seed}|{identity}|{ordinal}").gauss(0, world.noise.launch_sd)
    return outcome.tok_s * (1 + noise) * world.rates.token_speed


def _fits(value: object, wanted: object) -> bool:
    if isinstance(wanted, list | tuple):
        return any(_fits(value, item) for item in wanted)
    if wanted == "*":
        return value not in (None, False, "")
    if wanted is None:
        return value is None
    return str(value).lower() == str(wanted).lower()
