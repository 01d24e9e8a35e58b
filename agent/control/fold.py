"""The events of a session as they arrive, folded to states. What was told once is not told again."""

import json
from typing import Any

from agent.core import events as ev
from agent.core.reduce import initial, reduce
from agent.core.state import State
from agent.engine import Listener
from agent.journal.codec import decode


class Gap(Exception):
    """A record that does not follow the one before it: the events have to be read from the beginning."""


class Fold:
    """Folds records of a journal in their order."""

    def __init__(self, listen: Listener) -> None:
        """`listen` is called for each event that it was not called for before, also after a restart."""
        self.state: State | None = None
        self.end: ev.SessionEnded | None = None
        self._listen = listen
        self._at = 0
        self._told = 0

    def restart(self) -> None:
        """The next record is the first one again."""
        self.state, self._at = None, 0

    def take(self, record: dict[str, Any]) -> None:
        """Fold one record.

        Raises Gap, UnknownEvent where it is of another version, IllegalTransition where the events do not fit.
        """
        if record.get("seq") != self._at + 1:
            raise Gap(f"record {record.get('seq')} came after {self._at}")
        event = decode(record)
        if self.state is None:
            if not isinstance(event, ev.SessionStarted):
                raise Gap("the first event is not the start of a session")
            before = after = initial(event)
        else:
            before = self.state
            after, _ = reduce(before, event)
        self.state = after
        self._at += 1
        # A session that was ended may have been resumed: only the last event ends it.
        self.end = event if isinstance(event, ev.SessionEnded) else None
        if self._at > self._told:
            self._told = self._at
            self._listen(before, event, after)


def records(lines: bytes) -> list[dict[str, Any]]:
    """The records of whole lines. Raises ValueError where one is no JSON object."""
    found = [json.loads(line) for line in lines.splitlines()]
    if not all(isinstance(record, dict) for record in found):
        raise ValueError("not a record")
    return found


def whole_lines(data: bytes) -> bytes:
    """As much of the data as ends with a line."""
    return data[: data.rfind(b"\n") + 1]
