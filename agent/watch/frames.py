"""The phase of a load in which a call stack was: told by functions that only run there."""

import re
from collections.abc import Sequence

from agent.core.model import Phase

ORDER = {phase: index for index, phase in enumerate(Phase)}

_SERVING = re.compile(
    r" (event_loop\w*|forward_thread_func_?|run_busy_loop|_process_engine_step|run_engine_loop|run_engine_step"
    r"|engine_step|process_batch_result\w*|update_slots|handle_loop)$"
)
# Innermost frame first: the first that has a meaning decides.
_PHASES = tuple(
    (re.compile(pattern), phase)
    for pattern, phase in (
        (r"_wait_and_warmup|_execute_server_warmup|server_warmup", Phase.WARMUP),
        (r"graph_runner\w*\.py|cuda_graph_setup| (capture\w*|init_cuda_graphs|init_device_graphs|_warmup_and_capture)$",
         Phase.GRAPH_CAPTURE),
        (r" (profile_run|profile_\w*|determine_num_available_blocks|determine_available_memory|_dummy_run)$",
         Phase.PROFILE),
        (r" compile_or_warm_up_model$|kernel_warmup", Phase.GRAPH_CAPTURE),
        (r" (alloc_memory_pool|init_memory_pool|init_kv_cache\w*|initialize_cache|initialize_from_config"
         r"|_?initialize_kv_cache\w*|get_kv_cache_config\w*|_?check_enough\w*|_?allocate_kv\w*|profile_max_num_token)$"
         r"|/memory_pool\.py|cache_engine\.py", Phase.KV_CACHE),
        (r" (load_model|get_model|load_weights\w*|weight_loader\w*|create_weights|_?initialize_model"
         r"|process_weights_after_loading)$|/model_loader/", Phase.LOAD_WEIGHTS),
        (r" (init_torch_distributed|init_distributed\w*|init_device|init_process_group|init_worker_distributed\w*"
         r"|initialize_model_parallel|_init_workers_ray|initialize_ray_cluster|_tcp_rendezvous_handler)$",
         Phase.DIST_INIT),
        (r"server_args\.py:\d+ (?!prepare|from_cli|add_cli|<module>)| (create_engine_config|create_model_config"
         r"|from_server_args|get_config|init_tokenizer\w*|get_tokenizer|get_hf_\w+|_verify\w*|verify_\w+)$"
         r"|/arg_groups/|configs?/model_config|model_config\.py|(TokenizerManager|tokenizer_manager)\S* __init__",
         Phase.CONFIG),
        (r"argparse\.py", Phase.ARGS),
    )
)  # fmt: skip


def later(one: Phase, other: Phase) -> Phase:
    """The later of two phases."""
    return one if ORDER[one] >= ORDER[other] else other


def phase_of_frames(frames: Sequence[str]) -> Phase | None:
    """The phase that the frames (`file:line function`, innermost last) tell, if they tell one."""
    if any(_SERVING.search(frame) for frame in frames):
        return Phase.SERVING
    for frame in reversed(frames):
        for pattern, phase in _PHASES:
            if pattern.search(frame):
                return phase
    return None
