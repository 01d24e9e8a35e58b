"""A part of every step of the server, for the cost model: see agent/core/terms.py."""

from typing import Literal

from pydantic import Field

from agent.playbook.fields import Text, Whole
from agent.playbook.strict import Strict
from agent.playbook.units import BriefSeconds


class Term(Strict):
    """Calls that every step makes: a decode step, or a verify pass of speculation.

    How long one takes is believed until it is measured.
    """

    count: Whole = Field(ge=1, le=1_000_000)
    """Calls in a step, in the baseline. What experiments remove is counted against it."""
    each: BriefSeconds
    """How long one is believed to take in a decode step."""
    each_verify: BriefSeconds | None = None
    """The same in a verify pass, whose messages are larger; as long as in a decode step, where it is left out."""
    measured_by: Literal["nccl-allreduce"] | None = None
    """What measures it, on the GPUs that the baseline would use, before the first launch: PyTorch and NCCL."""
    bytes: Whole | None = Field(default=None, ge=2, le=1 << 30)
    """The message of a call that is measured, in a decode step."""
    bytes_verify: Whole | None = Field(default=None, ge=2, le=1 << 30)
    """The message of a call in a verify pass; it is not measured, where it is left out."""
    per_layer: Whole | None = Field(default=None, ge=1, le=1_000)
    """Calls in a layer: they are counted, with the layers of the model's config.json; `count` is used where it is left
    out."""
    run: tuple[Text, ...] = ()
    """The Python that measures; the server's own, where it is left out."""
