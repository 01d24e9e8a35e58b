"""How what waits for a person is drawn: a line in the queue, and one in full with exactly what would happen."""

from collections.abc import Sequence

from textual.content import Content

from agent.core.needs import Approval, Completion, MissingKey, Need, Proposal
from agent.core.views.basics import command_line
from agent.core.views.flags import arg_text
from agent.playbook.model import ArgValue
from agent.text import one_line
from tui.content import plain, row
from tui.flow import facts, fit, hang, lines
from tui.widgets.findings import draw_quotes

_WORD = 10
_CHUNK = 2000
UNREADABLE = "too long to be shown whole: read the playbook, and approve it with --approve on the command line"


def draw_need_line(need: Need | str, width: int) -> Content:
    """What it is, whose it is, and the gist of it."""
    if isinstance(need, str):
        return plain(need, "bold $text-primary")
    match need:
        case Approval():
            word, style, text = "○ approve", "$text-warning", command_line(need.run)
        case Completion():
            word, style = "+ accept", "$text-success"
            text = " ".join(f"--{flag} {arg_text(value)}" for flag, value in need.adds.items())
        case Proposal():
            word, style = "◇ proposal", "$text-warning"
            text = " ".join(f"{name} {arg_text(value)}" for name, _, value in need.changes)
        case MissingKey():
            word, style, text = "! key", "$text-warning", need.question
    name = fit(plain(one_line(need.experiment)), max(8, min(24, width // 4)))
    head = row(plain(f"{word:<{_WORD}} ", style), name, "  ")
    return head + plain(one_line(text, 400), "$foreground-muted")


def draw_need(need: Need, width: int) -> Content:
    """All that a decision is about."""
    match need:
        case Approval():
            return draw_approval(need, width)
        case Completion():
            return _completion(need, width)
        case Proposal():
            return _proposal(need, width)
        case MissingKey():
            return _missing_key(need, width)


def draw_approval(need: Approval, width: int) -> Content:
    """The argv one word a line, as it would be executed, and the hash of these bytes."""
    title = f"step {need.step + 1} of {need.steps} of {one_line(need.experiment)} changes the host"
    told = [("on", plain(one_line(need.target)))]
    told += [("creates", plain(one_line(need.creates)))] if need.creates else []
    told += [("approval", plain(need.needed, "bold"))]
    told += [("of all", plain(need.plan))] if need.steps > 1 else []
    told += [("why", plain(one_line(need.why, 600)))] if need.why else []
    made = [hang(Content(""), plain(title, "bold"), width), Content(""), facts(told, width), Content("")]
    made.append(plain("would run", "$foreground-muted"))
    if not need.readable:
        return lines(*made, hang(plain("✖ ", "$text-error"), plain(UNREADABLE, "$text-error"), width))
    for number, word in enumerate(need.run):
        made.append(hang(plain(f"  {number:>2}  ", "$foreground-muted"), _whole(exact(word)), width))
    return lines(*made)


def exact(word: str) -> str:
    """A word as it is, or as Python writes it where anything in it could be misread on a line."""
    return word if word.isprintable() and word == word.strip() and word else ascii(word)


def told_steps(steps: Sequence[Approval]) -> Content:
    """Each step on two lines: its hash, and what it runs, word by word as it is; above them the hash of their plan."""
    made: list[Content] = []
    plan = ""
    for step in steps:
        if step.steps > 1 and step.plan != plan:
            plan = step.plan
            made.append(row(plain(plan, "bold"), f"  all {step.steps} steps of {one_line(step.experiment)}"))
        made.append(row(plain(step.needed, "bold"), plain(f"  on {one_line(step.target)}", "$foreground-muted")))
        made.append(row("  ", _whole(command_line([exact(word) for word in step.run]))))
    return lines(*made)


def _whole(text: str) -> Content:
    # A text is cut where it is longer than a line may be; what is approved must be seen to its end.
    return row(*(plain(text[at : at + _CHUNK]) for at in range(0, len(text), _CHUNK)))


def _completion(need: Completion, width: int) -> Content:
    who = "a language model says" if need.from_llm else "the source demands"
    made = [hang(Content(""), plain(f"{who} more flags for {one_line(need.experiment)}", "bold"), width)]
    made += [hang(Content(""), plain(one_line(need.summary, 1000)), width), Content("")]
    for flag, before, after in need.changes:
        if before is not None:
            made.append(_flag("-", flag, before, "$text-error", width))
        made.append(_flag("+", flag, after, "$text-success", width))
    if need.quotes:
        made += [Content(""), plain("where it says so", "$foreground-muted"), draw_quotes(need.quotes, width)]
    return lines(*made)


def _proposal(need: Proposal, width: int) -> Content:
    """The diff against its parent, then the argv one word a line, and the hash of these bytes."""
    title = f"a language model proposes {one_line(need.experiment)}, on top of {one_line(need.based_on)}"
    told = [("on", plain(one_line(need.target))), ("approval", plain(need.digest, "bold"))]
    told += [("why", plain(one_line(need.why, 600)))] if need.why else []
    told += [("expected", plain(one_line(need.expected, 600)))] if need.expected else []
    made = [hang(Content(""), plain(title, "bold"), width), Content(""), facts(told, width), Content("")]
    for name, before, after in need.changes:
        made += [_setting("-", name, before, "$text-error", width)] if before is not None else []
        made += [_setting("+", name, after, "$text-success", width)] if after is not None else []
    made += [Content(""), plain("would run", "$foreground-muted")]
    for number, word in enumerate(need.command):
        made.append(hang(plain(f"  {number:>2}  ", "$foreground-muted"), _whole(exact(word)), width))
    for name, value in need.env:
        made.append(hang(plain("  env ", "$foreground-muted"), _whole(exact(f"{name}={value or ''}")), width))
    if need.quotes:
        made += [Content(""), plain("what it goes by", "$foreground-muted"), draw_quotes(need.quotes, width)]
    return lines(*made)


def _setting(mark: str, name: str, value: ArgValue, style: str, width: int) -> Content:
    return hang(plain(f"{mark} ", style), plain(f"{one_line(name)} {one_line(arg_text(value), 1000)}", style), width)


def _flag(mark: str, flag: str, value: ArgValue, style: str, width: int) -> Content:
    return _setting(mark, f"--{flag}", value, style, width)


def _missing_key(need: MissingKey, width: int) -> Content:
    title = f"a question about {one_line(need.experiment)} was not asked"
    made = [plain(title, "bold"), Content(""), hang(Content(""), plain(need.question), width), Content("")]
    made.append(hang(Content(""), plain(one_line(need.summary, 600)), width))
    made.append(hang(Content(""), plain("a key counts from the next start of tunebot", "$foreground-muted"), width))
    return lines(*made)
