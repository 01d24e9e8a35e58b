"""What a question to an LLM may use, alone and with all others of its session; and what its tokens cost."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from agent.core.model import Spent
from agent.diagnostics import UserError
from agent.text import one_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """An amount of everything that is counted: as a limit, or as what was used.

    `calls` of tools, `read_bytes` that they returned, `tokens` of all turns (each repeats what was said before),
    `usd`, and `seconds` of waiting for the LLM.
    """

    calls: int = 0
    read_bytes: int = 0
    tokens: int = 0
    usd: float = 0.0
    seconds: float = 0.0

    @classmethod
    def of(cls, spent: Spent, seconds: float) -> Self:
        """What a journal says was used."""
        return cls(
            calls=spent.calls,
            read_bytes=spent.read_bytes,
            tokens=spent.input_tokens + spent.output_tokens,
            usd=spent.cost_usd or 0.0,
            seconds=seconds,
        )

    def __add__(self, other: "Amount") -> "Amount":
        return self._with(other, 1)

    def __sub__(self, other: "Amount") -> "Amount":
        return self._with(other, -1)

    def _with(self, other: "Amount", sign: int) -> "Amount":
        return Amount(
            calls=self.calls + sign * other.calls,
            read_bytes=self.read_bytes + sign * other.read_bytes,
            tokens=self.tokens + sign * other.tokens,
            usd=self.usd + sign * other.usd,
            seconds=self.seconds + sign * other.seconds,
        )


QUESTION = Amount(calls=40, read_bytes=400_000, tokens=1_000_000, usd=1.0, seconds=300.0)
SESSION = Amount(calls=1000, read_bytes=10_000_000, tokens=20_000_000, usd=20.0, seconds=7200.0)

_UNITS = {"CALLS": "calls", "BYTES": "read_bytes", "TOKENS": "tokens", "USD": "usd", "SECONDS": "seconds"}
_WHOSE = {"TUNEBOT_QUESTION_": QUESTION, "TUNEBOT_SESSION_": SESSION}
LIMITS: Mapping[str, int | float] = {
    prefix + unit: getattr(usual, field) for prefix, usual in _WHOSE.items() for unit, field in _UNITS.items()
}
"""The variables that change limits, with what each is otherwise."""


def limits(environ: Mapping[str, str]) -> tuple[Amount, Amount]:
    """The limits of a question and of a session, as changed by TUNEBOT_QUESTION_USD, TUNEBOT_SESSION_TOKENS and so on.

    Raises UserError for a value that is no amount, and for a name of that form that limits nothing.
    """
    for name in environ:
        if name.startswith(tuple(_WHOSE)) and name not in LIMITS:
            hint = f"{' or '.join(_WHOSE)} go with {', '.join(_UNITS)}"
            raise UserError(f"the variable {one_line(name)} is not known", hint)
    question, session = (_limit(environ, prefix, usual) for prefix, usual in _WHOSE.items())
    return question, session


def _limit(environ: Mapping[str, str], prefix: str, usual: Amount) -> Amount:
    amounts = {field: _amount(environ, prefix + unit, getattr(usual, field)) for unit, field in _UNITS.items()}
    return Amount(**amounts)


def _amount(environ: Mapping[str, str], name: str, usual: float) -> Any:
    """A number of the type of `usual`."""
    text = environ.get(name, "").strip()
    try:
        amount = type(usual)(text) if text else usual
    except ValueError:
        amount = math.nan
    if not 0 <= amount < math.inf:
        kind = "a whole number" if isinstance(usual, int) else "a number"
        raise UserError(f"{name} is {one_line(text, 60)}, not {kind} of zero or more", f"leave it out for {usual}")
    return amount


_PRICES = {
    "claude-opus-5-5": (4.0, 20.0),
    "claude-opus-5": (5.0, 25.0),
    "claude-sonnet-5-5": (2.0, 10.0),
    "claude-sonnet-4-5": (3.0, 15.0),
    "claude-haiku-4-5": (1.0, 5.0),
}
"""Dollars for a million tokens that go in and come out, as of November 2026."""

_TO_CACHE, _FROM_CACHE = 1.25, 0.1
_DATE = re.compile(r"-20\d{6}$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The tokens of one turn as the API counts them."""

    input: int = 0
    to_cache: int = 0
    from_cache: int = 0
    output: int = 0

    @property
    def all_input(self) -> int:
        """What went in, from the cache or not."""
        return self.input + self.to_cache + self.from_cache


def cost_usd(model: str, usage: Usage) -> float | None:
    """What a turn costs; None where the prices of the model are not known."""
    prices = _PRICES.get(_DATE.sub("", model))
    if prices is None:
        return None
    goes_in = usage.input + _TO_CACHE * usage.to_cache + _FROM_CACHE * usage.from_cache
    return (goes_in * prices[0] + usage.output * prices[1]) / 1_000_000


class Meter:
    """What one question uses, held against its own limit and that of the session."""

    def __init__(self, model: str, limit: Amount, session: Amount, others: Callable[[], Amount]) -> None:
        """`others` tells what all other questions of the session have used so far."""
        self.spent = Spent(cost_usd=cost_usd(model, Usage()))
        self._model, self._limit, self._session, self._others = model, limit, session, others
        self._seconds = 0.0

    @property
    def prices_known(self) -> bool:
        """Whether money is counted."""
        return self.spent.cost_usd is not None

    @property
    def seconds_left(self) -> float:
        """How long the LLM may still be waited for."""
        return min(left.seconds for left in self._left())

    @property
    def bytes_left(self) -> int:
        """How many bytes another call of a tool may return; 0 where there may be no other call."""
        own, all_ = self._left()
        return min(own.read_bytes, all_.read_bytes) if min(own.calls, all_.calls) > 0 else 0

    def no_room(self, more: Amount) -> str | None:
        """Which budget does not allow so many more tokens and dollars, or no more waiting; None where all do."""
        for whose, limit, left in zip(("question", "session"), (self._limit, self._session), self._left(), strict=True):
            if more.tokens > left.tokens:
                return f"the {whose}'s budget of {limit.tokens} tokens is used up"
            if more.usd > left.usd:
                return f"the {whose}'s budget of ${limit.usd:.2f} is used up"
            if left.seconds <= 0:
                return f"the {whose}'s budget of {limit.seconds:g} s is used up"
        return None

    def _left(self) -> tuple[Amount, Amount]:
        """What the question may still use, and what all of the session may."""
        used = Amount.of(self.spent, self._seconds)
        return self._limit - used, self._session - used - self._others()

    def turns(self, count: int, usage: Usage) -> Amount:
        """What so many turns of that usage would be."""
        cost = cost_usd(self._model, usage) or 0.0
        return Amount(tokens=count * (usage.all_input + usage.output), usd=count * cost)

    def add_call(self, read_bytes: int) -> None:
        """A tool was used."""
        self.spent = replace(self.spent, calls=self.spent.calls + 1, read_bytes=self.spent.read_bytes + read_bytes)

    def add_turn(self, usage: Usage, seconds: float) -> None:
        """The LLM has spoken."""
        cost = cost_usd(self._model, usage)
        self._seconds += seconds
        self.spent = replace(
            self.spent,
            input_tokens=self.spent.input_tokens + usage.all_input,
            output_tokens=self.spent.output_tokens + usage.output,
            cost_usd=None if cost is None or self.spent.cost_usd is None else self.spent.cost_usd + cost,
        )
