"""The APIs that a workload may use; apart, so that the load generator need not import the schema."""

from typing import Literal

Api = Literal["completions", "chat", "generate"]
"""`/v1/completions`, `/v1/chat/completions`, or SGLang's own `/generate`."""
