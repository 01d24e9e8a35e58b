"""Commands about tunebot itself."""

import argparse

from agent import verbs
from agent.commands import shared
from agent.commands.command import Command, page
from agent.commands.completing import commands, complete, setting_keys

SHELLS = ("bash", "zsh", "fish")


def _config(parser: argparse.ArgumentParser) -> None:
    parser.set_defaults(action="show")
    actions = parser.add_subparsers(metavar="ACTION")

    def action(name: str, help_: str, example: str) -> argparse.ArgumentParser:
        made = actions.add_parser(
            name,
            help=help_,
            description=f"{help_[0].upper()}{help_[1:]}.",
            epilog=page(("examples", ((example, ""),)), ("exit codes", _CONFIG_EXITS)),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        made.set_defaults(action=name)
        return made

    set_ = action("set", "write a setting into the file; its comments stay", "tunebot config set llm.effort high")
    complete(set_.add_argument("key", metavar="KEY", help="such as llm.model or keys.run.details"), setting_keys)
    set_.add_argument("value", metavar="VALUE", help="as it would stand in the file, quotes may be left out")
    unset = action("unset", "take a setting out of the file", "tunebot config unset llm.effort")
    complete(unset.add_argument("key", metavar="KEY", help="a setting that the file has"), setting_keys)
    action("edit", "open the file in $VISUAL or $EDITOR, then tell its problems", "EDITOR=nano tunebot config edit")
    action("path", "print where the file is, whether it exists or not", 'less "$(tunebot config path)"')


def _completion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, help="whose script")


def _help(parser: argparse.ArgumentParser) -> None:
    complete(parser.add_argument("words", nargs="*", metavar="COMMAND", help="run, config set, …"), commands)


_CONFIG_EXITS = (("0", "shown or written"), ("2", "a problem in the file, a key or a value"))

CONFIG = Command(
    name="config",
    help="settings: what they are, and where each comes from",
    about="Show every setting with its value and where it comes from: the environment, which goes before the file,\n"
    "the file, or the default. The actions write the file.",
    handler=verbs.config,
    options=_config,
    examples=(
        ("tunebot config", "all settings"),
        ("tunebot config set llm.model claude-sonnet-5-5", "writes the file; comments in it stay"),
        ("tunebot config set keys.run.details 'enter,f5'", "another key on the screen"),
        ("tunebot config unset llm.model", "the default again"),
        ("tunebot config edit", "in $VISUAL or $EDITOR"),
    ),
    exits=_CONFIG_EXITS,
    files=shared.CONFIG_FILE,
    environment=(*shared.LLM_ENVIRONMENT, shared.SCREEN_ENVIRONMENT[0]),
    notes="Keys for an LLM are kept in no file: they stay in the environment. Each setting: docs/config.md.",
)

COMPLETION = Command(
    name="completion",
    help="print what makes a shell complete tunebot",
    about="Print a script that makes a shell complete commands, options, playbooks, sessions and targets.",
    handler=verbs.completion,
    options=_completion,
    examples=(
        ('eval "$(tunebot completion bash)"', "in ~/.bashrc"),
        ('eval "$(tunebot completion zsh)"', "in ~/.zshrc, after compinit"),
        ("tunebot completion fish | source", "in ~/.config/fish/config.fish"),
    ),
    exits=(("0", "printed"), ("2", "no such shell")),
)

HELP = Command(
    name="help",
    help="the page of a command",
    about="Show the page of a command: the same as COMMAND --help.",
    handler=verbs.help_,
    options=_help,
    examples=(
        ("tunebot help run", "options, examples, exit codes, files, environment"),
        ("tunebot help config set", "a part of one"),
    ),
    exits=(("0", "shown"), ("2", "no such command")),
)
