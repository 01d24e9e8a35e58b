"""The JSON Schema of a playbook file, for editors."""

import json
from typing import Any

from agent.playbook.model import Playbook

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def playbook_schema() -> dict[str, Any]:
    """The schema (draft 2020-12) with the keys as they are written in YAML."""
    schema = Playbook.model_json_schema(by_alias=True)
    _drop_converted_defaults(schema)
    return {"$schema": DIALECT, **schema, "title": "tunebot playbook"}


def schema_text() -> str:
    """The schema as `playbooks/schema.json` holds it."""
    return json.dumps(playbook_schema(), indent=1, ensure_ascii=False) + "\n"


def _drop_converted_defaults(part: Any) -> None:
    # The default of a duration is a number of seconds; an editor would insert it, and it would be refused.
    if isinstance(part, list):
        for item in part:
            _drop_converted_defaults(item)
    elif isinstance(part, dict):
        if part.get("type") == "string" and isinstance(part.get("default"), float):
            del part["default"]
        for item in part.values():
            _drop_converted_defaults(item)
