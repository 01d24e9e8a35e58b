"""How many weight files the index of a model lists: a file that is missing is no error to the servers."""

import json

from agent.ports import Target, TargetUnusable

_INDEX = "model.safetensors.index.json"
_LIMIT = 64 << 20


async def indexed_shards(target: Target, model: str) -> int | None:
    """The number of different files in the index of a model folder on the target; None where there is no index."""
    if not model.startswith(("/", "~/")):
        return None
    try:
        index = json.loads(await target.read_file(f"{model.rstrip('/')}/{_INDEX}", limit=_LIMIT))
    except (TargetUnusable, ValueError, RecursionError):
        return None
    weights = index.get("weight_map") if isinstance(index, dict) else None
    return len({str(file) for file in weights.values()}) if isinstance(weights, dict) else None
