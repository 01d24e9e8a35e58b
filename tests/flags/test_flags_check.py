"""The flags of a playbook against those of a source; the cache; the command."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from agent.core.model import LaunchConfig
from agent.diagnostics import Exit, UserError
from agent.flags import cache
from agent.flags.cache import cached_table, decode, encode
from agent.flags.check import check_args
from agent.flags_check import flag_reports
from agent.flags_command import Wish, show_flags
from agent.playbook.load import load_playbook
from agent.redact import Redactor
from agent.research.common import ResearchError
from agent.research.resolver import FlagResolver
from agent.research.sources import Sources
from agent.servers.known_flags import all_known_flags
from agent.targets.local import LocalTarget

from .test_flags_read import VLLM
from .trees import SERVER_ARGS, monolith, simulated, table, written

ARGUMENTS = """
        parser.add_argument("--max-bs-decode", type=int)
        parser.add_argument("--max-bs-prefill", type=int)
        parser.add_argument("--ratio", type=float)
        parser.add_argument("--policy", choices=["fcfs", "lpm"], default="fcfs")
        parser.add_argument("--quick", action="store_true")
        parser.add_argument("--sizes", type=int, nargs="+")
        parser.add_argument("--old", action="store_true", help="Deprecated. Use --quick instead.")
        parser.add_argument("--older", action="store_true", help="Deprecated: no effect.")
