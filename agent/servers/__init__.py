"""The kinds of servers that tunebot tunes."""

import httpx

from agent.ports import ServerKind
from agent.servers.llamacpp import LlamaCpp
from agent.servers.sglang import SGLang
from agent.servers.vllm import VLLM

KINDS: dict[str, type[SGLang] | type[VLLM] | type[LlamaCpp]] = {
    "sglang": SGLang,
    "vllm": VLLM,
    "llamacpp": LlamaCpp,
}


def server_kind(name: str, http: httpx.AsyncClient) -> ServerKind:
    """The kind of that name; it makes its HTTP calls through `http`."""
    return KINDS[name](http)
