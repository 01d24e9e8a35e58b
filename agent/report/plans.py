"""What a report says of the plan: strategies and what became of them, what experiments could gain at best."""

from collections.abc import Iterator

from agent.core.views.basics import duration
from agent.core.views.expected import Expected, percent_of
from agent.core.views.strategy import Strategy
from agent.report.model import Report

STRATEGY_NAMES = ("strategy", "standing", "given up at", "its experiments", "next")
EXPECTED_NAMES = ("experiment", "takes off a step", "at best", "measured", "how it follows")


def strategy_rows(report: Report) -> Iterator[tuple[str, str, str, str, str]]:
    """Each strategy with its trail of ends: see STRATEGY_NAMES."""
    for one in report.strategies:
        ends = {tried.experiment: f"{tried.experiment} {tried.word}: {tried.reason}" for tried in one.trail}
        members = "; ".join(ends.get(name, f"{name}, not ended") for name in one.members)
        standing = one.word + (f" ({one.kept})" if one.kept else "")
        yield one.title, standing, at_text(report, one), members, one.to


def pivots(report: Report) -> list[tuple[float, str, str]]:
    """When strategies were given up: seconds since the session began, the strategy, and what that led to."""
    began = report.head.began_at
    return sorted(
        (one.at - began, one.title, f"given up; next: {one.to}" if one.to else "given up")
        for one in report.strategies
        if one.at is not None
    )


def at_text(report: Report, one: Strategy) -> str:
    """The time of the session at which a strategy was given up, or nothing."""
    return "" if one.at is None else duration(one.at - report.head.began_at)


def expected_rows(report: Report) -> Iterator[tuple[str, str, str, str, str]]:
    """Each experiment that says what it takes off a step: see EXPECTED_NAMES."""
    for trial in report.trials:
        if expected := trial.details.expected:
            best, measured = (_percent(gain) for gain in (expected.best, expected.measured))
            yield trial.details.experiment, expected.removes, best, measured, _how(expected)


def _percent(gain: float | None) -> str:
    return "" if gain is None else percent_of(gain)


def _how(expected: Expected) -> str:
    return "; ".join(expected.lines)
