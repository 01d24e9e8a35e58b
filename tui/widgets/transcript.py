"""How background tasks are drawn: a line in the list, and one in full."""

from textual.content import Content

from agent.core.model import Answer
from agent.core.views.tasks import RUNNING, TaskLine, Transcript
from agent.text import one_line
from tui.content import plain, row
from tui.flow import facts, fit, hang, lines
from tui.widgets.findings import draw_claims, draw_quotes
from tui.words import glyph_of, style_of

_WORD = 12
_KIND = 10


def draw_task_line(line: TaskLine | str, width: int) -> Content:
    """A heading, or a task: state, kind, title, what it told, how long it took."""
    if isinstance(line, str):
        return plain(one_line(line), "bold $text-primary")
    elapsed = plain(f"  {line.elapsed:>5}", "$foreground-muted")
    head = row(_word(line, _WORD), plain(f"{line.kind:<{_KIND}}", "$foreground-muted"))
    room = width - head.cell_length - elapsed.cell_length
    owner = f"{one_line(line.experiment)}: " if line.group == RUNNING else ""
    title = row(plain(owner, "$foreground-muted"), plain(one_line(line.title)))
    # What a running task does at the moment is worth a cut title.
    if room >= 44 or (line.group == RUNNING and room >= 24):
        share = room // 2
        title = fit(title, share) + plain("  ") + fit(plain(one_line(line.told), "$foreground-muted"), room - share - 2)
    return head + fit(title, room) + elapsed


def draw_transcript(shown: Transcript, width: int) -> Content:
    """What was wanted, what was found, every line of evidence."""
    line = shown.line
    marks = [word for word, on in (("needed before the launch", shown.needed), ("has a GPU", shown.gpu)) if on]
    head = row(
        _word(line, 0),
        plain(f"  {line.kind}", "bold"),
        plain(f"  for {one_line(line.experiment)}  {line.elapsed}", "$foreground-muted"),
        plain("".join(f"  {mark}" for mark in marks), "$foreground-muted"),
    )
    made = [hang(Content(""), head, width), Content("")]
    made.append(facts([(name, plain(text)) for name, text in shown.entry], width))
    # An answer begins with the sentence that stands for it elsewhere.
    if line.told and not (shown.answer and shown.answer.text.startswith(line.told)):
        made += [Content(""), hang(Content(""), plain(line.told, "bold"), width)]
    if shown.requires:
        who = "it says that these are needed" if shown.answer else "the source demands"
        made += [Content(""), plain(who, "$foreground-muted")]
        made += [hang(plain("+ ", "$text-success"), plain(f"{flag} {value}"), width) for flag, value in shown.requires]
    if shown.answer:
        made += [Content(""), _answer(shown.answer, width)]
    elif shown.quotes:
        made += [Content(""), draw_quotes(shown.quotes, width)]
    if shown.spent:
        made += [Content(""), plain(shown.spent, "$foreground-muted")]
    return lines(*made)


def _answer(answer: Answer, width: int) -> Content:
    """Its words, what it claims, the risks that it sees."""
    made = [hang(Content(""), plain(line), width) for line in answer.text.split("\n")]
    if answer.confidence:
        made += [Content(""), plain(f"what it claims, with {answer.confidence} confidence", "$foreground-muted")]
    made += draw_claims(answer.claims, width)
    made += [hang(plain("! ", "$text-warning"), plain(one_line(risk, 400)), width) for risk in answer.risks]
    return lines(*made)


def _word(line: TaskLine, width: int) -> Content:
    word = line.outcome or line.status
    return plain(f"{glyph_of(word)} {word.replace('-', ' ')}".ljust(width), style_of(word))
