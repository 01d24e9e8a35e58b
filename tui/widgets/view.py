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
            self.update(self.draw(view))

    def draw(self, view: V) -> Content:
        """The view as content."""
        raise NotImplementedError
