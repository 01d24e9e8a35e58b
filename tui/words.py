"""Glyph and style of every status word. Colour is never alone: the word always stands beside it."""

from agent.core.views.basics import BY_HAND, GLYPHS

STYLES = {
    "keep": "$text-success",
    "worse": "$text-error",
    "failed": "$text-error",
    "ruled-out": "$text-error",
    BY_HAND: "$text-error",
    "invalid": "$text-error",
    "inconclusive": "$text-warning",
    "no-gain": "$foreground-muted",
    "not-reached": "$foreground-muted",
    "now": "$text-primary",
    "running": "$text-primary",
    "done": "$text-success",
    "fine": "$text-success",
    "fails": "$text-error",
    "no-effect": "$text-error",
    "unknown": "$text-warning",
    "timeout": "$text-warning",
    "needs-key": "$text-warning",
    "cancelled": "$foreground-muted",
    "equal": "$text-success",
    "rewritten": "$text-warning",
    "contradicted": "$text-error",
    "not-reported": "$foreground-muted",
    "approved": "$text-success",
    "waits for approval": "$text-warning",
    "ready": "$text-success",
}

_GLYPHS = {
    **GLYPHS,
    "running": "◐",
    "done": "✔",
    "fine": "✔",
    "fails": "✖",
    "no-effect": "✖",
    "unknown": "?",
    "timeout": "?",
    "needs-key": "!",
    "cancelled": "–",
    "equal": "✔",
    "rewritten": "~",
    "contradicted": "✖",
    "not-reported": "?",
    "approved": "✔",
    "waits for approval": "○",
    "ready": "✔",
}


def style_of(word: str) -> str:
    """The theme token for a status word."""
    return STYLES.get(word, "")


def glyph_of(word: str) -> str:
    """One cell for a status word."""
    return _GLYPHS.get(word, "●")
