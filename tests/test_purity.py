"""Each pure module is imported alone in a fresh interpreter: nothing that acts on the world comes with it."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PURE = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for folder in ("agent/core", "agent/playbook")
    for path in (ROOT / folder).rglob("*.py")
)
# pydantic brings socket with it; that we do not use it ourselves is an import contract.
ACTING = ("asyncio", "subprocess", "textual", "rich", "httpx", "httpx2", "anthropic", "asyncssh", "tui")


@pytest.mark.parametrize("module", PURE)
def test_a_pure_module_imports_nothing_that_acts(module: str) -> None:
    code = f"import sys, {module}; print(*[name for name in {ACTING!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_help_imports_nothing_heavy() -> None:
    code = "import sys, agent.cli; print(*[n for n in ('pydantic', 'yaml', *sys.argv[1:]) if n in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code, *ACTING], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []
