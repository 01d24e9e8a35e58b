"""What a name means: through imports, module levels, classes and their bases."""

import ast
from collections.abc import Callable, Mapping, Sequence

from agent.flags.builtin import CONSTANTS, FUNCTIONS
from agent.flags.modules import Binding, Module, Modules, bindings, last_name
from agent.flags.values import (
    UNKNOWN,
    ClassValue,
    External,
    FunctionValue,
    Made,
    Member,
    Method,
    ModuleValue,
    Super,
    Value,
)

Replay = Callable[[Module, ast.stmt, dict[str, Value], bool], None]
"""Carries a statement of a module's top level out, with the names given so far; or in doubt whether it is reached."""

_ENUMS = ("Enum", "IntEnum", "StrEnum", "Flag", "IntFlag", "CaseInsensitiveEnum")
_TYPES = ("str", "int", "float", "bool", "list", "dict", "tuple", "set", "frozenset", "object", "type", "bytes")


class Names:
    """Looks names up in a tree. What a module's name is worth is worked out once, when it is first asked for."""

    def __init__(self, modules: Modules, replay: Replay) -> None:
        self.modules = modules
        self._replay = replay
        self._worth: dict[tuple[str, str], Value] = {}
        self._bodies: dict[ast.ClassDef, Mapping[str, list[Binding]]] = {}

    def of_module(self, module: Module, name: str) -> Value:
        """The value of a module's global name."""
        at = (module.name, name)
        if at not in self._worth:
            self._worth[at] = UNKNOWN  # for what is defined in terms of itself
            self._worth[at] = self._work_out(module, name)
        return self._worth[at]

    def _work_out(self, module: Module, name: str) -> Value:
        found = module.bindings.get(name)
        if not found:
            return self._elsewhere(module, name)
        # A class that is written out means itself, whatever it is rebuilt into further down.
        if written := next((binding.node for binding in found if isinstance(binding.node, ast.ClassDef)), None):
            return ClassValue(written, module)
        value: Value = None
        given = doubtful = False
        for binding in found:
            new = self._bound(module, name, binding, value)
            if given and not binding.sure and not _same(new, value):
                doubtful = True
            elif binding.sure:
                doubtful = False
            value, given = new, True
        return UNKNOWN if doubtful else value

    def _elsewhere(self, module: Module, name: str) -> Value:
        # Only a package has modules inside it.
        if module.path.endswith("__init__.py") and (inner := self.modules.get(f"{module.name}.{name}")):
            return ModuleValue(inner)
        starred = [node for node in module.tree.body if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"]
        for node in starred:
            other = self.modules.get(module.absolute(node))
            if other and name in other.bindings:
                return self.of_module(other, name)
        if name in FUNCTIONS or name in _TYPES or name in ("super", "print", "isinstance", "getattr", "hasattr"):
            return External(name)
        return {"True": True, "False": False, "None": None, "__name__": module.name}.get(name, UNKNOWN)

    def _bound(self, module: Module, name: str, binding: Binding, before: Value) -> Value:
        match binding.node:
            case ast.alias() as alias:
                return self.imported(alias.name if alias.asname else alias.name.partition(".")[0])
            case ast.ImportFrom() as node:
                return self.from_import(module, node, binding.origin)
            case ast.FunctionDef() | ast.AsyncFunctionDef() as node:
                return FunctionValue(node, module)
            case node:
                scope = {name: before}
                # A change in place that may not happen leaves something unknown behind.
                self._replay(module, node, scope, isinstance(node, ast.Expr) and not binding.sure)
                return scope[name]

    def imported(self, dotted: str) -> Value:
        """What `import dotted` gives."""
        module = self.modules.get(dotted)
        if module:
            return ModuleValue(module)
        return UNKNOWN if self.modules.has(dotted) else External(dotted)

    def from_import(self, module: Module, node: ast.ImportFrom, origin: str) -> Value:
        """What `from x import origin` gives."""
        dotted = module.absolute(node)
        if not self.modules.has(dotted):
            return CONSTANTS.get(f"{dotted}.{origin}", External(f"{dotted}.{origin}"))
        source = self.modules.get(dotted)
        if source is None or source is module:
            return self.imported(f"{dotted}.{origin}")
        return self.of_module(source, origin)

    def attribute(self, of: Value, name: str) -> Value:
        """The value of `of.name`."""
        match of:
            case ModuleValue(module=module):
                return self.of_module(module, name)
            case ClassValue():
                return self._of_class(of, name)
            case External(name=outer):
                dotted = f"{outer}.{name}"
                return CONSTANTS.get(dotted, External(dotted))
            case Member(name=member, value=value):
                return {"name": member, "value": value}.get(name, Method(of, name))
            case Made(of=ClassValue() as made):
                return self._of_instance(of, made, name)
            case Made(kwargs=kwargs):
                return kwargs[name] if name in kwargs else Method(of, name)
            case Super(owner=owner, first=first):
                return self._bind(self._in_classes(self.bases(owner), name), first)
            case str() | list() | dict() | tuple() | set() | frozenset():
                return Method(of, name)
        return UNKNOWN

    def _of_class(self, of: ClassValue, name: str) -> Value:
        if name == "__name__":
            return of.name
        if name == "__doc__":
            return ast.get_docstring(of.node) or None
        if self.is_enum(of) and name == "__members__":
            return {member.name: member for member in self.members(of)}
        value = self._in_classes(self.lineage(of), name)
        if self.is_enum(of) and not isinstance(value, FunctionValue) and value is not UNKNOWN:
            return Member(of, name, value)
        return self._bind(value, of)

    def _of_instance(self, of: Made, made: ClassValue, name: str) -> Value:
        if name in of.kwargs:
            return of.kwargs[name]
        value = self._in_classes(self.lineage(made), name)
        if isinstance(value, FunctionValue) and "property" in _decorators(value):
            return UNKNOWN
        return self._bind(value, of)

    def _bind(self, value: Value, first: Value) -> Value:
        if not isinstance(value, FunctionValue) or value.owner is None:
            return value
        decorators = _decorators(value)
        if "staticmethod" in decorators or (isinstance(first, ClassValue) and "classmethod" not in decorators):
            return value
        if "classmethod" in decorators and isinstance(first, Made):
            first = first.of
        return FunctionValue(value.node, value.module, value.owner, first)

    def _in_classes(self, classes: Sequence[ClassValue], name: str) -> Value:
        for found in classes:
            if name in self.body(found):
                return self.class_level(found, name)
        return UNKNOWN

    def class_level(self, of: ClassValue, name: str) -> Value:
        """What the body of a class itself gives a name."""
        node = self.body(of)[name][-1].node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return FunctionValue(node, of.module, of)
        if isinstance(node, ast.stmt):
            # A class's body sees its own names: ALL = (FULL, DISABLED).
            used = {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)} & self.body(of).keys()
            scope = {inner: self.class_level(of, inner) for inner in sorted(used - {name})}
            self._replay(of.module, node, scope, False)
            return scope.get(name, UNKNOWN)
        return UNKNOWN

    def body(self, of: ClassValue) -> Mapping[str, list[Binding]]:
        """What the body of a class binds."""
        if of.node not in self._bodies:
            self._bodies[of.node] = bindings(of.node.body)
        return self._bodies[of.node]

    def bases(self, of: ClassValue) -> tuple[ClassValue, ...]:
        """The classes of the tree above this one, the nearest first."""
        above: list[ClassValue] = []
        for expression in of.node.bases:
            value = self._base(of.module, expression)
            if isinstance(value, ClassValue) and value.node is not of.node and len(above) < 30:
                above += [value, *self.bases(value)]
        return tuple(dict.fromkeys(above))

    def _base(self, module: Module, expression: ast.expr) -> Value:
        match expression:
            case ast.Name(id=name):
                return self.of_module(module, name)
            case ast.Attribute(value=value, attr=attr):
                return self.attribute(self._base(module, value), attr)
            case ast.Subscript(value=value):
                return self._base(module, value)
        return UNKNOWN

    def lineage(self, of: ClassValue) -> tuple[ClassValue, ...]:
        """The class and those above it."""
        return (of, *self.bases(of))

    def outer_bases(self, of: ClassValue) -> tuple[str, ...]:
        """The last names of the bases outside the tree: `Enum`, `dict`."""
        found = []
        for one in self.lineage(of):
            for expression in one.node.bases:
                value = self._base(one.module, expression)
                if isinstance(value, External):
                    found.append(value.last)
        return tuple(found)

    def is_enum(self, of: ClassValue) -> bool:
        """Whether the class is an enumeration."""
        return any(base in _ENUMS for base in self.outer_bases(of))

    def members(self, of: ClassValue) -> tuple[Member, ...]:
        """The members of an enumeration, in order."""
        found = []
        for name, bound in self.body(of).items():
            if not name.startswith("_") and isinstance(bound[-1].node, ast.Assign):
                found.append(Member(of, name, self.class_level(of, name)))
        return tuple(found)


def _decorators(value: FunctionValue) -> tuple[str, ...]:
    if isinstance(value.node, ast.Lambda):
        return ()
    return tuple(last_name(decorator) for decorator in value.node.decorator_list)


def _same(one: Value, other: Value) -> bool:
    if type(one) is not type(other):
        return False
    try:
        return bool(one == other)
    except (TypeError, ValueError, RecursionError):
        return False
