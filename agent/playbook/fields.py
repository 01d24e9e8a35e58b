"""The types of single fields: text as written, strict numbers and switches, names."""

from typing import Annotated

from pydantic import Field, WithJsonSchema

Text = Annotated[str, WithJsonSchema({"type": ["string", "number", "boolean"]})]
"""Text that may look like a number in YAML; it arrives as written."""

Whole = Annotated[int, Field(strict=True)]
Switch = Annotated[bool, Field(strict=True)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
# A retry that `revisit` makes is called after both of its experiments, such as torch-symm-mem@cuda13.
ExperimentId = Annotated[
    str,
    Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._@-]{0,199}$"),
    WithJsonSchema({"type": "string", "pattern": r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"}),
]
VersionSpec = Annotated[
    str,
    Field(
        pattern=r"^\s*(==|!=|<=|>=|~=|<|>)\s*[0-9][0-9A-Za-z.+*!-]*"
        r"(\s*,\s*(==|!=|<=|>=|~=|<|>)\s*[0-9][0-9A-Za-z.+*!-]*)*\s*$"
    ),
]
