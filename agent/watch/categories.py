"""The kinds of faults and how they are told from the line that names the cause. First match wins."""

import re

from agent.core.model import Phase

_TABLE: tuple[tuple[str, str], ...] = (
    # configuration
    (r"error: (unrecognized arguments|ambiguous option|argument |the following arguments)", "cli-arguments"),
    (r"\[Errno 98\]|ddress already in use", "port-in-use"),
    (r"is only supported with|only supports|requires --[\w-]+|must be (set|specified) (with|when)", "cli-arguments"),
    (r"no algorithm/protocol available|NCCL error: invalid usage", "cli-arguments"),
    (r"trust[_-]remote[_-]code", "trust-remote-code"),
    (r"does not recognize this architecture", "transformers-version"),
    (r"set_eagle3_layers|^.{0,80}([Ss]peculative|draft model)", "spec-decode-config"),
    (r"architectures? \[.*(not supported|are not)|Model architecture", "model-arch-unsupported"),
    (r"HfHub|RepositoryNotFound|LocalEntryNotFound|huggingface\.co|GatedRepo|HFValidation|401 Client", "hub-access"),
    (r"[Ee]rror while deserializing header|SafetensorError|invalid load key|checkpoint .*(corrupt|truncated)",
     "checkpoint-corrupt"),
    (r"(heads?|num_heads\w*|head_num).*(divisible|%)|not divisible by|% ?(attn_)?tp_size|divide\(", "tp-sharding"),
    (r"experts?\b.*(divisible|%)|% ?(moe_)?ep_size", "moe-expert-sharding"),
    (r"[Qq]uantization|quant_method|quant_config", "quantization-config"),
    (r"KeyError: '.*(weight|scale|bias|layers\.\d+)|no module or parameter named|not found in params_dict",
     "weights-name-mismatch"),
    (r"^.{0,60}[Tt]okenizer", "tokenizer"),
    # memory
    (r"memory capacity is unbalanced|is less than desired GPU memory utilization|occupied by other processes",
     "gpu-memory-occupied"),
    (r"no GPU memory for the KV cache|Not enough memory. Please try to increase --mem-fraction|No available memory for "
     r"the cache blocks|larger than the maximum number of tokens that can be stored in KV cache|KV cache is needed",
     "oom-kv-cache"),
    (r"compute buffer|graph_reserve|cudaMalloc failed: out of memory", "oom-compute-buffer"),
    (r"NCCL.*out of memory|ncclUnhandledCudaError.*memory", "oom-nccl"),
    # communication
    (r"/dev/shm|shared memory segment|Bus error", "shm-too-small"),
    (r"symm_mem|symmetric memory", "symmetric-memory"),
    (r"custom_all_?reduce|peer access|[Pp]2[Pp]", "p2p-custom-allreduce"),
    (r"DeepEP.*timeout|timeout.*(dispatch|combine)", "deepep-timeout"),
    (r"(DeepEP is not|No module named)|ImportError: cannot import", "import-error"),
    (r"nvshmem|DeepEP/csrc|internode", "deepep-nvshmem"),
    (r"[Pp]lacement group|ray\.\w*.*resources", "ray-placement"),
    (r"Watchdog caught collective operation timeout|ran for \d+ milliseconds before timing out", "nccl-timeout"),
    (r"DistStoreError|client socket has timed out|TCPStore|[Rr]endezvous|wait timeout after", "rendezvous-timeout"),
    (r"forked subprocess|PYTHONPATH", "python-env"),
    (r"NCCL (error|WARN)|ncclSystemError|ncclInternalError|DistBackendError", "nccl-init"),
    # GPU code
    (r"no kernel image|No supported CUDA arch|SM ?1\d\.x requires|not supported on (this )?(GPU|device)"
     r"|compute capabil", "gpu-arch-unsupported"),
    (r"driver version is insufficient|forward compatibility|driver.*too old", "driver-cuda-mismatch"),
    (r"ninja|nvcc|CUDA_HOME|jit.*(build|compil)|Error building extension", "jit-toolchain"),
    (r"OutOfResources|CompilationError|BackendCompilerFailed|arange's range|PTXAS|ptxas", "kernel-compile"),
    (r"illegal memory access|misaligned address", "illegal-memory-access"),
    (r"device-side assert|Assertion `.*` failed", "kernel-assert"),
    (r"Segmentation fault|SIGSEGV|SIGABRT|SIGILL|SIGFPE|Caught signal|core dumped", "native-crash"),
    (r"ECC|Xid|fallen off the bus|hardware", "hardware-fault"),
    (r"CUDA error|CUDA Error|CUDNN|CUBLAS", "kernel-runtime"),
    (r"torch_compile_cache|inductor.*cache|cache_dir", "compile-cache"),
    # software
    (r"undefined symbol|GLIBC|version `", "native-lib-mismatch"),
    (r"cannot open shared object file", "shared-library-missing"),
    (r"disk I/O error|No space left|Input/output error", "disk-io"),
    (r"Permission denied|Operation not permitted", "host-permissions"),
    (r"ModuleNotFoundError|ImportError", "import-error"),
    (r"res=<Response \[50[234]\]>", "health-check-proxy"),
    (r"[Ww]atchdog timeout", "hang-watchdog"),
    (r"not a valid JSON file|validation errors? for", "config-validation"),
)  # fmt: skip
_COMPILED = tuple((re.compile(pattern), category) for pattern, category in _TABLE)
_OUT_OF_MEMORY = re.compile(r"OutOfMemoryError|(CUDA|HIP|GPU).*out of memory|hipErrorOutOfMemory")
_MEMORY_BY_PHASE = {
    Phase.KV_CACHE: "oom-kv-cache",
    Phase.PROFILE: "oom-profile",
    Phase.COMPILE: "oom-profile",
    Phase.GRAPH_CAPTURE: "oom-graph-capture",
    Phase.WARMUP: "oom-runtime",
    Phase.READY: "oom-runtime",
    Phase.SERVING: "oom-runtime",
}
_NOT_BEFORE = {
    "oom-kv-cache": Phase.KV_CACHE,
    "oom-compute-buffer": Phase.KV_CACHE,
    "transformers-version": Phase.CONFIG,
    "model-arch-unsupported": Phase.CONFIG,
    "config-validation": Phase.CONFIG,
    "rendezvous-timeout": Phase.DIST_INIT,
    "shm-too-small": Phase.DIST_INIT,
    "nccl-init": Phase.DIST_INIT,
    "oom-weights": Phase.LOAD_WEIGHTS,
    "checkpoint-corrupt": Phase.LOAD_WEIGHTS,
    "weights-name-mismatch": Phase.LOAD_WEIGHTS,
}


def category_of(text: str, phase: Phase) -> str | None:
    """The kind of fault that the text names, or None where it names none that we know."""
    if _OUT_OF_MEMORY.search(text) and "NCCL" not in text:
        return _MEMORY_BY_PHASE.get(phase, "oom-weights")
    return next((category for pattern, category in _COMPILED if pattern.search(text)), None)


def not_before(category: str) -> Phase:
    """The first phase in which such a fault can happen."""
    return _NOT_BEFORE.get(category, Phase.LAUNCH)
