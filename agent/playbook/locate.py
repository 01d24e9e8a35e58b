"""From the location in a pydantic error to the value in the file: a walk over the types and the tree at once.

pydantic's locations hold names of union members that do not stand in the file; the types tell which those are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, Tag

from agent.playbook.model import Playbook
from agent.playbook.problems import Path
from agent.playbook.tree import Items, Node, Scalar, Table


@dataclass(frozen=True, slots=True)
class Spot:
    """Where an error is: the value, the key it stands under (if any), and what the types expect there."""

    node: Node
    path: Path
    key: Scalar | None
    expected: Any
    rivals: tuple[str, ...]
    """The first keys of an entry that holds exactly one of them, where the spot is such an entry."""


def locate(root: Node, loc: tuple[str | int, ...], model: type[BaseModel] = Playbook) -> Spot:
    """The deepest value of the file on the way to a location in a model."""
    node, key = root, None
    path: Path = ()
    expected: Any = model
    rivals: tuple[str, ...] = ()
    for part in loc:
        expected = _unwrap(expected)
        members = _tagged(expected)
        if isinstance(part, str) and part in members:
            expected, rivals = members[part], tuple(members)
            continue
        step = _field_type(expected, part)
        child = _child(node, part)
        if step is None or child is None:
            continue
        expected, rivals = step, ()
        key, node = child
        path = (*path, part)
    return Spot(node, path, key, _unwrap(expected), rivals)


def keys_of(model: Any) -> tuple[str, ...]:
    """The keys of a model as they are written in YAML; of a choice of entries, the key that each begins with."""
    if isinstance(model, type) and issubclass(model, BaseModel):
        return tuple(info.alias or name for name, info in model.model_fields.items())
    return tuple(_tagged(model))


def _unwrap(expected: Any) -> Any:
    while get_origin(expected) is Annotated:
        expected = get_args(expected)[0]
    if get_origin(expected) in (Union, UnionType):
        members = [member for member in get_args(expected) if member is not NoneType]
        if len(members) == 1:
            return _unwrap(members[0])
    return expected


def _tagged(expected: Any) -> dict[str, Any]:
    if get_origin(expected) not in (Union, UnionType):
        return {}
    return {
        str(extra.tag): member
        for member in get_args(expected)
        if get_origin(member) is Annotated
        for extra in get_args(member)[1:]
        if isinstance(extra, Tag)
    }


def _field_type(expected: Any, part: str | int) -> Any:
    if isinstance(expected, type) and issubclass(expected, BaseModel):
        return next(
            (info.annotation for name, info in expected.model_fields.items() if part == (info.alias or name)), None
        )
    if get_origin(expected) is tuple:
        return get_args(expected)[0]
    return get_args(expected)[1] if get_origin(expected) is Mapping else None


def _child(node: Node, part: str | int) -> tuple[Scalar | None, Node] | None:
    if isinstance(node, Table) and isinstance(part, str):
        return node.entries.get(part)
    if isinstance(node, Items) and isinstance(part, int):
        return None, node.nodes[part]
    return None
