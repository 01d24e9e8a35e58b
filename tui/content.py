"""The one way for text to reach a widget: as plain Content, never as markup."""

from textual.content import Content

from agent.text import clean


def plain(text: str, style: str = "") -> Content:
    """Text as it is, cleaned once more, in one style. Style names are theme tokens such as `$text-success`."""
    return Content.styled(clean(text), style) if style else Content(clean(text))


def row(*parts: str | Content) -> Content:
    """Pieces side by side. Strings among them are plain text too."""
    return Content.assemble(*(plain(part) if isinstance(part, str) else part for part in parts))


def cut(text: str, width: int) -> str:
    """Text of at most `width` cells; an ellipsis stands for the rest."""
    content = Content(clean(text))
    return text if content.cell_length <= width else content.truncate(width, ellipsis=True).plain
