"""Completion in a shell: the script that asks, and the answer. argcomplete knows how bash, zsh and fish want both."""

import argparse


def script(shell: str) -> str:
    """What bash, zsh or fish has to evaluate so that it asks `tunebot` at each tab."""
    from argcomplete.shell_integration import shellcode

    return shellcode(["tunebot"], shell=shell)


def answer_shell(parser: argparse.ArgumentParser) -> None:
    """Tell the shell that runs us for a tab what may stand at its cursor. Does not return."""
    import argcomplete
    from argcomplete.completers import ChoicesCompleter

    # What has no words of its own cannot be guessed: not by file names either.
    argcomplete.autocomplete(parser, always_complete_options=False, default_completer=ChoicesCompleter({}))
