"""A Static that is drawn from a view, and only when the view changed."""

from typing import Generic, TypeVar

from textual.content import Content
from textual.widgets import Static

V = TypeVar("V")


class ViewStatic(Static, Generic[V]):
    """Subclasses draw; equal views cost nothing."""

    view: V | None = None

    def show(self, view: V) -> None:
        """Draw this view unless it is on the screen already."""
        if view != self.view:
            self.view = view
            # Its size does not follow from its text, so nothing else has to be laid out again.
            self.update(self.draw(view), layout=False)

    def on_resize(self) -> None:
        """Draw anew: what fits has changed."""
        if self.view is not None:
            self.update(self.draw(self.view), layout=False)

    def draw(self, view: V) -> Content:
        """The view as content. `self.content_size` is the room for it."""
        raise NotImplementedError
