"""A terminal that may go away: its window is closed, its connection breaks."""

import errno
from typing import IO, Any, cast

from textual.drivers.linux_driver import LinuxDriver


class _Lasting:
    """A file that swallows what a terminal which is gone does not take."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> None:
        try:
            self._file.write(text)
        except OSError as error:
            _only_gone(error)

    def flush(self) -> None:
        try:
            self._file.flush()
        except OSError as error:
            _only_gone(error)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def _only_gone(error: OSError) -> None:
    if error.errno != errno.EIO:
        raise error


class LastingDriver(LinuxDriver):
    """Textual's driver, except that its writing thread survives the terminal.

    Without it the thread ends, the next writes fill its queue, and the process waits for ever, the engine with it.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        assert self._file is not None, "the screen is drawn on a terminal"
        self._file = cast(Any, _Lasting(self._file))
