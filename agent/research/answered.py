"""From what an LLM said to a finding: cleaned, redacted, its quotes looked for, its proposals checked."""

from agent.core.model import Answer, Claim, Finding, Quote
from agent.playbook.model import Experiment
from agent.research.answer_form import AnswerForm, ClaimForm
from agent.research.answers import Seen, find_quote, sentences
from agent.research.common import Redact, clip
from agent.research.proposals import CheckFlags, Unfit, proposed, recommended
from agent.research.tool import Scope
from agent.text import clean, one_line

_TEXT_LIMIT = 8000
_MOST_CLAIMS = 20
_MOST_RISKS = 10
_LINE = 400
"""Characters of a claim or a risk."""


async def finding_of(form: AnswerForm, scope: Scope, seen: Seen, check: CheckFlags) -> Finding:
    """What the answer comes to; its quotes are the lines that claims rest on and that were found.

    `seen` is what the tools of this question returned. Raises TargetUnusable.
    """
    redact = scope.sources.redact
    text = said(form.text, redact)
    claims, evidence = _claims(form.claims, seen, redact)
    requires, dropped = await recommended(form.flags, scope.config, scope.sources, check)
    proposal: Experiment | None = None
    if form.experiment is not None:
        try:
            proposal = await proposed(form.experiment, scope.facts(), scope.sources, check)
        except Unfit as reason:
            dropped.append(f"its proposal: {reason}")
    return Finding(
        summary=_summary(first_sentence(text), dropped, redact),
        quotes=evidence,
        requires=requires,
        answer=Answer(
            text=text,
            claims=claims,
            risks=tuple(one_line(redact(risk), _LINE) for risk in form.risks[:_MOST_RISKS]),
            confidence=form.confidence,
        ),
        proposal=proposal,
    )


def said(text: str, redact: Redact) -> str:
    """An LLM's own words."""
    return clean(redact(clean(text, len(text))), _TEXT_LIMIT).strip()


def first_sentence(text: str) -> str:
    """What is shown of an answer where there is room for one line; empty where it says nothing."""
    return clip(next(iter(sentences(text)), ""))


def _claims(forms: tuple[ClaimForm, ...], seen: Seen, redact: Redact) -> tuple[tuple[Claim, ...], tuple[Quote, ...]]:
    claims: list[Claim] = []
    evidence: dict[Quote, None] = {}
    for form in forms[:_MOST_CLAIMS]:
        # What was seen was cleaned and redacted as well.
        quote = redact(clean(form.quote))
        found = find_quote(form.path, form.line, quote, seen)
        claims.append(
            Claim(
                text=one_line(redact(form.text), _LINE),
                path=found.path if found else one_line(redact(form.path)),
                line=form.line,
                quote=clip(" ".join(quote.split())),
                found=found is not None,
            )
        )
        if found:
            evidence[found] = None
    return tuple(claims), tuple(evidence)


def _summary(first: str, dropped: list[str], redact: Redact) -> str:
    if not dropped:
        return one_line(first)
    return one_line(redact(f"{one_line(first, 110)} (dropped: {'; '.join(dropped)})"), 300)
