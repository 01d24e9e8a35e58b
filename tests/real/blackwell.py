"""What commands and files say on a host of the story: eight RTX PRO 6000 on PCIe, with their driver as it comes.

Two GPUs share a bridge, four a socket, as nvidia-smi has it of an ASUS ESC8000A (local-inference-lab/rtx6kpro,
logs/asus-report/nvidia_topo.log).
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from agent.core.model import Gpu

_GPU = Gpu(index=0, name="RTX PRO 6000 Blackwell", sm_major=12, sm_minor=0, memory_mib=97887, driver="580.95.05")
GPUS = tuple(replace(_GPU, index=index) for index in range(8))
_KIMI = {
    "architectures": ["KimiK25ForConditionalGeneration"],
    "text_config": {
        "num_attention_heads": 64,
        "n_routed_experts": 384,
        "moe_intermediate_size": 2048,
        "quantization_config": {"quant_method": "compressed-tensors"},
    },
}
_MODELS = {
    "Kimi-K2.5": _KIMI,
    "kimi-k2.5-eagle3": {"architectures": ["LlamaForCausalLMEagle3"]},
    "kimi-k2.5-eagle3-mla": {"architectures": ["Eagle3DeepseekV2ForCausalLM"]},
}
_NCCL = ("nvidia-nccl-cu12", "2.27.5")
"""What torch 2.9.1 asks for. The torch of 0.5.23 has an NCCL for CUDA 13."""


def furnish(home: Path, compilers: Iterable[str]) -> None:
    """Models, an NCCL in `packages`, and for each compiler a folder of commands named after its release."""
    for model, config in _MODELS.items():
        (home / "models" / model).mkdir(parents=True)
        (home / "models" / model / "config.json").write_text(json.dumps(config))
    name, version = _NCCL
    info = home / "packages" / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    for release in compilers:
        folder = home / f"bin-{release}"
        folder.mkdir()
        _place(folder / "nvcc", f"echo 'Cuda compilation tools, release {release}, V{release}.1'")
        _place(folder / "nvidia-smi", _SMI)
        _place(folder / "cat", _CAT)


def _place(file: Path, script: str) -> None:
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def _link(a: int, b: int) -> str:
    return " X " if a == b else "PIX" if a // 2 == b // 2 else "NODE" if a // 4 == b // 4 else "SYS"


def _peer(a: int, b: int) -> str:
    return " X " if a == b else "OK"


def _matrix(cells: Sequence[Sequence[str]]) -> str:
    head = "".join(f"\tGPU{index}" for index in range(8))
    return "\n".join([head, *("\t".join([f"GPU{index}", *row]) for index, row in enumerate(cells))])


def _rows(*values: str) -> str:
    return "\n".join(", ".join([str(index), *values]).replace("#", str(index)) for index in range(8))


_SMI = f"""case "$*" in
"topo -m") echo '{_matrix([[_link(a, b) for b in range(8)] for a in range(8)])}' ;;
"topo -p2p r") echo '{_matrix([[_peer(a, b) for b in range(8)] for a in range(8)])}' ;;
*--query-compute-apps*) ;;
*uuid,memory.used*) echo '{_rows("GPU-#", "4")}' ;;
*pci.bus_id*) echo '{_rows("00000000:0#:00.0", "5", "16", "600.00")}' ;;
*) echo '| NVIDIA-SMI 580.95.05   Driver Version: 580.95.05   CUDA Version: 13.0 |' ;;
esac"""
_CAT = """case $1 in
/proc/driver/nvidia/params) echo 'RegistryDwords: ""' ;;
*) exec /bin/cat "$@" ;;
esac"""
