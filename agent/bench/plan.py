"""What a round of a workload sends."""

from agent.bench.arrivals import send_times
from agent.bench.load import Plan
from agent.bench.prompts import requests_of
from agent.playbook.workload import Workload

WARM_UP_SEED = -1
"""Rounds are seeded from 0 on, so no round meets these prompts again."""

_WARM_UP_TOKENS = 128
"""Enough that the requests which are let in first still decode when the last ones join: the full batch is warmed."""

_WARM_UP_MOST = 256
"""Requests at once beyond which an open loop is not warmed up: it rarely has as many in flight as it may."""


def plan_of(workload: Workload, model: str, seed: int) -> Plan:
    """One round; prompts and times follow from `seed`, which is 0 or more. Raises ValueError as `requests_of` does."""
    made = requests_of(workload, seed, workload.requests)
    send_at_s = None
    if workload.rate is not None:
        key = f"{workload.name}:{seed}:arrivals"
        send_at_s = send_times(workload.rate, workload.requests, workload.arrivals, workload.ramp or 0.0, key)
    return Plan(
        api=workload.api,
        model=model,
        prompts=tuple(prompt for prompt, _ in made),
        output_lens=tuple(length for _, length in made),
        concurrency=workload.concurrency,
        send_at_s=send_at_s,
    )


def warm_up_plan(workload: Workload, model: str) -> Plan:
    """As many requests at once as a round may have in flight, with prompts of no round. Raises as `plan_of` does."""
    count = workload.concurrency if workload.rate is None else min(workload.concurrency, _WARM_UP_MOST)
    made = requests_of(workload, WARM_UP_SEED, count)
    return Plan(
        api=workload.api,
        model=model,
        prompts=tuple(prompt for prompt, _ in made),
        output_lens=tuple(min(length, _WARM_UP_TOKENS) for _, length in made),
        concurrency=count,
    )