"""


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ({"tp": "8", "model": "/m", "max-bs-decode": "128", "ratio": "1e-3", "policy": "lpm", "quick": True}, []),
        ({"sizes": ("1", "2"), "quick": False, "policy": None, "rat": "0.5"}, []),
        ({"max-bs": "128"}, [("ambiguous", True, "write max-bs-decode or max-bs-prefill")]),
        ({"polcy": "fcfs"}, [("unknown", True, "did you mean 'policy'?")]),
        ({"policy": "lmp"}, [("choice", True, "did you mean 'lpm'? choices: fcfs, lpm")]),
        ({"ratio": "much"}, [("type", True, "")]),
        ({"max-bs-decode": "0.5"}, [("type", True, "")]),
        ({"sizes": ("1", "x")}, [("type", True, "")]),
        ({"quick": "yes"}, [("type", True, "write true")]),
        ({"policy": True}, [("type", True, "choices: fcfs, lpm")]),
        ({"ratio": ("1", "2")}, [("type", True, "")]),
        ({"old": True}, [("renamed", False, "write quick")]),
        ({"older": True}, [("deprecated", False, "Deprecated: no effect.")]),
    ],
)
def test_check(args: dict[str, Any], expected: list[tuple[str, bool, str]]) -> None:
    found = check_args(table(monolith(ARGUMENTS)), args)
    assert [(problem.kind, problem.fatal, problem.hint) for problem in found] == expected


def test_the_flag_of_the_story_is_ambiguous_in_the_newer_server() -> None:
    args = {"model-path": "/m", "tp": "8", "cuda-graph-max-bs": "128"}
    assert check_args(table(simulated("0.5.9")), args) == ()
    (problem,) = check_args(table(simulated("0.5.23")), args)
    assert problem.message == "'cuda-graph-max-bs' is short for several flags of SGLang 0.5.23"
    assert problem.hint == "write cuda-graph-max-bs-decode or cuda-graph-max-bs-prefill"


def test_keys_of_a_json_flag_are_vllms_own() -> None:
    found = table(VLLM, "vllm")
    assert check_args(found, {"nested.x": "1", "no-prefix": True, "block-size": "16"}) == ()
    assert [problem.kind for problem in check_args(found, {"b": "1", "nestd.x": "1"})] == ["ambiguous", "unknown"]


def test_the_cache_is_as_good_as_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = written(simulated("0.5.9"), tmp_path / "sglang")
    first = cached_table(root, "sglang", tmp_path / "cache")
    assert decode(json.loads(json.dumps(encode(first)))) == first
    with monkeypatch.context() as patch:
        patch.setattr(cache, "flag_table", lambda *_: pytest.fail("read again"))
        began = time.monotonic()
        assert cached_table(root, "sglang", tmp_path / "cache") == first
        assert time.monotonic() - began < 2.0
    file = root / SERVER_ARGS
    file.write_text(file.read_text().replace('"--page-size"', '"--sheet-size"'))
    assert cached_table(root, "sglang", tmp_path / "cache").find("sheet-size") is not None
    for stored in (tmp_path / "cache").iterdir():
        stored.write_text("{torn")
    assert cached_table(root, "sglang", tmp_path / "cache").find("sheet-size") is not None


def test_a_link_out_of_the_tree_is_not_followed(tmp_path: Path) -> None:
    argument = '        parser.add_argument("--x", choices=SECRET)'
    root = written(monolith(argument, above="from sglang.srt.out import SECRET"), tmp_path / "sglang")
    (tmp_path / "out.py").write_text("SECRET = ['x']")
    (root / "srt" / "out.py").symlink_to(tmp_path / "out.py")
    assert cached_table(root, "sglang", tmp_path / "cache").files["srt/out.py"] == ""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return written(simulated("0.5.9"), tmp_path / "site-packages" / "sglang").parent


def test_the_command_lists_and_shows_uses(tree: Path) -> None:
    said: list[str] = []
    assert show_flags(tree, Wish(pattern="moe_", uses=None, as_json=False), said.append) is Exit.OK
    assert said[-1] == "2 of 74 flags of sglang 0.5.9"
    assert "moe-a2a-backend" in said[1]
    said.clear()
    show_flags(tree / "sglang", Wish(pattern="", uses="--moe-a2a-backend", as_json=False), said.append)
    assert any("asserts  moe_runner_backend in [flashinfer_cutlass]" in line for line in said)
    said.clear()
    show_flags(tree, Wish(pattern="", uses="moe-a2a-backend", as_json=True), said.append)
    effects = {use["text"]: use for use in json.loads(said[0])["uses"]}
    assert effects["ep_size = tp_size"]["when"] == ["moe_a2a_backend == mori"]
    said.clear()
    show_flags(tree, Wish(pattern="tp-size", uses=None, as_json=True), said.append)
    assert json.loads(said[0])["flags"][0]["default"] == "1"


@pytest.mark.parametrize(
    ("wish", "hint"),
    [
        (Wish(pattern="moe-backend", uses=None, as_json=False), "did you mean"),
        (Wish(pattern="", uses="moe-a2a-bakend", as_json=False), "did you mean 'moe-a2a-backend'?"),
    ],
)
def test_a_flag_that_is_not_there_is_a_bad_argument(tree: Path, wish: Wish, hint: str) -> None:
    with pytest.raises(UserError) as caught:
        show_flags(tree, wish, print)
    assert caught.value.code is Exit.BAD_INPUT
    assert caught.value.hint.startswith(hint)


def test_a_folder_without_a_server_is_a_bad_argument(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no source tree"):
        show_flags(tmp_path, Wish(pattern="", uses=None, as_json=False), print)


async def test_on_a_target_the_source_completes_the_experiment(tree: Path, tmp_path: Path) -> None:
    target = LocalTarget("local", workdir=tmp_path / "work", home=tree)
    source = {"sglang": "~/sglang"}
    config = LaunchConfig(
        kind="sglang",
        command=("python3", "-m", "sglang.launch_server"),
        args={"model-path": "/m", "tp": "8", "moe-a2a-backend": "flashinfer"},
        env={},
        source=source,
        version=None,
        load_timeout_s=60.0,
    )
    sources = Sources(target, source, Redactor({}))
    resolver, steps = FlagResolver(), list[str]()
    try:
        finding = await resolver.finding(sources, config, steps.append)
        assert finding.requires == {"moe-runner-backend": "flashinfer_cutlass"}
        assert finding.summary == "needs --moe-runner-backend flashinfer_cutlass"
        assert finding.quotes[0].path == "sglang:srt/server_args.py"
        rounds = len(steps)
        await resolver.finding(sources, config, steps.append)
        assert len(steps) == rounds
        with pytest.raises(ResearchError, match="names no vllm"):
            await resolver.table(sources, "vllm", steps.append)
        with pytest.raises(ResearchError, match="cannot be read: it has no"):
            await FlagResolver().table(Sources(target, {"sglang": "~"}, Redactor({})), "sglang", steps.append)
    finally:
        await target.close()


PLAYBOOK = """
tunebot: 1
name: story
target: local
server:
  kind: sglang
  command: [python3, -m, sglang.launch_server]
  source: {sglang: OLD}
  args: {model-path: /m, tp: 8}
objective: {workload: single}
workloads:
  - {name: single}
experiments:
  - {id: baseline, baseline: true, args: {cuda-graph-max-bs: 128}}
  - {id: ep, based_on: baseline, args: {moe-a2a-backend: flashinfer}}
  - {id: newer, based_on: baseline, server: {source: {sglang: NEW}}}
  - {id: elsewhere, based_on: baseline, server: {source: {sglang: /nowhere}}}
"""


def test_every_experiment_is_held_against_its_own_source(tree: Path, tmp_path: Path) -> None:
    newer = written(simulated("0.5.23"), tmp_path / "newer" / "sglang")
    text = PLAYBOOK.replace("OLD", str(tree / "sglang")).replace("NEW", str(newer))
    playbook = load_playbook(text.encode(), "story.yaml", all_known_flags())
    assert not isinstance(playbook, list)
    reports = {report.experiment: report for report in flag_reports(playbook)}
    baseline = reports["baseline"]
    assert baseline.table and baseline.table.version == "0.5.9"
    assert (baseline.problems, baseline.demands) == ((), ())
    assert [demand.flag for demand in reports["ep"].demands] == ["moe-runner-backend"]
    assert [problem.kind for problem in reports["newer"].problems] == ["ambiguous"]
    assert reports["elsewhere"].unread == "/nowhere is not on this machine"
