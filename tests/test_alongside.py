"""What GPUs and server say of a round, beside what the client measured."""

from pathlib import Path

import httpx
import pytest

from agent import alongside
from agent.core.metrics import GpuUse
from agent.core.model import RoundMetrics
from agent.ports import Speculation
from agent.servers import server_kind
from agent.servers.sglang import SGLang
from agent.targets.local import LocalTarget
from tests.core.conftest import metrics


class Speculating(SGLang):
    """Tells these counters, one after the other."""

    def __init__(self, http: httpx.AsyncClient, told: list[Speculation | None]) -> None:
        super().__init__(http)
        self._told = told

    async def speculation(self, base_url: str) -> Speculation | None:
        return self._told.pop(0)


@pytest.mark.parametrize(
    ("before", "after", "length"),
    [
        (Speculation(), Speculation(kept=2.6, passes=1.0), 2.6),
        (Speculation(kept=100.0, passes=50.0), Speculation(kept=400.0, passes=150.0), 3.0),
        (Speculation(kept=2.6, passes=1.0), Speculation(kept=2.7, passes=1.0), None),
        (None, Speculation(kept=2.6, passes=1.0), None),
        (Speculation(), None, None),
    ],
)
async def test_accept_length_is_the_difference(
    tmp_path: Path, before: Speculation | None, after: Speculation | None, length: float | None
) -> None:
    async def measure() -> RoundMetrics:
        return metrics(100.0)

    target = LocalTarget("local", workdir=tmp_path)
    async with httpx.AsyncClient() as http:
        kind = Speculating(http, [before, after])
        found = await alongside.measured_with(target, kind, "http://127.0.0.1:1", False, measure())
    assert found.accept_length == (None if length is None else pytest.approx(length))
    assert found.watts_per_gpu is None and found.hygiene == ()
    await target.close()


@pytest.mark.parametrize(
    ("lines", "watts", "level", "use"),
    [
        ("130.5, Not Active, Not Active\n[N/A], Not Active, Not Active\n", 130.5, None, None),
        (
            "300.0, Not Active, Not Active, 90, 600.00\n500.0, Active, Not Active, 100, 600.00\n",
            400.0,
            "bad",
            GpuUse(count=2, busy=0.95, watts=400.0, limit_watts=600.0),
        ),
        (
            "130.0, Not Active, Not Active, 100, 300.00\n30.0, Not Active, Not Active, 0, 300.00\n",
            80.0,
            None,
            GpuUse(count=1, busy=1.0, watts=130.0, limit_watts=300.0),
        ),
        ("130.0, Not Active, Not Active, [N/A], [N/A]\n", 130.0, None, None),
        ("[Not Supported]\n", None, None, None),
    ],
)
async def test_watts_and_clocks_are_looked_at_while_it_runs(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    lines: str,
    watts: float | None,
    level: str | None,
    use: GpuUse | None,
) -> None:
    monkeypatch.setattr(alongside, "FIRST_S", 0.0)
    monkeypatch.setattr(alongside, "EVERY_S", 0.0)
    smi = tmp_path / "bin" / "nvidia-smi"
    smi.parent.mkdir()
    looked = tmp_path / "looked"
    smi.write_text(f"#!/bin/sh\nprintf '{lines}'\nmkfifo {looked} 2>/dev/null\necho done > {looked}\n")
    smi.chmod(0o755)
    target = LocalTarget("local", workdir=tmp_path / "work", path_prefix=str(smi.parent))

    async def measure() -> RoundMetrics:
        # When the second look begins, what the first one saw has been read.
        for _ in range(2):
            command = ["sh", "-c", f"mkfifo {looked} 2>/dev/null; cat {looked}"]
            assert (await target.run(command, timeout_s=10)).output == b"done\n"
        return metrics(100.0)

    async with httpx.AsyncClient() as http:
        kind = server_kind("llamacpp", http)
        found = await alongside.measured_with(target, kind, "http://127.0.0.1:1", True, measure())
    assert found.watts_per_gpu == (None if watts is None else pytest.approx(watts))
    assert [item.level for item in found.hygiene] == ([] if level is None else [level])
    assert found.gpu_use == use
    await target.close()
