"""The preflight checks of a playbook, as types: what must be so, or else the launch would fail or change nothing."""

from typing import ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from agent.playbook.fields import Switch, Text, VersionSpec, Whole
from agent.playbook.strict import Strict
from agent.playbook.units import Size

Otherwise = Literal["fails", "no-effect"]
Scope = Literal["source", "environment", "flags", "gpus", "cuda", "driver", "pcie", "power", "host"]
"""What an outcome depends on: the server's source at its version, its Python, the experiment's flags and variables,
the GPUs, CUDA, the driver's options, how the GPUs sit on PCIe, their power limit, or anything else of the host. When
that changes, the outcome no longer holds."""


class Check(Strict):
    """What must be so; `otherwise` says what a launch without it would do."""

    scope: ClassVar[tuple[Scope, ...]]
    any_of: ClassVar[tuple[str, ...]] = ()
    """The keys of which at least one must be given."""
    otherwise: Otherwise = "fails"
    """What a launch without it would do."""

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.any_of and all(getattr(self, key) in (None, ()) for key in self.any_of):
            raise ValueError(f"needs {' or '.join(map(repr, self.any_of))}")
        return self


class TableHasKey(Strict):
    """A dict literal named `table` in a source file must have `key`.

    What happens without it is read from the code that looks it up, unless `otherwise` says so.
    """

    scope: ClassVar[tuple[Scope, ...]] = ("source", "gpus")
    file: str = Field(alias="in")
    """`NAME:path` with a name of `server.source`."""
    table: str
    """The name of the dict."""
    key: Text
    """Facts of the host are filled in, such as {gpu.sm_major}."""
    otherwise: Otherwise | None = None
    """What a launch without it would do."""


class ListContains(Strict):
    """A list literal named `list` (inside `function`, if named) in a source file must contain `item`.

    What happens without it is read from the code that asks for it, unless `otherwise` says so. Of a list inside a
    function that cannot be read: the launch fails.
    """

    scope: ClassVar[tuple[Scope, ...]] = ("source", "gpus")
    file: str = Field(alias="in")
    """`NAME:path` with a name of `server.source`."""
    name: str = Field(alias="list")
    """The name of the list."""
    item: Text
    """As `key` of table-has-key."""
    function: str | None = None
    """The function in which the list stands."""
    otherwise: Otherwise | None = None
    """What a launch without it would do."""


class GpuGate(Strict):
    """A function of a source file must let these GPUs pass: its tests such as `is_sm100` neither raise nor give up."""

    scope: ClassVar[tuple[Scope, ...]] = ("source", "gpus")
    file: str = Field(alias="in")
    """`NAME:path` with a name of `server.source`."""
    name: str = Field(alias="function")
    """The name of the function."""


class SourceName(Check):
    """The code of a source file must define a name (`Class.method` for one of a class), or must not.

    Of a class that inherits from other files, and of a name that is only mentioned, nothing is said.
    """

    scope: ClassVar[tuple[Scope, ...]] = ("source",)
    file: str = Field(alias="in")
    """`NAME:path` with a name of `server.source`."""
    name: str
    """A function, class, method, variable or import."""
    there: Switch = True
    """False: the code must not define it."""

    @field_validator("name")
    @classmethod
    def _of_code(cls, name: str) -> str:
        if not all(part.isidentifier() for part in name.split(".")):
            raise ValueError("expected a name as Python has it, such as Model.forward")
        return name


class FlagKnown(Strict):
    """The server's own source must know this flag, with the value that it has here; or every flag of the launch."""

    scope: ClassVar[tuple[Scope, ...]] = ("source", "flags")
    name: str | None = Field(default=None, alias="flag")
    """A flag without dashes; every flag of the launch, where it is left out."""


class ModuleImportable(Check):
    """`module` must import in the server's own Python (or in `python`)."""

    scope: ClassVar[tuple[Scope, ...]] = ("environment",)
    module: str
    """As in `import deep_ep`."""
    python: str | None = None
    """Another Python than the server's own."""


class PythonPackage(Check):
    """A distribution such as `flashinfer-python` must be installed for the server's own Python (or for `python`)."""

    scope: ClassVar[tuple[Scope, ...]] = ("environment",)
    name: str
    """As pip calls it."""
    version: VersionSpec | None = None
    """The versions that will do; any, where it is left out."""
    python: str | None = None
    """Another Python than the server's own."""


