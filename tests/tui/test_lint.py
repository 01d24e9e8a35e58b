"""No text reaches a widget but as a literal or through tui/content.py: read from the source, call by call."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import tui

FOLDER = Path(tui.__file__).parent
CONTENT = FOLDER / "content.py"
LOG_LINES = {FOLDER / "widgets" / name for name in ("log_draw.py", "log_view.py")}
"""They draw lines of a log as segments; those were cleaned where they were read (tests/tui/test_log_hostile.py)."""

DRAWN_TYPES = {"Content", "Text", "Strip"}
COLLECTIONS = {"list", "tuple", "Sequence", "Iterator", "Callable"}
WIDGETS = {"Static", "Label", "Button", "Checkbox", "RadioButton", "Collapsible", "Tab", "TabPane", "Link", "Markdown"}
"""Made from a text that is markup where it is a str; Option, which is no widget, is made in the same way."""
SUBCLASSED = WIDGETS | {"ViewStatic", "Drawn"}
METHODS = {
    "update": 0,
    "add_option": 0,
    "add_options": 0,
    "set_options": 0,
    "add_row": None,
    "add_rows": None,
    "add_column": 0,
    "add_columns": None,
    "update_cell": 2,
    "update_cell_at": 1,
    "replace_option_prompt": 1,
    "replace_option_prompt_at_index": 1,
    "write_line": 0,
    "write_lines": 0,
}
"""Methods that draw an argument: which one, or None for all of them."""
ATTRIBUTES = {"border_title", "border_subtitle", "tooltip", "placeholder", "prompt"}
NAMED = ATTRIBUTES | {"content", "label"}
SAME_CONTENT = {"truncate", "stylize", "pad", "pad_left", "pad_right", "rstrip", "expand_tabs", "join"}
"""Methods of Content that give Content."""
RAW = {"Content", "Text", "Segment", "Content.styled", "Content.assemble", "Text.assemble", "Text.from_ansi"}
CLEANERS = {"clean", "one_line"}


def name_of(node: ast.AST) -> str:
    """`f` of f(x), `a.f` of a.f(x), `*.f` where a is more than a name."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{node.value.id if isinstance(node.value, ast.Name) else '*'}.{node.attr}"
    return ""


def is_drawn_type(annotation: ast.expr | None) -> bool:
    """Content, or a list (tuple, sequence) of it, or what gives it: Callable[..., Content]."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    if isinstance(annotation, ast.Subscript):
        inner = annotation.slice
        last = inner.elts[-1] if isinstance(inner, ast.Tuple) else inner
        return name_of(annotation.value) in {"list", "tuple", "Sequence", "Iterator", "Callable"} and is_drawn_type(
            last
        )
    if isinstance(annotation, ast.BinOp):  # Content | None
        return is_drawn_type(annotation.left) and is_literal(annotation.right)
    return isinstance(annotation, ast.Name) and annotation.id in DRAWN_TYPES


def functions_of(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def drawing(tree: ast.Module) -> set[str]:
    """Functions and methods of a module that give Content, and callables that it was given to that end."""
    found: set[str] = set()
    others: set[str] = set()
    for function in functions_of(tree):
        (found if is_drawn_type(function.returns) else others).add(function.name)
        for argument in (*function.args.args, *function.args.kwonlyargs):
            if is_drawn_type(argument.annotation):
                found |= {argument.arg, f"_{argument.arg}"}
    return found - others


def imported(tree: ast.Module) -> set[str]:
    """Functions that give Content and come from another module of tui."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tui."):
            file = FOLDER.parent / f"{str(node.module).replace('.', '/')}.py"
            safe = drawing(ast.parse(file.read_text())) if file.exists() else set()
            found |= {alias.asname or alias.name for alias in node.names if alias.name in safe}
    return found


def is_literal(node: ast.expr) -> bool:
    """Written in the source, whichever way it goes at run time."""
    match node:
        case ast.Constant():
            return True
        case ast.IfExp(body=body, orelse=orelse):
            return is_literal(body) and is_literal(orelse)
        case ast.JoinedStr(values=values):
            return all(is_literal(v.value if isinstance(v, ast.FormattedValue) else v) for v in values)
        case ast.BinOp(left=ast.Constant(), op=ast.Mult()):  # " " * width
            return True
    return False


