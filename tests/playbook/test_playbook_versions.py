"""Versions against ranges, in the forms that real tools print."""

import pytest
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from agent.playbook.versions import satisfies

VERSIONS = (
    "0.5.9", "0.5.10", "0.5.10.post1", "0.6.7.post2", "0.7.0.dev20260922", "0.7.0rc1", "0.7.0", "0.7", "12.8", "12.9",
    "13.0", "2.9.1+cu128", "2.14.1", "580.95.05", "1!2.0", "0.6.18rc7", "0.6.18", "10", "9.0",
)  # fmt: skip
RANGES = (
    ">=0.5.9,<0.5.11", "==0.5.10", "!=0.5.10", ">0.5.10", ">=0.6.7", "<0.7.0", ">=12.9", "~=0.5.9", "~=0.6", "==0.5.*",
    "!=0.5.*", "==2.9.1", ">=580.65.06", "<=0.7", "==0.6.18", ">=0.6.18",
)  # fmt: skip


@pytest.mark.parametrize("spec", RANGES)
def test_as_the_packaging_library_has_it(spec: str) -> None:
    wanted = SpecifierSet(spec)
    # It leaves development versions and post releases out of some ranges by a rule of its own, and knows epochs.
    plain = [version for version in VERSIONS if not any(word in version for word in ("dev", "rc", "post", "!"))]
    assert {v: satisfies(v, spec) for v in plain} == {v: wanted.contains(Version(v)) for v in plain}


@pytest.mark.parametrize(
    ("version", "spec", "holds"),
    [
        ("0.7.0.dev20260922", "<0.7.0", True),
        ("0.7.0.dev20260922", ">=0.6.18", True),
        ("0.6.18rc7", ">=0.6.18", False),
        ("0.6.18rc7", ">=0.6.17", True),
        ("0.6.7.post2", ">0.6.7", True),
        ("0.5.10.post1", ">=0.5.9,<0.5.11", True),
        ("v1.2", "==1.2.0", True),
    ],
)
def test_what_comes_before_and_after_a_release(version: str, spec: str, holds: bool) -> None:
    assert satisfies(version, spec) is holds


@pytest.mark.parametrize(("version", "spec"), [("", ">=1"), ("unknown", ">=1"), ("1.0", "1.0"), ("1.0", ">=x")])
def test_what_is_no_version(version: str, spec: str) -> None:
    with pytest.raises(ValueError, match="is no"):
        satisfies(version, spec)
