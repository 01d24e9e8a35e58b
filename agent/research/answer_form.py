"""The form in which an LLM answers: the input of the tool `answer`, with which every question ends."""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, WithJsonSchema

from agent.core.model import Confidence
from agent.playbook.model import ArgValue, Strict

NAME = "answer"


def _as_text(value: object) -> object:
    """A number is what a server reads as text."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


class ClaimForm(Strict):
    """One statement and the line that it rests on."""

    text: str
    path: Annotated[str, Field(description="as a tool returned it: source:relative/path")]
    line: int
    quote: Annotated[str, Field(description="what stands there, word for word: at least 20 characters")]


class FlagForm(Strict):
    """One flag of the server."""

    name: Annotated[str, Field(description="without dashes")]
    value: Annotated[ArgValue, BeforeValidator(_as_text), Field(description="true for a switch, null to take it away")]


class VariableForm(Strict):
    """One environment variable of the server."""

    name: str
    value: Annotated[str | None, BeforeValidator(_as_text), Field(description="null to take it away")]


class RemovalForm(Strict):
    """Calls of a term of the cost model that an experiment would take off every step."""

    term: str
    calls: int


class ProposalForm(Strict):
    """One experiment that is not on the board, as a change to one that is."""

    id: Annotated[str, Field(description="a short name: letters, digits, '.', '_' and '-'")]
    based_on: Annotated[str, Field(description="the id of the experiment on the board that it changes")]
    why: str
    args: tuple[FlagForm, ...] = ()
    env: tuple[VariableForm, ...] = ()
    removes: Annotated[
        tuple[RemovalForm, ...],
        Field(description="of the terms on the board, where it makes fewer of their calls"),
    ] = ()


def _proposal_schema() -> dict[str, Any]:
    # One level, since a schema within a schema cannot refer to its own definitions.
    flag, variable, removal = (form.model_json_schema() for form in (FlagForm, VariableForm, RemovalForm))
    schema = ProposalForm.model_json_schema()
    schema.pop("$defs")
    schema["properties"]["args"] = {"type": "array", "items": flag}
    schema["properties"]["env"] = {"type": "array", "items": variable}
    schema["properties"]["removes"] |= {"type": "array", "items": removal}
    return {"anyOf": [schema, {"type": "null"}]}


class AnswerForm(Strict):
    """The answer to the question."""

    text: Annotated[str, Field(description="Markdown, at most 200 words; the first sentence is shown alone")]
    claims: tuple[ClaimForm, ...] = ()
    flags: Annotated[
        tuple[FlagForm, ...], Field(description="what should be added to the flags of the experiment asked about")
    ] = ()
    risks: tuple[str, ...] = ()
    confidence: Confidence
    # Looked at by itself, so that a bad proposal does not spoil the answer.
    experiment: Annotated[
        Mapping[str, Any] | None,
        WithJsonSchema(_proposal_schema()),
        Field(description="only where another experiment should be tried; a person decides"),
    ] = None


def as_json() -> dict[str, Any]:
    """The tool as the Messages API takes it."""
    return {
        "name": NAME,
        "description": "Ends the task with the answer. Call it exactly once, when you have read enough.",
        "input_schema": AnswerForm.model_json_schema(),
        "strict": True,
    }
