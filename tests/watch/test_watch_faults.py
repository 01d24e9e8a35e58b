"""The tables: what messages of servers and of what lies below them are taken for, one kind of fault after the other."""

# ruff: noqa: E501 - messages are as long as servers write them

import re

import pytest

from agent.core.model import Phase
from agent.watch import cause
from agent.watch.records import Record
from agent.watch.rules import TABLES, rules
from agent.watch.traces import Suspect

MESSAGES = (
    ("gpu-memory-occupied",Phase.DIST_INIT,"ValueError: Free memory on device (10.5/79.1 GiB) on startup is less than desired GPU memory utilization (0.9, 71.2 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes."),
    ("gpu-memory-occupied",Phase.PROFILE,"AssertionError: Error in memory profiling. Initial free memory 10 GiB, current free memory 20 GiB. This happens when other processes sharing the same container release GPU memory while vLLM is profiling during initialization."),
    ("oom-kv-cache",Phase.KV_CACHE,"ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine."),
    ("oom-kv-cache",Phase.KV_CACHE,"ValueError: The model's max seq len (131072) is larger than the maximum number of tokens that can be stored in KV cache (35888). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine."),
    ("oom-kv-cache",Phase.KV_CACHE,"ValueError: To serve at least one request with the models's max seq len (40960), (5.00 GiB KV cache is needed, which is larger than the available KV cache memory (2.12 GiB). Based on the available memory, the estimated maximum model length is 17360."),
    ("oom-kv-cache",Phase.KV_CACHE,"RuntimeError: Not enough memory. Please try to increase --mem-fraction-static."),
    ("oom-nccl",Phase.DIST_INIT,"torch.distributed.DistBackendError: NCCL error in: /pytorch/torch/csrc/distributed/c10d/NCCLUtils.cpp:77, unhandled cuda error, NCCL version 2.26.2\nncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 2 'out of memory'"),
    ("oom-nccl",Phase.DIST_INIT,"NCCL WARN Cuda failure 2 'out of memory'"),
    ("oom-nccl",Phase.DIST_INIT,"NCCL WARN Failed to CUDA calloc async 608 bytes"),
    ("host-oom-kill",Phase.LOAD_WEIGHTS,"Memory cgroup out of memory: Killed process 1234 (python3)"),
    ("host-oom-kill",Phase.LOAD_WEIGHTS,"ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory."),
    ("nccl-init",Phase.DIST_INIT,"torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:317, internal error - please report this issue to the NCCL developers, NCCL version 2.21.5"),
    ("nccl-init",Phase.DIST_INIT,"torch.distributed.DistBackendError: NCCL error: Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 1000"),
    ("nccl-init",Phase.DIST_INIT,"NCCL WARN Bootstrap : no socket interface found"),
    ("nccl-init",Phase.DIST_INIT,"ValueError: ProcessGroupNCCL is only supported with GPUs, no GPUs found!"),
    ("nccl-init",Phase.DIST_INIT,"NCCL WARN Call to ibv_modify_qp failed with error Connection timed out errno 110"),
    ("rendezvous-timeout",Phase.DIST_INIT,"torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (10.0.0.1, 50000)."),
    ("rendezvous-timeout",Phase.DIST_INIT,"RuntimeError: [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error"),
    ("rendezvous-timeout",Phase.DIST_INIT,"RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error"),
    ("port-in-use",Phase.DIST_INIT,"torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use"),
    ("port-in-use",Phase.ARGS,"OSError: [Errno 98] Address already in use"),
    ("port-in-use",Phase.DIST_INIT,"zmq.error.ZMQError: Address already in use (addr='tcp://127.0.0.1:5557')"),
    ("nccl-timeout",Phase.LOAD_WEIGHTS,"RuntimeError: Rank 0 failed to pass monitoredBarrier in 480000 ms"),
    ("shm-too-small",Phase.DIST_INIT,"OSError: [Errno 28] No space left on device: '/dev/shm/psm_1234'"),
    ("shm-too-small",Phase.LOAD_WEIGHTS,"RuntimeError: unable to write to file </torch_123_456>: No space left on device (28)"),
    ("symmetric-memory",Phase.DIST_INIT,"RuntimeError: CUDASymmetricMemory requires multicast support"),
    ("symmetric-memory",Phase.GRAPH_CAPTURE,"NCCL WARN Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401 'the operation cannot be performed in the present state'"),
    ("p2p-custom-allreduce",Phase.GRAPH_CAPTURE,"Failed: Cuda error /workspace/csrc/custom_all_reduce.cuh:368 'invalid argument'"),
    ("p2p-custom-allreduce",Phase.GRAPH_CAPTURE,"RuntimeError: CUDA error: peer access is not supported between these two devices"),
    ("p2p-custom-allreduce",Phase.DIST_INIT,"RuntimeError: CUDART error: peer access is not supported between these two devices"),
    ("deepep-nvshmem",Phase.LOAD_WEIGHTS,"RuntimeError: Failed: Assertion error csrc/deep_ep.cpp:146 'ibgda initialization failed'"),
    ("deepep-nvshmem",Phase.LOAD_WEIGHTS,"/nvshmem_src/src/host/init/init.cu:nvshmemi_check_state_and_init:1062: nvshmem initialization failed, exiting"),
    ("deepep-timeout",Phase.SERVING,"DeepEP timeout check failed: rank = 3, thread = 0"),
    ("deepep-timeout",Phase.SERVING,"RuntimeError: DeepEP error: CPU recv timeout"),
    ("ray-placement",Phase.DIST_INIT,"ValueError: Current node has no GPU available. current_node_resource={'CPU': 8.0}. vLLM engine cannot start without GPU."),
    ("ray-placement",Phase.DIST_INIT,"ValueError: The number of required GPUs exceeds the total number of available GPUs in the placement group."),
    ("ray-placement",Phase.DIST_INIT,"RuntimeError: Every node should have a unique IP address. Got 2 nodes with node ids"),
    ("gpu-arch-unsupported",Phase.GRAPH_CAPTURE,"RuntimeError: CUDA error: no kernel image is available for execution on the device"),
    ("gpu-arch-unsupported",Phase.CONFIG,"ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has compute capability 7.5."),
    ("gpu-arch-unsupported",Phase.LOAD_WEIGHTS,"ValueError: type fp8e4nv not supported in this architecture. The supported fp8 dtypes are ('fp8e4b15', 'fp8e5')"),
    ("gpu-arch-unsupported",Phase.LOAD_WEIGHTS,"RuntimeError: FlashAttention only supports Ampere GPUs or newer."),
    ("gpu-arch-unsupported",Phase.COMPILE,"ptxas fatal   : Value 'sm_121a' is not defined for option 'gpu-name'"),
    ("gpu-arch-unsupported",Phase.CONFIG,"ValueError: The quantization method fp8 is not supported for the current GPU. Minimum capability: 89. Current capability: 80."),
    ("kernel-compile",Phase.GRAPH_CAPTURE,"RuntimeError: PassManager::run failed"),
    ("kernel-compile",Phase.COMPILE,"torch._inductor.exc.InductorError: RuntimeError: Failed to run autotuning code block: PassManager::run failed"),
    ("kernel-compile",Phase.COMPILE,"torch._dynamo.exc.Unsupported: Attempted to call function marked as skipped"),
    ("jit-toolchain",Phase.GRAPH_CAPTURE,"RuntimeError: Ninja build failed. Ninja output:"),
    ("jit-toolchain",Phase.GRAPH_CAPTURE,"FileNotFoundError: [Errno 2] No such file or directory: 'ninja'"),
    ("jit-toolchain",Phase.COMPILE,"RuntimeError: Failed to find C compiler. Please specify via CC environment variable."),
    ("jit-toolchain",Phase.GRAPH_CAPTURE,"RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist"),
    ("jit-toolchain",Phase.COMPILE,"subprocess.CalledProcessError: Command '['/usr/bin/gcc', '/tmp/tmpab/main.c', '-O3', '-shared', '-fPIC', '-o', '/tmp/x.so', '-lcuda']' returned non-zero exit status 1."),
    ("jit-toolchain",Phase.COMPILE,"/tmp/tmpx/main.c:6:10: fatal error: Python.h: No such file or directory"),
    ("jit-toolchain",Phase.GRAPH_CAPTURE,"AssertionError: CUDA_HOME is not set"),
    ("kernel-assert",Phase.SERVING,"RuntimeError: CUDA error: device-side assert triggered"),
    ("kernel-assert",Phase.SERVING,"/pytorch/aten/src/ATen/native/cuda/IndexKernel.cu:93: operator(): block: [0,0,0], thread: [1,0,0] Assertion `-sizes[i] <= index && index < sizes[i] && \"index out of bounds\"` failed."),
    ("kernel-runtime",Phase.SERVING,"RuntimeError: CUDA error: CUBLAS_STATUS_EXECUTION_FAILED when calling `cublasGemmEx`"),
    ("kernel-runtime",Phase.GRAPH_CAPTURE,"RuntimeError: cutlass_moe_mm failed: Error Internal"),
    ("kernel-runtime",Phase.GRAPH_CAPTURE,"RuntimeError: CUDA error: invalid argument"),
    ("kernel-runtime",Phase.GRAPH_CAPTURE,"RuntimeError: CUDA error: operation failed due to a previous error during capture"),
    ("hardware-fault",Phase.SERVING,"NVRM: Xid (PCI:0000:17:00): 79, pid=1234, GPU has fallen off the bus."),
    ("hardware-fault",Phase.SERVING,"RuntimeError: CUDA error: uncorrectable ECC error encountered"),
    ("compile-cache",Phase.COMPILE,"FileNotFoundError: [Errno 2] No such file or directory: '/root/.triton/cache/abc/kernel.json'"),
    ("compile-cache",Phase.COMPILE,"FileNotFoundError: [Errno 2] No such file or directory: '/root/.cache/vllm/torch_compile_cache/abc/rank_0_0/x.py'"),
    ("shared-library-missing",Phase.IMPORT,"ImportError: libcudart.so.12: cannot open shared object file: No such file or directory"),
    ("shared-library-missing",Phase.IMPORT,"OSError: libnuma.so.1: cannot open shared object file: No such file or directory"),
    ("shared-library-missing",Phase.IMPORT,"ImportError: libGL.so.1: cannot open shared object file: No such file or directory"),
    ("native-lib-mismatch",Phase.IMPORT,"ImportError: /usr/lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.32' not found (required by x.so)"),
    ("native-lib-mismatch",Phase.IMPORT,"ImportError: /opt/venv/lib/python3.12/site-packages/vllm/_C.abi3.so: undefined symbol: _ZN3c106ivalue14ConstantString6createENSt7"),
    ("native-lib-mismatch",Phase.LOAD_WEIGHTS,"AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'"),
    ("native-lib-mismatch",Phase.IMPORT,"ImportError: [sgl_kernel] CRITICAL: Could not load any common_ops library!"),
    ("native-lib-mismatch",Phase.IMPORT,"RuntimeError: operator torchvision::nms does not exist"),
    ("native-lib-mismatch",Phase.IMPORT,"ValueError: numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C header, got 88 from PyObject"),
    ("import-error",Phase.IMPORT,"ModuleNotFoundError: No module named 'triton.ops'"),
    ("import-error",Phase.IMPORT,"ImportError: cannot import name 'LogitsWarper' from 'x'"),
    ("import-error",Phase.LOAD_WEIGHTS,"ImportError: Please install bitsandbytes>=0.46.1 via `pip install bitsandbytes>=0.46.1` to use bitsandbytes quantizer."),
    ("transformers-version",Phase.IMPORT,"ImportError: cannot import name 'AutoModelForImageTextToText' from 'transformers' (/x/transformers/__init__.py)"),
    ("transformers-version",Phase.CONFIG,"AttributeError: Qwen2Tokenizer has no attribute all_special_tokens_extended"),
    ("driver-cuda-mismatch",Phase.DIST_INIT,"RuntimeError: The NVIDIA driver on your system is too old (found version 12020). Please update your GPU driver"),
    ("driver-cuda-mismatch",Phase.CONFIG,"RuntimeError: Failed to infer device type, please set the environment variable `VLLM_LOGGING_LEVEL=DEBUG` to turn on verbose logging"),
    ("driver-cuda-mismatch",Phase.DIST_INIT,"RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / cuda driver combination"),
    ("driver-cuda-mismatch",Phase.GRAPH_CAPTURE,"RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain."),
    ("driver-cuda-mismatch",Phase.CONFIG,"RuntimeError: No CUDA GPUs are available"),
    ("python-env",Phase.DIST_INIT,"RuntimeError: An attempt has been made to start a new process before the current process has finished its bootstrapping phase."),
    ("python-env",Phase.IMPORT,"ValueError: signal only works in main thread of the main interpreter"),
    ("host-kernel",Phase.DIST_INIT,"RuntimeError: can't start new thread"),
    ("host-kernel",Phase.DIST_INIT,"OSError: [Errno 24] Too many open files"),
    ("host-permissions",Phase.IMPORT,"PermissionError: [Errno 13] Permission denied: '/.cache'"),
    ("disk-io",Phase.LOAD_WEIGHTS,"OSError: [Errno 28] No space left on device"),
    ("disk-io",Phase.LOAD_WEIGHTS,"OSError: [Errno 122] Disk quota exceeded"),
    ("cli-arguments",Phase.ARGS,"api_server.py: error: argument --tool-call-parser: invalid choice: 'qwen3' (choose from 'hermes', 'mistral')"),
    ("cli-arguments",Phase.ARGS,"error: unrecognized arguments: --enable-foo"),
    ("config-validation",Phase.CONFIG,"ValueError: User-specified max_model_len (32768) is greater than the derived max_model_len (max_position_embeddings=8192 or model_max_length=None in model's config.json)."),
    ("config-validation",Phase.CONFIG,"ValueError: max_num_batched_tokens (2048) is smaller than max_model_len (4096). This effectively limits the maximum sequence length to max_num_batched_tokens"),
    ("config-validation",Phase.CONFIG,"ValueError: rope_scaling must be a dictionary with two fields, type and factor, got {'factor': 8.0}"),
    ("quantization-config",Phase.CONFIG,"ValueError: Quantization method specified in the model config (compressed-tensors) does not match the quantization method specified in the `quantization` argument (fp8)."),
    ("quantization-config",Phase.CONFIG,"ValueError: Unknown quantization method: mxfp4. Must be one of ['aqlm', 'awq']."),
    ("quantization-config",Phase.LOAD_WEIGHTS,"ValueError: Marlin does not support weight_bits = uint4. Only types = [] are supported (for group_size = 128, min_capability = 75, zp = True)."),
    ("tp-sharding",Phase.CONFIG,"ValueError: Total number of attention heads (28) must be divisible by tensor parallel size (8)."),
    ("tp-sharding",Phase.LOAD_WEIGHTS,"ValueError: The output_size of gate's and up's weight = 192 is not divisible by weight quantization block_n = 128."),
    ("tp-sharding",Phase.LOAD_WEIGHTS,"ValueError: The input size is not aligned with the quantized weight shape. This can be caused by too large tensor parallel size."),
    ("tp-sharding",Phase.LOAD_WEIGHTS,"AssertionError: 151936 is not divisible by 7"),
    ("moe-expert-sharding",Phase.LOAD_WEIGHTS,"ValueError: Tensor parallel size 16 is greater than the number of experts 8."),
    ("moe-expert-sharding",Phase.LOAD_WEIGHTS,"AssertionError: num_experts 160 must be divisible by ep_size 12"),
    ("spec-decode-config",Phase.CONFIG,"ValueError: Speculative decoding with EAGLE requires draft model path"),
    ("spec-decode-config",Phase.LOAD_WEIGHTS,"AttributeError: 'KimiK25ForConditionalGeneration' object has no attribute 'set_eagle3_layers_to_capture'"),
    ("weights-name-mismatch",Phase.LOAD_WEIGHTS,"KeyError: 'model.layers.0.self_attn.qkv_proj.weight_scale'"),
    ("weights-name-mismatch",Phase.LOAD_WEIGHTS,"ValueError: There is no module or parameter named 'language_model' in Qwen2ForCausalLM"),
    ("weights-name-mismatch",Phase.LOAD_WEIGHTS,"ValueError: Following weights were not initialized from checkpoint: {'model.layers.1.x'}"),
    ("weights-name-mismatch",Phase.LOAD_WEIGHTS,"RuntimeError: The size of tensor a (4096) must match the size of tensor b (8192) at non-singleton dimension 0"),
    ("weights-name-mismatch",Phase.LOAD_WEIGHTS,"AssertionError: Attempted to load weight (torch.Size([1])) into parameter (torch.Size([2]))"),
    ("model-arch-unsupported",Phase.CONFIG,"ValueError: Model architectures ['Qwen3NextForCausalLM'] are not supported for now. Supported architectures: dict_keys([])"),
    ("model-arch-unsupported",Phase.CONFIG,"ValueError: Model architectures ['X'] failed to be inspected. Please check the logs for more details."),
    ("model-arch-unsupported",Phase.LOAD_WEIGHTS,"ValueError: Unsupported architectures: BailingMoeV2ForCausalLM. Supported list: []"),
    ("checkpoint-corrupt",Phase.LOAD_WEIGHTS,"safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge"),
    ("checkpoint-corrupt",Phase.LOAD_WEIGHTS,"RuntimeError: Cannot find any model weights with `/models/x`"),
    ("checkpoint-corrupt",Phase.LOAD_WEIGHTS,"_pickle.UnpicklingError: invalid load key, 'v'."),
    ("checkpoint-corrupt",Phase.LOAD_WEIGHTS,"llama_model_load: error loading model: tensor 'blk.39.ffn_down.weight' data is not within the file bounds, model is corrupted or incomplete"),
    ("tokenizer",Phase.CONFIG,"ValueError: Couldn't instantiate the backend tokenizer from one of: (1) a `tokenizers` library serialization file"),
    ("tokenizer",Phase.CONFIG,"Exception: data did not match any variant of untagged enum ModelWrapper at line 757443 column 3"),
    ("tokenizer",Phase.CONFIG,"ValueError: Tokenizer class Qwen2TokenizerX does not exist or is not currently imported."),
    ("trust-remote-code",Phase.CONFIG,"ValueError: Loading /m requires you to execute the configuration file in that repo on your local machine. Make sure you have read the code there to avoid malicious use, then set the option `trust_remote_code=True` to remove this error."),
    ("trust-remote-code",Phase.CONFIG,"ValueError: The repository for /m contains custom code which must be executed to correctly load the model."),
    ("hub-access",Phase.CONFIG,"OSError: You are trying to access a gated repo.\nMake sure to have access to it at https://huggingface.co/meta-llama/Llama-3.1-8B."),
    ("hub-access",Phase.CONFIG,"huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/models/x'."),
    ("hub-access",Phase.CONFIG,"OSError: Can't load the configuration of '/m'. If you were trying to load it from 'https://huggingface.co/models', make sure you don't have a local directory with the same name."),
    ("hub-access",Phase.CONFIG,"huggingface_hub.utils._errors.LocalEntryNotFoundError: An error happened while trying to locate the file on the Hub and we cannot find the requested files in the local cache."),
    ("hub-access",Phase.CONFIG,"requests.exceptions.ConnectionError: (MaxRetryError(\"HTTPSConnectionPool(host='huggingface.co', port=443): Max retries exceeded with url: /x (Caused by NewConnectionError(': Failed to establish a new connection: [Errno 101] Network is unreachable'))\"))"),
    ("health-check-proxy",Phase.WARMUP,"requests.exceptions.ProxyError: HTTPConnectionPool(host='proxy', port=3128)"),
    ("illegal-memory-access",Phase.SERVING,"torch.AcceleratorError: CUDA error: an illegal memory access was encountered"),
    ("native-crash",Phase.GRAPH_CAPTURE,"!!!!!!! Segfault encountered !!!!!!!"),
    ("hang-watchdog",Phase.SERVING,"TimeoutError: RPC call to execute_model timed out."),
    ("oom-graph-capture",Phase.GRAPH_CAPTURE,"Exception: Capture cuda graph failed: CUDA out of memory. Tried to allocate 20.00 MiB."),
    ("oom-runtime",Phase.SERVING,"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 79 GiB"),
    ("oom-weights",Phase.LOAD_WEIGHTS,"RuntimeError: CUDA error: out of memory"),
    ("oom-weights",Phase.LOAD_WEIGHTS,"llama_model_load: error loading model: unable to allocate CUDA0 buffer"),
    ("model-runtime-assert",Phase.SERVING,"RuntimeError: shape '[1, 8]' is invalid for input of size 4"),
)  # fmt: skip
HARMLESS = (
    "Custom allreduce is disabled because it's not supported on more than two PCIe-only GPUs.",
    "Ignore import error when loading sglang.srt.models.x: No module named 'helion'",
    "host0:1:1 [0] NCCL INFO NET/Plugin: Plugin load returned 2 : libnccl-net.so: cannot open shared object file",
    "The following error message 'operation scheduled before its operands' can be ignored.",
    "WARNING: The object store is using /tmp instead of /dev/shm because /dev/shm has only 47824896 bytes available.",
    "Device 0: NVIDIA GeForce RTX 5090, compute capability 12.0, VMM: yes",
)


