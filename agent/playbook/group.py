"""Experiments that are one strategy, and what is tried when none of them works: see agent/core/pivots.py."""

from pydantic import Field

from agent.playbook.fields import Name
from agent.playbook.strict import Strict

MOST_GROUPS = 100


class Group(Strict):
    """Experiments of one strategy. It is given up when all of them have ended and none is *keep*."""

    id: Name
    """Its name for `then`."""
    name: str = Field(default="", max_length=60)
    """What people call it; its id, where it is left out."""
    members: tuple[str, ...] = Field(min_length=1)
    """Experiments, each in one group at most."""
    then: str | None = None
    """The group that is tried once this one is given up, and only then. Its members wait until then."""

    @property
    def title(self) -> str:
        """What people call it."""
        return self.name or self.id
