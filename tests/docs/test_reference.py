"""docs/playbook.md is what docs/reference.py makes of the models, and explains every key."""

import re
import runpy

from tests.docs.pages import ROOT

REFERENCE = runpy.run_path(str(ROOT / "docs" / "reference.py"))


def test_the_committed_page_is_the_present_one() -> None:
    assert (ROOT / "docs" / "playbook.md").read_text() == REFERENCE["page"](), "make reference writes it again"


def test_every_key_is_explained() -> None:
    rows = re.findall(r"^\| `([^`]+)`(?: \(beside .*?\))? \| .+? \| .*? \| (.*?)\|$", REFERENCE["page"](), re.MULTILINE)
    assert len(rows) > 100
    assert [key for key, said in rows if not said.strip()] == []
