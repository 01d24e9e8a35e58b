"""docs/tutorial.md: the problems that it shows are those that the loader finds, with their places."""

from agent.playbook.load import load_playbook
from agent.playbook.model import Playbook
from agent.servers.known_flags import all_known_flags
from tests.docs.pages import ROOT, blocks

PAGE = (ROOT / "docs" / "tutorial.md").read_text()


def test_the_mistakes_are_told_as_shown() -> None:
    text = next(block.text for block in blocks(PAGE) if block.text.startswith("# yaml-language-server"))
    head, tp3, rest = text.partition("  - id: tp3\n")
    wrong = head.replace("max-num-seqs: 4", "max-num-seq: 4") + tp3 + rest.replace("four-seqs", "four-seq", 1)
    found = load_playbook(wrong.encode(), "first.yaml", all_known_flags())
    assert not isinstance(found, Playbook)
    told = "\n".join(map(str, found))
    assert any(f"$ tunebot check first.yaml\n{told}\n" in block.text for block in blocks(PAGE))
