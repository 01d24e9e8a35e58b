"""Small playbooks to change in tests."""

from agent.fragments import shipped_fragments
from agent.playbook.load import load_playbook
from agent.playbook.model import Playbook
from agent.playbook.problems import Problem
from agent.servers.known_flags import all_known_flags

HEAD = """\
tunebot: 1
name: small
target: local
server:
  kind: sglang
  command: [python3, -m, sglang.launch_server]
  source: {sglang: ~/sglang}
  args: {model-path: /m}
objective: {workload: single}
workloads:
  - {name: single}
"""
BASELINE = "experiments:\n  - {id: base, baseline: true}\n"
SMALL = HEAD + BASELINE
"""A playbook of 13 lines without a problem."""


def load(text: str | bytes) -> Playbook | list[Problem]:
    """The text as tunebot would load it from `file.yaml`."""
    data = text if isinstance(text, bytes) else text.encode()
    return load_playbook(data, "file.yaml", all_known_flags(), fragments=shipped_fragments())


def good(text: str) -> Playbook:
    """The playbook of a text without problems."""
    result = load(text)
    assert isinstance(result, Playbook), "\n".join(map(str, result))
    return result


def bad(text: str | bytes) -> list[Problem]:
    """The problems of a text that has some."""
    result = load(text)
    assert isinstance(result, list) and result
    return result
