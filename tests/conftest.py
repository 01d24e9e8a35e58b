"""What every test has: state and cache folders of its own, no key of a person, and no task left behind."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import pytest

_LONG = {"session", "chaos", "control", "targets", "tui"}


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--worlds N`: how many shuffled worlds the session tests play."""
    parser.addoption("--worlds", type=int, default=1)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that wait for whole sessions come first: the many short ones then fill what is left of each worker."""
    items.sort(key=lambda item: not _LONG & set(item.path.parts))


@pytest.fixture(scope="session", autouse=True)
def apart(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests neither see nor touch the user's own files and keys."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))
    os.environ["XDG_CONFIG_HOME"] = str(tmp_path_factory.mktemp("config"))
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    # A shell lets what it runs in the background ignore ctrl+c, and so would everything that tests start and interrupt.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL"):
        os.environ.pop(name, None)


@pytest.fixture(autouse=True)
async def no_task_left() -> AsyncIterator[None]:
    """A task that outlives its test is a leak."""
    yield
    left = [task.get_name() for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    assert not left
