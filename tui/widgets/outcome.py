"""How an experiment's end is drawn: verdicts, dead end, steps, command."""

from collections.abc import Sequence

from textual.content import Content

from agent.core.model import Verdict
from agent.core.views.details import DeadEnd, Step
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
    made = [plain("it holds for", "$foreground-muted")]
    made.append(facts([(name, plain(one_line(text, 300))) for name, text in end.scope], width))
    if end.evidence:
        made += [Content(""), plain("evidence", "$foreground-muted"), draw_quotes(end.evidence, width)]
    if end.reopened_as:
        made += [Content(""), plain(f"tried again as {one_line(end.reopened_as)}", "$text-primary")]
    return lines(*made)


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
