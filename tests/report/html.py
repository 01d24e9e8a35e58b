"""A strict reader of pages: every element is closed where it has to be, and nothing outside is loaded."""

from html.parser import HTMLParser

VOID = frozenset({"meta", "br", "hr", "img", "input", "link"})


class Page(HTMLParser):
    """What a page holds: its elements with the names of their attributes, in order, and its text."""

    def __init__(self, page: str) -> None:
        """Raises AssertionError where the page is not well-formed."""
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember the element."""
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self.ids += [value for name, value in attrs if name == "id" and value]
        self.links += [value for name, value in attrs if name in ("href", "src", "data", "action") and value]
        assert not any(name.startswith("on") for name, _ in attrs)
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Every end closes what was opened last."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Text of the page, without the style."""
        if self._open and self._open[-1] != "style":
            self.text += data

    def handle_comment(self, data: str) -> None:
        """There are none."""
        raise AssertionError(f"a comment: {data}")

    def handle_pi(self, data: str) -> None:
        """There are none."""
        raise AssertionError(f"an instruction: {data}")

    def unknown_decl(self, data: str) -> None:
        """There are none."""
        raise AssertionError(f"a section: {data}")
