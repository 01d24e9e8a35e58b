"""The preflight `path`: what must be there, and what must not."""

from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from agent.core.model import Host, LaunchConfig
from agent.playbook.preflight_entries import PreflightEntry
from agent.redact import Redactor
from agent.research.preflight import preflight
from agent.research.resolver import FlagResolver
from agent.research.sources import Sources
from agent.targets.local import LocalTarget

ENTRY: TypeAdapter[PreflightEntry] = TypeAdapter(PreflightEntry)


@pytest.mark.parametrize(
    ("check", "outcome", "summary"),
    [
        ({"exists": "~/here"}, "fine", "~/here exists"),
        ({"exists": "~/not"}, "fails", "~/not does not exist"),
        ({"absent": "~/not"}, "fine", "~/not does not exist"),
        ({"absent": "~/here"}, "fails", "~/here exists"),
        ({"absent": "~/here", "otherwise": "no-effect"}, "no-effect", "~/here exists"),
        ({"exists": "~/here", "absent": "~/not"}, "fine", "~/here exists, ~/not does not exist"),
        ({"exists": "~/not", "absent": "~/not"}, "fails", "~/not does not exist"),
    ],
)
async def test_what_must_be_there_and_what_must_not(
    tmp_path: Path, check: dict[str, str], outcome: str, summary: str
) -> None:
    (tmp_path / "here").touch()
    target = LocalTarget("here", workdir=tmp_path / "work", home=tmp_path)
    config = LaunchConfig(kind="sglang", command=("x",), args={}, env={}, source={}, version=None, load_timeout_s=1.0)
    entry = ENTRY.validate_python({"path": check})
    sources = Sources(target, {}, Redactor({}))
    found = await preflight(sources, entry, Host(name="here"), config, FlagResolver().table, lambda _: None)
    assert (found.outcome, found.summary) == (outcome, summary)


def test_it_must_say_something() -> None:
    with pytest.raises(ValidationError, match="needs 'exists' or 'absent'"):
        ENTRY.validate_python({"path": {}})
