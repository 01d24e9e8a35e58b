"""An experiment in a form, new or changed: what is typed is checked, and shown as a diff, at every key."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from agent.core import events as ev
from agent.core.parse_change import UNCHANGED, change_text, parse_change
from agent.core.parse_new import TEXT_LIMIT, Flags, parse_new, read_change, suggested_id
from agent.core.state import State
from agent.core.views.flag_help import flag_at, flag_help
from agent.core.views.flags import spec_rows
from agent.playbook.model import Experiment
from agent.text import one_line
from tui.content import cut, plain
from tui.dialogs.base import Dialog
from tui.dialogs.edit_yaml import edit_experiment
from tui.flow import lines
from tui.widgets.diff import draw_flags
from tui.widgets.field import Field

_MOST_PROBLEMS = 4
_WHY = 500


class NewDialog(Dialog[ev.Event | None]):
    """Ends in ExperimentAdded. The id follows the text until the person writes one."""

    DEFAULT_CSS = """
    NewDialog #told { height: 5; scrollbar-size-vertical: 1; }
    NewDialog #told > Static { height: auto; }
    NewDialog #flag { height: 3; color: $text-accent; }
    NewDialog #text { margin-bottom: 0; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        # The end of a line is at the key `end`, too.
        Binding("ctrl+e", "editor", "in the editor", show=False, priority=True),
    ]

    def __init__(self, experiment_id: str, state: State, known_flags: Flags = ()) -> None:
        super().__init__()
        self._based_on, self._state, self._flags = experiment_id, state, known_flags
        self._suggested = suggested_id(state, "")

    def compose(self) -> ComposeResult:
        """What to change, how to call it, why; and what comes of it."""
        with Vertical(id="box") as box:
            box.border_title = plain(self._title())
            box.border_subtitle = plain("enter takes it · tab next field · ctrl+e editor · esc cancels")
            yield Static(plain("FLAG=VALUE  FLAG  -FLAG takes away  ENV:NAME=VALUE"), classes="label")
            yield Field(
                self._first_text(),
                placeholder="cuda-graph-max-bs=256 -disable-custom-all-reduce",
                max_length=TEXT_LIMIT,
                id="text",
                select_on_focus=False,
            )
            yield Static(id="flag")
            yield from self._naming()
            yield Static(plain("why (may stay empty)"), classes="label")
            yield Field(self._first_why(), max_length=_WHY, id="why", select_on_focus=False)
            with VerticalScroll(id="told", can_focus=False):
                yield Static(id="problems")

    def _title(self) -> str:
        return f"New experiment, based on {one_line(self._based_on, 60)}"

    def _first_text(self) -> str:
        return ""

    def _first_why(self) -> str:
        return ""

    def _naming(self) -> ComposeResult:
        yield Static(plain("id"), classes="label")
        yield Field(self._suggested, max_length=64, id="name", select_on_focus=False)

    def on_mount(self) -> None:
        """What is known of a flag follows the cursor, which moves without a change of the text, too."""
        self.watch(self.query_one("#text", Input), "selection", self._help)

    def on_input_changed(self, message: Input.Changed) -> None:
        """Check, and show what it would be."""
        if message.input.id == "text":
            self._follow(message.value)
            self._help()
        self._tell()

    def _follow(self, text: str) -> None:
        name = self.query_one("#name", Input)
        if name.value == self._suggested:
            self._suggested = suggested_id(self._state, text)
            with self.prevent(Input.Changed):
                name.value = self._suggested

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Enter takes it, from any field; with problems it says them."""
        found = self._parsed()
        if isinstance(found, ev.Event):
            self.dismiss(found)
        else:
            self._say(found)

    def action_editor(self) -> None:
        """Go on in the person's own editor."""
        self.run_worker(self._edit(), exclusive=True)

    async def _edit(self) -> None:
        spec = await edit_experiment(self.app, self.source, self._draft(), new=True)
        if spec is not None:
            self.dismiss(ev.ExperimentAdded(at=self.source.now(), spec=spec))

    def _draft(self) -> Experiment:
        """What is typed so far, whatever is wrong with it."""
        change = read_change(self._value("text"))
        name, why = self._value("name"), one_line(self._value("why"), _WHY)
        taken = name if name and name not in self.source.state.experiments else suggested_id(self.source.state, "")
        return Experiment.model_construct(id=taken, based_on=self._based_on, args=change.args, env=change.env, why=why)

    def _parsed(self) -> ev.Event | list[str]:
        # The session goes on while one types: the id may be taken by now.
        state, why = self.source.state, one_line(self._value("why"), _WHY)
        found = parse_new(state, self._based_on, self._value("name"), self._value("text"), self._flags, why)
        return ev.ExperimentAdded(at=self.source.now(), spec=found) if isinstance(found, Experiment) else found

    def _value(self, field: str) -> str:
        return self.query_one(f"#{field}", Input).value

    def _help(self) -> None:
        text = self.query_one("#text", Input)
        name = flag_at(text.value, text.cursor_position)
        told = flag_help(name, self._flags, self.source.flag_facts(name) if name else None)
        place = self.query_one("#flag", Static)
        place.update(lines(*(plain(cut(line, max(20, place.size.width))) for line in told)))

    def _tell(self) -> None:
        found = self._parsed()
        if isinstance(found, ev.Event):
            told = self.query_one("#problems", Static)
            told.update(draw_flags(spec_rows(self.source.state, self._spec_of(found)), max(20, told.size.width)))
        else:
            self._say(found if self._value("text").strip() else [])

    def _spec_of(self, event: ev.Event) -> Experiment:
        assert isinstance(event, ev.ExperimentAdded)
        return event.spec

    def _say(self, problems: list[str]) -> None:
        shown = [plain(f"✖ {one_line(problem)}", "$text-error") for problem in problems[:_MOST_PROBLEMS]]
        if (more := len(problems) - _MOST_PROBLEMS) > 0:
            shown.append(plain(f"  and {more} more", "$text-error"))
        self.query_one("#problems", Static).update(lines(*shown) if shown else Content(""))


