"""The way to a running session: which one is meant, here or on another machine."""

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from agent.control.client import Door, HereDoor
from agent.control.places import Note, pick, running

if TYPE_CHECKING:
    from agent.control.remote import Box


@asynccontextmanager
async def door_to(
    wanted: str | None, host: str | None, tell_trouble: Callable[[str], None]
) -> AsyncIterator[tuple[Door, list[Note]]]:
    """The way to the session that is wanted, and all that run there, newest first.

    Raises UserError where it cannot be told which one, TargetUnusable where the host cannot be used.
    """
    if host is None:
        notes = running()
        yield HereDoor(pick(notes, wanted, "here")), notes
        return
    # Only now: the library for SSH takes a while to load.
    from agent.control.remote import ThereDoor, box_of

    box = box_of(host)
    try:
        found = await _met(box)
        note = pick(list(found.values()), wanted, f"on {host}")
        path = next(path for path, other in found.items() if other is note)
        yield ThereDoor(box, path, note, tell_trouble), list(found.values())
    finally:
        box.close()


async def _met(box: "Box") -> dict[str, Note]:
    """What runs there. The person at the terminal is asked about a key that nobody knows yet."""
    from agent.hostkeys import ask
    from agent.targets.hostkey import HostKeyUnknown, remember

    while True:
        try:
            return await box.running()
        except HostKeyUnknown as error:
            if not ask(error, sys.stdin, sys.stderr):
                raise
            remember(error)
