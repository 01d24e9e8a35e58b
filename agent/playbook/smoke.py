"""Smoke loads: a first launch with dummy weights, and how each kind of server is told to make one."""

from collections.abc import Mapping
from typing import Literal

Smoke = Literal["dummy", False]
"""What is launched before the real load: the same flags with dummy weights, or nothing."""

FORMAT, DUMMY = "load-format", "dummy"

NOT_WITH_DUMMY: Mapping[str, tuple[str, ...]] = {
    "sglang": ("model-loader-extra-config", "speculative-draft-load-format", "weight-cache-mode"),
    "vllm": ("model-loader-extra-config",),
}
"""The flags that a smoke load of each kind leaves out; a kind that is not here knows no dummy weights.

With an extra configuration DummyModelLoader raises ValueError (model_loader/loader.py of SGLang 0.5.9 and 0.5.23,
dummy_loader.py of vLLM 0.32). A draft has the format of --load-format where it has none of its own, and a weight cache
takes the place of any format (SGLang 0.5.23, load_model_utils.py): with either, real weights would be read.
"""