def suspect(text: str, *frames: str) -> Suspect:
    first, *below = text.split("\n")
    rows = [Record(number + 2, row, row) for number, row in enumerate(below)]
    native = re.match(r"[\w.]*(Error|Exception|Unsupported|OutOfResources)\b", first) is None
    return Suspect(
        line=Record(1, first, first), text=first, rank=None, opened=1, frames=list(frames), below=rows, native=native
    )


@pytest.mark.parametrize(("category", "phase", "text"), MESSAGES)
def test_what_a_message_is_taken_for(category: str, phase: Phase, text: str) -> None:
    one = suspect(text)
    judged = cause.judge(one, phase, went_on=False, was_ready=False)
    assert judged.fault is not None
    assert rules().category(judged.fault, phase) == category
    assert judged.score > 3.4, judged.aside
    assert not one.native or rules().native_weight(one.text)


@pytest.mark.parametrize(("category", "text", "frame"), [
    ("transformers-version", "KeyError: 'qwen3_moe'", "/x/transformers/models/auto/configuration_auto.py:9 __getitem__"),
    ("symmetric-memory", "KeyError: 12", "/x/device_communicators/torch_symm_mem.py:83 __init__"),
])  # fmt: skip
def test_what_frames_tell_of_a_message_that_says_nothing(category: str, text: str, frame: str) -> None:
    judged = cause.judge(suspect(text, frame), Phase.CONFIG, went_on=False, was_ready=False)
    assert judged.fault is not None and judged.fault.category == category


@pytest.mark.parametrize("text", HARMLESS)
def test_harmless_lines_name_no_fault(text: str) -> None:
    assert not rules().native_weight(text)


def test_the_tables_are_whole() -> None:
    table = rules()
    assert {fault.category for fault in table.faults} >= {"oom", "nccl-init", "port-in-use", "kernel-compile"}
    assert set(table.memory_by_phase) == set(Phase)
    for fault in table.faults:
        assert "{text}" in fault.reason and fault.means and fault.remedies, fault.category
    assert len(TABLES) == 5
