"""Where tunebot keeps its own files, and where the shipped playbooks are."""

import os
from pathlib import Path


def state_folder() -> Path:
    """The user's state folder (XDG_STATE_HOME): history of loads, launches of the local target."""
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "tunebot"


def history_file() -> Path:
    """Durations of earlier loads."""
    return state_folder() / "loads.jsonl"


def targets_files() -> tuple[Path, Path]:
    """Where machines have names: the project's file, which wins, and the user's (XDG_CONFIG_HOME)."""
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path("targets.yaml"), Path(base).expanduser() / "tunebot" / "targets.yaml"


def shipped_playbooks() -> Path:
    """The playbooks that ship: in a checkout `playbooks/`, in an installed wheel inside the package."""
    package = Path(__file__).parent
    installed = package / "shipped_playbooks"
    return installed if installed.is_dir() else package.parent / "playbooks"
