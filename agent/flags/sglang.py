"""SGLang's way of declaring flags: `ServerArgs.add_cli_args`, by hand (up to 0.5.10) or from annotated fields."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from agent.flags import forms
from agent.flags.interpret import Hook, Interpreter
from agent.flags.model import NoFlags, Place
from agent.flags.record import PARSER, SOURCE, Recorder
from agent.flags.values import UNKNOWN, ClassValue, External, FunctionValue, Generic, Made, Value

PACKAGE = "sglang"
ENTRY = "sglang.srt.server_args"
LOGIC = ("srt/server_args.py", "srt/arg_groups/")
"""Where the flags are tested: files, and folders with their end."""

_NAMESPACES = "_INPUT_NAMESPACES"


def read_flags(read: Interpreter, recorder: Recorder) -> None:
    """Read every flag. Raises NoFlags."""
    module = read.modules.get(ENTRY)
    if module is None:
        raise NoFlags("it has no srt/server_args.py that can be parsed")
    server_args = read.names.of_module(module, recorder.owner)
    add = read.names.attribute(server_args, "add_cli_args")
    if not isinstance(add, FunctionValue):
        raise NoFlags("its ServerArgs has no add_cli_args")
    read.call(add, [PARSER], {}, Place(module.path, 1))


def hooks() -> dict[str, Hook]:
    """The functions of SGLang that read types at run time, and those of a library."""
    return {
        "add_cli_args_from_dataclass": _from_fields,
        "fields": _fields,
        "record_fields": _fields,
        "EnvField.get": _variable,
    }


def _server_fields(read: Interpreter, of: ClassValue) -> Iterator[forms.Field]:
    """The fields of a class, and those of the namespaces that 0.5.23 makes ServerArgs from."""
    yield from forms.fields(read, of)
    if _NAMESPACES in of.module.bindings:
        for namespace in read.items(read.names.of_module(of.module, _NAMESPACES)):
            if isinstance(namespace, ClassValue):
                for field in forms.fields(read, namespace):
                    yield forms.Field(of.name, field.name, field.type, field.notes, field.default, field.place)


def _fields(read: Interpreter, args: Sequence[Value], _: Mapping[Any, Value], __: Place) -> Value:
    if not args or not isinstance(args[0], ClassValue):
        return UNKNOWN
    return [
        Made(External("Field"), (), {"name": field.name, "default": field.default})
        for field in _server_fields(read, args[0])
    ]


def _variable(_: Interpreter, args: Sequence[Value], __: Mapping[Any, Value], ___: Place) -> Value:
    """`envs.NAME.get()` where the variable is not set."""
    variable = args[0] if args else UNKNOWN
    default = variable.args[0] if isinstance(variable, Made) and variable.args else UNKNOWN
    return UNKNOWN if isinstance(default, FunctionValue) else default


def _from_fields(read: Interpreter, args: Sequence[Value], kwargs: Mapping[Any, Value], place: Place) -> Value:
    """`add_cli_args_from_dataclass(parser, cls)`: a flag for every field whose annotation has an Arg or a help."""
    only = kwargs.get("fields")
    if len(args) > 1 and isinstance(args[1], ClassValue):
        for field in _server_fields(read, args[1]):
            arg = _arg_of(field)
            if arg is not None and arg.get("no_cli") is not True and (only is None or field.name in only):
                names, given = _arguments(field, arg)
                add = read.names.attribute(args[0], "add_argument")
                read.call(add, names, {**given, SOURCE: field}, place)
    return None


def _arg_of(field: forms.Field) -> dict[Any, Value] | None:
    for note in field.notes:
        if isinstance(note, str):
            return {"help": note}
        if isinstance(note, Made) and isinstance(note.of, ClassValue) and note.of.name == "Arg":
            return dict(note.kwargs)
    return None


def _arguments(field: forms.Field, arg: dict[Any, Value]) -> tuple[list[Value], dict[Any, Value]]:
    """The names and arguments that `add_argument` gets for a field."""
    names = [arg.get("cli_name") or "--" + field.name.replace("_", "-"), *(arg.get("aliases") or [])]
    given: dict[Any, Value] = {"help": arg.get("help", "")}
    if field.default is not forms.MISSING:
        given["default"] = field.default
    if arg.get("action") is not None:
        more = arg.get("action_kwargs") or {}
        return names, {**given, "action": arg["action"], **(more if isinstance(more, dict) else {UNKNOWN: UNKNOWN})}
    kinds = [kind for kind in forms.members(field.type) if kind is not None]
    kind = kinds[0] if len(kinds) == 1 else UNKNOWN
    if forms.base_name(kind) == "bool":
        return names, {**given, "action": "store_true"}
    if arg.get("choices"):
        given["choices"] = arg["choices"]
    if isinstance(kind, Generic) and forms.base_name(kind) == "literal":
        given |= {"choices": given.get("choices") or list(kind.args), "type": External(type(kind.args[0]).__name__)}
    elif isinstance(kind, Generic) and forms.base_name(kind) == "list" and not arg.get("type_parser"):
        given |= {"type": _scalar(kind.args[0]), "nargs": arg.get("nargs") or "+"}
    else:
        given |= {"type": _scalar(kind), "nargs": arg.get("nargs")}
    if arg.get("type_parser"):
        given["type"] = arg["type_parser"]
    return names, given


def _scalar(kind: Value) -> Value:
    return kind if forms.base_name(kind) in ("str", "int", "float") else External("str")