class Reader(ast.NodeVisitor):
    """Reads one module; `faults` says what is wrong, with the line."""

    def __init__(self, file: Path, tree: ast.Module) -> None:
        self.file = file
        self.safe = drawing(tree) | imported(tree)
        self.faults: list[str] = []
        self.raw = set() if file == CONTENT else RAW - {"Segment"} if file in LOG_LINES else RAW
        self.function: ast.FunctionDef | ast.AsyncFunctionDef | None = None
        self.widget = False
        self.constants = {
            target.id
            for node in tree.body
            if isinstance(node, ast.Assign) and is_literal(node.value)
            for target in node.targets
            if isinstance(target, ast.Name)
        } | {
            alias.asname or alias.name  # a constant of another module of tui: named as one
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tui.")
            for alias in node.names
            if alias.name.isupper()
        }
        self.visit(tree)

    def fault(self, node: ast.AST, what: str) -> None:
        self.faults.append(f"{self.file}:{getattr(node, 'lineno', 0)}: {what}: {ast.unparse(node)}")

    def is_safe(self, node: ast.expr, depth: int = 0) -> bool:
        """A literal, Content, or rows of them."""
        again = depth + 1
        match node:
            case ast.Name(id=name):
                return name in self.constants or (depth < 4 and self._holds_content(name, again))
            case ast.Attribute(attr=attr):
                return attr in self.safe
            case ast.Call(func=ast.Attribute(value=value, attr=attr)) if attr in SAME_CONTENT:
                return self.is_safe(value, again)
            case ast.Call(func=func):
                name = name_of(func)
                # Option and raw Content are judged where they are made.
                return name in RAW | {"Option"} or name.rpartition(".")[2] in self.safe
            case ast.BinOp(left=left, right=right, op=ast.Add()):
                return self.is_safe(left, again) and self.is_safe(right, again)
            case ast.IfExp(body=body, orelse=orelse):
                return self.is_safe(body, again) and self.is_safe(orelse, again)
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                return all(self.is_safe(element, again) for element in elements)
            case ast.Starred(value=value):
                return self.is_safe(value, again)
        return is_literal(node)

    def _is_constant(self, node: ast.expr) -> bool:
        return is_literal(node) or (isinstance(node, ast.Name) and node.id in self.constants)

    def _holds_content(self, name: str, depth: int) -> bool:
        """Whether all that a name of this function is ever given is safe."""
        if self.function is None:
            return False
        arguments = [*self.function.args.args, *self.function.args.kwonlyargs]
        given = [argument for argument in arguments if argument.arg == name]
        values = [
            node.value
            for node in ast.walk(self.function)
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value is not None
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
            if isinstance(target, ast.Name) and target.id == name
        ]
        if not given and not values:
            return False
        return all(is_drawn_type(a.annotation) for a in given) and all(self.is_safe(v, depth) for v in values)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        outer, self.function = self.function, node
        if node.name == "render" and not is_drawn_type(node.returns):
            self.fault(node, "render gives something else than Content")
        self.generic_visit(node)
        self.function = outer

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        outer, self.function = self.function, node
        self.generic_visit(node)
        self.function = outer

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        outer = self.widget
        bases = [base.value if isinstance(base, ast.Subscript) else base for base in node.bases]
        self.widget = any(name_of(base) in SUBCLASSED for base in bases)
        self.generic_visit(node)
        self.widget = outer

    def visit_Call(self, node: ast.Call) -> None:
        name = name_of(node.func)
        method = name.rpartition(".")[2]
        for keyword in node.keywords:
            if keyword.arg in NAMED and not self.is_safe(keyword.value):
                self.fault(node, f"{keyword.arg} is a text from elsewhere")
            if keyword.arg == "markup" and not (isinstance(keyword.value, ast.Constant) and not keyword.value.value):
                self.fault(node, "markup")
        if name in ("Input", "TextArea"):
            self.fault(node, "tui/widgets/field.py has the field that is clean")
        elif method in ("from_markup", "render_str"):
            self.fault(node, "markup")
        elif method == "notify":
            self._notify(node)
        elif name in WIDGETS | {"Option"} or (self.widget and method == "__init__"):
            self._drawn(node, node.args[:1])
        elif "." in name and method in METHODS:
            place = METHODS[method]
            self._drawn(node, node.args if place is None else node.args[place : place + 1])
        elif name in self.raw and not all(self._is_constant(argument) for argument in node.args):
            self.fault(node, "only tui/content.py makes Content from a text")
        self.generic_visit(node)

    def _drawn(self, node: ast.Call, arguments: list[ast.expr]) -> None:
        if not all(self.is_safe(argument) for argument in arguments):
            self.fault(node, "a text from elsewhere is drawn")

    def _notify(self, node: ast.Call) -> None:
        """A message is never markup; what is in it was cleaned, since markup=False lets escapes through."""
        off = any(k.arg == "markup" and isinstance(k.value, ast.Constant) and not k.value.value for k in node.keywords)
        told = [*node.args[:1], *(k.value for k in node.keywords if k.arg in ("message", "title"))]
        clean = all(
            self._is_constant(text) or (isinstance(text, ast.Call) and name_of(text.func) in CLEANERS) for text in told
        )
        if not off or not clean:
            self.fault(node, "a notification is cleaned (agent.text) and has markup=False")

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=True))
            for place, value in pairs:
                if isinstance(place, ast.Attribute) and place.attr in ATTRIBUTES and not self.is_safe(value):
                    self.fault(node, f"{place.attr} is a text from elsewhere")
        self.generic_visit(node)


