"""The fragments that ship, by name: what an experiment of a playbook may `use`."""

from functools import cache

from agent.paths import shipped_playbooks
from agent.playbook.fragments import Fragments


@cache
def shipped_fragments() -> Fragments:
    """The text of each, from `fragments/` beside the shipped playbooks."""
    files = sorted((shipped_playbooks() / "fragments").glob("*.yaml"))
    return {file.stem: file.read_text(encoding="utf-8") for file in files}
