"""How each server version words its startup log. `{elapsed}` is filled in by the rank."""

from dataclasses import dataclass

CACHE_TYPES = {"fp8_e4m3": "float8_e4m3fn", "fp8_e5m2": "float8_e5m2", "fp4_e2m1": "float4_e2m1fn_x2"}


def cache_dtype(flag: str) -> str:
    """What the log calls a --kv-cache-dtype."""
    return f"torch.{CACHE_TYPES.get(flag, 'bfloat16')}"


@dataclass(frozen=True)
class Dialect:
    """Log lines of SGLang up to 0.5.10."""

    draft_loads_first: bool = False
    bar: str = "Loading safetensors checkpoint shards"
    bar_newline: bool = True

    def resolved(self) -> list[str]:
        """Lines of the launcher behind its dump of the arguments."""
        return []

    def dist_begin(self, rank: int, nccl: str) -> list[str]:
        """First lines of the group initialisation."""
        return ["Init torch distributed begin.", *([f"sglang is using nccl=={nccl}"] if rank == 0 else [])]

    def dist_end(self, used: float) -> list[str]:
        """Last lines of the group initialisation; `used` in GB."""
        return [f"Init torch distributed ends. elapsed={{elapsed}} s, mem usage={used:.2f} GB"]

    def draft_begin(self) -> list[str]:
        """What the draft worker does before it loads: here it has a group initialisation of its own."""
        return ["Init torch distributed begin.", "Init torch distributed ends. elapsed=0.01 s, mem usage=0.00 GB"]

    def load_begin(self, free: float) -> str:
        """First line of a weight load; `free` in GB."""
        return f"Load weight begin. avail mem={free:.2f} GB"

    def load_end(self, model: str, free: float, used: float) -> str:
        """Last line of a weight load; `free` and `used` in GB."""
        kind = f"type={model}, dtype=torch.bfloat16"
        return f"Load weight end. elapsed={{elapsed}} s, {kind}, avail mem={free:.2f} GB, mem usage={used:.2f} GB."

    def kv_lines(self, rank: int, dtype: str, tokens: int, size: float, free: float) -> list[str]:
        """Lines of the memory pool; `size` and `free` in GB."""
        first = [f"Using KV cache dtype: {dtype}"] if rank == 0 else []
        kv = f"KV Cache is allocated. #tokens: {tokens}, KV size: {size:.2f} GB"
        return [*first, kv, f"Memory pool end. avail mem={free:.2f} GB"]

    def captures(self, speculative: bool) -> tuple[str, ...]:
        """Names of the graph captures, in order."""
        return ("cuda graph", "draft cuda graph", "draft extend cuda graph") if speculative else ("cuda graph",)

    def capture_begin(self, kind: str, sizes: list[int], rows: int, free: float) -> str:
        """First line of a capture; `sizes` are its batch sizes, `rows` tokens of each request in it, `free` in GB."""
        return f"Capture {kind} begin. This can take up to several minutes. avail mem={free:.2f} GB"

    def capture_end(self, kind: str, used: float, free: float) -> str:
        """Last line of a capture; `used` and `free` in GB."""
        return f"Capture {kind} end. Time elapsed: {{elapsed}} s. mem usage={used:.2f} GB. avail mem={free:.2f} GB."

    def scheduler_ready(self) -> list[str]:
        """Lines of rank 0 behind the one about its capacity."""
        return []

    def prefill_line(self, new: int, cached: int, running: int, tok_s: float) -> str:
        """What the scheduler says of a prefill; `tok_s` is its speed."""
        return (
            f"Prefill batch, #new-seq: 1, #new-token: {new}, #cached-token: {cached}, token usage: 0.00, "
            f"#running-req: {running}, #queue-req: 0, "
        )

    def decode_line(self, running: int, tokens: int, tok_s: float, accept: float | None, rows: int) -> str:
        """What the scheduler says of the last decode steps; `accept` tokens came out of passes of `rows`."""
        told = (
            "" if accept is None else f"accept len: {accept:.2f}, accept rate: {self.accept_rate(accept, rows):.2f}, "
        )
        return (
            f"Decode batch, #running-req: {running}, #token: {tokens}, token usage: 0.00, {told}"
            f"cuda graph: True, gen throughput (token/s): {tok_s:.2f}, #queue-req: 0, "
        )

    def accept_rate(self, accept: float, rows: int) -> float:
        """The share of the drafted tokens: this version counts the one that is always right."""
        return accept / rows


