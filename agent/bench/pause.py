"""Takes what arrives at nearly the same time in one go, which costs less CPU than waking for each piece."""

import asyncio
from time import sleep

_CLOSE_S = 0.00002
"""Pieces that come this fast one after the other are taken together: to wake for each would cost as much as to read."""

_QUIET_S = 0.001
_FLOOD_S = 0.01
"""Only in a flood: so long without a quiet moment. The tokens of one step are over before a pause would pay."""

_PAUSE_S = 0.00005
"""How long to sleep; Linux adds its timer slack of 50 us, so a stamp is late by a tenth of a millisecond at most."""


class Pause:
    """The pauses of a load, which block its event loop: only for one that does nothing else.

    `due` says that a pause follows what is being taken now.
    """

    def __init__(self) -> None:
        self.due = False
        self._last_s = self._flood_from_s = 0.0

    def came(self, now_s: float) -> None:
        """A piece came, and no pause is due."""
        gap_s, self._last_s = now_s - self._last_s, now_s
        if gap_s > _QUIET_S:
            self._flood_from_s = now_s
        elif gap_s < _CLOSE_S and now_s - self._flood_from_s > _FLOOD_S:
            self.due = True
            asyncio.get_running_loop().call_soon(self._pause)  # runs when all that has come is taken

    def _pause(self) -> None:
        self.due = False
        sleep(_PAUSE_S)
