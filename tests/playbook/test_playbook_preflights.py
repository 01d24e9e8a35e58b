"""The entries of `preflight:` as people write them: the usual case in one line, mistakes with a hint."""

import pytest

from agent.playbook.model import Playbook
from agent.playbook.preflight_entries import kind_of
from agent.playbook.preflights import DiskFree, GpuCheck, TableHasKey
from tests.playbook.kit import HEAD, bad, good

USUAL = """\
table-has-key: {in: sglang:a.py, table: T, key: 12}
list-contains: {in: sglang:a.py, list: L, item: 12}
gpu-gate: {in: sglang:a.py, function: f}
flag-known: {}
flag-known: {flag: tp}
module-importable: {module: deep_ep}
python-package: {name: flashinfer-python, version: ">=0.6.17"}
command-version: {run: [gcc, --version], version: ">=11"}
gpu: {count: 8}
gpu: {sm: ">=12", memory_free: 90GiB}
topology: {nvlink: full}
driver-option: {name: RegistryDwords, contains: ForceP2P}
driver-option: {name: EnableResizableBar, one_of: [1]}
kernel-arg: {name: iommu, one_of: [off, pt]}
pcie-link: {generation: 5, lanes: 16}
peers: {access: true, bar1: 64GiB, iommu: [off, passthrough], acs: false}
power-limit: {at_least_w: 500}
numa: {nodes: 1, balancing: false}
cuda: {nvcc: ">=12.9"}
model-config: {}
model-config: {quant: [modelopt_fp4]}
path: {exists: /models/x}
disk-free: {at_least: 20 GB}
port-free: {}
env: {name: A, not_in: [b]}
http: {get: "http://127.0.0.1:9090/-/healthy"}
source-name: {in: sglang:a.py, name: Model.method}
source-name: {in: sglang:a.py, name: FLAG, there: false, otherwise: no-effect}
""".splitlines()


def text_of(entry: str) -> str:
    return f"{HEAD}experiments:\n  - id: base\n    baseline: true\n    preflight:\n      - {entry}\n"


@pytest.mark.parametrize("entry", USUAL)
def test_the_usual_case_is_one_line_and_comes_back_from_a_journal(entry: str) -> None:
    playbook = good(text_of(entry))
    (check,) = playbook.experiments[0].preflight
    assert kind_of(check) == entry.partition(":")[0]
    assert check.check.scope
    assert Playbook.model_validate_json(playbook.model_dump_json(by_alias=True)) == playbook


def test_sizes_are_bytes_and_what_happens_otherwise_is_read_from_the_source_by_default() -> None:
    checks = [good(text_of(entry)).experiments[0].preflight[0].check for entry in (USUAL[22], USUAL[9], USUAL[0])]
    disk, gpu, table = checks
    assert isinstance(disk, DiskFree) and disk.at_least == 20e9 and disk.path == "~/"
    assert isinstance(gpu, GpuCheck) and gpu.memory_free == 90 * 2**30
    assert isinstance(table, TableHasKey) and table.otherwise is None


@pytest.mark.parametrize(
    ("entry", "message", "hint"),
    [
        ("gpu: {}", "gpu: needs 'count' or 'sm' or 'memory_free'", None),
        ("gpu: {memory_free: 80}", "expected a size above zero", "write the unit, such as 80GiB"),
        ("gpu: {memory_free: 80 gigs}", "expected a size above zero", None),
        ("gpu: {sm: 12}", "sm: '12' is not a range of versions", 'write for example ">=12.0"'),
        ("driver-option: {name: X}", "driver-option: needs 'contains' or 'one_of'", None),
        ("driver-option: {name: X, contains: ''}", "must have at least 1 characters", None),
        ("source-name: {in: sglang:a.py, name: a-b}", "expected a name as Python has it, such as Model.forward", None),
        ("peers: {iommu: [pt]}", "expected one of off, passthrough, translated", None),
        ("peers: {acs: off}", "expected true or false", "write false"),
        ("power-limit: {at_least_w: 500W}", "expected a whole number", None),
        ("cuda: {}", "cuda: needs 'nvcc' or 'torch' or 'driver'", None),
        ("cuda: {nvcc: 12.9}", "nvcc: '12.9' is not a range of versions", 'write for example ">=12.0"'),
        ("env: {name: A}", "env: needs 'not_in' or 'one_of'", None),
        ("http: {get: 127.0.0.1/x}", "is not the address of a page", "write for example http://"),
        ("http: {get: 'file:///etc/passwd'}", "is not the address of a page", "write for example http://"),
        ("http: {get: 'http://me:secret@host/x'}", "is not the address of a page", None),
        ("port-free: {port: 70000}", "must be at most 65535", None),
        ("flag-known: {otherwise: fails}", "unknown key 'otherwise'", "known here: flag"),
        ("disk-free: {}", "missing key 'at_least'", None),
        ("gpu-gate: {in: nosuch:a.py, function: f}", "server.source has no 'nosuch'", None),
        ("module-importabel: {module: x}", "unknown preflight check 'module-importabel'", "module-importable"),
        ("path: {exists: /x, otherwise: fail}", "expected one of fails, no-effect", "did you mean 'fails'?"),
    ],
)
def test_a_mistake_in_an_entry(entry: str, message: str, hint: str | None) -> None:
    told = [str(problem) for problem in bad(text_of(entry))]
    assert len(told) == 1
    assert message in told[0]
    assert hint is None or hint in told[0]