@dataclass(frozen=True)
class Dialect523(Dialect):
    """Log lines of SGLang 0.5.16 to 0.5.23."""

    draft_loads_first: bool = True
    bar: str = "Multi-thread loading shards"
    bar_newline: bool = False

    def resolved(self) -> list[str]:
        """Lines of the launcher behind its dump of the arguments."""
        return ["Using default HuggingFace chat template with detected content format: string"]

    def dist_begin(self, rank: int, nccl: str) -> list[str]:
        """First lines of the group initialisation."""
        return ["Init parallel begin.", *([f"sglang is using nccl=={nccl}"] if rank == 0 else [])]

    def dist_end(self, used: float) -> list[str]:
        """Last lines of the group initialisation; `used` in GB."""
        return [f"Memory baseline taken. mem usage={used:.2f} GB", "Init parallel ends. elapsed={elapsed} s"]

    def draft_begin(self) -> list[str]:
        """The draft worker joins the group that is there."""
        return []

    def load_end(self, model: str, free: float, used: float) -> str:
        """Last line of a weight load; `free` and `used` in GB."""
        quant = "" if "Eagle" in model else ", quant=compressed-tensors, bits=4"
        head = f"Load weight end. elapsed={{elapsed}} s, type={model}{quant}"
        return f"{head}, avail mem={free:.2f} GB, mem usage={used:.2f} GB."

    def kv_lines(self, rank: int, dtype: str, tokens: int, size: float, free: float) -> list[str]:
        """Lines of the memory pool; `size` and `free` in GB."""
        kv = f"KV Cache is allocated. dtype: {dtype}, #tokens: {tokens}, KV size: {size:.2f} GB"
        return [kv, f"Memory pool end. avail mem={free:.2f} GB"]

    def captures(self, speculative: bool) -> tuple[str, ...]:
        """Names of the graph captures, in order."""
        return ("target verify", "draft decode", "draft extend") if speculative else ("target decode",)

    def capture_begin(self, kind: str, sizes: list[int], rows: int, free: float) -> str:
        """First line of a capture; `sizes` are its batch sizes, `rows` tokens of each request in it, `free` in GB."""
        what = f"backend=full, num_tokens_per_req={rows}, bs={sizes}"
        return f"Capture {kind} CUDA graph begin. {what}, avail mem={free:.2f} GB"

    def capture_end(self, kind: str, used: float, free: float) -> str:
        """Last line of a capture; `used` and `free` in GB."""
        figures = f"elapsed={{elapsed}} s, mem usage={used:.2f} GB, avail mem={free:.2f} GB."
        return f"Capture {kind} CUDA graph end. {figures}"

    def scheduler_ready(self) -> list[str]:
        """Lines of rank 0 behind the one about its capacity."""
        kinds = "hybrid_swa=False hybrid_ssm=False hierarchical=False streaming_wrapped=False"
        return [f"Tree cache initialized: source=default impl=RadixCache {kinds}"]

    def prefill_line(self, new: int, cached: int, running: int, tok_s: float) -> str:
        """What the scheduler says of a prefill; `tok_s` is its speed."""
        more = f"#pending-token: 0, cuda graph: False, input throughput (token/s): {tok_s:.2f}"
        return super().prefill_line(new, cached, running, tok_s) + more

    def accept_rate(self, accept: float, rows: int) -> float:
        """The share of the drafted tokens."""
        return (accept - 1) / max(1, rows - 1)


def dialect_of(generation: str) -> Dialect:
    """The dialect of a generation of SGLang: "0.5.9" or "0.5.23"."""
    return {"0.5.9": Dialect(), "0.5.23": Dialect523()}[generation]
