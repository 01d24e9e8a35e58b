"""The story's preflights on the real sources of SGLang 0.5.9, 0.5.10 and 0.5.23 and of their FlashInfer.

    python -m tests.real.preflights      # the first run downloads six wheels: 130 MB

The playbooks are the shipped ones. The host is this machine with the GPUs of the story (blackwell.py). Exit code 1
where a decision is wrong, a flag is not in a version that its experiment is for, or the decisions of one playbook and
version take more than five seconds together. A session reads the table of flags once, for this and for what the source
demands: that is told apart.
"""

import asyncio
import os
import re
import shutil
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path

from agent.core.model import Host, LaunchConfig, PreflightOutcome
from agent.core.plan import planned_configs
from agent.fragments import shipped_fragments
from agent.paths import shipped_playbooks
from agent.playbook.load import load_playbook
from agent.playbook.model import Playbook, ServerOverride
from agent.playbook.preflight_entries import FlagKnownEntry, PreflightEntry, kind_of
from agent.playbook.versions import satisfies
from agent.ports import TargetUnusable
from agent.redact import Redactor
from agent.research.common import ResearchError
from agent.research.preflight import preflight
from agent.research.resolver import FlagResolver
from agent.research.sources import Sources
from agent.targets.holders import wiring
from agent.targets.local import LocalTarget
from tests.real.blackwell import GPUS, furnish
from tests.real.flags import cache, command, sglang_tree
from tests.session.demands import DEMANDED, play, playbook, runner

LIMIT_S = 5.0
_MODELS = re.compile(r"(?<![\w~])~?/models/")
"""The folder of models on the host, not one of that name in a source."""
EVERY_FLAG = FlagKnownEntry.model_validate({"flag-known": {}})


@dataclass(frozen=True)
class Version:
    """One SGLang with the FlashInfer that it asks for, and the CUDA of its compiler."""

    sglang: str
    flashinfer: str
    nvcc: str


VERSIONS = (
    Version("0.5.9", "0.6.3", "12.8"),
    Version("0.5.10", "0.6.7.post2", "12.8"),
    Version("0.5.23", "0.7.2", "13.0"),
)
_SAME = {"nccl-tree/env": "fails fails fails", "ep-deepep/module-importable": "fails fails fails"}
_SYMM_MEM = {"torch-symm-mem/table-has-key": "fails fails no-effect"}
_BASELINE = {
    "baseline/gpu": "fine fine fine",
    "baseline/flag-known": "fine fine fails",
    "baseline/model-config": "fine fine fine",
    "eagle3/path": "fine fine fine",
    "eagle3/source-name": "fails fine fine",
    "custom-allreduce/topology": "no-effect no-effect no-effect",
    "cuda13/cuda": "fails fails fine",
}
RIGHT = {
    "demo": {"ar-fusion/list-contains": "fails fails fine", **_SAME, **_SYMM_MEM},
    "example": {
        "allreduce-fusion/gpu-gate": "no-effect no-effect unknown",
        "allreduce-fusion/gpu-gate 2": "unknown unknown fails",
        **_BASELINE,
        **_SAME,
        **_SYMM_MEM,
    },
    "kimi-k2.5-8x-rtx-pro-6000": {
        "ar-fusion/list-contains": "fails fails fine",
        "ar-fusion/gpu-gate": "no-effect no-effect unknown",
        "ar-fusion/gpu-gate 2": "unknown unknown fails",
        "custom-forced/peers": "fine fine fine",
        "nccl-allreduce-tree/python-package": "fine fine fails",
        "nccl-allreduce-tree-ll/python-package": "fine fine fails",
        "ep-plain/model-config": "fine fine fine",
        "cuda13/command-version": "fine fine fine",
        "cuda13/path": "fine fine fine",
        "cuda13/flag-known": "fails fails fine",
        "pcie-ipc/path": "no-effect no-effect fine",
        "pcie-ipc/peers": "fine fine fine",
        "pcie-ipc/env": "fine fine fine",
        "eagle3-pcie-ipc/path": "fine fine fine",
        # The class is not there before; whether Transformers' code would do in its place nobody knows.
        "mla-draft/model-config": "unknown unknown fine",
        "nccl-graph/path": "fails fails fails",
        "forced-p2p/driver-option": "no-effect no-effect no-effect",
        "forced-p2p/source-name": "fails fine fine",
        **_BASELINE,
        **_SAME,
        **_SYMM_MEM,
    },
}
"""What each check must say of the three versions."""


def flashinfer_tree(version: str) -> Path:
    """The unpacked sources of one FlashInfer."""
    root = cache() / "flags" / f"flashinfer-{version}"
    if not (root / "flashinfer" / "jit" / "comm.py").exists():
        wheels = cache() / "wheels"
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
        command([*pip, "--only-binary=:all:", "-d", wheels, f"flashinfer-python=={version}"])
        with zipfile.ZipFile(next(iter(wheels.glob(f"flashinfer_python-{version}-*.whl")))) as wheel:
            wheel.extractall(root, [name for name in wheel.namelist() if name.endswith(".py")])
    return root / "flashinfer"


