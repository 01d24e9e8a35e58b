"""The one way for text to reach a widget: as plain Content, never as markup, and without secrets."""

from collections.abc import Callable
from contextvars import ContextVar
from functools import lru_cache

from textual.content import Content

from agent.core.views.panels import Tone
from agent.text import clean

MUTED = "$foreground-muted"

STYLES: dict[Tone, str] = {
    "plain": "",
    "muted": MUTED,
    "good": "$text-success",
    "bad": "$text-error",
    "warn": "$text-warning",
    "busy": "$text-primary",
}
"""The colour of each tone, as theme tokens."""


_REDACT: ContextVar[Callable[[str], str]] = ContextVar("redact", default=str)
_REMEMBERED = 1 << 12
"""Texts: most of what is drawn was drawn before."""


def hide_secrets(redact: Callable[[str], str]) -> None:
    """Whatever this task, and those that it starts, draw from here on goes through `redact`.

    What comes from effects is redacted already. A playbook's own texts are not: a launch needs them as they are.
    """
    _REDACT.set(lru_cache(_REMEMBERED)(redact))


def _safe(text: str) -> str:
    return _REDACT.get()(clean(text))


def plain(text: str, style: str = "") -> Content:
    """Text as it is, cleaned once more, in one style. Style names are theme tokens such as `$text-success`."""
    return Content.styled(_safe(text), style) if style else Content(_safe(text))


def toned(text: str, tone: Tone) -> Content:
    """Text in the colour of a tone."""
    return plain(text, STYLES[tone])


def row(*parts: str | Content) -> Content:
    """Pieces side by side. Strings among them are plain text too."""
    return Content.assemble(*(plain(part) if isinstance(part, str) else part for part in parts))


def cut(text: str, width: int) -> str:
    """Text on one line of at most `width` cells; an ellipsis stands for the rest."""
    content = Content(_flat(text))
    return content.plain if content.cell_length <= width else content.truncate(width, ellipsis=True).plain


def fit(text: str, width: int) -> str:
    """Text on one line of exactly `width` cells: cut, or filled up with spaces."""
    return Content(_flat(text)).truncate(width, ellipsis=True, pad=True).plain


def fit_right(text: str, width: int) -> str:
    """Text on one line of exactly `width` cells, at the right end of them."""
    short = cut(text, width)
    return " " * max(0, width - Content(short).cell_length) + short


def _flat(text: str) -> str:
    return _safe(text).replace("\n", " ").replace("\t", " ")