class CommandVersion(Check):
    """The first number with a dot that a command prints (behind the text `after`) must be in a range of versions."""

    scope: ClassVar[tuple[Scope, ...]] = ("host",)
    run: tuple[Text, ...] = Field(min_length=1)
    """Its argv; no shell reads it."""
    version: VersionSpec
    """The versions that will do."""
    after: str = ""
    """Text before the version."""


class GpuCheck(Check):
    """The launch must see `count` GPUs; those that it uses are of compute capability `sm`, their memory not held."""

    scope: ClassVar[tuple[Scope, ...]] = ("gpus", "host")
    any_of: ClassVar[tuple[str, ...]] = ("count", "sm", "memory_free")
    count: Whole | None = Field(default=None, ge=1)
    """The least number of GPUs."""
    sm: VersionSpec | None = None
    """Compute capability: SM120 is 12.0."""
    memory_free: Size | None = None
    """On each of them."""


class Topology(Check):
    """How the GPUs that the launch uses must be connected."""

    scope: ClassVar[tuple[Scope, ...]] = ("gpus",)
    nvlink: Literal["full", "none"]
    """Every pair of GPUs, or none."""
    otherwise: Otherwise = "no-effect"
    """What a launch without it would do."""


class CudaCheck(Check):
    """The CUDA versions of the compiler, of the server's torch, and the newest that the driver runs."""

    scope: ClassVar[tuple[Scope, ...]] = ("cuda", "environment")
    any_of: ClassVar[tuple[str, ...]] = ("nvcc", "torch", "driver")
    nvcc: VersionSpec | None = None
    """Of the compiler."""
    torch: VersionSpec | None = None
    """That the server's torch was built for."""
    driver: VersionSpec | None = None
    """The newest that the driver runs."""


class ModelConfig(Check):
    """What the model's config.json says must fit: heads and experts divide, the server has the architecture.

    `path` is the model's folder (by default that of the flags); `quant` are the quantisation methods that will do.
    """

    scope: ClassVar[tuple[Scope, ...]] = ("source", "flags", "host")
    path: str | None = None
    """The model's folder on the target."""
    quant: tuple[Text, ...] = ()
    """Quantisation methods that will do; any, where it is left out."""


class PathCheck(Check):
    """A file or folder of the host must exist, or another must not."""

    scope: ClassVar[tuple[Scope, ...]] = ("host",)
    any_of: ClassVar[tuple[str, ...]] = ("exists", "absent")
    exists: str | None = Field(default=None, min_length=1)
    """The path on the target of what must exist."""
    absent: str | None = Field(default=None, min_length=1)
    """The path of what must not."""


class DiskFree(Check):
    """The file system of `path` must have so much room."""

    scope: ClassVar[tuple[Scope, ...]] = ("host",)
    path: str = Field(default="~/", min_length=1)
    """Any path of the file system."""
    at_least: Size
    """The least room."""


class PortFree(Check):
    """Nobody else may listen on `port` (by default that of the flags)."""

    scope: ClassVar[tuple[Scope, ...]] = ("host", "flags")
    port: Whole | None = Field(default=None, ge=1, le=65535)
    """Another port than that of the flags."""


class EnvCheck(Check):
    """A variable of the launch must not have one of the values in `not_in`, or must have one of those in `one_of`."""

    scope: ClassVar[tuple[Scope, ...]] = ("flags",)
    any_of: ClassVar[tuple[str, ...]] = ("not_in", "one_of")
    name: str
    """The variable."""
    not_in: tuple[Text, ...] = ()
    """Values that it must not have."""
    one_of: tuple[Text, ...] = ()
    """Values of which it must have one."""
    why: str = ""
    """The reason, for the board."""


class HttpCheck(Check):
    """A GET on the host must be answered with this status; redirections are not followed."""

    scope: ClassVar[tuple[Scope, ...]] = ("host",)
    name: str = Field(alias="get", pattern=r"^https?://[^\s/?#@]+([/?#]\S*)?$")
    """A URL, asked for on the target."""
    status: Whole = Field(default=200, ge=100, le=599)
    """The status that will do."""
