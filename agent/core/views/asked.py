"""What waits for a person, in one line each."""

from agent.core.needs import Approval, Completion, MissingKey, Need, Proposal
from agent.core.views.basics import command_line
from agent.core.views.flags import arg_text


def asked_text(need: Need) -> str:
    """What a person is asked for, and how a session without a screen is told."""
    match need:
        case Approval():
            step = f"prepare step {need.step + 1} of {need.steps}"
            plan = f", of all steps {need.plan}" if need.steps > 1 else ""
            return f"needs you: approve {step}: {command_line(need.run)} (--approve {need.needed}{plan})"
        case Completion():
            flags = " ".join(f"--{flag} {arg_text(value)}" for flag, value in need.adds.items())
            why = "which an LLM recommends" if need.from_llm else "which the source demands"
            return f"needs you: accept {flags}, {why}"
        case Proposal():
            return f"needs you: approve what an LLM proposes on {need.based_on}: {need.why}"
        case MissingKey():
            return f"needs you: {need.summary.removeprefix('needs ') or 'a key for the LLM'}, to ask: {need.question}"


def asked_facts(need: Need) -> dict[str, object]:
    """The same for machines: which kind of thing is wanted, and what it would be given by."""
    match need:
        case Approval():
            facts = {"command": list(need.run), "creates": need.creates}
            return {"wanted": "approval", "approve": need.needed, "approve_all": need.plan, **facts}
        case Completion():
            return {"wanted": "flags", "task": need.task, "adds": dict(need.adds), "from_llm": need.from_llm}
        case Proposal():
            return {"wanted": "proposal", "digest": need.digest, "command": list(need.command)}
        case MissingKey():
            return {"wanted": "key", "task": need.task, "question": need.question}
