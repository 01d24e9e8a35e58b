"""Prints every action of a server's own parser as JSON. Runs in that server's environment, never in tunebot's.

python flags_dump.py sglang TREE            # ServerArgs.add_cli_args of the package in TREE
python flags_dump.py sglang TREE stand-ins  # what the package imports and this environment lacks is made up
python flags_dump.py vllm TREE              # the parser of `vllm serve`
"""

import argparse
import dataclasses
import enum
import importlib.abc
import importlib.machinery
import json
import sys
import types
from collections.abc import Iterator, Sequence
from typing import Any

_HERE = (lambda: 0).__code__.co_filename
_ALWAYS = ("transformers",)  # newer than these trees, and lacks what it needs here


class _AnyMeta(type):
    """A class of which every attribute exists, which every operator accepts, and that decorates by doing nothing."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in(name)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and isinstance(args[0], types.FunctionType | type):
            return args[0]
        return cls

    def __or__(cls, _: Any) -> Any:
        return cls

    __ror__ = __or__

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    def __getitem__(cls, _: Any) -> Any:
        return cls

    def __setitem__(cls, _: Any, __: Any) -> None:
        """Forgotten."""

    def __contains__(cls, _: Any) -> bool:
        return False

    def __bool__(cls) -> bool:
        return False

    def __mro_entries__(cls, _: Any) -> tuple[type, ...]:
        return (object,)


def stand_in(name: str) -> type:
    """A class for a name that a module which is not here would have."""
    made = {
        "__init_subclass__": classmethod(lambda _, **__: None),
        # pydantic asks a type how to validate it; anything will do.
        "__get_pydantic_core_schema__": classmethod(lambda *_: {"type": "any"}),
    }
    return _AnyMeta(name, (), made)


class _StandIn(types.ModuleType):
    """A module that is not here."""

    __path__: Sequence[str] = ()

    def __getattr__(self, name: str) -> Any:
        if name == "__version__":
            return "99.0.0"
        if name.startswith("__"):
            raise AttributeError(name)
        return stand_in(name)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """The last finder: a stand-in for every module that the tree imports and nobody else has.

    Other libraries go without what they look for, as they know how to.
    """

    def __init__(self, tree: str, package: str) -> None:
        self._tree = tree
        self._package = package

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        parent, _, _ = name.rpartition(".")
        if name in (self._package, *sys.stdlib_module_names) or not self._asked_by_tree():
            return None
        if parent and not isinstance(sys.modules.get(parent), _StandIn):
            return None
        return importlib.machinery.ModuleSpec(name, self, is_package=True)

    def _asked_by_tree(self) -> bool:
        frame: types.FrameType | None = sys._getframe(1)
        while frame and ("importlib" in frame.f_code.co_filename or frame.f_code.co_filename == _HERE):
            frame = frame.f_back
        return frame is not None and frame.f_code.co_filename.startswith(self._tree)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _StandIn(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """There is nothing to run."""


def shown(value: Any) -> str:
    """Python's text of a default, in the words that the resolver has for what is no constant."""
    if value == "==SUPPRESS==":
        return "argparse.SUPPRESS"
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return f"{type(value).__name__}()"
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, set | frozenset):
        return f"{{{', '.join(sorted(map(shown, value)))}}}" if value else "set()"
    if type(value) is not dict and isinstance(value, dict):
        return f"{type(value).__name__}()"
    return repr(value)


def row(action: argparse.Action) -> dict[str, Any]:
    """One action as JSON."""
    choices = action.choices
    texts = None if choices is None else [str(choice) for choice in choices]
    if texts is not None and isinstance(choices, set | frozenset):
        texts.sort()
    return {
        "names": action.option_strings,
        "dest": action.dest,
        "choices": texts,
        "default": shown(action.default),
        "nargs": action.nargs,
        "required": action.required,
    }


def parser_of(kind: str) -> argparse.ArgumentParser:
    """The server's own parser."""
    if kind == "sglang":
        from sglang.srt.server_args import ServerArgs

        parser = argparse.ArgumentParser(prog="sglang serve")
        ServerArgs.add_cli_args(parser)
        return parser
    sys.argv = ["vllm", "serve", "--help=all"]
    from vllm.entrypoints.launchers.cli_args import make_arg_parser
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    return make_arg_parser(FlexibleArgumentParser())


def main() -> None:
    """Print the actions as one line of JSON, the last of stdout."""
    kind, tree, *more = sys.argv[1:]
    sys.path.insert(0, tree)
    if more:
        finder = _Finder(tree, kind)
        sys.meta_path.append(finder)
        sys.modules |= {name: finder.create_module(importlib.machinery.ModuleSpec(name, finder)) for name in _ALWAYS}
    actions = parser_of(kind)._actions
    print(json.dumps([row(action) for action in actions]))


if __name__ == "__main__":
    main()
