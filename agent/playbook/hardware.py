"""The preflight checks of how a host lets its GPUs talk, and run: driver, kernel, PCIe, NUMA, power."""

from typing import ClassVar, Literal

from pydantic import Field

from agent.playbook.fields import Switch, Text, Whole
from agent.playbook.preflights import Check, Otherwise, Scope
from agent.playbook.units import Size


class DriverOption(Check):
    """An option with which the NVIDIA driver was loaded, as /proc/driver/nvidia/params shows it."""

    scope: ClassVar[tuple[Scope, ...]] = ("driver",)
    any_of: ClassVar[tuple[str, ...]] = ("contains", "one_of")
    name: str
    """As that file calls it, such as RegistryDwords."""
    contains: str | None = Field(default=None, min_length=1)
    """Text that its value must hold."""
    one_of: tuple[Text, ...] = ()
    """Values of which it must have one."""
    otherwise: Otherwise = "no-effect"
    """What a launch without it would do."""


class KernelArg(Check):
    """An argument of the kernel must not have one of the values in `not_in`, or must have one of those in `one_of`.

    Values with commas, as in `pci=noacs,realloc`, are several; an argument without a value has the value "".
    """

    scope: ClassVar[tuple[Scope, ...]] = ("host",)
    any_of: ClassVar[tuple[str, ...]] = ("not_in", "one_of")
    name: str
    """As /proc/cmdline has it, such as iommu."""
    not_in: tuple[Text, ...] = ()
    """Values that it must not have."""
    one_of: tuple[Text, ...] = ()
    """Values of which it must have one."""


class PcieLink(Check):
    """The PCIe link of each GPU that the launch uses."""

    scope: ClassVar[tuple[Scope, ...]] = ("pcie",)
    any_of: ClassVar[tuple[str, ...]] = ("generation", "lanes")
    generation: Whole | None = Field(default=None, ge=1, le=9)
    """The least that GPU and slot can both do; what an idle link runs at says nothing."""
    lanes: Whole | None = Field(default=None, ge=1, le=32)
    """The least that are in use."""
    otherwise: Otherwise = "no-effect"
    """What a launch without it would do."""


class Peers(Check):
    """What GPUs that read each other's memory over PCIe stand on, for each that the launch uses.

    All of it can be right where such reads still hang: only a launch is proof.
    """

    scope: ClassVar[tuple[Scope, ...]] = ("driver", "pcie")
    any_of: ClassVar[tuple[str, ...]] = ("access", "bar1", "iommu", "acs")
    access: Switch | None = None
    """Whether the driver says OK for each pair (`nvidia-smi topo -p2p r`)."""
    bar1: Size | None = None
    """The least window into a GPU's memory; without resizable BAR it is 256 MiB."""
    iommu: tuple[Literal["off", "passthrough", "translated"], ...] = ()
    """Of these, what the IOMMU does with the GPU's transfers. Where it translates, the first collective may hang."""
    acs: Switch | None = None
    """Whether any PCIe bridge sends peers' transfers up to the root (ACS). Takes root to read."""


class PowerLimit(Check):
    """The power limit of each GPU that the launch uses, in watts."""

    scope: ClassVar[tuple[Scope, ...]] = ("power",)
    any_of: ClassVar[tuple[str, ...]] = ("at_least_w", "at_most_w")
    at_least_w: Whole | None = Field(default=None, ge=1)
    """The least."""
    at_most_w: Whole | None = Field(default=None, ge=1)
    """The most."""
    otherwise: Otherwise = "no-effect"
    """What a launch without it would do."""


class Numa(Check):
    """On how many NUMA nodes the GPUs that the launch uses sit, and whether the kernel moves pages between nodes."""

    scope: ClassVar[tuple[Scope, ...]] = ("gpus", "host")
    any_of: ClassVar[tuple[str, ...]] = ("nodes", "balancing")
    nodes: Whole | None = Field(default=None, ge=1)
    """The most."""
    balancing: Switch | None = None
    """Whether it does by itself."""
    otherwise: Otherwise = "no-effect"
    """What a launch without it would do."""
