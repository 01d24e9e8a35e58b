"""What one file of a source demands where the rest of the tree is not at hand. Pure.

Every field that the file speaks of counts as a flag.
"""

import ast
from collections.abc import Iterator

from agent.flags.conditions import Fields
from agent.flags.demands import Demand, demands
from agent.flags.forms import fields
from agent.flags.interpret import Interpreter
from agent.flags.model import Flag, FlagTable, NoFlags, Place
from agent.flags.modules import Module, Modules
from agent.flags.record import PARSER, Recorder, flag_of
from agent.flags.tree import TextTree
from agent.flags.uses import uses
from agent.flags.values import ClassValue, External
from agent.playbook.model import Args

_MAIN = "ServerArgs"
_FILE = "__init__.py"


def demands_in(text: str, first: int, last: int, args: Args) -> tuple[Demand, ...]:
    """What the blocks that touch the lines `first` to `last` demand of `args`, where a flag is to be changed."""
    try:
        table = _table(text)
        found = demands(table, args)
    except (NoFlags, RecursionError):
        return ()
    return tuple(one for one in found if one.flag and one.block.line <= last and one.place.line >= first)


def _table(text: str) -> FlagTable:
    modules = Modules(TextTree({_FILE: text}), "fragment")
    recorder = Recorder(_MAIN)
    read = Interpreter(modules, {})
    module = modules.get("fragment")
    if module is None:
        raise NoFlags("it cannot be parsed")
    for flag in (*_registered(read, recorder, module), *_declared(read, module)):
        recorder.flags.setdefault(flag.names[0], flag)
    known = _AnyFields(list(recorder.flags.values()))
    found = uses(read, known, [module])
    return FlagTable(kind="sglang", version="", flags=tuple(known.all), uses=found)


def _registered(read: Interpreter, recorder: Recorder, module: Module) -> list[Flag]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument":
            names = [arg.value for arg in node.args if isinstance(arg, ast.Constant)]
            recorder.hook(read, [PARSER, *names], {}, Place(_FILE, node.lineno))
    return list(recorder.flags.values())


def _declared(read: Interpreter, module: Module) -> Iterator[Flag]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ClassDef):
            for field in fields(read, ClassValue(node, module)):
                kwargs = {"default": field.default, "type": field.type}
                switch = field.type == External("bool")
                more = {"default": field.default, "action": "store_true"} if switch else kwargs
                yield flag_of(read.names, (_spelt(field.name),), more, _MAIN, field.name, field.place)


def _spelt(field: str) -> str:
    return "--" + field.replace("_", "-")


class _AnyFields(Fields):
    """The fields that are known, and every other name as a flag that is not given unless it is given."""

    def __init__(self, flags: list[Flag]) -> None:
        super().__init__(flags, _MAIN)
        self.all = flags

    def owner(self, node: ast.expr, inside: str) -> str | None:
        """`self` of any class."""
        return self.main if isinstance(node, ast.Name) and node.id == "self" else super().owner(node, inside)

    def get(self, owner: str, name: str) -> Flag | None:
        """The flag of that field."""
        found = super().get(owner, name)
        if found is None and owner == self.main:
            found = next((flag for flag in self.all if _spelt(name) in flag.names), None)
        if found is None and owner == self.main:
            found = Flag(
                names=(_spelt(name),), owner=_MAIN, field=name, takes="one", type=None, choices=None, default="None",
                help="", deprecated=False, instead=(), place=Place(_FILE, 1),
            )  # fmt: skip
            self.all.append(found)
        return found
