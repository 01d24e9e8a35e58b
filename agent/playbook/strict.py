"""What every model of a playbook is: frozen, closed to unknown keys; and entries known by the key they begin with."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Discriminator


class Strict(BaseModel):
    """Frozen, and closed to keys that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True, use_attribute_docstrings=True)


def key_of(*names: str) -> Discriminator:
    """Tells entries apart by the one of `names` that they hold."""

    def pick(value: Any) -> str | None:
        if isinstance(value, BaseModel):
            return next((info.alias for info in type(value).model_fields.values() if info.alias in names), None)
        keys = [key for key in names if isinstance(value, Mapping) and key in value]
        return keys[0] if keys else None

    return Discriminator(pick)
