"""How each server version words its startup log. `{elapsed}` is filled in by the rank."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """Log lines of SGLang up to 0.5.10."""

    draft_loads_first: bool = False

    def dist_begin(self, rank: int) -> list[str]:
        """First lines of the group initialisation."""
        return ["Init torch distributed begin.", *(["sglang is using nccl==2.27.5"] if rank == 0 else [])]

    def dist_end(self, used: float) -> list[str]:
        """Last lines of the group initialisation; `used` in GB."""
        return [f"Init torch distributed ends. elapsed={{elapsed}} s, mem usage={used:.2f} GB"]

    def load_begin(self, free: float) -> str:
        """First line of a weight load; `free` in GB."""
        return f"Load weight begin. avail mem={free:.2f} GB"

    def load_end(self, model: str, free: float, used: float) -> str:
        """Last line of a weight load; `free` and `used` in GB."""
        kind = f"type={model}, dtype=torch.bfloat16"
        return f"Load weight end. elapsed={{elapsed}} s, {kind}, avail mem={free:.2f} GB, mem usage={used:.2f} GB."

    def kv_lines(self, rank: int, tokens: int, size: float, free: float) -> list[str]:
        """Lines of the memory pool; `size` and `free` in GB."""
        first = ["Using KV cache dtype: torch.bfloat16"] if rank == 0 else []
        kv = f"KV Cache is allocated. #tokens: {tokens}, KV size: {size:.2f} GB"
        return [*first, kv, f"Memory pool end. avail mem={free:.2f} GB"]

    def captures(self, speculative: bool) -> tuple[str, ...]:
        """Names of the graph captures, in order."""
        return ("cuda graph", "draft cuda graph", "draft extend cuda graph") if speculative else ("cuda graph",)

    def capture_begin(self, kind: str, sizes: list[int], free: float) -> str:
        """First line of a capture; `sizes` are its batch sizes, `free` in GB."""
        return f"Capture {kind} begin. This can take up to several minutes. avail mem={free:.2f} GB"

    def capture_end(self, kind: str, used: float, free: float) -> str:
        """Last line of a capture; `used` and `free` in GB."""
        return f"Capture {kind} end. Time elapsed: {{elapsed}} s. mem usage={used:.2f} GB. avail mem={free:.2f} GB."


@dataclass(frozen=True)
class Dialect523(Dialect):
    """Log lines of SGLang 0.5.23."""

    draft_loads_first: bool = True

    def dist_begin(self, rank: int) -> list[str]:
        """First lines of the group initialisation."""
        return ["Init parallel begin.", *(["sglang is using nccl==2.28.9"] if rank == 0 else [])]

    def dist_end(self, used: float) -> list[str]:
        """Last lines of the group initialisation; `used` in GB."""
        return [f"Memory baseline taken. mem usage={used:.2f} GB", "Init parallel ends. elapsed={elapsed} s"]

    def load_end(self, model: str, free: float, used: float) -> str:
        """Last line of a weight load; `free` and `used` in GB."""
        quant = "" if "Eagle" in model else ", quant=compressed-tensors, bits=4"
        head = f"Load weight end. elapsed={{elapsed}} s, type={model}{quant}"
        return f"{head}, avail mem={free:.2f} GB, mem usage={used:.2f} GB."

    def kv_lines(self, rank: int, tokens: int, size: float, free: float) -> list[str]:
        """Lines of the memory pool; `size` and `free` in GB."""
        kv = f"KV Cache is allocated. dtype: torch.bfloat16, #tokens: {tokens}, KV size: {size:.2f} GB"
        return [kv, f"Memory pool end. avail mem={free:.2f} GB"]

    def captures(self, speculative: bool) -> tuple[str, ...]:
        """Names of the graph captures, in order."""
        return ("target verify", "draft decode", "draft extend") if speculative else ("target decode",)

    def capture_begin(self, kind: str, sizes: list[int], free: float) -> str:
        """First line of a capture; `sizes` are its batch sizes, `free` in GB."""
        tokens = 4 if kind == "target verify" else 1
        what = f"backend=full, num_tokens_per_req={tokens}, bs={sizes}"
        return f"Capture {kind} CUDA graph begin. {what}, avail mem={free:.2f} GB"

    def capture_end(self, kind: str, used: float, free: float) -> str:
        """Last line of a capture; `used` and `free` in GB."""
        figures = f"elapsed={{elapsed}} s, mem usage={used:.2f} GB, avail mem={free:.2f} GB."
        return f"Capture {kind} CUDA graph end. {figures}"


def dialect_of(name: str) -> Dialect:
    """The dialect that a world file names: "0.5.9" or "0.5.23"."""
    return {"0.5.9": Dialect(), "0.5.23": Dialect523()}[name]
