"""How preflights, findings and their quotes are drawn."""

import textwrap
from collections.abc import Sequence

from textual.content import Content

from agent.core.model import Quote
from agent.core.views.details import TaskView
from agent.text import clean, one_line
from tui.content import plain, row
from tui.flow import hang, lines
from tui.words import glyph_of, style_of

MOST_QUOTES = 6
"""Lines of one finding on the page of an experiment; the research view has all of them."""


def draw_tasks(tasks: Sequence[TaskView], width: int) -> Content:
    """Each with its outcome in a sentence and the first of its quotes."""
    made: list[Content] = []
    for task in tasks:
        made += [Content("")] if made else []
        word = task.outcome or task.status
        status = plain(f"{glyph_of(word)} {word.replace('-', ' ')}", style_of(word))
        head = row(status, plain(f"  {task.kind}  ", "$foreground-muted"))
        made.append(hang(head, plain(one_line(task.title, 400)), width))
        if task.summary:
            made.append(hang(plain("  "), plain(one_line(task.summary, 1000)), width))
        if task.quotes:
            made.append(draw_quotes(task.quotes[task.gist : task.gist + MOST_QUOTES], width))
        if (more := len(task.quotes) - MOST_QUOTES) > 0:
            made.append(plain(f"  … {more} more lines in the research view", "$foreground-muted"))
    return lines(*made)


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
