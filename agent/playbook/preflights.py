"""The preflight checks of a playbook, as types: what must be so, or else the launch would fail or change nothing."""

from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from agent.playbook.fields import Text, VersionSpec, Whole
from agent.playbook.strict import Strict
from agent.playbook.units import Size

Otherwise = Literal["fails", "no-effect"]
Scope = Literal["source", "environment", "flags", "gpus", "cuda", "host"]
"""What an outcome depends on: the server's source at its version, its Python, the experiment's flags and variables,
the GPUs, CUDA, or anything else of the host. When that changes, the outcome no longer holds."""


class Check(Strict):
    """What must be so; `otherwise` says what a launch without it would do."""

    scope: ClassVar[tuple[Scope, ...]]
    any_of: ClassVar[tuple[str, ...]] = ()
    """The keys of which at least one must be given."""
    otherwise: Otherwise = "fails"

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
    table: str
    key: Text
    otherwise: Otherwise | None = None


class ListContains(Strict):
    """A list literal named `list` (inside `function`, if named) in a source file must contain `item`.

    What happens without it is read from the code that asks for it, unless `otherwise` says so. Of a list inside a
    function that cannot be read: the launch fails.
    """

    scope: ClassVar[tuple[Scope, ...]] = ("source", "gpus")
    file: str = Field(alias="in")
    name: str = Field(alias="list")
    item: Text
    function: str | None = None
    otherwise: Otherwise | None = None


class GpuGate(Strict):
    """A function of a source file must let these GPUs pass: its tests such as `is_sm100` neither raise nor give up."""

    scope: ClassVar[tuple[Scope, ...]] = ("source", "gpus")
    file: str = Field(alias="in")
    name: str = Field(alias="function")


class FlagKnown(Strict):
    """The server's own source must know this flag, with the value that it has here; or every flag of the launch."""

    scope: ClassVar[tuple[Scope, ...]] = ("source", "flags")
    name: str | None = Field(default=None, alias="flag")


class ModuleImportable(Check):
    """`module` must import in the server's own Python (or in `python`)."""

    scope: ClassVar[tuple[Scope, ...]] = ("environment",)
    module: str
    python: str | None = None


class PythonPackage(Check):
    """A distribution such as `flashinfer-python` must be installed for the server's own Python (or for `python`)."""

    scope: ClassVar[tuple[Scope, ...]] = ("environment",)
    name: str
    version: VersionSpec | None = None
    python: str | None = None


class CommandVersion(Check):
    """The first number with a dot that a command prints (behind the text `after`) must be in a range of versions."""

    scope: ClassVar[tuple[Scope, ...]] = ("host",)
    run: tuple[Text, ...] = Field(min_length=1)
    version: VersionSpec
    after: str = ""


class GpuCheck(Check):
    """The launch must see `count` GPUs; those that it uses are of compute capability `sm`, their memory not held."""

    scope: ClassVar[tuple[Scope, ...]] = ("gpus", "host")
    any_of: ClassVar[tuple[str, ...]] = ("count", "sm", "memory_free")
    count: Whole | None = Field(default=None, ge=1)
    sm: VersionSpec | None = None
    memory_free: Size | None = None


class Topology(Check):
    """How the GPUs that the launch uses must be connected."""

    scope: ClassVar[tuple[Scope, ...]] = ("gpus",)
    nvlink: Literal["full", "none"]
    otherwise: Otherwise = "no-effect"


class CudaCheck(Check):
    """The CUDA versions of the compiler, of the server's torch, and the newest that the driver runs."""

    scope: ClassVar[tuple[Scope, ...]] = ("cuda", "environment")
    any_of: ClassVar[tuple[str, ...]] = ("nvcc", "torch", "driver")
    nvcc: VersionSpec | None = None
    torch: VersionSpec | None = None
    driver: VersionSpec | None = None


class ModelConfig(Check):
    """What the model's config.json says must fit: heads and experts divide, the server has the architecture.

    `path` is the model's folder (by default that of the flags); `quant` are the quantisation methods that will do.
    """

    scope: ClassVar[tuple[Scope, ...]] = ("source", "flags", "host")
    path: str | None = None
    quant: tuple[Text, ...] = ()


class PathCheck(Check):
    """A file or folder of the host must exist."""

    scope: ClassVar[tuple[Scope, ...]] = ("host",)
    name: str = Field(alias="exists", min_length=1)


class DiskFree(Check):
    """The file system of `path` must have so much room."""

    scope: ClassVar[tuple[Scope, ...]] = ("host",)
    path: str = Field(default="~/", min_length=1)
    at_least: Size


class PortFree(Check):
    """Nobody else may listen on `port` (by default that of the flags)."""

    scope: ClassVar[tuple[Scope, ...]] = ("host", "flags")
    port: Whole | None = Field(default=None, ge=1, le=65535)


class EnvCheck(Check):
    """A variable of the launch must not have one of the values in `not_in`, or must have one of those in `one_of`."""

    scope: ClassVar[tuple[Scope, ...]] = ("flags",)
    any_of: ClassVar[tuple[str, ...]] = ("not_in", "one_of")
    name: str
    not_in: tuple[Text, ...] = ()
    one_of: tuple[Text, ...] = ()
    why: str = ""


class HttpCheck(Check):
    """A GET on the host must be answered with this status; redirections are not followed."""

    scope: ClassVar[tuple[Scope, ...]] = ("host",)
    name: str = Field(alias="get", pattern=r"^https?://[^\s/?#@]+([/?#]\S*)?$")
    status: Whole = Field(default=200, ge=100, le=599)
