"""A field to type in, whose text is drawn as it is: an Input would hand escapes in it to the terminal."""

from textual.widgets import Input

from agent.text import clean


class Field(Input):
    """An Input whose value is always clean, be it pasted, typed or there from the start."""

    def validate_value(self, value: str) -> str:
        """What came in, without what acts on a terminal; what cannot be seen becomes visible."""
        return clean(value)