def faults_of(source: str, file: Path = FOLDER / "x.py") -> list[str]:
    return Reader(file, ast.parse(source)).faults


def test_every_text_on_the_screen_went_through_content() -> None:
    files = sorted(FOLDER.rglob("*.py"))
    assert len(files) > 30
    assert [fault for file in files for fault in faults_of(file.read_text(), file)] == []


BAD = """
from agent.text import clean, one_line
from tui.content import cut, plain

class Bad(Static):
    def __init__(self, text: str):
        super().__init__(text)
    def draw(self, text: str) -> str:
        return text
    def act(self, text: str, rows: list[str]):
        said = plain(text)
        said = text
        {}
"""


@pytest.mark.parametrize(
    "line",
    [
        "self.update(text)",
        "self.update(f'{text}')",
        "self.update('a' + text)",
        "self.update(self.draw(text))",
        "self.update(said)",
        "self.update(cut(text, 9))",
        "self.update(clean(text))",
        "self.update(Content.from_markup(text))",
        "self.update(Content(text))",
        "self.update(Text(text))",
        "yield Static(text)",
        "yield Label('[b]' + text)",
        "yield Button(label=text)",
        "table.add_row(plain(text), text)",
        "table.add_column(text)",
        "table.update_cell('row', 'column', text)",
        "options.add_option(text)",
        "options.add_option(Option(text, id='x'))",
        "options.add_options([Option('x'), Option(f'{text}')])",
        "options.replace_option_prompt('x', text)",
        "self.notify(text)",
        "self.notify('x')",
        "self.notify(text, markup=False)",
        "self.notify(plain(text), markup=True)",
        "self.notify('x', title=text, markup=False)",
        "self.border_title = text",
        "self.border_title = cut(text, 9)",
        "self.border_title, self.border_subtitle = plain(text), text",
        "box.border_subtitle = f'{text}'",
        "self.tooltip = text",
        "yield RichLog(markup=True)",
        "yield Input(placeholder=text)",
        "return Strip([Segment(text)])",
        "yield Input(max_length=9)",
    ],
)
def test_a_text_from_elsewhere_is_noticed(line: str) -> None:
    (first, *more) = faults_of(BAD.format(line))
    assert more and ":7: " in first, "the constructor"


@pytest.mark.parametrize(
    "line",
    [
        "self.update(plain(text))",
        "self.update(plain(cut(text, 9)).truncate(9))",
        "self.update(Content('x'))",
        "self.update(plain(text) if text else Content(''))",
        "self.notify(one_line(text), markup=False)",
        "self.notify(f\"bell {'on' if text else 'off'}\", markup=False)",
        "self.border_title = 'Board'",
        "self.border_title = plain(text)",
        "made = plain(text); self.update(made)",
    ],
)
def test_sound_code_passes(line: str) -> None:
    assert len(faults_of(BAD.format(line))) == 1
