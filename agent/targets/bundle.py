"""The program that holds launches, as one file: the wrapper with what it needs, for a target to keep."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from agent.targets import wrapper

MODULES = ("containers", "wrapper")

_PROGRAM = """\
import sys, types
for name, text in {modules!r}:
    module = sys.modules[name] = types.ModuleType(name)
    module.__path__ = []
    exec(compile(text, name, "exec"), module.__dict__)
sys.exit(sys.modules["agent.targets.wrapper"].main(sys.argv[1:]))
"""


def read_modules(names: Sequence[str]) -> dict[str, str]:
    """The source of modules of this package by name, in that order."""
    return {name: Path(wrapper.__file__).with_name(f"{name}.py").read_text() for name in names}


def modules_of(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """What becomes modules where tunebot is not installed, in the order in which they are executed."""
    return [("agent", ""), ("agent.targets", ""), *((f"agent.targets.{name}", text) for name, text in texts.items())]


def program() -> str:
    """The source of the program, for Python 3.8 or later."""
    return _PROGRAM.format(modules=modules_of(read_modules(MODULES)))
