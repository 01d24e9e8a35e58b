"""Whether a file has the shape of a playbook: the model's complaints, in plain words and at their place."""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from agent.playbook.locate import Spot, keys_of, locate
from agent.playbook.problems import Place, Report, dotted, shown, within
from agent.playbook.tree import Broken, Items, Node, Scalar, Table, found
from agent.playbook.units import FROM_FILE
from agent.playbook.values import plain_value, resolve

M = TypeVar("M", bound=BaseModel)

_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
}
_PATTERNS = {
    "host": ("cannot be the name of a host", "write a name of ~/.ssh/config, such as gpu8 or user@gpu8"),
    "ssh": ("cannot be the name of a host", "write a name of ~/.ssh/config, such as gpu8 or user@gpu8"),
    "version": ("is not a range of versions", 'write for example ">=0.5.9,<0.5.11" or "==0.5.10"'),
    **dict.fromkeys(("nvcc", "torch", "driver", "sm"), ("is not a range of versions", 'write for example ">=12.0"')),
    "sha256": ("is not a SHA-256 digest", "write its 64 hexadecimal digits, or leave it out"),
    "get": ("is not the address of a page", "write for example http://127.0.0.1:9090/-/healthy"),
}
_ID = ("cannot be a name here", "use up to 64 letters, digits, '.', '_' or '-', beginning with a letter or digit")


def build_model(root: Node, report: Report, model: type[M]) -> M | None:
    """The model (a playbook, say), or None with every deviation of the shape reported."""
    try:
        return _validated(plain_value(root, report), model)
    except ValidationError as error:
        texts = frozenset(_numbers_for_text(root, error, model))
    try:
        return _validated(plain_value(root, report, texts), model)
    except ValidationError as error:
        details = error.errors(include_url=False, include_input=False)
        missing: dict[tuple[str | int, ...], list[str]] = {}
        for detail in details:
            if detail["type"] == "missing":
                missing.setdefault(detail["loc"][:-1], []).append(str(detail["loc"][-1]))
            else:
                _report(root, detail, report, model)
        for loc, keys in missing.items():
            _report_missing(locate(root, loc, model), keys, report)
    return None


def _validated(value: Any, model: type[M]) -> M:
    # Only the keys as written in YAML: `in`, never the attribute that it fills.
    return model.model_validate(value, context=FROM_FILE, by_alias=True, by_name=False)


def _numbers_for_text(root: Node, error: ValidationError, model: type[BaseModel]) -> list[int]:
    """Scalars that look like numbers where text is wanted: `name: 5` and `[sleep, 5]` mean what they say."""
    wrong = [detail for detail in error.errors(include_url=False) if detail["type"] == "string_type"]
    nodes = [locate(root, detail["loc"], model).node for detail in wrong]
    return [id(node) for node in nodes if isinstance(node, Scalar) and resolve(node) is not None]


def _report(root: Node, detail: ErrorDetails, report: Report, model: type[BaseModel]) -> None:
    kind, loc = detail["type"], detail["loc"]
    if kind == "extra_forbidden":
        _report_unknown_key(locate(root, loc[:-1], model), str(loc[-1]), report)
        return
    spot = locate(root, loc, model)
    if isinstance(spot.node, Broken) or (kind == "too_short" and isinstance(spot.node, Items) and spot.node.nodes):
        return  # said already: pydantic calls a list too short when its elements are wrong
    if kind in ("union_tag_not_found", "union_tag_invalid"):
        _report_no_entry(spot, report)
    else:
        message, hint = _words(spot, detail, report)
        report.add(_place(spot), spot.path, message, hint=hint)


def _place(spot: Spot) -> Place:
    """A mapping is pointed at by its key, which says more than its first line."""
    return spot.key.place if spot.key and isinstance(spot.node, Table) else spot.node.place


def _report_missing(spot: Spot, keys: list[str], report: Report) -> None:
    names = ", ".join(map(shown, keys))
    message = f"missing key{'s' if len(keys) > 1 else ''} {names}{within(spot.path)}"
    report.add(_place(spot), (*spot.path, keys[0]), message)


def _report_unknown_key(spot: Spot, name: str, report: Report) -> None:
    if not isinstance(spot.node, Table):
        return
    key = spot.node.entries[name][0]
    path = (*spot.path, name)
    if name in spot.rivals:
        first = next(rival for rival in spot.node.entries if rival in spot.rivals)
        message = f"one entry of {dotted(spot.path[:-1])} holds one thing, found {shown(first)} and {shown(name)}"
        report.add(key.place, path, message, hint=f"begin another entry: '- {name}: ...'")
        return
    unused = [known for known in keys_of(spot.expected) if known not in spot.node.entries]
    hint = report.guess(name, unused)
    report.add(key.place, path, f"unknown key {shown(name)}{within(spot.path)}", hint=hint)


