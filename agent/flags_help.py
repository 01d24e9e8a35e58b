"""Help for the flags that a person types, from the table that the session's own checks keep of the server's source."""

import threading
from pathlib import Path

from agent.core.state import State
from agent.core.views.flag_help import FlagFacts
from agent.flags.cache import load_table, table_file, tables_folder
from agent.flags.model import Flag, FlagTable, readable


class FlagHelp:
    """Knows nothing until the table is there: it is read beside, since that takes longer than a key may."""

    def __init__(self, file: Path | None) -> None:
        """`file` is that of the table, None where there will be none."""
        self._file = file
        self._table: FlagTable | None = None
        self._reading: threading.Thread | None = None

    @classmethod
    def of(cls, state: State) -> "FlagHelp":
        """That of a session's server, where its playbook says where the source is."""
        server, target = state.playbook.server, state.target or state.playbook.target
        kind, root = readable(server.kind), server.source.get(server.kind)
        if kind is None or root is None:
            return cls(None)
        name = target if isinstance(target, str) else target.ssh
        return cls(table_file(tables_folder(), kind, f"{name}:{root}"))

    def __call__(self, name: str) -> FlagFacts | None:
        """What is known of the flag of exactly that name."""
        if self._table is None:
            self._read_beside()
            return None
        flag = self._table.find(name)
        return _facts(flag) if flag else None

    def _read_beside(self) -> None:
        if self._file is None or (self._reading and self._reading.is_alive()) or not self._file.exists():
            return
        self._reading = threading.Thread(target=self._read, args=(self._file,), name="flag table", daemon=True)
        self._reading.start()

    def _read(self, file: Path) -> None:
        self._table = load_table(file)


_TAKES = {"nothing": "nothing", "one": "{}", "optional": "{}, or nothing", "several": "several of {}"}


def _facts(flag: Flag) -> FlagFacts:
    return FlagFacts(
        names=flag.spellings,
        takes=_TAKES[flag.takes].format(flag.type or "a value"),
        choices=flag.choices or (),
        default=flag.default or "",
        help=flag.help,
        deprecated=flag.deprecated,
    )
