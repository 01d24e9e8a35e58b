"""How an experiment's end is drawn: verdicts, dead end, steps, command."""

from collections.abc import Sequence

from textual.content import Content

from agent.core.model import Verdict
from agent.core.scope import UNKNOWN
from agent.core.views.basics import duration
from agent.core.views.details import DeadEnd, NoteLine, Step
from agent.core.views.expected import Expected
from agent.text import one_line
from tui.content import plain, row
from tui.flow import facts, hang, lines
from tui.widgets.findings import draw_quotes
from tui.words import glyph_of, style_of


def draw_text(text: str, width: int) -> Content:
    """A text as it was written, wrapped."""
    return hang(Content(""), plain(text), width)


def draw_remarks(remarks: Sequence[str], width: int) -> Content:
    """Sentences, one below the other."""
    return lines(*(hang(Content("· "), plain(one_line(text, 1000)), width) for text in remarks))


def draw_expected(expected: Expected, width: int) -> Content:
    """The most that it could gain, beside what it did, and how that follows."""
    return draw_remarks(expected.lines, width)


def draw_notes(notes: Sequence[NoteLine], width: int) -> Content:
    """What people wrote, each with the time since the session began."""
    return facts([(duration(note.at_s), plain(one_line(note.text, 600))) for note in notes], width)


def draw_verdicts(verdicts: Sequence[Verdict], width: int) -> Content:
    """Against the parent first: did the idea work? Then against the incumbent: would we ship it?"""
    made = []
    labels = ("against its parent", "against the incumbent")
    for label, verdict in zip(labels, verdicts, strict=False):
        head = row(
            plain(f"{label + '  ' if len(verdicts) > 1 else ''}", "$foreground-muted"), word_of(verdict.word), "  "
        )
        made.append(hang(head, plain(one_line(verdict.reason, 1000)), width))
    return lines(*made)


def word_of(word: str) -> Content:
    """A verdict as glyph and word."""
    return plain(f"{glyph_of(word)} {word}", f"bold {style_of(word)}".rstrip())


def draw_dead_end(end: DeadEnd, width: int) -> Content:
    """What it was seen on, the lines that show it, and whether it is tried again."""
    made = [hang(plain("by hand  ", "$text-error"), plain(one_line(end.reason, 600)), width)] if end.by_hand else []
    made += [plain("it holds for", "$foreground-muted"), draw_scope(end.scope, width)]
    if end.changed:
        made += [Content(""), plain("! it may not hold", "$text-warning"), draw_remarks(end.changed, width)]
    if end.evidence:
        made += [Content(""), plain("evidence", "$foreground-muted"), draw_quotes(end.evidence, width)]
    if end.reopened_as:
        made += [Content(""), plain(f"tried again as {one_line(end.reopened_as)}", "$text-primary")]
    return lines(*made)


def draw_scope(scope: Sequence[tuple[str, str]], width: int) -> Content:
    """Facts by name; those that nobody knows at the end, on one line."""
    told = [(name, plain(one_line(text, 600))) for name, text in scope if text != UNKNOWN]
    if missing := ", ".join(name for name, text in scope if text == UNKNOWN):
        told.append(("not known", plain(one_line(missing, 300), "$foreground-muted")))
    return facts(told, width)


def draw_steps(steps: Sequence[Step], width: int) -> Content:
    """Each step's state, its command, what it creates and the hash of its bytes."""
    made: list[Content] = []
    for step in steps:
        made += [Content("")] if made else []
        status = plain(f"{glyph_of(step.status)} {step.status}", style_of(step.status))
        made.append(row(f"step {step.number}  ", status))
        told = [("run", plain(one_line(step.command, 2000))), ("approval", plain(step.needed))]
        told += [("creates", plain(one_line(step.creates, 300)))] if step.creates else []
        made.append(facts(told, width))
    return lines(*made)
