"""How measured rounds are drawn: a table a workload, the mean with its interval under it."""

from collections.abc import Sequence

from textual.content import Content

from agent.core.views.numbers import Doubt, Measured, Numbers
from agent.text import one_line
from tui.content import plain, row
from tui.flow import hang, lines, table

_HEAD = ("", "tok/s", "TTFT ms", "TPOT ms", "tok/chunk", "cached tok", "")


def draw_numbers(measured: Sequence[Measured], width: int) -> Content:
    """One table under the other."""
    made: list[Content] = []
    for workload in measured:
        made += [Content("")] if made else []
        objective = plain("  the objective's workload", "$foreground-muted") if workload.objective else Content("")
        made.append(row(plain(one_line(workload.title)), objective))
        if workload.rounds:
            made.append(_table(workload, width))
        made += [hang(Content(""), plain(text, "$foreground-muted"), width) for text in workload.more]
        made += [_doubt(doubt, width) for doubt in workload.doubts]
        if workload.note:
            made.append(hang(plain("● ", "$text-primary"), plain(one_line(workload.note, 600), "$text-primary"), width))
    return lines(*made)


def _doubt(doubt: Doubt, width: int) -> Content:
    colour = "$text-error" if doubt.glyph == "✖" else "$text-warning"
    return hang(plain(f"{doubt.glyph} {doubt.word}  ", colour), plain(one_line(doubt.text, 600)), width)


def _table(workload: Measured, width: int) -> Content:
    rows = [[plain(word, "$foreground-muted") for word in _HEAD]]
    rows += [_cells(numbers, "") for numbers in workload.rounds]
    if workload.mean:
        rows.append(_cells(workload.mean, "bold"))
    return table(rows, width, right=(1, 2, 3, 4, 5), last=0)


def _cells(numbers: Numbers, style: str) -> list[Content]:
    failed = f"{numbers.failed} requests failed" if numbers.failed else ""
    texts = [
        numbers.label,
        _with(f"{numbers.throughput:.1f}", numbers.spread, 1),
        _with(f"{numbers.ttft_ms:.1f}", numbers.ttft_spread, 1),
        _with(f"{numbers.tpot_ms:.2f}", numbers.tpot_spread, 2),
        f"{numbers.tokens_per_chunk:.2f}",
        str(numbers.cached_tokens),
    ]
    return [*(plain(text, style) for text in texts), plain(failed, "$text-warning")]


def _with(value: str, spread: float | None, digits: int) -> str:
    return value if spread is None else f"{value} ±{spread:.{digits}f}"
