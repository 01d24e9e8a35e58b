"""Which GPUs of its host a launch uses: those that its environment shows it, and as many as its flags ask for. Pure."""

from collections.abc import Sequence

from agent.core.model import Gpu, LaunchConfig
from agent.playbook.model import Args
from agent.research.common import ResearchError

_TP = ("tp", "tp-size", "tensor-parallel-size")
_PP = ("pp", "pp-size", "pipeline-parallel-size")
_DP = ("dp", "dp-size", "data-parallel-size")
_LOCAL_DP = ("dpl", "data-parallel-size-local", *_DP)


def visible_gpus(config: LaunchConfig, gpus: Sequence[Gpu]) -> Sequence[Gpu]:
    """Those that the launch can see, in its own order. Raises ResearchError where they are not named by numbers."""
    named = config.env.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        return gpus
    by_number = {str(gpu.index): gpu for gpu in gpus}
    shown = []
    for word in map(str.strip, named.split(",")):
        if word.startswith(("GPU-", "MIG-")):
            raise ResearchError(f"which GPUs CUDA_VISIBLE_DEVICES={named} means is not known")
        if word not in by_number:
            break  # as CUDA does: what stands behind a number that it does not have is not seen either
        shown.append(by_number[word])
    return shown


def used_gpus(config: LaunchConfig, gpus: Sequence[Gpu]) -> Sequence[Gpu]:
    """Those that the launch would use; all that it can see where its flags do not tell how many. Raises likewise."""
    shown, count = visible_gpus(config, gpus), _wanted(config)
    if count is None:
        return shown
    # SGLang alone has these two.
    first, step = _number(config.args, ("base-gpu-id",), 0), _number(config.args, ("gpu-id-step",), 1)
    return shown if first is None or not step else shown[first::step][:count]


def _wanted(config: LaunchConfig) -> int | None:
    """How many GPUs of one host the flags ask for; None where they do not tell."""
    if config.kind == "llamacpp" or "config" in config.args:
        return None
    args = config.args
    if config.kind == "vllm":
        copies = _number(args, _LOCAL_DP, 1)
    else:
        # With attention shared out by requests, the copies live on the GPUs of one tensor-parallel group.
        copies = 1 if args.get("enable-dp-attention") is True else _number(args, _DP, 1)
    tp, pp, hosts = _number(args, _TP, 1), _number(args, _PP, 1), _number(args, ("nnodes",), 1)
    if not (tp and pp and copies and hosts):
        return None
    return -(-tp * pp * copies // hosts)


def _number(args: Args, names: Sequence[str], default: int) -> int | None:
    """The value of the flag under any of its names; None where it is no number."""
    value = next((args[name] for name in names if name in args), str(default))
    return int(value) if isinstance(value, str) and value.isdigit() else None
