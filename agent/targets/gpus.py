"""The GPUs of a target, as its nvidia-smi lists them."""

from agent.core.model import Gpu
from agent.ports import CommandResult, TargetUnusable
from agent.text import decode, one_line

SMI = (
    "nvidia-smi",
    "--query-gpu=index,name,compute_cap,memory.total,driver_version",
    "--format=csv,noheader,nounits",
)
NO_GPUS = {"CUDA_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "", "ROCR_VISIBLE_DEVICES": ""}
"""What hides the GPUs from a command."""


def smi_lines(result: CommandResult, limit_s: float) -> list[str]:
    """What nvidia-smi said, which had `limit_s` for it; nothing where it has no GPUs. Raises TargetUnusable."""
    text = decode(result.output, 1 << 16)
    if result.timed_out:
        hint = "a GPU or its driver hangs; look at dmesg, a reboot may be needed"
        raise TargetUnusable(f"nvidia-smi gave no answer in {limit_s:.0f} s", hint)
    if "No devices were found" in text:
        return []
    if result.exit_code != 0:
        raise TargetUnusable(f"nvidia-smi failed: {one_line(text)}", "repair the driver of the GPUs")
    return [line for line in text.splitlines() if line.strip()]


def gpus_of(result: CommandResult, limit_s: float) -> tuple[Gpu, ...]:
    """The GPUs in the answer of SMI, which had `limit_s` for it. Raises TargetUnusable where it failed."""
    return tuple(_gpu(line) for line in smi_lines(result, limit_s))


def number_of(cell: str) -> float | None:
    """A number of nvidia-smi, or None for `[N/A]` and the like."""
    try:
        value = float(cell)
    except ValueError:
        return None
    return value if 0 <= value < 1e9 else None


def _gpu(line: str) -> Gpu:
    fields = [field.strip() for field in line.split(",")]
    try:
        major, _, minor = fields[-3].partition(".")
        memory = int(fields[-2]) if fields[-2].isdigit() else 0  # "[N/A]" where the GPU shares the host's memory
        return Gpu(
            index=int(fields[0]),
            name=", ".join(fields[1:-3]),
            sm_major=int(major),
            sm_minor=int(minor),
            memory_mib=memory,
            driver=fields[-1],
        )
    except (ValueError, IndexError) as err:
        raise TargetUnusable(f"nvidia-smi says {one_line(line)}", "a driver that knows compute_cap is needed") from err
