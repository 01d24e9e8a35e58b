"""The entries of `preflight:` in a playbook: each begins with the name of its check."""

from typing import Annotated, Any

from pydantic import Field, Tag

from agent.playbook.hardware import DriverOption, KernelArg, Numa, PcieLink, Peers, PowerLimit
from agent.playbook.preflights import (
    CommandVersion,
    CudaCheck,
    DiskFree,
    EnvCheck,
    FlagKnown,
    GpuCheck,
    GpuGate,
    HttpCheck,
    ListContains,
    ModelConfig,
    ModuleImportable,
    PathCheck,
    PortFree,
    PythonPackage,
    SourceName,
    TableHasKey,
    Topology,
)
from agent.playbook.strict import Strict, key_of


class TableHasKeyEntry(Strict):
    """`- table-has-key: {in: sglang:path.py, table: NAME, key: "{gpu.sm_major}"}`"""

    check: TableHasKey = Field(alias="table-has-key")


class ListContainsEntry(Strict):
    """`- list-contains: {in: flashinfer:jit/comm.py, function: F, list: NAME, item: "12"}`"""

    check: ListContains = Field(alias="list-contains")


class GpuGateEntry(Strict):
    """`- gpu-gate: {in: sglang:srt/layers/communicator.py, function: apply_flashinfer_allreduce_fusion}`"""

    check: GpuGate = Field(alias="gpu-gate")


class SourceNameEntry(Strict):
    """`- source-name: {in: sglang:srt/models/kimi_k25.py, name: KimiK25ForConditionalGeneration.get_embed_and_head}`"""

    check: SourceName = Field(alias="source-name")


class FlagKnownEntry(Strict):
    """`- flag-known: {flag: enable-torch-symm-mem}`"""

    check: FlagKnown = Field(alias="flag-known")


class ModuleImportableEntry(Strict):
    """`- module-importable: {module: deep_ep}`"""

    check: ModuleImportable = Field(alias="module-importable")


class PythonPackageEntry(Strict):
    """`- python-package: {name: flashinfer-python, version: ">=0.6.17"}`"""

    check: PythonPackage = Field(alias="python-package")


class CommandVersionEntry(Strict):
    """`- command-version: {run: [gcc, --version], version: ">=11"}`"""

    check: CommandVersion = Field(alias="command-version")


class GpuEntry(Strict):
    """`- gpu: {count: 8, sm: ">=12", memory_free: 90GiB}`"""

    check: GpuCheck = Field(alias="gpu")


class TopologyEntry(Strict):
    """`- topology: {nvlink: full}`"""

    check: Topology = Field(alias="topology")


class DriverOptionEntry(Strict):
    """`- driver-option: {name: RegistryDwords, contains: ForceP2P}`"""

    check: DriverOption = Field(alias="driver-option")


class KernelArgEntry(Strict):
    """`- kernel-arg: {name: pcie_aspm, one_of: ["off"]}`"""

    check: KernelArg = Field(alias="kernel-arg")


class PcieLinkEntry(Strict):
    """`- pcie-link: {generation: 5, lanes: 16}`"""

    check: PcieLink = Field(alias="pcie-link")


class PeersEntry(Strict):
    """`- peers: {access: true, bar1: 64GiB, iommu: ["off", passthrough], acs: false}`"""

    check: Peers = Field(alias="peers")


class PowerLimitEntry(Strict):
    """`- power-limit: {at_least_w: 500}`"""

    check: PowerLimit = Field(alias="power-limit")


class NumaEntry(Strict):
    """`- numa: {nodes: 1, balancing: false}`"""

    check: Numa = Field(alias="numa")


class CudaEntry(Strict):
    """`- cuda: {nvcc: ">=12.9"}`"""

    check: CudaCheck = Field(alias="cuda")


class ModelConfigEntry(Strict):
    """`- model-config: {}`"""

    check: ModelConfig = Field(alias="model-config")


class PathEntry(Strict):
    """`- path: {exists: /models/kimi-k2.5-eagle3}`"""

    check: PathCheck = Field(alias="path")


class DiskFreeEntry(Strict):
    """`- disk-free: {path: ~/venvs, at_least: 20GiB}`"""

    check: DiskFree = Field(alias="disk-free")


class PortFreeEntry(Strict):
    """`- port-free: {port: 30000}`"""

    check: PortFree = Field(alias="port-free")


class EnvEntry(Strict):
    """`- env: {name: NCCL_ALGO, not_in: [Tree], why: bare Tree has no AllGather}`"""

    check: EnvCheck = Field(alias="env")


class HttpEntry(Strict):
    """`- http: {get: "http://127.0.0.1:9090/-/healthy"}`"""

    check: HttpCheck = Field(alias="http")


PreflightEntry = Annotated[
    Annotated[TableHasKeyEntry, Tag("table-has-key")]
    | Annotated[ListContainsEntry, Tag("list-contains")]
    | Annotated[GpuGateEntry, Tag("gpu-gate")]
    | Annotated[SourceNameEntry, Tag("source-name")]
    | Annotated[FlagKnownEntry, Tag("flag-known")]
    | Annotated[ModuleImportableEntry, Tag("module-importable")]
    | Annotated[PythonPackageEntry, Tag("python-package")]
    | Annotated[CommandVersionEntry, Tag("command-version")]
    | Annotated[GpuEntry, Tag("gpu")]
    | Annotated[TopologyEntry, Tag("topology")]
    | Annotated[DriverOptionEntry, Tag("driver-option")]
    | Annotated[KernelArgEntry, Tag("kernel-arg")]
    | Annotated[PcieLinkEntry, Tag("pcie-link")]
    | Annotated[PeersEntry, Tag("peers")]
    | Annotated[PowerLimitEntry, Tag("power-limit")]
    | Annotated[NumaEntry, Tag("numa")]
    | Annotated[CudaEntry, Tag("cuda")]
    | Annotated[ModelConfigEntry, Tag("model-config")]
    | Annotated[PathEntry, Tag("path")]
    | Annotated[DiskFreeEntry, Tag("disk-free")]
    | Annotated[PortFreeEntry, Tag("port-free")]
    | Annotated[EnvEntry, Tag("env")]
    | Annotated[HttpEntry, Tag("http")],
    key_of(
        *("table-has-key", "list-contains", "gpu-gate", "source-name", "flag-known", "module-importable"),
        *("python-package", "command-version", "gpu", "topology", "driver-option", "kernel-arg", "pcie-link", "peers"),
        *("power-limit", "numa", "cuda", "model-config", "path", "disk-free", "port-free", "env", "http"),
    ),
]


def kind_of(entry: Any) -> str:
    """What a preflight entry is called in a playbook, such as table-has-key."""
    return type(entry).model_fields["check"].alias or ""
