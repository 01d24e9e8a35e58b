"""What is printed about flags follows the tree: `tunebot flags`, `--uses` and `check` on a copy that is edited."""

import json
from pathlib import Path

import pytest

from agent.cli import main

from .trees import SERVER_ARGS, monolith, simulated, written

RENAMED = ("stream-interval", "page-size", "schedule-policy")
DELETED = ("max-prefill-tokens", "tool-call-parser", "revision")
ADDED = ("added-0", "added-1", "added-2")


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return written(simulated("0.5.9"), tmp_path / "sglang")


def edit(tree: Path) -> None:
    """Three flags added, three renamed, three deleted, one assertion changed."""
    file = tree / SERVER_ARGS
    text = file.read_text()
    call = "        parser.add_argument("
    first = text.index(call)
    text = text[:first] + "".join(f'{call}"--{name}", type=int, default=7)\n' for name in ADDED) + text[first:]
    for name in RENAMED:
        assert f'"--{name}"' in text
        text = text.replace(f'"--{name}"', f'"--now-{name}"')
    for name in DELETED:
        at = text.rindex(call, 0, text.index(f'"--{name}"'))
        text = text[:at] + text[text.index("\n        )\n", at) + len("\n        )\n") :]
    asserted = 'assert self.moe_runner_backend in ["flashinfer_cutlass"'
    assert asserted in text
    file.write_text(text.replace(asserted, f'{asserted}, "triton"'))


def playbook(tree: Path, *experiments: str, server: str = "tp: 8", target: str = "local") -> Path:
    text = f"""tunebot: 1
name: follow
target: {target}
server:
  kind: sglang
  command: [python3, -m, sglang.launch_server]
  source: {{sglang: {tree}}}
  args: {{model-path: /m, {server}}}
objective: {{workload: single}}
workloads: [{{name: single}}]
experiments:
  - {{id: base, baseline: true}}
"""
    file = tree.parent / "follow.yaml"
    file.write_text(text + "".join(f"  - {{{one}}}\n" for one in experiments))
    return file


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """The exit code, stdout and stderr of a command."""
    code = main(words)
    out, err = capsys.readouterr()
    return code, out, err


def listed(capsys: pytest.CaptureFixture[str], tree: Path) -> set[str]:
    code, out, _ = printed(capsys, "flags", "--source", str(tree))
    assert code == 0
    return {line.split()[0] for line in out.splitlines()[1:-1]}


def at(file: Path, word: str) -> str:
    """`line:column` of a word in a file."""
    before, _, _ = file.read_text().partition(word)
    return f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


def said(err: str, file: Path) -> list[str]:
    """The lines of stderr about places of a file, without its name."""
    return [line.removeprefix(f"{file}:") for line in err.splitlines() if line.startswith(str(file))]


