"""The metrics that an objective can name: their units, and which way is better."""

from typing import Literal, get_args

MetricName = Literal[
    "output_throughput",
    "request_throughput",
    "goodput",
    "ttft_ms",
    "ttft_p90_ms",
    "ttft_p95_ms",
    "ttft_p99_ms",
    "tpot_ms",
    "tpot_p90_ms",
    "tpot_p95_ms",
    "tpot_p99_ms",
    "e2e_ms",
    "e2e_p90_ms",
    "e2e_p95_ms",
    "e2e_p99_ms",
]
"""Names without a percentile are medians over requests. ITL is none of them: where a chunk holds several tokens, the
pooled gaps say nothing of speed."""

LOWER_IS_BETTER: frozenset[MetricName] = frozenset(name for name in get_args(MetricName) if name.endswith("_ms"))


def unit_of(metric: MetricName) -> str:
    """What stands behind a value of the metric: `tok/s`, `req/s`, `ms TTFT p99`."""
    if metric not in LOWER_IS_BETTER:
        kinds = {"request_throughput": "req/s", "goodput": "good req/s"}
        return kinds.get(metric, "tok/s")
    quantity, *percentile = metric.removesuffix("_ms").split("_")
    return " ".join(["ms", quantity.upper(), *percentile])