def _report_no_entry(spot: Spot, report: Report) -> None:
    """An entry of `preflight` or `research` that begins with none of the keys that say what it is."""
    kinds = keys_of(spot.expected)
    what = "preflight check" if "preflight" in spot.path else "research task"
    first = next(iter(spot.node.entries.values()), None) if isinstance(spot.node, Table) else None
    if first is None:
        message = f"expected a {what}, one of {', '.join(kinds)}; found {found(spot.node)}"
        report.add(spot.node.place, spot.path, message)
        return
    name = first[0].text
    report.add(first[0].place, (*spot.path, name), f"unknown {what} {shown(name)}", hint=report.guess(name, kinds))


def _words(spot: Spot, detail: ErrorDetails, report: Report) -> tuple[str, str | None]:
    """What is wrong with a value, and what to write instead."""
    kind, context = detail["type"], detail.get("ctx", {})
    name = dotted(spot.path) or "the file"
    if spot.path == ("tunebot",):
        return f"this tunebot reads playbooks of format 1, found {found(spot.node)}", "write 'tunebot: 1'"
    if kind in _WANTED:
        return f"{name}: expected {_WANTED[kind]}, found {found(spot.node)}", _shape_hint(spot, kind)
    if kind == "literal_error":
        return _literal(spot, name, context["expected"], report)
    if kind == "string_pattern_mismatch":
        last = spot.path[-1]
        what, hint = _PATTERNS.get(last, _ID) if isinstance(last, str) else _ID
        return f"{name}: {found(spot.node)} {what}", hint
    if kind == "value_error":
        text = str(context["error"])
        return f"{name}: {text}" + _but_found(spot.node), _unit_hint(spot.node, text)
    for limit, words in (("ge", "at least"), ("gt", "above"), ("le", "at most"), ("lt", "below")):
        if limit in context:
            return f"{name}: must be {words} {context[limit]}, found {found(spot.node)}", None
    if kind == "too_short":
        return f"{name}: the list needs at least {context['min_length']} element", None
    if kind == "too_long":
        return f"{name}: the list is too long ({context['actual_length']}; at most {context['max_length']})", None
    if kind in ("string_too_short", "string_too_long"):
        limit = f"at least {context['min_length']}" if "min_length" in context else f"at most {context['max_length']}"
        return f"{name}: the text must have {limit} characters", None
    return f"{name}: {detail['msg'].lower()}", None


def _shape_hint(spot: Spot, kind: str) -> str | None:
    node = spot.node
    if not isinstance(node, Scalar):
        return None
    if node.plain and resolve(node) is None:
        return "give it a value or remove the key" if spot.key else 'write "" for empty text'
    if kind == "tuple_type":
        words = node.text.split() if spot.path[-1] in ("command", "run") else [node.text]
        return f"write a list: [{', '.join(shown(word)[1:-1] for word in words[:12])}]"
    if (
        kind in ("int_type", "float_type")
        and not node.plain
        and resolve(Scalar(node.place, node.text, True)) != node.text
    ):
        return "remove the quotes"
    return _switch_hint(node.text) if kind == "bool_type" else None


def _switch_hint(text: str) -> str | None:
    meant = {"yes": "true", "on": "true", "no": "false", "off": "false"}.get(text.lower())
    return f"write {meant}" if meant else None


def _literal(spot: Spot, name: str, expected: str, report: Report) -> tuple[str, str | None]:
    text = spot.node.text if isinstance(spot.node, Scalar) else ""
    if spot.path == ("server", "kind") and text:
        return f"server kind {shown(text)} is not supported", "supported are sglang, vllm and llamacpp"
    words = expected.replace(" or ", ", ").replace("'", "").split(", ")
    words = [word.lower() if word in ("True", "False") else word for word in words]
    hint = _switch_hint(text) if "true" in words else _did_you_mean(text, words, report)
    return f"{name}: expected {_listed(words)}, found {found(spot.node)}", hint


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"one of {', '.join(words)}"


def _did_you_mean(text: str, words: list[str], report: Report) -> str | None:
    hint = report.guess(text, words) if text else None
    return hint if hint and hint.startswith("did") else None


def _but_found(node: Node) -> str:
    return f", found {found(node)}" if isinstance(node, Scalar) else ""


def _unit_hint(node: Node, text: str) -> str | None:
    number = resolve(node) if isinstance(node, Scalar) else None
    if not isinstance(number, int | float) or isinstance(number, bool) or number <= 0:
        return None
    if "duration" in text:
        return f"write the unit, such as {number}s or {number}m"
    if "size" in text:
        return f"write the unit, such as {number}GiB"
    if "of one call" in text:
        return f"write the unit, such as {number}us"
    return f"did you mean {number * 100:g}%?" if number < 1 else f"did you mean {number:g}%?"
