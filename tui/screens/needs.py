"""The queue of what waits for a person. A decision is about exactly what is on the screen."""

from collections.abc import Callable
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from agent.core import events as ev
from agent.core.needs import Approval, Completion, Need, Proposal, needs
from agent.core.state import State
from agent.text import one_line
from tui.content import plain
from tui.dialogs.confirm import ConfirmDialog
from tui.screens.base import StateScreen
from tui.widgets.keys import Keys
from tui.widgets.need_lines import UNREADABLE, draw_need, draw_need_line, told_steps
from tui.widgets.pick_list import Pick, PickList
from tui.widgets.sections import Drawn

ARM_S = 0.5
"""Seconds for which a need that came up by itself takes no decision: the key was meant for the one before."""


class NeedsScreen(StateScreen):
    """The queue above, the chosen need in full below."""

    CSS_PATH = "needs.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "approve", "approve", id="needs.approve"),
        Binding("Y", "approve_all", "approve all", id="needs.approve_all"),
        Binding("a", "accept", "accept", id="needs.accept"),
        Binding("d", "decline", "decline", id="needs.decline"),
        Binding("escape,q", "app.pop_screen", "back", id="needs.back"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._queue: PickList[Need | str] = PickList(draw_need_line, id="queue")
        self._text: Drawn[Need] = Drawn(draw_need)
        self._needs: dict[str, Need] = {}
        self._armed_at = 0.0

    def compose(self) -> ComposeResult:
        """Queue, text, keys."""
        yield Static(plain("Needs you"), classes="title")
        yield self._queue
        with VerticalScroll(id="need"):
            yield self._text
        yield Static(plain("nothing waits for you"), id="nothing")
        yield Keys()

    def on_mount(self) -> None:
        """Arrows choose at once."""
        self._queue.focus()

    def show(self, state: State, now: float) -> None:
        """Draw what changed; the chosen need stays chosen."""
        before, were_some = self._queue.chosen, bool(self._needs)
        self._needs = {need.key: need for need in needs(state)}
        self._queue.show([Pick(key, need) for key, need in self._needs.items()])
        self._queue.display = self.query_one("#need").display = bool(self._needs)
        self.query_one("#nothing").display = not self._needs
        if bool(self._needs) != were_some:
            self.refresh_bindings()
        if self._queue.chosen != before:
            self._armed_at = now + ARM_S
        if (need := self._needs.get(self._queue.chosen or "")) is not None:
            if self._text.view is not None and need != self._text.view and need.key == self._text.view.key:
                self._armed_at = now + ARM_S
            self._text.show(need)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Where nothing waits there is nothing to decide."""
        return bool(self._needs) or action not in ("approve", "approve_all", "accept", "decline")

    def on_pick_list_chosen(self, message: PickList.Chosen) -> None:
        """A person chose: it is in full on the screen, and decisions are about it."""
        if message.key in self._needs:
            self._armed_at = 0.0
            self._text.show(self._needs[message.key])
            self.query_one("#need").scroll_home(animate=False)

    def on_pick_list_opened(self, message: PickList.Opened) -> None:
        """To the text, so that the arrows scroll it."""
        self.query_one("#need").focus()

    def action_approve(self) -> None:
        """Approve the step, or the proposal, on the screen."""
        need = self._decided()
        if isinstance(need, Proposal):
            at = self.source.now()
            self.source.submit(ev.ProposalApproved(at=at, experiment=need.experiment, digest=need.digest))
        elif isinstance(need, Approval) and not need.readable:
            self.notify(UNREADABLE, markup=False)
        elif isinstance(need, Approval):
            self.source.submit(ev.ApprovalGiven(at=self.source.now(), needed=need.needed))
        elif need is not None:
            self.notify("there is no step to approve here; a accepts flags", markup=False)

    def action_approve_all(self) -> None:
        """Approve the steps of each plan by one hash, after they were all shown."""
        steps = [need for need in self._needs.values() if isinstance(need, Approval) and need.readable]
        if self.source.read_only:
            self.notify(one_line(self.source.read_only), markup=False)
            return
        if not steps:
            self.notify("no step waits for approval", markup=False)
            return
        count = "this step" if len(steps) == 1 else f"these {len(steps)} steps"
        dialog = ConfirmDialog(f"Approve {count}? Each changes the host.", told_steps(steps))
        self.app.push_screen(dialog, self._approver(steps))

    def _approver(self, steps: list[Approval]) -> Callable[[bool | None], None]:
        def approve(yes: bool | None) -> None:
            for needed in dict.fromkeys(self._approval(step, steps) for step in steps) if yes else ():
                self.source.submit(ev.ApprovalGiven(at=self.source.now(), needed=needed))

        return approve

    def _approval(self, step: Approval, shown: list[Approval]) -> str:
        """The hash of its whole plan, unless something of that was not shown."""
        plan = [need for need in self._needs.values() if isinstance(need, Approval) and need.plan == step.plan]
        return step.plan if all(need in shown for need in plan) else step.needed

    def action_accept(self) -> None:
        """Add the flags on the screen to their experiment."""
        if isinstance(need := self._decided(), Completion):
            self.source.submit(
                ev.ExperimentCompleted(at=self.source.now(), experiment=need.experiment, adds=need.adds, task=need.task)
            )
        elif need is not None:
            self.notify("there are no flags to accept here", markup=False)

    def action_decline(self) -> None:
        """Skip the experiment whose step, or which as a proposal, is on the screen."""
        if isinstance(need := self._decided(), Approval | Proposal):
            self.source.submit(ev.ExperimentSkipped(at=self.source.now(), experiment=need.experiment))
        elif need is not None:
            self.notify("only steps and proposals are declined; what is left alone changes nothing", markup=False)

    def _decided(self) -> Need | None:
        """The need on the screen, unless it came up under the person's fingers."""
        need = self._text.view if self._needs else None
        if need is None or need.key != self._queue.chosen:
            return None
        if self.source.read_only:
            self.notify(one_line(self.source.read_only), markup=False)
            return None
        if self.source.now() < self._armed_at:
            self.notify("another one came up: look at it, then press again", markup=False)
            return None
        return need
