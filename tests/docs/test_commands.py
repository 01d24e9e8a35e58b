"""What the pages tell a reader to type exists: commands, options, make targets, files, playbooks, links."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from agent.cli import make_parser
from agent.fragments import shipped_fragments
from agent.playbook.load import load_playbook
from agent.playbook.model import Playbook
from agent.servers.known_flags import all_known_flags
from agent.targets.file import load_targets
from tests.docs.pages import PAGES, ROOT, Block, blocks, commands, headings, inline, links, name_of, shell_lines

each_page = pytest.mark.parametrize("page", PAGES, ids=name_of)

DEFAULTS = {
    "tunebot": "tunebot: 1",
    "name": "name: snippet",
    "target": "target: local",
    "server": "server: {kind: sglang, command: [python3], source: {sglang: ~/sglang, flashinfer: ~/flashinfer}}",
    "objective": "objective: {workload: %s}",
    "workloads": "workloads:\n  - {name: single}",
    "experiments": "experiments:\n  - {id: baseline, baseline: true}",
}
"""What a whole playbook needs beside a piece of one."""


@each_page
def test_commands_are_understood(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    parser = make_parser()
    for words in commands(page.read_text(), "tunebot"):
        try:
            # A command alone is its name, which the text speaks of.
            parser.parse_args([*words, "--help"] if len(words) == 1 else words)
        except SystemExit as ended:
            assert ended.code == 0, f"tunebot {' '.join(words)}: {capsys.readouterr().err.splitlines()[-1]}"


@each_page
def test_targets_of_make_exist(page: Path) -> None:
    known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    wanted = {words[0] for words in commands(page.read_text(), "make") if words}
    assert wanted <= known


@each_page
def test_files_exist(page: Path) -> None:
    text = page.read_text()
    typed = "\n".join([*shell_lines(text), *inline(text)])
    found = set(re.findall(r"(?<![\w/:.~-])((?:agent|tui|docs|tests|playbooks|logs)/[\w./*-]*\w)", typed))
    found |= {f"{module.replace('.', '/')}" for module in re.findall(r"-m ((?:tests|agent)[\w.]+)", typed)}
    missing = [name for name in found if not _is_there(name)]
    assert not missing


def _is_there(name: str) -> bool:
    """Whether such a file or module is in the repository; names of KINDs, SESSIONs and dates stand for others."""
    if re.search(r"[A-Z]{4}|\d{8}", name):
        return True
    return any(list(ROOT.glob(name + end)) for end in ("", ".py"))


@each_page
def test_snippets_are_sound(page: Path) -> None:
    wrong = []
    for block in blocks(page.read_text()):
        if block.language == "yaml":
            wrong += [f"{name_of(page)}:{block.line}: {problem}" for problem in _problems(block)]
    assert not wrong, "\n".join(wrong)


def _problems(block: Block) -> list[object]:
    """What the loader says of a whole playbook, of a piece of one, of entries of an experiment, or of targets."""
    read: Any = yaml.safe_load(block.text)
    text = block.text
    if isinstance(read, list):
        key = next(iter(read[0]))
        where = "research" if key in ("grep", "read", "ask", "probe") else "preflight"
        entries = "".join(f"      {line}\n" for line in text.splitlines())
        text = f"experiments:\n  - id: baseline\n    baseline: true\n    {where}:\n{entries}"
        read = {"experiments": read}
    if not read.keys() <= Playbook.model_fields.keys():
        targets = load_targets(text.encode(), "targets.yaml")
        return list(targets) if isinstance(targets, list) else []
    workload = read.get("workloads", [{"name": "single"}])[0]["name"]
    missing = [part for key, part in DEFAULTS.items() if key not in read]
    whole = "\n".join([text, *(part % workload if "%s" in part else part for part in missing)])
    found = load_playbook(whole.encode(), "snippet", all_known_flags(), fragments=shipped_fragments())
    return list(found) if isinstance(found, list) else []


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page.read_text()):
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), link
        if anchor:
            assert anchor in headings(target.read_text()), link


@each_page
def test_anchors_are_unique(page: Path) -> None:
    found = headings(page.read_text())
    assert len(found) == len(set(found))


def test_the_index_names_every_page() -> None:
    listed = {(ROOT / "docs" / link).resolve() for link in links((ROOT / "docs" / "README.md").read_text())}
    assert set((ROOT / "docs").glob("*.md")) - {ROOT / "docs" / "README.md"} <= listed
