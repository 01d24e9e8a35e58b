"""Scalars with a unit: `25m` and `200us` are seconds, `2%` is a fraction, `80GiB` is bytes."""

import re
from collections.abc import Callable
from typing import Annotated

from pydantic import BeforeValidator, ValidationInfo, WithJsonSchema

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}
_LONGEST_S = 30 * 24 * 3600.0
_A_SECOND = {"us": 1e6, "ms": 1e3, "s": 1.0}
_BYTES = {"MB": 10**6, "GB": 10**9, "TB": 10**12, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}

FROM_FILE = "playbook file"
"""Validation context of values that come from a playbook file: there, a bare number lacks its unit."""


def parse_duration(value: object) -> float:
    """Seconds of a text such as `90s`, `25m` or `2h`. Raises ValueError for anything else."""
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)([smh])", value.strip()) if isinstance(value, str) else None
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if not 0 < seconds <= _LONGEST_S:
        raise ValueError("expected a duration above zero and up to 720h, such as 90s, 25m or 2h")
    return seconds


def parse_brief(value: object) -> float:
    """Seconds of a text such as `200us` or `1.5ms`. Raises ValueError for anything else."""
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(us|ms|s)", value.strip()) if isinstance(value, str) else None
    seconds = float(match[1]) / _A_SECOND[match[2]] if match else 0.0
    if not 0 < seconds <= 60:
        raise ValueError("expected the time of one call, above zero and up to 60s, such as 200us or 1.5ms")
    return seconds


def parse_percent(value: object) -> float:
    """The fraction (0.02) that a text such as `2%` stands for. Raises ValueError for anything else."""
    match = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,9})?)\s*%", value.strip()) if isinstance(value, str) else None
    if not match or not 0 <= float(match[1]) <= 100:
        raise ValueError("expected a percentage from 0% to 100%, such as 2%")
    return float(match[1]) / 100


def parse_size(value: object) -> float:
    """Bytes of a text such as `80GiB` or `500 GB`. Raises ValueError for anything else."""
    text = value.strip() if isinstance(value, str) else ""
    match = re.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,9})?) ?([MGT]i?B)", text)
    if not match or float(match[1]) == 0:
        raise ValueError("expected a size above zero with its unit, such as 80GiB or 500GB")
    return float(match[1]) * _BYTES[match[2]]


def _from_text_or_number(parse: Callable[[object], float]) -> BeforeValidator:
    def read(value: object, info: ValidationInfo) -> object:
        # A journal gives back the number that a playbook's text became.
        return value if isinstance(value, float) and info.context != FROM_FILE else parse(value)

    return BeforeValidator(read)


Seconds = Annotated[
    float,
    _from_text_or_number(parse_duration),
    WithJsonSchema({"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?[smh]$", "examples": ["90s", "25m"]}),
]
BriefSeconds = Annotated[
    float,
    _from_text_or_number(parse_brief),
    WithJsonSchema({"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?(us|ms|s)$", "examples": ["200us", "1.5ms"]}),
]
Fraction = Annotated[
    float,
    _from_text_or_number(parse_percent),
    WithJsonSchema({"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?\s*%$", "examples": ["2%"]}),
]
Size = Annotated[
    float,
    _from_text_or_number(parse_size),
    WithJsonSchema({"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)? ?[MGT]i?B$", "examples": ["80GiB", "500GB"]}),
]
