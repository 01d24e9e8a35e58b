"""Run sglang.bench_serving without SGLang's CUDA libraries: `python sglang_bench.py --backend vllm …`.

Its client needs none of them, but its imports do.
"""

import runpy
import sys
import types


def stand_in(name: str, **names: object) -> None:
    """A module that has only these names."""
    module = types.ModuleType(name)
    for key, value in names.items():
        setattr(module, key, value)
    sys.modules[name] = module


if __name__ == "__main__":
    stand_in("sglang.srt.disaggregation.utils", FAKE_BOOTSTRAP_HOST="2.2.2.2")
    runpy.run_module("sglang.bench_serving", run_name="__main__", alter_sys=True)
