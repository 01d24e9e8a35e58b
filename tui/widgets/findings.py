"""How preflights, findings, their quotes and an LLM's claims are drawn."""

import textwrap
from collections.abc import Sequence

from textual.content import Content

from agent.core.model import Claim, Quote
from agent.core.views.details import TaskView
from agent.text import clean, one_line
from tui.content import plain, row
from tui.flow import hang, lines
from tui.words import glyph_of, style_of

MOST_QUOTES = 6
"""Lines (or claims) of one finding on the page of an experiment; the research view has all of them."""


def draw_tasks(tasks: Sequence[TaskView], width: int) -> Content:
    """Each with its outcome in a sentence and the first of its quotes, or of its claims."""
    made: list[Content] = []
    for task in tasks:
        made += [Content("")] if made else []
        word = task.outcome or task.status
        status = plain(f"{glyph_of(word)} {word.replace('-', ' ')}", style_of(word))
        head = row(status, plain(f"  {task.kind}  ", "$foreground-muted"))
        made.append(hang(head, plain(one_line(task.title, 400)), width))
        if task.summary:
            made.append(hang(plain("  "), plain(one_line(task.summary, 1000)), width))
        if task.answer:
            made += draw_claims(task.answer.claims[:MOST_QUOTES], width, "  ")
            made += _more(len(task.answer.claims), "claims")
        elif task.quotes:
            made.append(draw_quotes(task.quotes[task.gist : task.gist + MOST_QUOTES], width))
            made += _more(len(task.quotes), "lines")
    return lines(*made)


def _more(count: int, what: str) -> list[Content]:
    more = count - MOST_QUOTES
    return [plain(f"  … {more} more {what} in the research view", "$foreground-muted")] if more > 0 else []


def draw_claims(claims: Sequence[Claim], width: int, indent: str = "") -> list[Content]:
    """Each with whether its quote was found: which proves nothing, but says where to look."""
    made = []
    for claim in claims:
        mark, word, style = (
            ("✔", "quote found", "$text-success") if claim.found else ("?", "quote not found", "$text-warning")
        )
        made.append(hang(plain(f"{indent}{mark} ", style), plain(one_line(claim.text, 400)), width))
        where = f"{word}: {one_line(claim.path, 200)}:{claim.line}  {one_line(claim.quote, 200)}"
        made.append(hang(plain(f"{indent}  "), plain(where, "$foreground-muted"), width))
    return made


def draw_quotes(quotes: Sequence[Quote], width: int) -> Content:
    """`file:line  text`; a run of lines of one file says its name once."""
    made: list[Content] = []
    path = None
    number = max((len(str(quote.line)) for quote in quotes), default=1)
    texts = textwrap.dedent("\n".join(_line(quote) for quote in quotes)).split("\n")
    for quote, text in zip(quotes, texts, strict=True):
        if quote.path != path:
            path = quote.path
            made.append(plain(f"  {one_line(path, 300)}", "$text-accent"))
        prefix = plain(f"  {quote.line:>{number}}  ", "$foreground-muted")
        made.append(hang(prefix, plain(text), width))
    return lines(*made)


def _line(quote: Quote) -> str:
    return clean(quote.text).replace("\n", " ").expandtabs(4).rstrip()
