"""What the source demands of a configuration: its assertions and refusals, held against the flags given. Pure.

A demand is told only where everything around it is known to hold: by a flag that was given, or by a default that
the server is not known to replace.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

from agent.flags.conditions import SWITCHED_OFF
from agent.flags.model import Clause, Flag, FlagTable, Place, Test, Use
from agent.playbook.model import Args, ArgValue
from agent.syntax import Unparsable, literal

Truth = bool | None
"""None where it cannot be told from the source and the flags alone."""

_MISSING = object()
_COMPARES: dict[str, Callable[[float, float], bool]] = {
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """What must be otherwise, or the server refuses to start.

    `flag` must have one of `choices`, which are values as a playbook has them, in the source's order. Without choices
    the source refuses the combination and does not say which flag should give way: `flag` is None. `given` says that
    the flag has another value, which somebody chose. `because` are the conditions that hold, `says` is the server's
    own message.
    """

    flag: str | None
    choices: tuple[ArgValue, ...]
    given: bool
    place: Place
    block: Place
    because: tuple[str, ...]
    text: str
    says: str


def demands(table: FlagTable, args: Args) -> tuple[Demand, ...]:
    """Every demand that `args` do not meet, the first one for each flag."""
    config, bare = _Config(table, args), _Config(table, {})
    found: dict[tuple[str | None, str], Demand] = {}
    for use in table.uses:
        if use.effect in ("asserts", "refuses"):
            demand = config.unmet(use)
            # Of its defaults alone no server dies: what they seem to break has been misread.
            if demand and not bare.unmet(use):
                found.setdefault((demand.flag, "" if demand.flag else demand.text), demand)
    return tuple(found.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Forced:
    """What the server makes of a flag, whatever it was: `value` as a playbook has it, `instead_of` what was given."""

    flag: str
    value: ArgValue
    instead_of: ArgValue
    place: Place
    because: tuple[str, ...]
    text: str


def forced(table: FlagTable, args: Args) -> tuple[Forced, ...]:
    """The flags that the server sets by its own rules because of `args`, where it is known to and to which value."""
    config, bare = _Config(table, args), _Config(table, {})
    found: dict[str, Forced] = {}
    for use in table.uses:
        around = (*use.reached, *use.when)
        by_args = not use.tested.isdisjoint(config.spelt) and not bare.all_hold(around)
        if use.effect == "sets" and use.flag and by_args and config.all_hold(around):
            value = config.as_arg(use.flag)
            given = args.get(config.spelt.get(use.flag, ""))
            if value is not None and value != given:
                found[use.flag] = Forced(
                    flag=config.spelt.get(use.flag, use.flag),
                    value=value,
                    instead_of=given,
                    place=use.place,
                    because=_words(use.when),
                    text=use.text,
                )
    return tuple(found.values())


def _words(clauses: tuple[Clause, ...]) -> tuple[str, ...]:
    return tuple(" or ".join(test.text for test in clause) for clause in clauses)


class _Config:
    """The values of the flags: those given, then what the source surely sets, then its defaults."""

    def __init__(self, table: FlagTable, args: Args) -> None:
        self._flags = {flag.name: flag for flag in table.flags}
        self._given: dict[str, object] = {}
        self.spelt: dict[str, str] = {}
        for key, value in args.items():
            flag = table.meant(key)
            if flag and value is not None:
                # vLLM reads the word None as Python's.
                is_none = table.kind == "vllm" and value == "None"
                self._given[flag.name] = None if is_none else _constant(value)
                self.spelt[flag.name] = key
        self._set: dict[str, object] = {}
        self._doubtful: set[str] = set()
        for use in table.uses:
            if use.effect == "sets" and use.flag:
                self._note(use, use.flag)

    def _note(self, use: Use, name: str) -> None:
        holds = self.all_hold((*use.reached, *use.when))
        if holds and use.value is not None:
            self._set[name] = self._resolve(use.value)
        elif holds is not False:
            self._doubtful.add(name)

    def value(self, name: str) -> object:
        """A flag's value, _MISSING where it cannot be told."""
        if name in self._set:
            return self._set[name]
        if name in self._given:
            return self._given[name]
        return _MISSING if name in self._doubtful else self.default(name)

    def default(self, name: str) -> object:
        """A flag's default, _MISSING where it is not known."""
        flag = self._flags.get(name)
        return _MISSING if flag is None or flag.default is None else _literal(flag.default)

    def as_arg(self, name: str) -> ArgValue:
        """A flag's value as a playbook would give it, None where it cannot be told or given."""
        value = self.value(name)
        return None if value is _MISSING else _as_arg(value, self._flags.get(name))

    def unmet(self, use: Use) -> Demand | None:
        """The demand of an assertion that fails, or of a refusal that is reached."""
        around = (*use.reached, *use.when)
        if use.effect == "asserts":
            if not self.all_hold(around) or self._fails(use.clause) is not True:
                return None
            wanted = use.clause[0] if len(use.clause) == 1 and use.clause[0].op == "in" else None
            demand = self._demand(use, wanted, use.when)
            is_open = any(self._is_open(flag) for test in use.clause for flag in test.flags)
            return None if is_open and not demand.flag else demand
        if not self.all_hold(around):
            return None
        # Of the conditions of a refusal, one about a flag that nobody gave is the one to change.
        ways = {clause: way for clause in use.when if (way := self._way_out(clause))}
        rest = tuple(clause for clause in use.when if clause not in ways)
        return self._demand(use, next(iter(ways.values())) if len(ways) == 1 else None, rest)

    def _way_out(self, clause: Clause) -> Test | None:
        """What must hold of a flag that nobody gave for a clause not to, if that is one of a few values."""
        test = clause[0]
        if len(clause) > 1 or test.flag is None or test.flag in self._given:
            return None
        if test.op == "not in":
            return replace(test, op="in")
        return replace(test, values=("True",)) if test.op == "in" and test.values == SWITCHED_OFF else None

    def _fails(self, clause: Clause) -> bool | None:
        """Whether no test of a clause holds. What is asserted of a default is held against the default itself."""
        truths = [self.holds(test, self._value_or_default) for test in clause]
        return None if None in truths and True not in truths else not any(truths)

    def _value_or_default(self, name: str) -> object:
        return self.default(name) if self._is_open(name) else self.value(name)

    def _is_open(self, name: str) -> bool:
        """Whether nobody gave the flag and the server may give it a value of its own."""
        return name in self._doubtful and name not in self._given and name not in self._set

    def _demand(self, use: Use, wanted: Test | None, because: tuple[Clause, ...]) -> Demand:
        choices = self._choices(wanted) if wanted else ()
        name = wanted.flag if wanted and choices else None
        return Demand(
            flag=self.spelt.get(name, name) if name else None,
            choices=choices,
            given=name in self._given,
            place=use.place,
            block=use.block,
            because=_words(because),
            text=use.text,
            says=use.says,
        )

    def _choices(self, wanted: Test) -> tuple[ArgValue, ...]:
        flag = self._flags.get(wanted.flag or "")
        values = [self._resolve(value) for value in wanted.values]
        choices = [_as_arg(value, flag) for value in values if value is not _MISSING and flag]
        return tuple(choice for choice in choices if choice is not None)

    def all_hold(self, clauses: tuple[Clause, ...]) -> Truth:
        """Whether every clause holds; None where that cannot be told."""
        truths = [self._clause(clause) for clause in clauses]
        return False if False in truths else None if None in truths else True

    def _clause(self, clause: Clause) -> Truth:
        truths = [self.holds(test, self.value) for test in clause]
        return True if True in truths else None if None in truths else False

    def holds(self, test: Test, value_of: Callable[[str], object]) -> Truth:
        """Whether a test holds; None where that cannot be told."""
        value = value_of(test.flag) if test.flag else _MISSING
        others = [self._resolve(text, value_of) for text in test.values]
        if value is _MISSING or test.op == "?":
            return None
        if test.op in _COMPARES:
            return _ordered(test.op, value, others[0])
        if any(_same(value, other, test.lower) for other in others if other is not _MISSING):
            return test.op == "in"
        return None if _MISSING in others else test.op == "not in"

    def _resolve(self, text: str, value_of: Callable[[str], object] | None = None) -> object:
        return (value_of or self.value)(text[2:]) if text.startswith("--") else _literal(text)


def _constant(value: ArgValue) -> object:
    return list(value) if isinstance(value, tuple) else value


def _literal(text: str) -> object:
    try:
        return literal(text)
    except Unparsable:
        return _MISSING


def _same(one: object, other: object, lower: bool) -> bool:
    """Whether two values are one: 8 and "8" are, None and "None" are not."""
    if one is None or other is None or isinstance(one, bool) or isinstance(other, bool):
        return one is other
    number, wanted = _number(one), _number(other)
    if number is not None and wanted is not None:
        return number == wanted
    return str(one).lower() == str(other).lower() if lower else str(one) == str(other)


def _ordered(op: str, one: object, other: object) -> Truth:
    left, right = _number(one), _number(other)
    return None if left is None or right is None else _COMPARES[op](left, right)


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _as_arg(value: object, flag: Flag | None) -> ArgValue:
    """A constant as a playbook would give it to a flag, None where it cannot be given."""
    if isinstance(value, bool):
        return value if flag and flag.takes == "nothing" else None
    if isinstance(value, str | int | float):
        text = str(value)
        is_flag = text.startswith("-") and _number(text) is None
        return text if text and text.isprintable() and " " not in text and not is_flag else None
    return None
