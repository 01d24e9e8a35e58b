"""What the keys and signs mean."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen, Screen
from textual.widgets import Static

from tui.content import fit, plain, row

_MEANINGS = {
    "details": "all about the experiment under the cursor",
    "ask": "ask a question about it while the server loads",
    "grep": "search the server's source for it",
    "new": "add an experiment on top of it",
    "idea": "ask an LLM for the next experiment: it comes to the board",
    "edit": "change its flags, as long as it has not begun",
    "reorder(1)": "run it later than the next one in line",
    "reorder(-1)": "run it sooner than the one before",
    "dead_end": "give it up for a reason; r takes it back into line",
    "note": "write a note on it",
    "todo": "write down something to do, which is no experiment",
    "take_back": "take back the newest note",
    "tick": "tick that off, or not",
    "skip": "do not run it",
    "retry": "run it (again), whatever ruled it out",
    "pause": "launch nothing new after what runs now, or go on",
    "end": "end the launch that is up; it counts as failed",
    "log": "the whole log of this launch",
    "compare": "what was measured, beside each other",
    "research": "everything that was looked up",
    "needs": "what waits for you: approvals, flags to accept, questions",
    "dead_ends": "dead ends, of earlier sessions too: what may not hold now",
    "revisit": "put the dead end back in line",
    "swap": "on a narrow terminal: background or log",
    "help": "this page",
    "toggle_bell": "ring when something needs you, or not",
    "quit": "leave: asks whether the server stays up",
    "leave": "leave the screen: the session runs elsewhere and goes on",
    "command_palette": "every action by its name",
    "move(-1)": "up",
    "move(1)": "down",
    "page(-1)": "a page up",
    "page(1)": "a page down",
    "play": "play or pause",
    "follow": "go only through what became of it, or through all again",
    "metric": "bars for the next metric, sorted by it",
    "order": "best first, worst first, as in the playbook",
    "sort": "sort what is there now",
    "against": "values, or changes against the baseline or the parent",
    "workload": "the next workload",
    "plot": "throughput over concurrency, or not",
    "find": "find a text in the log",
    "next(False)": "the next match",
    "next(True)": "the match before",
    "rank(0)": "lines of one rank only",
    "all_ranks": "lines of all ranks",
    "failure": "the line that shows why it failed",
    "wrap": "long lines wrapped, or cut",
    "log.follow": "the end, and follow it",
    "log.previous-launch": "the launch before",
    "log.next-launch": "the next launch",
    "details.previous": "the experiment before",
    "details.next": "the next experiment",
    "details.copy": "copy the command that launches it",
    "list": "from the text back to the list",
}

_SIGNS = (
    ("●", "now", "○", "to do"),
    ("★", "incumbent: the best so far", "✔", "keep: a gain beyond the noise"),
    ("=", "no-gain: excluded", "?", "inconclusive: too much noise"),
    ("▼", "worse: a loss beyond the noise", "!", "invalid: other flags, wrong output"),
    ("✖", "failed, or ruled out (preflight)", "◐", "a background task runs"),
    ("◇", "proposed by an LLM: waits for you", "✎", "you wrote a note on it"),
    ("☐", "to do, in words", "☑", "done"),
)
_TRACK = (
    ("┼", "on the track: a launch", "!", "a person was asked, or acted"),
    ("·", "another moment of the plan", "●", "what is shown now"),
)
"""Signs of the scrub bar of a replay; verdicts on it have their own."""


class HelpScreen(ModalScreen[None]):
    """Keys of the screen behind it, and the signs of the board."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter", "dismiss", "close", id="help.close"),
        Binding("down,j", "scroll(1)", "down", show=False, id="help.down"),
        Binding("up,k", "scroll(-1)", "up", show=False, id="help.up"),
    ]

    def __init__(self, about: Screen[object]) -> None:
        """`about` is the screen whose keys are explained."""
        super().__init__()
        self._about = about

    def compose(self) -> ComposeResult:
        """One box."""
        with VerticalScroll(id="help", can_focus=False) as box:
            box.border_title = "Keys and signs"
            box.border_subtitle = "esc closes"
            yield Static(Content("\n").join([*self._keys(), Content(), *self._signs()]))

    def action_scroll(self, lines: int) -> None:
        """Move the page where it is longer than the terminal."""
        self.query_one("#help", VerticalScroll).scroll_relative(y=lines, animate=False)

    def _keys(self) -> list[Content]:
        bindings = [each.binding for each in self._about.active_bindings.values()]
        words = {
            binding.action: _MEANINGS.get(binding.id or "", _MEANINGS.get(binding.action, binding.description))
            for binding in bindings
            if binding.id or binding.action in _MEANINGS
        }
        keys: dict[str, list[str]] = {}
        for binding in bindings:
            keys.setdefault(binding.action, []).append(self.app.get_key_display(binding))
        return [
            row(plain(fit(" ".join(dict.fromkeys(keys[action])), 10), "bold $primary"), " ", told)
            for action, told in words.items()
        ]

    def _signs(self) -> list[Content]:
        is_replay = any(each.binding.id == "replay.play" for each in self._about.active_bindings.values())
        signs = _SIGNS + _TRACK if is_replay else _SIGNS
        return [row(plain(f"{a} ", "bold"), fit(b, 35), plain(f"{c} ", "bold"), d) for a, b, c, d in signs]
