"""Python text -> syntax tree, in whatever thread; the text is never run."""

import ast
import warnings
from threading import Lock
from typing import cast

MAX_SOURCE = 1 << 20
"""Characters that are parsed; a longer file is data rather than source."""

_ONE_AT_A_TIME = Lock()
"""CPython 3.11 counts the depth of a tree that is being made for all threads together, and a collection of garbage lets
another thread in (SystemError: "AST constructor recursion depth mismatch")."""


class Unparsable(Exception):
    """The text is not Python that can be parsed."""


def parse(source: str) -> ast.Module:
    """The syntax tree of a text. Raises Unparsable for whatever is wrong with it."""
    return cast(ast.Module, _parsed(source, "exec"))


def parse_expression(source: str) -> ast.expr:
    """The syntax tree of an expression. Raises Unparsable for whatever is wrong with it."""
    return cast(ast.Expression, _parsed(source, "eval")).body


def literal(source: str) -> object:
    """The value of a literal, containers of literals too. Raises Unparsable for whatever is none."""
    try:
        return ast.literal_eval(parse_expression(source.strip()))
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        raise Unparsable("it is no literal") from error


def _parsed(source: str, mode: str) -> ast.AST:
    if len(source) > MAX_SOURCE:
        raise Unparsable("it is too long to parse")
    try:
        with _ONE_AT_A_TIME, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a doubtful escape in someone's string is not for our terminal
            return ast.parse(source, mode=mode)
    except SyntaxError as error:
        raise Unparsable(f"it is not Python that can be parsed (line {error.lineno}: {error.msg})") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise Unparsable("it is not Python that can be parsed") from error
