"""A source tree of the shape of SGLang's, a host with Blackwells, and a researcher on a real target.

That is this machine; for tests that are marked EVERYWHERE, a real sshd on it too.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import TypeAdapter

from agent.core import events as ev
from agent.core.model import Finding, Gpu, Host, LaunchConfig, Task, TaskStatus
from agent.playbook.model import PreflightEntry, ResearchEntry
from agent.redact import Redactor
from agent.research.ask import Asker
from agent.research.budget import QUESTION
from agent.research.facts import SessionFacts
from agent.research.llm import Model
from agent.research.researcher import TargetResearcher
from agent.research.sources import Sources
from tests.sshd import Sshd, start_sshd
from tests.targets.kit import Place, Placed

SERVER_ARGS = '''
class ServerArgs:
    """Flags of the server."""

    moe_a2a_backend: str = "none"
    moe_runner_backend: str = "auto"
    quantization: str | None = None
    ep_size: int = 1

    def _handle_a2a_moe(self):
        if self.moe_a2a_backend == "deepep":
            self.ep_size = self.tp_size
        if self.moe_a2a_backend == "flashinfer":
            self.ep_size = self.tp_size
            logger.warning("Flashinfer MoE A2A is enabled.")
            assert self.moe_runner_backend in [
                "flashinfer_cutlass"
            ], "Flashinfer MoE A2A is only supported with flashinfer_cutlass"
'''
TABLES = """
MiB = 1024 * 1024

TORCH_SYMM_MEM_ALL_REDUCE_MAX_SIZES = {
    9: {2: 64 * MiB, 12: 1},
    10: {2: 64 * MiB},
}


def gen_trtllm_comm_module():
    return flags(supported_major_versions=[9, 10])


def gen_other_module():
    return flags(supported_major_versions=[9, 10, 12])
"""
BLACKWELLS = Host(
    name="gpu8",
    gpus=tuple(
        Gpu(index=n, name="RTX PRO 6000", sm_major=12, sm_minor=0, memory_mib=97887, driver="580.1") for n in range(8)
    ),
)
SECRET = "hf_abcdefghijklmnopqrstuvwxyz"
EVERYWHERE = pytest.mark.parametrize("bench", ["local", "ssh"], indirect=True)


@dataclass
class Bench:
    """A researcher, its target and its tree, and what its tasks reported on the way."""

    target: Placed
    home: Path
    tree: Path
    host: Host = BLACKWELLS
    asker: Asker | None = None
    args: dict[str, Any] = field(default_factory=lambda: {"tp": "8", "moe-a2a-backend": "flashinfer"})
    env: dict[str, str | None] = field(default_factory=dict)
    command: tuple[str, ...] = ("python3", "-m", "sglang.launch_server")
    redact: Redactor = field(default_factory=lambda: Redactor({}))
    facts: SessionFacts = field(default_factory=SessionFacts)
    board: str = ""
    told: list[ev.Event] = field(default_factory=list)

    @property
    def steps(self) -> list[str]:
        """What the tasks said that they do."""
        return [event.action for event in self.told if isinstance(event, ev.TaskProgressed)]

    @property
    def used(self) -> list[ev.ToolUsed]:
        """The tool calls that were journalled."""
        return [event for event in self.told if isinstance(event, ev.ToolUsed)]

    @property
    def config(self) -> LaunchConfig:
        return LaunchConfig(
            kind="sglang",
            command=self.command,
            args=self.args,
            env=self.env,
            source={"sglang": "~/sglang"},
            version=None,
            load_timeout_s=60.0,
        )

    @property
    def sources(self) -> Sources:
        return Sources(self.target, self.config.source, self.redact)

    async def run(self, entry: dict[str, Any]) -> tuple[TaskStatus, Finding]:
        """Run the task of one entry of a playbook."""
        name = next(iter(entry))
        research = name in ("grep", "read", "ask", "probe")
        adapter: TypeAdapter[Any] = TypeAdapter(ResearchEntry if research else PreflightEntry)
        task = Task(
            id="t1",
            experiment="e",
            kind=name if research else "preflight",  # type: ignore[arg-type]
            title=name,
            entry=adapter.validate_python(entry),
            config=self.config,
            needed=False,
            board=self.board,
        )
        researcher = TargetResearcher(self.target, self.host, self.redact, self.asker, lambda: self.facts)
        return await researcher.run(task, self.told.append)


def asker(url: str, name: str = "claude-sonnet-5-5", **limits: Any) -> Asker:
    """An asker for a server here, with other limits of a question than usual."""
    return Asker(Model(name, base_url=url), question=replace(QUESTION, **limits))


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key for an LLM, and nothing else that would lead to one."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-a-key-for-a-test-0123456789")
    for name in ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE", "ANTHROPIC_CUSTOM_HEADERS", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="session")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    """One server for all tests that leave it alone."""
    started = start_sshd(tmp_path_factory.mktemp("sshd"))
    yield started
    started.stop()


@pytest.fixture
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    home = tmp_path / "home"
    tree = home / "sglang"
    (tree / "srt").mkdir(parents=True)
    (tree / "srt" / "server_args.py").write_text(SERVER_ARGS)
    (tree / "srt" / "all_reduce_utils.py").write_text(TABLES)
    (home / ".ssh").mkdir()
    (home / ".ssh" / "id_rsa").write_text("PRIVATE KEY")
    server = request.getfixturevalue("sshd") if getattr(request, "param", "local") == "ssh" else None
    target = Place(root=tmp_path, work=tmp_path / "work", env={}, sshd=server).target()
    if server:
        await target.host()  # as every session begins: that connects
    yield Bench(target=target, home=home, tree=tree)
    await target.close()


@pytest.fixture
def write(bench: Bench) -> Callable[[str, str], str]:
    """Write a file of the tree; returns its path as a playbook names it."""

    def put(relative: str, text: str) -> str:
        path = bench.tree / relative
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return f"sglang:{relative}"

    return put


def alive(pid: int) -> bool:
    """Whether a process runs (a zombie does not)."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"
