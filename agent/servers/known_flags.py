"""The command-line flags that each kind of server has, read from the data files beside this module."""

from functools import cache
from importlib.resources import files

KINDS = ("sglang", "vllm")


@cache
def known_flags(kind: str) -> tuple[tuple[str, ...], ...]:
    """Every flag of a kind of server without its dashes: the usual spelling first, then its aliases.

    Of a kind whose flags are not listed (llama.cpp's change from day to day) nothing is known.
    """
    if kind not in KINDS:
        return ()
    text = (files("agent.servers") / "flags" / f"{kind}.txt").read_text(encoding="utf-8")
    return tuple(tuple(line.split()) for line in text.splitlines() if line and not line.startswith("#"))


def all_known_flags() -> dict[str, tuple[tuple[str, ...], ...]]:
    """The flags of every kind, as `load_playbook` takes them."""
    return {kind: known_flags(kind) for kind in KINDS}
