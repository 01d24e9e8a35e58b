"""Whether a target can be reached. Out of reach is a state with a clock on it: nothing on the target ends by it."""

import asyncio
from collections.abc import Callable

Listen = Callable[[str | None], None]


class Reach:
    """The link to one target: up or down, how often it broke, and who wants to know."""

    def __init__(self) -> None:
        self.breaks = 0
        """How often the link broke. What ran over it at the time ended without a result."""
        self.why = ""
        self._listen: Listen | None = None
        self._up = asyncio.Event()
        self._up.set()

    @property
    def up(self) -> bool:
        """Whether the target can be reached, as far as is known."""
        return self._up.is_set()

    def tell(self, listen: Listen) -> None:
        """Have `listen` called with the reason when the target gets out of reach, and with None when it is back."""
        self._listen = listen

    def lost(self, why: str) -> None:
        """The link broke."""
        self.breaks += 1
        self.why = why
        self._up.clear()
        if self._listen:
            self._listen(why)

    def found(self) -> None:
        """The target can be reached again."""
        was_up = self.up
        self._up.set()
        if self._listen and not was_up:
            self._listen(None)

    async def wait(self) -> None:
        """Wait until the target can be reached."""
        await self._up.wait()
