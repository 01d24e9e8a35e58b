"""Folders that a target lets research read, beside those of the playbook: as confined as these."""

from dataclasses import replace

import pytest

from agent.core.parse_grep import parse_grep, places_of
from agent.playbook.model import GrepEntry
from agent.run import host_of
from tests.tui.states import begun

from .conftest import Bench, asker
from .fake_llm import answers, serve, uses


@pytest.fixture
def trees(bench: Bench) -> Bench:
    """`extra` and `proc` may be read too; there is a link out of `extra`, and files that look secret."""
    extra = bench.home / "src" / "extra"
    (extra / ".ssh").mkdir(parents=True)
    (bench.home / "outside.py").write_text("needle = 'outside'\n")
    (extra / "link.py").symlink_to(bench.home / "outside.py")
    for name in ("code.py", ".ssh/id_rsa", ".env", ".netrc", "hf_token", "deep/.aws/credentials"):
        (extra / name).parent.mkdir(parents=True, exist_ok=True)
        (extra / name).write_text(f"needle = '{name}'\n")
    bench.target.trees = {"extra": "~/src/extra", "self": "/proc/self", "sglang": "~/src/extra"}
    return bench


async def test_a_tree_of_the_target_is_read(trees: Bench) -> None:
    status, finding = await trees.run({"grep": {"pattern": "needle", "in": ["extra:"]}})
    assert (status, [quote.path for quote in finding.quotes]) == ("done", ["extra:code.py"])
    status, finding = await trees.run({"read": {"in": "extra:code.py", "around": "needle"}})
    assert (status, finding.quotes[0].text) == ("done", "needle = 'code.py'")


async def test_a_person_can_search_it_too(trees: Bench) -> None:
    state = replace(begun(), host=await host_of(trees.target))
    assert places_of(state, "base") == "sglang: flashinfer: extra: self:"
    entry = parse_grep(state, "base", "needle", "extra:")
    assert isinstance(entry, GrepEntry)
    _, finding = await trees.run(entry.model_dump(by_alias=True, exclude_defaults=True))
    assert [quote.path for quote in finding.quotes] == ["extra:code.py"]


async def test_the_playbooks_own_source_wins(trees: Bench) -> None:
    _, finding = await trees.run({"grep": {"pattern": "needle|moe_a2a_backend:", "in": ["sglang:"]}})
    assert [quote.path for quote in finding.quotes] == ["sglang:srt/server_args.py"]


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("extra:link.py", "it leads out of the source"),
        ("extra:../outside.py", "it must stay inside the source"),
        ("extra:.ssh/id_rsa", "such files hold secrets"),
        ("extra:.env", "such files hold secrets"),
        ("extra:.netrc", "such files hold secrets"),
        ("extra:hf_token", "such files hold secrets"),
        ("extra:deep/.aws/credentials", "such files hold secrets"),
        ("self:environ", "it is not part of a source tree"),
        ("other:code.py", "does not begin with the name of a source (there are: extra, self, sglang)"),
    ],
)
async def test_nothing_else_is(trees: Bench, path: str, words: str) -> None:
    status, finding = await trees.run({"read": {"in": path, "around": "needle"}})
    assert status == "failed" and words in finding.summary
    assert not finding.quotes


async def test_an_llm_is_told_what_it_may_read(trees: Bench) -> None:
    async with serve(uses(("grep", {"pattern": "needle", "paths": ["extra:"]})), answers("Done.")) as llm:
        trees.asker = asker(llm.url)
        status, _ = await trees.run({"ask": "What is there?"})
    assert status == "done" and "extra:code.py\n1: needle" in llm.told[0]["content"]
    assert "(as source:relative/path): extra, self, sglang\n" in llm.requests[0]["system"]
