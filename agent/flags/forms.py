"""Type annotations, taken apart the way a command line is made from them."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from agent.flags.expressions import Scope
from agent.flags.interpret import Interpreter
from agent.flags.model import Place
from agent.flags.modules import Module
from agent.flags.values import UNKNOWN, ClassValue, External, Generic, Made, Value
from agent.syntax import Unparsable, parse_expression

_UNIONS = ("Union", "Optional")
_WRAPPERS = ("Annotated", "SkipValidation", "Final", "Required", "NotRequired")


@dataclass(frozen=True, slots=True)
class Field:
    """A field of a class: its name, its type, what `Annotated` says beside it, its default, and where it stands.

    `default` is MISSING where it has none.
    """

    owner: str
    name: str
    type: Value
    notes: tuple[Value, ...]
    default: Value
    place: Place


MISSING = External("dataclasses.MISSING")


def annotation(read: Interpreter, module: Module, node: ast.expr) -> Value:
    """The type that an annotation names. One in quotes is read as if it had none."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            node = parse_expression(node.value)
        except Unparsable:
            return UNKNOWN
    return read.value(node, Scope(module, {}))


def members(form: Value) -> Iterator[Value]:
    """The alternatives of a type: the parts of unions, without what only wraps them. None stands for NoneType."""
    match form:
        case Generic(of=External() as of, args=args) if of.last in _UNIONS:
            for arg in args:
                yield from members(arg)
            if of.last == "Optional":
                yield None
        case Generic(of=External() as of, args=args) if of.last in _WRAPPERS:
            yield from members(args[0])
        case str():
            yield UNKNOWN
        case _:
            yield form


def base_name(form: Value) -> str:
    """`list` for `list[int]` and `List[int]`, "" for what is no type of Python's own."""
    of = form.of if isinstance(form, Generic) else form
    return of.last.lower() if isinstance(of, External) else ""


def fields(read: Interpreter, of: ClassValue) -> tuple[Field, ...]:
    """The fields of a dataclass or struct, those of its bases first."""
    if of.node not in read.fields:
        read.fields[of.node] = tuple(_fields(read, of))
    return read.fields[of.node]


def _fields(read: Interpreter, of: ClassValue) -> Iterator[Field]:
    found: dict[str, Field] = {}
    for one in reversed(read.names.lineage(of)):
        for node in one.node.body:
            if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                field = _field(read, of, one, node, node.target.id)
                if base_name(field.type) not in ("classvar", "initvar"):
                    found[field.name] = field
    yield from found.values()


def _field(read: Interpreter, whole: ClassValue, of: ClassValue, node: ast.AnnAssign, name: str) -> Field:
    form = annotation(read, of.module, node.annotation)
    notes: tuple[Value, ...] = ()
    if isinstance(form, Generic) and isinstance(form.of, External) and form.of.last == "Annotated":
        form, *rest = form.args
        notes = tuple(rest)
    place = Place(of.module.path, node.lineno)
    default = MISSING if node.value is None else read.names.class_level(of, name)
    return Field(whole.name, name, form, notes, _given(read, default, place), place)


def _given(read: Interpreter, default: Value, place: Place) -> Value:
    """The default behind `field(default_factory=list)` and `Field(default=0.9, gt=0)`."""
    if not (isinstance(default, Made) and isinstance(default.of, External) and default.of.last in ("field", "Field")):
        return default
    if "default_factory" in default.kwargs:
        return read.call(default.kwargs["default_factory"], [], {}, place)
    if "default" in default.kwargs:
        return default.kwargs["default"]
    return default.args[0] if default.args else MISSING
