"""Arguments that were not given, by the configuration."""

import argparse
from collections.abc import Mapping
from pathlib import Path


def settle(arguments: argparse.Namespace, environ: Mapping[str, str]) -> None:
    """Set what the command lets the configuration decide and nobody gave. Raises UserError for a file with problems."""
    if not getattr(arguments, "settles", ()):
        return
    # A command that asks for nothing need not wait for it.
    from agent.config.force import in_force

    found = in_force(environ)
    for name in arguments.settles:
        if getattr(arguments, name, None) in (None, False):
            setattr(arguments, name, _argument(name, found[f"defaults.{name}"].value))


def _argument(name: str, value: object) -> object:
    return Path(str(value)).expanduser() if name == "logs" else value or None
