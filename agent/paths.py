"""Where tunebot keeps its own files, and where the shipped playbooks are."""

import os
from pathlib import Path
from urllib.parse import quote


def state_folder() -> Path:
    """The user's state folder (XDG_STATE_HOME): history of loads, launches of the local target."""
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "tunebot"


def cache_folder() -> Path:
    """What can be had again (XDG_CACHE_HOME): copies of logs of other machines."""
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "tunebot"


def history_file() -> Path:
    """Durations of earlier loads."""
    return state_folder() / "loads.jsonl"


def dead_ends_file(target: str) -> Path:
    """The dead ends that earlier sessions left on a target."""
    return state_folder() / "dead-ends" / f"{quote(target, safe='')}.jsonl"


def config_folder() -> Path:
    """The user's configuration (XDG_CONFIG_HOME): config.toml, targets.yaml, the keys of hosts."""
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(base).expanduser() / "tunebot"


def config_file() -> Path:
    """The user's settings."""
    return config_folder() / "config.toml"


def targets_files() -> tuple[Path, Path]:
    """Where machines have names: the project's file, which wins, and the user's (XDG_CONFIG_HOME)."""
    return Path("targets.yaml"), config_folder() / "targets.yaml"


def shipped_playbooks() -> Path:
    """The playbooks that ship: in a checkout `playbooks/`, in an installed wheel inside the package."""
    package = Path(__file__).parent
    installed = package / "shipped_playbooks"
    return installed if installed.is_dir() else package.parent / "playbooks"