def playbook_of(name: str, version: Version, home: Path) -> Playbook:
    """A shipped playbook with the real sources, on a host whose models are in `home`.

    Experiments with another build run in this one; only which versions they are for is kept.
    """
    text = _MODELS.sub(f"{home}/models/", (shipped_playbooks() / f"{name}.yaml").read_text())
    playbook = load_playbook(text.encode(), name, {}, fragments=shipped_fragments())
    assert isinstance(playbook, Playbook), playbook
    source = {
        "sglang": str(sglang_tree(version.sglang) / "sglang"),
        "flashinfer": str(flashinfer_tree(version.flashinfer)),
    }
    installed = home / "venvs" / "cu130" / "lib" / "python3.12" / "site-packages"
    installed.mkdir(parents=True, exist_ok=True)
    for package, tree in source.items():
        (installed / package).unlink(missing_ok=True)
        (installed / package).symlink_to(tree)
    env = {**playbook.server.env, "PYTHONPATH": "" if version.nvcc.startswith("13") else str(home / "packages")}
    changes = {"source": source, "command": (sys.executable, "-m", "sglang"), "env": env}
    server = playbook.server.model_copy(update=changes)
    experiments = tuple(
        one.model_copy(update={"server": one.server and ServerOverride(version=one.server.version)})
        for one in playbook.experiments
    )
    return playbook.model_copy(update={"server": server, "experiments": experiments})


async def decide(
    target: LocalTarget, entry: PreflightEntry, host: Host, config: LaunchConfig, flags: FlagResolver
) -> tuple[PreflightOutcome, str]:
    """What one check says."""
    sources = Sources(target, config.source, Redactor({}))
    try:
        found = await preflight(sources, entry, host, config, flags.table, lambda _: None)
    except (ResearchError, TargetUnusable) as error:
        return "unknown", str(error)
    assert found.outcome is not None
    return found.outcome, found.summary


async def judge(name: str, position: int, home: Path) -> bool:
    """Print the decisions about one version; whether all are right and in time."""
    version = VERSIONS[position]
    playbook = playbook_of(name, version, home)
    configs = planned_configs(playbook)
    target = LocalTarget("local", workdir=home / "work", home=home, path_prefix=str(home / f"bin-{version.nvcc}"))
    wired = await wiring(target, GPUS)
    host = Host(name="gpu8", gpus=GPUS, cuda=wired.cuda, links=wired.links)
    flags = FlagResolver()
    right, total = True, 0.0
    print(f"{name}.yaml on SGLang {version.sglang}, FlashInfer {version.flashinfer}, nvcc {version.nvcc}")
    for which in ("read", "read again"):
        began = time.monotonic()
        await flags.table(Sources(target, playbook.server.source, Redactor({})), "sglang", lambda _: None)
        print(f"  table of flags {which} in {time.monotonic() - began:.2f} s")
    seen: dict[str, int] = {}
    for experiment in playbook.experiments:
        config = configs[experiment.id]
        if config.version and satisfies(version.sglang, config.version):
            outcome, told = await decide(target, EVERY_FLAG, host, config, flags)
            if outcome != "fine":
                print(f"  {experiment.id:30} {outcome:10} {told}   WRONG: it is for {config.version}")
                right = False
        for entry in experiment.preflight:
            key = f"{experiment.id}/{kind_of(entry)}"
            seen[key] = seen.get(key, 0) + 1
            key += f" {seen[key]}" if seen[key] > 1 else ""
            began = time.monotonic()
            outcome, told = await decide(target, entry, host, config, flags)
            seconds = time.monotonic() - began
            total += seconds
            wanted = RIGHT[name].get(key, "? ? ?").split()[position]
            right = right and outcome == wanted
            mark = "" if outcome == wanted else f"   WRONG: should be {wanted}"
            print(f"  {key:30} {outcome:10} {seconds:5.2f} s  {told}{mark}")
    await target.close()
    print(
        f"  {sum(seen.values())} checks in {total:.2f} s"
        + ("" if total < LIMIT_S else f"   TOO SLOW: limit {LIMIT_S:.0f} s")
    )
    return right and total < LIMIT_S and RIGHT[name].keys() <= _keys(playbook)


def _keys(playbook: Playbook) -> set[str]:
    found: dict[str, int] = {}
    for experiment in playbook.experiments:
        for entry in experiment.preflight:
            key = f"{experiment.id}/{kind_of(entry)}"
            found[key] = found.get(key, 0) + 1
    return {f"{key} {n}" if n > 1 else key for key, count in found.items() for n in range(1, count + 1)}


async def completes(accept: str | None) -> bool:
    """A session on the simulated host that reads the real 0.5.9: whether the demanded flag is there as it should be."""
    source = {"sglang": str(sglang_tree("0.5.9") / "sglang")}
    with tempfile.TemporaryDirectory(prefix="tunebot-demands-") as folder:
        session = await play(playbook(accept, source), Path(folder))
        found, reason = runner(session), session.state.experiments["ep-flashinfer"].reason
    print(f"ep-flashinfer by the source of SGLang 0.5.9, accept: {accept}: --moe-runner-backend {found}; {reason[:60]}")
    return found == DEMANDED if accept else found is None and "AssertionError" in reason


def main() -> int:
    """Judge every version with both playbooks, then what the source of one demands."""
    os.environ.pop("CUDA_HOME", None)
    os.environ.pop("CUDA_PATH", None)
    os.environ["TUNEBOT_CACHE"] = str(cache())
    home = Path(tempfile.mkdtemp(prefix="tunebot-preflights-"))
    judged = []
    try:
        furnish(home, {version.nvcc for version in VERSIONS})
        for name in RIGHT:
            # Tables that earlier runs have left do not count.
            os.environ["XDG_CACHE_HOME"] = str(home / "cache" / name)
            judged += [asyncio.run(judge(name, at, home)) for at in range(len(VERSIONS))]
    finally:
        shutil.rmtree(home)
    judged += [asyncio.run(completes(accept)) for accept in ("resolver", None)]
    return 0 if all(judged) else 1


if __name__ == "__main__":
    sys.exit(main())
