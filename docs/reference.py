"""`make reference`: playbooks/schema.json and docs/playbook.md, both from the models of `agent/playbook`.

What a key is stands in the docstring below its field; an entry of a list has its example as the docstring of its class.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.playbook.checks import HOST_FACTS
from agent.playbook.load import LARGEST
from agent.playbook.model import Playbook
from agent.playbook.schema import schema_text

PAGE = Path(__file__).with_name("playbook.md")
SCHEMA = Path(__file__).parent.parent / "playbooks" / "schema.json"

Part = dict[str, Any]
"""A piece of a JSON Schema."""

INTRO = f"""\
<!-- `make reference` makes this page; what it says of a key stands in agent/playbook/*.py. -->
# Playbook reference

A playbook is one YAML file of at most {LARGEST // 1024} KiB. `tunebot check FILE` tells every problem at once, each
with its line and the nearest right name. `tunebot schema` prints the same keys as a JSON Schema; with the first line
below an editor completes and explains them.

```yaml
# yaml-language-server: $schema=./schema.json
tunebot: 1
name: first-try
target: local
server:
  kind: vllm
  command: [~/venv/bin/vllm, serve]
  args: {{model: /models/my-model, max-model-len: 8192}}
objective: {{workload: chat}}
workloads:
  - {{name: chat, concurrency: 16, requests: 64}}
experiments:
  - {{id: baseline, baseline: true}}
  - {{id: more-seqs, why: the queue is never empty, args: {{max-num-seqs: 512}}}}
```

[example.yaml](../playbooks/example.yaml) is a long one. Keys that are not listed here are refused.

## How values are read
Under `args` and `env` what you write is what the server gets: `0.10`, `1e3`, `no` and `010` arrive as written. In
`args`, `true` is a switch, `false` its absence, `null` takes an inherited flag away, a list is several values of one
flag, and JSON is a quoted string. In `env` everything but `null` is text. Flags are written without dashes: `tp: 8`.

Everywhere else:

| form | is written |
| --- | --- |
| duration | with its unit, s, m or h: `90s`, `25m`, `1.5h` |
| time of a call | with its unit, us, ms or s: `200us`, `1.5ms` |
| percentage | `2%` |
| size | with its unit, MB, GB, TB, MiB, GiB or TiB: `80GiB` |
| version range | `">=0.5.9,<0.5.11"`, by `==`, `!=`, `<=`, `>=`, `~=`, `<`, `>`; in quotes, as YAML wants it |
| name | letters, digits, `.`, `_`, `-`; at most 64 |
| argv | a list of words; no shell reads it. A leading `~/` of a word is the home on the target |

A source file is `NAME:path`, with a name of `server.source`. These facts of the host are filled in where a check takes
them: {", ".join(f"`{{{fact}}}`" for fact in HOST_FACTS)}.
"""

_FORMS = (
    (r"[smh]$", "duration"),
    (r"(us|ms|s)$", "time of a call"),
    (r"%$", "percentage"),
    (r"[MGT]i?B$", "size"),
    (r"(==|!=|<=", "version range"),
    (r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", "name"),
)
"""What stands in the pattern of a text, and what such a text is called above."""


@dataclass(frozen=True)
class Section:
    """One mapping of the format, or one kind of entry of a list: its heading, its level, what it is, its keys."""

    title: str
    level: int
    text: str
    rows: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [f"{'#' * self.level} {self.title}", self.text]
        if self.rows:
            parts.append("\n".join(["| key | form | default | what it is |", "| --- | --- | --- | --- |", *self.rows]))
        return "\n\n".join(part for part in parts if part)


@dataclass
class Reference:
    """The sections that a schema leads to, each mapping once, in the order in which its keys are met."""

    defs: dict[str, Part]
    sections: list[Section] = field(default_factory=list)
    anchors: dict[str, str] = field(default_factory=dict)
    """The anchor of each mapping, and of each list of entries by the key that holds it."""

    def add(self, title: str, level: int, part: Part, within: str) -> None:
        """A mapping, then what is under its keys; `within` says where those are."""
        below: list[tuple[str, str, list[str]]] = []
        for key, value in part.get("properties", {}).items():
            new = [name for name in _referred(value) if name not in self.anchors]
            heading = f"{key} (in {within})" if within else key
            self.anchors |= dict.fromkeys(new, slug(heading))
            if new:
                below.append((key, heading, new))
        self.sections.append(Section(title, level, part.get("description", ""), tuple(self._rows(part))))
        for key, heading, names in below:
            deeper = level + 1 if within else level
            if self._is_entry(names[0]):
                self._add_entries(heading, deeper, names)
            else:
                self.add(heading, deeper, self.defs[names[0]], key)

    def _is_entry(self, name: str) -> bool:
        return str(self.defs[name].get("description", "")).startswith("`- ")

    def _add_entries(self, title: str, level: int, names: list[str]) -> None:
        """A list whose entries are known by the key that they begin with."""
        keys = [next(iter(self.defs[name]["properties"])) for name in names]
        links = ", ".join(f"[{key}](#{slug(key)})" for key in keys)
        self.sections.append(Section(title, level, f"A list. Each entry begins with what it is: {links}."))
        for key, name in zip(keys, names, strict=True):
            entry = self.defs[name]
            about = entry["properties"][key]
            example = f"```yaml\n{entry['description'].strip('`')}\n```"
            (inner,) = list(_referred(about)) or [""]
            self.anchors[inner] = slug(key)
            rest = {other: value for other, value in entry["properties"].items() if other != key}
            own = self.defs[inner] if inner else {"properties": {key: about}, "required": [key]}
            rows = sorted(self._rows(own), key=lambda row: "| required |" not in row)
            rows += [row.replace("` |", f"` (beside `{key}`) |", 1) for row in self._rows({"properties": rest})]
            text = "\n\n".join(part for part in (self.defs.get(inner, {}).get("description", ""), example) if part)
            self.sections.append(Section(key, level + 1, text, tuple(rows)))

    def _rows(self, part: Part) -> Iterator[str]:
        for key, value in part.get("properties", {}).items():
            default = "required" if key in part.get("required", ()) else _default(value)
            said = " ".join(value.get("description", "").split()).replace("|", "\\|")
            yield f"| `{key}` | {self._form(value)} | {default} | {said} |"

    def _form(self, part: Part) -> str:
        """What kind of value it is, in words."""
        if "$ref" in part:
            name = part["$ref"].rpartition("/")[2]
            return f"[mapping](#{self.anchors[name]})"
        if options := part.get("anyOf") or part.get("oneOf"):
            entries = [name for name in _referred(part) if self._is_entry(name)]
            if entries:
                return f"[entries](#{self.anchors[entries[0]]})"
            forms = [self._form(option) for option in options if option.get("type") != "null"]
            return " or ".join(dict.fromkeys(forms))
        if "const" in part or "enum" in part:
            return ", ".join(map(_written, part.get("enum", [part.get("const")])))
        return self._form_of_type(part)

    def _forms(self, part: Part) -> str:
        return self._form(part).replace("[mapping]", "[mappings]")

    def _form_of_type(self, part: Part) -> str:
        match part.get("type"):
            case "array":
                return f"list of {self._forms(part['items'])}"
            case "object":
                values = part["additionalProperties"]
                return f"names with {self._forms(values) if '$ref' in values or 'type' in values else 'values'}"
            case "integer" | "number" as kind:
                return ("whole number" if kind == "integer" else "number") + _limits(part)
            case "boolean":
                return "`true` or `false`"
        return next((form for mark, form in _FORMS if mark in part.get("pattern", "")), "text")


def _limits(part: Part) -> str:
    low, high = part.get("minimum"), part.get("maximum")
    if low is not None and high is not None:
        return f", {low:,} to {high:,}"
    above = part.get("exclusiveMinimum")
    return f" from {low:,}" if low is not None else f" above {above:,}" if above is not None else ""


def _default(part: Part) -> str:
    """The default as it would be written; nothing where leaving the key out means that there is none."""
    value = part.get("default")
    if value in (None, "", [], {}):
        return ""
    if isinstance(value, float) and part.get("type") == "string":
        return f"`{value:.0%}`" if part["pattern"].endswith("%$") else f"`{value / 60:.0f}m`"
    return _written(value)


def _written(value: object) -> str:
    return f"`{json.dumps(value)}`".replace('"', "")


def _referred(part: Part) -> Iterator[str]:
    """The names of the mappings that a value may be or hold."""
    if "$ref" in part:
        yield part["$ref"].rpartition("/")[2]
    inner = (part.get("items"), part.get("additionalProperties"))
    for option in (*part.get("anyOf", ()), *part.get("oneOf", ()), *inner):
        if isinstance(option, dict):
            yield from _referred(option)


def slug(heading: str) -> str:
    """The anchor that a heading gets."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def page() -> str:
    """The whole page."""
    schema = Playbook.model_json_schema(by_alias=True)
    reference = Reference(schema["$defs"])
    reference.add("Top level", 2, schema, "")
    return "\n\n".join([INTRO.rstrip(), *map(str, reference.sections)]) + "\n"


if __name__ == "__main__":
    SCHEMA.write_text(schema_text(), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")
