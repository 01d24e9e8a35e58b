"""Small source trees: the simulated servers', and some of the shapes that the real ones have."""

from collections.abc import Mapping
from pathlib import Path

from agent.flags.model import FlagTable, Kind
from agent.flags.resolve import flag_table
from agent.flags.tree import TextTree
from agent.sim.venvs import TREES

SERVER_ARGS = "srt/server_args.py"


def simulated(version: str) -> dict[str, str]:
    """The files of a simulated SGLang by their path below the package."""
    texts = {}
    for part in ("common", f"sglang-{version}"):
        root = TREES / part / "sglang"
        for file in sorted(root.rglob("*.txt")):
            texts[str(file.relative_to(root).with_suffix(""))] = file.read_text()
    return texts


def table(texts: Mapping[str, str], kind: Kind = "sglang") -> FlagTable:
    """What the resolver makes of them."""
    return flag_table(TextTree(texts), kind)


def written(texts: Mapping[str, str], folder: Path) -> Path:
    """The files in a folder."""
    for path, text in texts.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def monolith(arguments: str, fields: str = "", logic: str = "", above: str = "") -> dict[str, str]:
    """A tree whose ServerArgs registers flags by hand. The parts are indented as they are to stand."""
    text = f"""
import argparse
import dataclasses
import json
import os
from typing import List, Literal, Optional
from sglang.srt.names import *
{above}

@dataclasses.dataclass
class ServerArgs:
    model_path: str
    tp_size: int = 1
{fields}
    def __post_init__(self):
        self._handle()

    def _handle(self):
        pass
{logic}
    @staticmethod
    def add_cli_args(parser: argparse.ArgumentParser):
        parser.add_argument("--model-path", "--model", type=str, required=True, help="Where.")
        parser.add_argument("--tp-size", "--tp", type=int, default=ServerArgs.tp_size, help="How many.")
{arguments}
"""
    return {SERVER_ARGS: text, "srt/names.py": 'STARRED = ["s1", "s2"]\n', "version.py": '__version__ = "1.2.3"\n'}