class ChangeDialog(NewDialog):
    """Ends in ExperimentChanged: the same form, filled with what an experiment has. Its id stays."""

    def __init__(self, experiment_id: str, state: State, known_flags: Flags = ()) -> None:
        self._spec = state.experiments[experiment_id].spec
        super().__init__(self._spec.based_on or experiment_id, state, known_flags)

    def _title(self) -> str:
        return f"Change {one_line(self._spec.id, 40)}, based on {one_line(self._based_on, 40)}"

    def _first_text(self) -> str:
        return change_text(self._spec) or ""

    def _first_why(self) -> str:
        return self._spec.why

    def _naming(self) -> ComposeResult:
        yield from ()

    def _follow(self, text: str) -> None:
        """The id stays."""

    async def _edit(self) -> None:
        spec = await edit_experiment(self.app, self.source, self._draft(), new=False)
        if spec is not None:
            self.dismiss(changed_to(spec, self.source.now()))

    def _draft(self) -> Experiment:
        change = read_change(self._value("text"))
        why = one_line(self._value("why"), _WHY)
        return self._spec.model_copy(update={"args": change.args, "env": change.env, "why": why})

    def _parsed(self) -> ev.Event | list[str]:
        why = one_line(self._value("why"), _WHY)
        return parse_change(
            self.source.state, self._spec.id, self._value("text"), self._flags, why, at=self.source.now()
        )

    def _tell(self) -> None:
        if self._parsed() == [UNCHANGED]:
            self._say([])
        else:
            super()._tell()

    def _spec_of(self, event: ev.Event) -> Experiment:
        assert isinstance(event, ev.ExperimentChanged)
        return self._spec.model_copy(update={"args": event.args, "env": event.env, "why": event.why})


def changed_to(spec: Experiment, at: float) -> ev.ExperimentChanged:
    """The wish that an experiment becomes like this."""
    return ev.ExperimentChanged(at=at, experiment=spec.id, args=spec.args, env=spec.env, why=spec.why)
