"""Every setting but the keys of the screen: what it is called, what it is by default, which variable goes before it."""

import math
from dataclasses import dataclass

from agent.research.budget import LIMITS
from agent.research.llm import DEFAULT_MODEL

Value = str | int | float | bool

KEYS = "keys."
"""How settings begin that give an action of the screen other keys; the action's id follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting. The type of `default` is its own; an empty text is nothing. `variable` goes before the file."""

    key: str
    default: Value
    about: str
    variable: str = ""

    def refuses(self, value: object) -> str | None:
        """What is expected in place of `value`; None where it fits."""
        match self.default:
            case bool():
                return None if isinstance(value, bool) else "true or false"
            case int():
                fits = isinstance(value, int) and not isinstance(value, bool) and value >= 0
                return None if fits else "a whole number of zero or more"
            case float():
                fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf
                return None if fits else "a number of zero or more"
            case _:
                return None if isinstance(value, str) and value.strip() else "a text in quotes"


_UNITS = {
    "calls": "calls of tools",
    "bytes": "bytes that tools return",
    "tokens": "tokens of all turns",
    "usd": "dollars",
    "seconds": "seconds of waiting for the LLM",
}


def _limit(variable: str, usual: int | float) -> Setting:
    whose, unit = variable.removeprefix("TUNEBOT_").lower().split("_")
    of = "a question" if whose == "question" else "all questions of a session"
    return Setting(key=f"llm.{whose}.{unit}", default=usual, about=f"{_UNITS[unit]}, {of} at most", variable=variable)


SETTINGS = (
    Setting(key="llm.model", default=DEFAULT_MODEL, about="which LLM answers", variable="TUNEBOT_MODEL"),
    Setting(key="llm.effort", default="", about="how hard it thinks: low, medium, high, …", variable="TUNEBOT_EFFORT"),
    Setting(key="llm.base_url", default="", about="where it is served", variable="ANTHROPIC_BASE_URL"),
    *(_limit(variable, usual) for variable, usual in LIMITS.items()),
    Setting(key="defaults.target", default="", about="as if --target were given to run and check"),
    Setting(key="defaults.logs", default="logs", about="as if --logs were given: where sessions go"),
    Setting(key="defaults.headless", default=False, about="as if --headless were given: lines instead of the screen"),
    Setting(key="screen.theme", default="textual-dark", about="the colours of the screen"),
    Setting(key="screen.bell", default=True, about="ring when something needs you", variable="TUNEBOT_BELL"),
)
