"""One red line at the top of a screen: what keeps tunebot from working as it should."""

from textual.widgets import Static

from tui.content import cut, plain


class Trouble(Static):
    """Not there while all is well."""

    DEFAULT_CSS = """
    Trouble { dock: top; height: 1; padding: 0 1; background: $error-muted; color: $text-error; display: none; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._text = ""

    def show(self, text: str) -> None:
        """Show a text, or nothing."""
        if text != self._text:
            self._text = text
            self.display = bool(text)
            self._draw()

    def on_resize(self) -> None:
        """What fits has changed."""
        self._draw()

    def _draw(self) -> None:
        self.update(plain(cut(f"✖ {self._text}", max(0, self.screen.size.width - 2)), "bold"), layout=False)
