"""Playbooks by their file, or by the name of a shipped one."""

from collections.abc import Callable
from pathlib import Path

from agent.diagnostics import UserError
from agent.paths import shipped_playbooks
from agent.playbook.model import Playbook

Say = Callable[[str], None]


def load_named(name: str, say: Say, as_json: bool = False) -> tuple[Playbook, str]:
    """A playbook and its text. Raises UserError after all its problems were printed (by `say`, if as JSON)."""
    return _parse(*file_of(name), say, as_json)


def file_of(name: str) -> tuple[bytes, str]:
    """The bytes and the path of a playbook. Raises UserError."""
    path = Path(name)
    shipped = shipped_playbooks() / f"{name}.yaml"
    if not path.exists() and shipped.exists():
        path = shipped
    try:
        return path.read_bytes(), str(path)
    except OSError as error:
        names = ", ".join(sorted(p.stem for p in shipped_playbooks().glob("*.yaml")))
        raise UserError(f"cannot read {name}: {error.strerror}", f"shipped playbooks: {names}") from error


def _parse(text: bytes, file: str, say: Say, as_json: bool) -> tuple[Playbook, str]:
    from agent.bench.datafile import looking_from
    from agent.fragments import shipped_fragments
    from agent.playbook.load import load_playbook
    from agent.servers.known_flags import all_known_flags

    look_at = looking_from(Path(file).parent)
    found = load_playbook(text, file, all_known_flags(), look_at, shipped_fragments())
    if not isinstance(found, list):
        return found, text.decode()
    from agent.check import refuse
    from agent.flags_located import Checked, load_by_source

    # The installed server may know a flag that our own list does not have.
    found = load_by_source(text, file, look_at)
    if isinstance(found, list):
        refuse(file, Checked(found=None, problems=tuple(found)), as_json, say)
    return found, text.decode()
