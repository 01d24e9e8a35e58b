"""What servers tell of speculative decoding: the difference over a round is its accept length."""

import json

import httpx

from agent.ports import Speculation
from agent.servers import server_kind

from .conftest import Fake

VLLM = """
vllm:spec_decode_num_drafts_total{{engine="0",model_name="m"}} {drafts}
vllm:spec_decode_num_draft_tokens_total{{engine="0",model_name="m"}} 9999.0
vllm:spec_decode_num_accepted_tokens_total{{engine="0",model_name="m"}} {accepted}
vllm:spec_decode_num_accepted_tokens_per_pos_total{{engine="0",position="0"}} 7777.0
vllm:spec_decode_num_drafts_created{{engine="0"}} 1.7e+09
"""


async def test_vllm_counts_passes_and_what_they_accepted(fake: Fake, http: httpx.AsyncClient) -> None:
    kind = server_kind("vllm", http)
    assert await kind.speculation(fake.url) is None
    fake.answers["GET /metrics"] = (200, VLLM.format(drafts="100.0", accepted="160.0"))
    assert await kind.speculation(fake.url) == Speculation(kept=260.0, passes=100.0)
    fake.answers["GET /metrics"] = (200, "vllm:generation_tokens_total 5.0\n")
    assert await kind.speculation(fake.url) == Speculation()


async def test_sglang_tells_the_average_since_its_cache_was_flushed(fake: Fake, http: httpx.AsyncClient) -> None:
    kind = server_kind("sglang", http)
    assert await kind.speculation(fake.url) is None
    for states, told in (
        ([{"last_gen_throughput": 1.0}], Speculation()),
        ([{"avg_spec_accept_length": 2.5}, {"avg_spec_accept_length": 2.7}], Speculation(kept=2.6, passes=1.0)),
    ):
        fake.answers["GET /server_info"] = (200, json.dumps({"internal_states": states}))
        assert await kind.speculation(fake.url) == told
