"""What a person changes in the plan from the board: order, flags, dead ends, notes, and things to do in words."""

from collections.abc import Callable

from textual.screen import Screen

from agent.core import events as ev
from agent.core.edit_rules import cannot_change, cannot_change_places, cannot_give_up, neighbour
from agent.core.parse_change import change_text
from agent.text import one_line
from tui.screens.base import StateScreen
from tui.widgets.board import Board


class SteeringScreen(StateScreen):
    """A screen with a board, whose keys are about what stands under its cursor."""

    def action_reorder(self, steps: int) -> None:
        """Move the experiment under the cursor up or down the line."""
        if not (name := self._chosen()):
            return
        state = self.source.state
        past = neighbour(state, name, steps)
        if self._may_change(cannot_change_places(state, name, past)) and past is not None:
            self.source.submit(ev.ExperimentMoved(at=self.source.now(), experiment=name, past=past))

    def action_edit(self) -> None:
        """Change the experiment under the cursor."""
        from tui.dialogs.edit_yaml import holds_secret
        from tui.dialogs.new import ChangeDialog

        if not (name := self._chosen()) or not self._may_change(cannot_change(self.source.state, name)):
            return
        spec = self.source.state.experiments[name].spec
        if holds_secret(self.source, spec):
            self._tell(f"{name} holds a secret: change it in the playbook")
        elif change_text(spec) is None:
            self.run_worker(self._edit_only(name), exclusive=True)
        else:
            self._ask_for(ChangeDialog(name, self.source.state, self.source.known_flags))

    async def _edit_only(self, name: str) -> None:
        """In the editor alone: what it has cannot be typed in the form."""
        from tui.dialogs.edit_yaml import edit_experiment
        from tui.dialogs.new import changed_to

        wanted = self.source.state.experiments[name].spec
        if spec := await edit_experiment(self.app, self.source, wanted, new=False):
            self.source.submit(changed_to(spec, self.source.now()))

    def action_dead_end(self) -> None:
        """Give up the experiment under the cursor, for a reason."""
        if (name := self._chosen()) and self._may_change(cannot_give_up(self.source.state, name)):
            told = "It moves to the dead ends; what it measured stays. r takes it back into line."
            self._ask_words(
                f"Why is {name} a dead end?",
                told,
                "it needs a driver that we will not install",
                lambda words: ev.DeadEndMarked(at=self.source.now(), experiment=name, reason=words),
            )

    def action_note(self) -> None:
        """A note on the experiment under the cursor."""
        if (name := self._chosen()) and self._may_change():
            self._ask_words(
                f"Note on {name}",
                "It stands on its page (enter; u takes it back there), in the journal and in the report.",
                "the fans were loud",
                lambda words: ev.NoteWritten(at=self.source.now(), experiment=name, text=words),
            )

    def action_todo(self) -> None:
        """Write down something to do."""
        if self._may_change():
            self._ask_words(
                "Something to do",
                "It is no experiment: nothing runs, nothing waits for it. space ticks it off.",
                "check the power limits tonight",
                lambda words: ev.TodoAdded(at=self.source.now(), text=words),
            )

    def action_tick(self) -> None:
        """Tick off the words under the cursor, or take that back."""
        todo = self.query_one(Board).todo
        if todo is None:
            self._tell("space ticks off what t wrote down")
        elif self._may_change():
            done = not self.source.state.todos[todo].done
            self.source.submit(ev.TodoTicked(at=self.source.now(), todo=todo, done=done))

    def _ask_words(self, title: str, told: str, example: str, make: Callable[[str], ev.Event]) -> None:
        from tui.dialogs.line import LineDialog

        def hand_in(words: str | None) -> None:
            if words:
                self.source.submit(make(words))

        self.app.push_screen(LineDialog(title, told, example), hand_in)

    def _ask_for(self, dialog: Screen[ev.Event | None]) -> None:
        def hand_in(event: ev.Event | None) -> None:
            if event is not None:
                self.source.submit(event)

        self.app.push_screen(dialog, hand_in)

    def _chosen(self) -> str | None:
        """The experiment under the cursor; words that stand there are none, which is said."""
        board = self.query_one(Board)
        if board.todo is not None:
            self._tell("these are words, no experiment: space ticks them off")
            return None
        return board.cursor

    def _may_change(self, refusal: str | None = None) -> bool:
        """Whether an action applies; says so if it does not."""
        state = self.source.state
        if self.source.read_only:
            refusal = self.source.read_only
        elif state.interrupted or state.ending:
            refusal = "the session is ending"
        if refusal:
            self._tell(refusal)
        return not refusal

    def _tell(self, text: str) -> None:
        self.notify(one_line(text), timeout=4, markup=False)
