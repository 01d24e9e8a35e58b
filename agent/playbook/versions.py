"""Versions such as 0.6.7.post2, 2.9.1+cu128 or 580.95.05 against a range such as `>=0.5.9,<0.5.11`."""

import re
from itertools import takewhile

_VERSION = re.compile(
    r"v?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<pre>a|b|c|rc|alpha|beta|pre|preview)[-_.]?(?P<pre_n>\d*))?"
    r"(?:[-_.]?(?:post|rev|r)[-_.]?(?P<post>\d*))?"
    r"(?:[-_.]?dev[-_.]?(?P<dev>\d*))?"
    r"(?:\+.*)?",
    re.IGNORECASE,
)
_PRE = {"a": 0, "alpha": 0, "b": 1, "beta": 1}
_FINAL = (3, 0)
_Key = tuple[tuple[int, ...], tuple[int, int], int, float]


def satisfies(version: str, spec: str) -> bool:
    """Whether a version lies in a range (a VersionSpec). What stands behind a `+` does not count.

    Raises ValueError where either is none.
    """
    return all(_holds(version, part.strip()) for part in spec.split(","))


def _holds(version: str, part: str) -> bool:
    match = re.fullmatch(r"(==|!=|<=|>=|~=|<|>)\s*(\S+)", part)
    if not match:
        raise ValueError(f"'{part}' is no range of versions")
    sign, bound = match.groups()
    if bound.endswith(".*") and sign in ("==", "!="):
        prefix = _key(bound[:-2])[0]
        return (_release(version, len(prefix)) == prefix) is (sign == "==")
    have, wanted = _key(version), _key(bound)
    if sign == "~=":
        given = len(bound.split("+")[0].split(".")) - 1
        return have >= wanted and _release(version, given) == _release(bound, given)
    return {
        "==": have == wanted,
        "!=": have != wanted,
        "<=": have <= wanted,
        ">=": have >= wanted,
        "<": have < wanted,
        ">": have > wanted,
    }[sign]


def _release(version: str, count: int) -> tuple[int, ...]:
    numbers = _key(version)[0]
    return (*numbers, *(0,) * count)[:count]


def _key(version: str) -> _Key:
    match = _VERSION.fullmatch(version.strip())
    if not match:
        raise ValueError(f"'{version}' is no version")
    numbers = [int(number) for number in match["release"].split(".")]
    trailing = len(list(takewhile(lambda number: number == 0, reversed(numbers[1:]))))
    pre, post, dev = match["pre"], match["post"], match["dev"]
    # A development version comes before everything of its number, a post release after it.
    stage = (_PRE.get(pre.lower(), 2), int(match["pre_n"] or 0)) if pre else _FINAL
    if dev is not None and not pre and post is None:
        stage = (-1, 0)
    return (
        tuple(numbers[: len(numbers) - trailing]),
        stage,
        -1 if post is None else int(post or 0),
        float("inf") if dev is None else int(dev or 0),
    )
