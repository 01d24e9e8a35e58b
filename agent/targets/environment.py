"""The environment of everything that runs on a target: variables, folders before PATH, a venv or a conda environment.

No shell is started for it. Standard library only, Linux, Python 3.8 or later, like the wrapper.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agent.targets import places

_CONDA_ROOTS = ("~/miniforge3", "~/mambaforge", "~/miniconda3", "~/anaconda3", "~/micromamba", "/opt/conda")


def changes_of(settings: Mapping[str, Any], base: Mapping[str, str]) -> dict[str, str]:
    """What changes in the variables `base` by the `env`, `path`, `venv` and `conda` of targets.yaml.

    A leading `~/` is the home. Raises places.Unfit where there is no such venv or conda environment.
    """
    home = settings["env"].get("HOME", base["HOME"])
    changes = {name: _expand(value, home) for name, value in settings["env"].items()}
    folders = [_expand(folder, home) for folder in settings["path"]]
    if venv := settings["venv"]:
        prefix = Path(_expand(venv, home))
        hint = f"make it there with `python3 -m venv {venv}`, or correct `venv`"
        folders.append(_bin_of(prefix, f"the venv {venv}", hint))
        changes["VIRTUAL_ENV"] = str(prefix)
    if conda := settings["conda"]:
        prefix = Path(_expand(conda, home)) if "/" in conda else _conda_prefix(conda, home)
        folders.append(_bin_of(prefix, f"the conda environment {conda}", "`conda env list` there shows what there is"))
        changes.update(CONDA_PREFIX=str(prefix), CONDA_DEFAULT_ENV=prefix.name)
    changes["PATH"] = os.pathsep.join([*folders, changes.get("PATH") or base.get("PATH") or os.defpath])
    return changes


def _expand(path: str, home: str) -> str:
    return home + path[1:] if path.startswith("~/") else path


def _bin_of(prefix: Path, what: str, hint: str) -> str:
    if not prefix.is_dir():
        raise places.Unfit(f"{what} is not there", hint)
    if not os.access(str(prefix / "bin" / "python3"), os.X_OK):  # a link to a Python that is gone, say
        raise places.Unfit(f"{what} has no python3 that can be started", hint)
    return str(prefix / "bin")


def _conda_prefix(name: str, home: str) -> Path:
    """The prefix of a conda environment: conda itself keeps a list, and has its usual places."""
    try:
        lines = (Path(home) / ".conda" / "environments.txt").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    listed = [Path(line.strip()) for line in lines if Path(line.strip()).name == name]
    usual = [Path(_expand(root, home)) for root in _CONDA_ROOTS]
    usual = usual if name == "base" else [root / "envs" / name for root in usual]
    there = {os.path.realpath(str(prefix)): prefix for prefix in [*listed, *usual] if prefix.is_dir()}
    if not there:
        raise places.Unfit(f"there is no conda environment {name}", "write its prefix, such as ~/miniforge3/envs/x")
    if len(there) > 1:
        found = ", ".join(map(str, there.values()))
        raise places.Unfit(f"there are several conda environments {name}: {found}", "write the prefix of one")
    return next(iter(there.values()))
