"""An experiment in the person's own editor: checked as a playbook is, and edited again while it has problems."""

from typing import Any

from textual.app import App

from agent.core.parse_change import has_secret
from agent.core.parse_yaml import edited_yaml, read_yaml
from agent.playbook.model import Experiment
from agent.text import one_line
from tui.dialogs.confirm import ConfirmDialog
from tui.editor import NoEditor, edited
from tui.source import Source


def holds_secret(source: Source, spec: Experiment) -> bool:
    """Whether an experiment has what must not be drawn, or written into a file."""
    text = edited_yaml(spec)
    return has_secret(spec) or source.redact(text) != text


async def edit_experiment(app: App[Any], source: Source, wanted: Experiment, *, new: bool) -> Experiment | None:
    """The experiment that a person makes of `wanted`; None where nothing was changed, or the person thought better.

    Only for workers: it waits for the person.
    """
    text = before = edited_yaml(wanted)
    if holds_secret(source, wanted):
        app.notify(one_line(f"{wanted.id} holds a secret: change it in the playbook"), timeout=6, markup=False)
        return None
    while True:
        try:
            text = await edited(app, text, f"{wanted.id}.yaml")
        except NoEditor as error:
            app.notify(one_line(str(error)), timeout=6, markup=False)
            return None
        if text == before or not text.strip():
            return None
        found = read_yaml(source.state, wanted, text, source.known_flags, new=new)
        if isinstance(found, Experiment):
            return found
        problems = "\n".join(str(problem) for problem in found)
        question = f"{problems}\n\nDiscard what you wrote? No opens the editor again."
        if await app.push_screen_wait(ConfirmDialog(question)):
            return None
