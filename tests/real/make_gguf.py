"""Make random Llama models as GGUF files, for a real llama-server. Nothing is fetched and nothing else is needed.

    python -m tests.real.make_gguf      # model.gguf: 79 M weights, 157 MB; draft.gguf: 4 M weights

They land in <cache>/models/llamacpp/ (see setup_vllm.py for <cache>). llama.cpp's own converter refuses home-made
tokenizers, so the files are written here, as docs/gguf.md of ggml has their form. A token is a byte, or a frequent
word of tunebot's own prompts; the draft has the same vocabulary. Weights are random with a fixed seed: the text is
nonsense, and what the draft guesses is nearly always wrong.
"""

import random
import re
import struct
import sys
from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agent.bench.prompts import passages
from tests.real.setup_vllm import cache_folder

SEED = 20_26
VOCABULARY, CONTEXT = 4096, 8192
SPECIAL = ("<s>", "</s>", "<pad>")
BLOCK = 1_000_003
"""Weights that are drawn; they are repeated through the file, and a prime number of them makes no two rows equal."""
SPREAD = 0.02
ALIGNMENT = 32
CHAT_TEMPLATE = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}{{ 'assistant: ' }}"

# Codes of the format: types of values, of tensors, of tokens.
U32, I32, F32, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
TENSOR_F32, TENSOR_F16 = 0, 1
NORMAL, CONTROL = 1, 3
Value = bool | int | float | str | list[str] | list[int]


@dataclass(frozen=True)
class Shape:
    """The sizes of a model; four query heads share one of keys and values, and the output shares the embedding."""

    width: int
    layers: int
    heads: int
    kv_heads: int
    inner: int


MODELS = {"model": Shape(768, 12, 12, 4, 2048), "draft": Shape(256, 4, 4, 2, 512)}


def gguf(name: str) -> Path:
    """Where a model is, or will be."""
    return cache_folder() / "models" / "llamacpp" / f"{name}.gguf"


def byte_letters() -> list[str]:
    """The letter that stands for each byte in GPT-2's vocabularies: printable ones for themselves."""
    own = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAC + 1), *range(0xAE, 0xFF + 1)}
    others = iter(range(256, 512))
    return [chr(byte if byte in own else next(others)) for byte in range(256)]


def vocabulary() -> tuple[list[str], list[str]]:
    """The tokens and the merges, each a word with a space before it or the beginning of one.

    Merges of whole words grow letter by letter from that space, so that none of them can cut into another word.
    """
    letters = byte_letters()
    tokens, merges = [*SPECIAL, *letters], list[str]()
    counted = Counter(word for text in passages("mixed-text") for word in re.findall(r"(?<= )[A-Za-z]+", text))
    known = set(tokens)
    for word, _ in sorted(counted.items(), key=lambda item: (-item[1], item[0])):
        start = letters[ord(" ")]
        for letter in word:
            if start + letter not in known and len(tokens) < VOCABULARY:
                merges.append(f"{start} {letter}")
                tokens.append(start + letter)
                known.add(start + letter)
            start += letter
    return tokens + [f"<unused{n}>" for n in range(VOCABULARY - len(tokens))], merges


def metadata(name: str, shape: Shape) -> dict[str, Value]:
    """What the file says of its model."""
    tokens, merges = vocabulary()
    return {
        "general.architecture": "llama",
        "general.name": name,
        "general.file_type": TENSOR_F16,
        "llama.context_length": CONTEXT,
        "llama.embedding_length": shape.width,
        "llama.block_count": shape.layers,
        "llama.feed_forward_length": shape.inner,
        "llama.attention.head_count": shape.heads,
        "llama.attention.head_count_kv": shape.kv_heads,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": shape.width // shape.heads,
        "llama.vocab_size": VOCABULARY,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "gpt-2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [CONTROL if token in SPECIAL else NORMAL for token in tokens],
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": 0,
        "tokenizer.ggml.eos_token_id": 1,
        "tokenizer.ggml.padding_token_id": 2,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": CHAT_TEMPLATE,
    }


def tensors(shape: Shape) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The names of the tensors and their dimensions, the one that lies together in memory first."""
    width, kv_width = shape.width, shape.width // shape.heads * shape.kv_heads
    yield "token_embd.weight", (width, VOCABULARY)
    yield "output_norm.weight", (width,)
    for layer in range(shape.layers):
        for part, size in (
            ("attn_norm", (width,)),
            ("attn_q", (width, width)),
            ("attn_k", (width, kv_width)),
            ("attn_v", (width, kv_width)),
            ("attn_output", (width, width)),
            ("ffn_norm", (width,)),
            ("ffn_gate", (width, shape.inner)),
            ("ffn_up", (width, shape.inner)),
            ("ffn_down", (shape.inner, width)),
        ):
            yield f"blk.{layer}.{part}.weight", size


def text(value: str) -> bytes:
    """A string as the format has it."""
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(value: Value) -> bytes:
    """A value with its type."""
    if isinstance(value, bool):
        return struct.pack("<I?", BOOL, value)
    if isinstance(value, int):
        return struct.pack("<II", U32, value)
    if isinstance(value, float):
        return struct.pack("<If", F32, value)
    if isinstance(value, str):
        return struct.pack("<I", STRING) + text(value)
    items = [text(one) if isinstance(one, str) else struct.pack("<I", one) for one in value]
    kind = STRING if isinstance(value[0], str) else I32
    return struct.pack("<IIQ", ARRAY, kind, len(items)) + b"".join(items)


def padded(data: bytes) -> bytes:
    """The data, filled up to the alignment."""
    return data + bytes(-len(data) % ALIGNMENT)


def write(path: Path, name: str, shape: Shape) -> None:
    """Write one model; a file of that name is always a whole one."""
    rng = random.Random(SEED + shape.width)
    drawn = struct.pack(f"<{BLOCK}e", *(rng.gauss(0.0, SPREAD) for _ in range(BLOCK)))
    heads, data, at = list[bytes](), list[bytes](), 0
    for tensor, size in tensors(shape):
        count, kind = size[0] * (size[1] if len(size) > 1 else 1), TENSOR_F16 if len(size) > 1 else TENSOR_F32
        if kind == TENSOR_F32:
            weights = array("f", [1.0]) * count
            body = padded(weights.tobytes())
        else:
            skip = 2 * rng.randrange(BLOCK)
            body = padded((drawn * (count * 2 // len(drawn) + 2))[skip : skip + count * 2])
        heads.append(text(tensor) + struct.pack(f"<I{len(size)}QIQ", len(size), *size, kind, at))
        data.append(body)
        at += len(body)
    about = metadata(name, shape)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(heads), len(about))
    head += b"".join(text(key) + entry(value) for key, value in about.items()) + b"".join(heads)
    new = path.with_suffix(".new")
    new.write_bytes(padded(head) + b"".join(data))
    new.replace(path)


def main() -> int:
    """Write the models that are not there, and print their paths."""
    for name, shape in MODELS.items():
        path = gguf(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            write(path, name, shape)
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