def test_flags_uses_and_check_follow_the_tree(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    book = playbook(
        tree,
        "id: kept, args: {page-size: 64, revision: main}",
        "id: fresh, args: {added-1: 3, added-2: many}",
        "id: ep, args: {moe-a2a-backend: flashinfer}",
    )
    line = at(tree / SERVER_ARGS, 'assert self.moe_runner_backend in ["flashinfer_cutlass"').partition(":")[0]
    asserted = f"so says {SERVER_ARGS}:{line} of SGLang 0.5.9"
    before = listed(capsys, tree)
    code, _, err = printed(capsys, "check", str(book))
    assert code == 2
    assert said(err, book) == [
        f"{at(book, 'added-1')}: SGLang 0.5.9 has no flag 'added-1'",
        f"{at(book, 'added-2')}: SGLang 0.5.9 has no flag 'added-2'",
        f"{at(book, 'ep, args')}: warning: 'ep' needs --moe-runner-backend flashinfer_cutlass; {asserted}",
    ]  # fmt: skip

    edit(tree)
    now = listed(capsys, tree)
    assert now - before == {*ADDED, *(f"now-{name}" for name in RENAMED)}
    assert before - now == {*RENAMED, *DELETED}
    _, out, _ = printed(capsys, "flags", "--uses", "moe-a2a-backend", "--source", str(tree))
    assert "  asserts  moe_runner_backend in [flashinfer_cutlass, triton]" in out
    code, _, err = printed(capsys, "check", str(book))
    assert code == 2
    assert said(err, book) == [
        f"{at(book, 'page-size')}: SGLang 0.5.9 has no flag 'page-size'; did you mean 'now-page-size'?",
        f"{at(book, 'revision')}: SGLang 0.5.9 has no flag 'revision'",
        f"{at(book, 'many')}: 'added-2' takes a whole number, found 'many'",
        f"{at(book, 'ep, args')}: warning: 'ep' needs --moe-runner-backend flashinfer_cutlass (or triton); {asserted}",
    ]  # fmt: skip

    # What only this tree knows is no mistake, and no other command takes it for one.
    right = playbook(tree, "id: fresh, args: {added-1: 3, now-page-size: 64}")
    code, out, err = printed(capsys, "check", str(right))
    assert (code, err) == (0, "") and out.startswith("follow: no problems\n") and "note:" not in out
    assert printed(capsys, "flags", "added-1", "--playbook", str(right))[0] == 0


def test_every_kind_of_problem_has_its_place(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = """
        parser.add_argument("--max-bs-decode", type=int)
        parser.add_argument("--max-bs-prefill", type=int)
        parser.add_argument("--policy", choices=["fcfs", "lpm"], default="fcfs")
        parser.add_argument("--old", action="store_true", help="Deprecated. Use --quick instead.")
        parser.add_argument("--older", action="store_true", help="Deprecated: no effect.")
"""
    written(monolith(arguments), tree)
    mild = playbook(tree, "id: mild, args: {older: true}", server="old: true")
    code, out, err = printed(capsys, "check", str(mild))
    assert code == 0 and out.startswith("follow: no problems, 2 warnings\n")
    assert said(err, mild) == [
        f"{at(mild, 'old')}: warning: 'old' has another name in SGLang 1.2.3; write quick",
        f"{at(mild, 'older')}: warning: 'older' is deprecated in SGLang 1.2.3; Deprecated: no effect.",
    ]
    bad = playbook(tree, 'id: bad, args: {polcy: lpm, policy: lmp, max-bs: 8, "\\e[31m": 1}', server="old: true")
    code, out, err = printed(capsys, "check", str(bad))
    assert (code, out) == (2, "") and "\x1b" not in err
    escape = at(bad, '"')
    assert said(err, bad) == [
        f"{at(bad, 'old')}: warning: 'old' has another name in SGLang 1.2.3; write quick",
        f"{at(bad, 'polcy')}: SGLang 1.2.3 has no flag 'polcy'; did you mean 'policy'?",
        f"{at(bad, 'lmp')}: 'lmp' is no choice of 'policy'; did you mean 'lpm'? choices: fcfs, lpm",
        f"{at(bad, 'max-bs')}: 'max-bs' is short for several flags of SGLang 1.2.3; "
        "write max-bs-decode or max-bs-prefill",
        f"{escape}: SGLang 1.2.3 has no flag ''",
    ]
    told = json.loads(printed(capsys, "check", str(bad), "--json")[1])
    assert [problem["column"] for problem in told["problems"]] == [
        int(at(bad, word).partition(":")[2]) for word in ("polcy", "lmp", "max-bs", '"')
    ]
    assert [warning["line"] for warning in told["warnings"]] == [8]


@pytest.mark.parametrize(
    ("target", "source", "note"),
    [
        ("{ssh: gpu8}", "", "it is on gpu8 (tunebot check --preflight looks there)"),
        ("simulated", "", "it is on simulated (tunebot check --preflight looks there)"),
        ("nowhere", "", "there is no target nowhere"),
        ("local", "/nowhere", "/nowhere is not on this machine"),
    ],
)
def test_what_no_source_was_asked_about_is_said(
    tree: Path, capsys: pytest.CaptureFixture[str], target: str, source: str, note: str
) -> None:
    book = playbook(tree, target=target)
    book.write_text(book.read_text().replace(f"sglang: {tree}", f"sglang: {source}") if source else book.read_text())
    code, out, _ = printed(capsys, "check", str(book))
    assert (code, out.splitlines()[-1]) == (0, f"note: flags not checked by the server's source: {note}")
    assert json.loads(printed(capsys, "check", str(book), "--json")[1])["not_checked"][0].endswith(note)


def test_one_source_that_is_missing_is_named_with_its_experiments(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    book = playbook(tree, "id: other, args: {tp: 4}, server: {source: {sglang: /nowhere}}", "id: third, args: {tp: 2}")
    _, out, _ = printed(capsys, "check", str(book))
    assert out.splitlines()[-1].endswith(
        "flags of other not checked by the server's source: /nowhere is not on this machine"
    )


def test_a_flag_that_another_version_lacks_names_who_inherits_it(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newer = written(simulated("0.5.23"), tree.parent / "newer" / "sglang")
    inherits = f"id: one, server: {{source: {{sglang: {newer}}}}}"
    book = playbook(tree, inherits, "id: two, based_on: one", server="cuda-graph-max-bs: 8")
    code, _, err = printed(capsys, "check", str(book))
    assert code == 2
    assert said(err, book) == [
        f"{at(book, 'cuda-graph-max-bs')}: 'cuda-graph-max-bs' is short for several flags of SGLang 0.5.23 "
        "(in one, two); write cuda-graph-max-bs-decode or cuda-graph-max-bs-prefill"
    ]
