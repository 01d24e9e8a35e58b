"""What sglang.bench_serving and `vllm bench serve` keep of each request, as metrics. Pure."""

from collections.abc import Mapping
from typing import Any

from agent.imports.model import Metric
from agent.imports.values import count, items, number, spread_of


def of_requests(record: Mapping[str, Any], per_chunk: bool) -> tuple[Metric, ...]:
    """TPOT and E2E up to the last token, from `ttfts`, `itls` and `output_lens` (seconds); none without these.

    `itls` are the gaps after the first chunk, so their sum is what lies between the first token and the last.
    `per_chunk` says that each is the gap of a chunk; then the tokens of a chunk are known too.
    """
    rows = zip(*(items(record.get(name)) for name in ("ttfts", "itls", "output_lens")), strict=False)
    tpots, e2es, tokens, chunks = [], [], 0, 0
    for ttft, gaps, length in rows:
        ttft_s, gaps_s = number(ttft), [number(gap) for gap in items(gaps)]
        made = count(length)
        if not ttft_s or not made or None in gaps_s:
            continue
        span_s = sum(gap_s for gap_s in gaps_s if gap_s is not None)
        e2es.append((ttft_s + span_s) * 1000)
        tokens, chunks = tokens + made, chunks + 1 + len(gaps_s)
        if made > 1 and span_s:
            tpots.append(span_s * 1000 / (made - 1))
    found = []
    if tpots:
        found.append(Metric(key="itls, output_lens", definition="tpot_excl_first", unit="ms", stats=spread_of(tpots)))
    if e2es:
        found.append(Metric(key="ttfts, itls", definition="e2e_token", unit="ms", stats=spread_of(e2es)))
    if chunks and per_chunk:
        stats = {"value": tokens / chunks}
        found.append(Metric(key="output_lens, itls", definition="tokens_per_chunk", unit="tokens", stats=stats))
    return tuple(found)
