"""From resolved arguments to a running launcher: the rules of the world, the state of the GPUs, early failures."""

import asyncio
import dataclasses
import logging
import os
import sys
from pathlib import Path
from typing import Any

from agent.sim import failures
from agent.sim.children import gpu_of_rank
from agent.sim.effects import Fail, Raised
from agent.sim.plan import Setting
from agent.sim.procs import pass_time, read_gpu_states
from agent.sim.rules import Outcome, outcome_of
from agent.sim.server import Launcher
from agent.sim.venvs import SITE, load_site
from agent.sim.world import World

logger = logging.getLogger(__name__)


def serve(server_args: Any) -> None:
    """Run the server with these resolved arguments until it ends."""
    root, environment, world = load_site(Path(sys.prefix))
    assert environment is not None
    outcome = outcome_of(world, vars(server_args), os.environ, environment)
    for name, value in outcome.effective.items():
        setattr(server_args, name, value)
    args = dict(vars(server_args))
    for line in outcome.logs:
        if line.phase == "args":
            logger.warning("%s", line.line)
    pass_time(root / ".sim" / "ledger.jsonl", "args", world.seconds("args"))
    site = Path(sys.prefix) / SITE
    if outcome.fail and outcome.fail.phase == "args":
        fail = outcome.fail
        sys.stderr.write(failures.traceback_text(site, Raised(fail.exception, fail.message, fail.frames)))
        raise SystemExit(fail.exit)
    logger.info("server_args=%r", server_args)
    outcome = _with_dirty_gpus(root, world, outcome, args)
    setting = Setting(world, world.environments[environment], outcome, args, site, _shards(root, world, args))
    for text in setting.words.resolved():
        logger.info("%s", text)
    pass_time(root / ".sim" / "ledger.jsonl", "config", world.seconds("config"))
    raise SystemExit(asyncio.run(_run(root, setting, environment)))


async def _run(root: Path, setting: Setting, environment: str) -> int:
    return await Launcher(root, setting, environment).run()


def _shards(root: Path, world: World, args: dict[str, Any]) -> int:
    folder = Path(args["model_path"])
    known = any(root / model.path == folder for model in world.models)
    return len(list(folder.glob("*.safetensors"))) if known else world.shards


def _with_dirty_gpus(root: Path, world: World, outcome: Outcome, args: dict[str, Any]) -> Outcome:
    """Memory that another server still holds decides the fate of this one, whatever its flags are."""
    ranks = world.ranks or int(args["tp_size"]) * int(args["pp_size"])
    held = dict.fromkeys((gpu_of_rank(rank, args) for rank in range(ranks)), 0)
    for state in read_gpu_states(str(root / ".sim" / "gpu")):
        if state["gpu"] in held:
            held[state["gpu"]] += state["used_mib"]
    free = {gpu: (world.gpu.memory_mib - used) / 1024 for gpu, used in held.items()}
    memory = world.memory
    needed = memory.context_gib + memory.weights_gib + memory.kv_gib + memory.graph_gib
    least, most = min(free.values()), max(free.values())
    if least < most * 0.9:
        text = "The memory capacity is unbalanced. Some GPUs may be occupied by other processes. "
        text += f"min_per_gpu_memory={least}, local_gpu_memory={most}, local_gpu_memory * 0.9={most * 0.9}"
        frames = ((failures.RUNNER, "init_torch_distributed", "raise RuntimeError(msg)"),)
        lucky = tuple(rank for rank, gpu in enumerate(held) if free[gpu] * 0.9 > least)
        return dataclasses.replace(outcome, fail=Fail("dist-init", at=1, ranks=lucky, message=text, frames=frames))
    if least < needed:
        total = world.gpu.memory_mib / 1024
        text = (
            f"CUDA out of memory. Tried to allocate 1.31 GiB. GPU 0 has a total capacity of {total:.2f} GiB of which "
        )
        text += "812.00 MiB is free. Including non-PyTorch memory, this process has less than it needs."
        return dataclasses.replace(outcome, fail=Fail("load-weights", exception="torch.OutOfMemoryError", message=text))
    return outcome
