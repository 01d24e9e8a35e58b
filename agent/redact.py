"""Secrets leave text here, before it reaches the journal, the screen or an LLM."""

import base64
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any
from urllib.parse import quote

from agent.playbook.model import Env, Playbook

MARK = "‹redacted"
"""How every text begins that stands for a secret."""

_SECRET_NAME = re.compile(r"(?i)(api[-_]?key|token(?!s|iz|_|-)|secret|passw|authorization|credential)")
_MAYBE = re.compile(r"(?i)key|token|secret|passw|authorization|credential")
_SHAPES = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_[A-Za-z0-9]{20,}|sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|github_pat_[A-Za-z0-9_]{20,}|AKIA[0-9A-Z]{16}|AIza[0-9A-Za-z_-]{30,})"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)|(?i:(?<=bearer )[\w.~+/=-]{8,})"
    r"|(?s:-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z))"
)
# `--api-key X`, `api_key='X'`, "api_key": "X", X_TOKEN=X; but not eos_token='</s>', #token: 512, or prose.
_KEYED = re.compile(
    r"""(?ix)
    ( (?<![\w-]) (?<!‹redacted:)
      (?: (?P<flag> --) | ['"] )?
      (?: [\w-]*? (?: api[-_]?key | (?:hf|auth|access|bearer) [-_]? token | secret | passwords? | passwd | authorization
                    | credential ) [\w-]*
        | (?-i: \w*_TOKEN ) | token (?= ['"]? \s* [=:] \s* ['"]? [\w.-]{20} ) )
      ['"]? (?: \s* [=:] \s* | (?(flag) \s+ | (?!) ) )
      (?: (?: bearer | basic | token ) \s+ )? )
    ( ' [^']* ' | " [^"]* " | [^\s,'"()\[\]{}<>|`]+ )
    """
)
# The body of a private key stands on lines of its own, far from the line that tells what it is.
_KEY_BODY = re.compile(r"(?=\S*[a-z])(?=\S*[A-Z])(?=\S*[0-9])[A-Za-z0-9+/]{40,}={0,2}")
_HARMLESS = re.compile(r"""(?i) ['"]* (?: none | null | true | false | \*+ | \$ .* )? ['"]* $""", re.VERBOSE)
# argparse's usage text names a value after its flag: `[--api-key API_KEY]`
_PLACEHOLDER = re.compile(r"[A-Z]+(?:_[A-Z]+)*$")


def is_secret_name(name: str) -> bool:
    """Whether a flag or variable of this name holds a secret."""
    return _SECRET_NAME.search(name) is not None


class Redactor:
    """Takes secrets out of text: known values first, then well-known shapes, then values of telling names."""

    def __init__(self, secrets: Mapping[str, str]) -> None:
        """`secrets` maps a name (shown in the mark) to a value; values shorter than six characters are ignored."""
        marks = {
            form: f"‹redacted:{name}:{hashlib.sha256(value.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}›"
            for name, value in secrets.items()
            if len(value) >= 6
            for form in _forms(value)
        }
        self._known = sorted(marks.items(), key=lambda pair: -len(pair[0]))

    @classmethod
    def of(cls, environ: Mapping[str, str], flags: Iterable[tuple[str, str]] = ()) -> "Redactor":
        """A redactor for every value in `environ` and `flags` whose name tells that it is secret."""
        named = [*environ.items(), *flags]
        return cls({name: value for name, value in named if is_secret_name(name)})

    def __call__(self, text: str) -> str:
        """The text with each secret replaced by `‹redacted:NAME:hash›`."""
        for form, mark in self._known:
            text = text.replace(form, mark)
        text = _SHAPES.sub("‹redacted›", text)
        return _KEYED.sub(self._keyed, text) if _MAYBE.search(text) else text

    @staticmethod
    def _keyed(match: re.Match[str]) -> str:
        value = match[3]
        usage = match["flag"] is not None and _PLACEHOLDER.match(value)
        if _HARMLESS.match(value) or MARK in value or usage:
            return match[0]
        return f"{match[1]}‹redacted›"


def _forms(value: str) -> set[str]:
    """A secret as it may be written: plain, inside JSON, inside a URL, in base64."""
    raw = value.encode("utf-8", "surrogateescape")
    return {value, json.dumps(value)[1:-1], quote(raw, safe=""), base64.b64encode(raw).decode()}


def redact_line(redact: Callable[[str], str], line: str) -> str:
    """One line of many without its secrets, which a redactor that sees no other line would not know, too."""
    line = redact(line)
    # With more around it than a patch or a list puts there it is code or prose.
    return "‹redacted›" if _KEY_BODY.fullmatch(line.strip(" \t+-\"',")) else line


def redact_tree(redact: Redactor, value: Any) -> Any:
    """A JSON-ready value with the secrets taken out of every text in it."""
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, dict):
        return {key: redact_tree(redact, item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redact_tree(redact, item) for item in value]
    return value


def redactor(playbook: Playbook) -> Redactor:
    """Takes out of a text what the environment and the playbook keep secret."""
    return Redactor.of(os.environ, _secrets_of(playbook))


def _secrets_of(playbook: Playbook) -> list[tuple[str, str]]:
    envs: list[Env] = [playbook.server.env, *(e.env for e in playbook.experiments)]
    envs += [e.server.env for e in playbook.experiments if e.server]
    args = [playbook.server.args, *(e.args for e in playbook.experiments)]
    return [(name, value) for group in (*envs, *args) for name, value in group.items() if isinstance(value, str)]
