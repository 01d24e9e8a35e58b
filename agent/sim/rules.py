"""What the rules of a world say about one launch."""

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agent.sim.effects import Fail, Hang, Jit, LogLine, Then, When
from agent.sim.facts import all_fit, facts_of
from agent.sim.pace import Pace, accepted
from agent.sim.parts import Step
from agent.sim.world import RANK_PHASES, World

NCCL = "nccl"
PHASES = ("args", *RANK_PHASES)


@dataclass(frozen=True)
class Outcome:
    """The fate of one launch.

    `pace` is its speed before noise, `kernel` what reduces, `spec_accept` the tokens of one verify pass (None without
    speculation); `load` multiplies the seconds of phases, `kv` the tokens of the KV cache.
    """

    pace: Pace
    kernel: str
    spec_accept: float | None
    load: Mapping[str, float]
    kv: float
    garble: bool
    wrong: float
    effective: Mapping[str, Any]
    logs: tuple[LogLine, ...]
    fail: Fail | None
    hang: Hang | None
    jits: tuple[Jit, ...]

    @property
    def tok_s(self) -> float:
        """Decode tokens/s at concurrency 1."""
        return self.pace.tok_s()


def outcome_of(world: World, args: Mapping[str, Any], env: Mapping[str, str], environment: str) -> Outcome:
    """Apply all rules that match the resolved arguments, the variables and the facts of an environment, by its name."""
    facts = facts_of(world, world.environments[environment])
    found = [rule.then for rule in world.rules if matches(rule.when, args, env, facts, environment)]
    kernel = next((then.kernel for then in reversed(found) if then.kernel), NCCL)
    pace = _pace(world, args, found, kernel)
    accepts = [then.spec_accept for then in found if then.spec_accept is not None]
    accepts = [pace.accept] if world.step and args.get("speculative_algorithm") else accepts
    fails = sorted((then.fail for then in found if then.fail), key=lambda fail: PHASES.index(fail.phase))
    hangs = [then.hang for then in found if then.hang is not None]
    return Outcome(
        pace=pace,
        kernel=kernel,
        spec_accept=accepts[-1] if accepts else None,
        load=_products([then.load for then in found]),
        kv=math.prod(then.kv for then in found),
        garble=any(then.garble for then in found),
        wrong=max((then.wrong for then in found), default=0.0),
        effective={key.replace("-", "_"): value for then in found for key, value in then.effective.items()},
        logs=tuple(line for then in found for line in then.log),
        fail=fails[0] if fails else None,
        hang=hangs[0] if hangs else None,
        jits=tuple(then.jit for then in found if then.jit is not None),
    )


def matches(
    when: When, args: Mapping[str, Any], env: Mapping[str, str], facts: Mapping[str, str], environment: str
) -> bool:
    """True if every condition holds."""
    flags = {name.replace("-", "_"): wanted for name, wanted in when.flags.items()}
    if when.environment not in (None, environment):
        return False
    return all_fit(args, flags) and all_fit(env, when.env) and all_fit(facts, when.facts)


def launch_rate(world: World, outcome: Outcome, identity: str, ordinal: int) -> float:
    """The true decode rate of one launch in tokens/s: the same identity and ordinal draw the same noise."""
    noise = random.Random(f"{world.seed}|{identity}|{ordinal}").gauss(0, world.noise.launch_sd)
    return outcome.tok_s * (1 + noise) * world.rates.token_speed


def _pace(world: World, args: Mapping[str, Any], found: Sequence[Then], kernel: str) -> Pace:
    exponents = [then.exponent for then in found if then.exponent is not None]
    exponent = exponents[-1] if exponents else world.rates.concurrency_exponent
    plain = Pace(compute_s=1 / world.rates.tok_s, exponent=exponent)
    pace = _step_pace(world.step, args, found, kernel, exponent) if world.step else plain
    wanted = pace.tok_s()
    for then in found:
        wanted = (wanted if then.tok_s is None else then.tok_s) * then.factor
    return replace(pace, factor=wanted / pace.tok_s())


def _step_pace(step: Step, args: Mapping[str, Any], found: Sequence[Then], kernel: str, exponent: float) -> Pace:
    rows, drafts = _drafts(args)
    right = min(0.99, step.accept * math.prod(then.accept for then in found))
    looped = args.get("speculative_algorithm") == "NGRAM"
    draft_ms = 0.0 if looped else drafts * step.draft_ms * math.prod(then.draft for then in found)
    slower = math.prod(then.latency for then in found) if kernel.startswith(NCCL) else 1.0
    table = step.kernels.get(kernel, step.kernels[NCCL])
    return Pace(
        compute_s=step.compute_ms / 1e3 * math.prod(then.compute for then in found),
        exponent=exponent,
        extra_s=(draft_ms + sum(then.adds_ms for then in found)) / 1e3,
        count=step.allreduces * math.prod(1 - then.removes for then in found),
        row_bytes=step.row_bytes,
        rows=rows,
        accept=step.ngram_accept if looped else accepted(right, min(drafts, rows - 1)),
        latency_us={int(size): us * slower for size, us in table.items()},
    )


def _drafts(args: Mapping[str, Any]) -> tuple[int, int]:
    """Tokens that a verify pass checks, and draft steps before it: 1 and 0 without speculation."""
    if not args.get("speculative_algorithm"):
        return 1, 0
    steps = int(args.get("speculative_num_steps") or 3)
    return int(args.get("speculative_num_draft_tokens") or steps + 1), steps


def _products(factors: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = {name for one in factors for name in one}
    return {name: math.prod(one.get(name, 1.0) for one in factors) for name in names}
