"""Files of prompts: one JSON object a line, in the shapes that people have."""

import json
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

from agent.playbook.data_files import FoundFile, LookAt
from agent.playbook.workload import DataFile
from agent.text import one_line

LARGEST_MIB = 64

# The keys of OpenAI's messages, and of ShareGPT's.
_TURNS = (("messages", "role", "content", "user"), ("conversations", "from", "value", "human"))


@dataclass(frozen=True, slots=True)
class Record:
    """One prompt as text, and how many tokens to ask for, where the line says so."""

    prompt: str
    output_len: int | None = None


def looking_from(folder: Path) -> LookAt:
    """What looks at the files of a playbook that lies in `folder`."""

    def look_at(file: str) -> FoundFile:
        path = (folder / Path(file).expanduser()).absolute()
        return FoundFile(path=str(path), sha256=_load(path)[1])

    return look_at


def records_of(data: DataFile) -> tuple[Record, ...]:
    """The prompts of a file. Raises ValueError where it is not there, not readable, or not the one that was loaded."""
    records, digest = _load(Path(data.file))
    if data.sha256 and digest != data.sha256:
        raise ValueError(f"{one_line(data.file)} has other bytes than when it was first read")
    return records


def _load(path: Path) -> tuple[tuple[Record, ...], str]:
    try:
        if not path.is_file():  # a pipe would be waited for
            raise ValueError(f"there is no file {one_line(str(path))}")
        return _read(path, path.stat().st_mtime_ns)
    except OSError as error:
        raise ValueError(f"cannot read {one_line(str(path))}: {error.strerror}") from error


@lru_cache(maxsize=4)
def _read(path: Path, _mtime_ns: int) -> tuple[tuple[Record, ...], str]:
    """The prompts and the digest of a file as it was at this time of change. Raises OSError, ValueError."""
    name = one_line(path.name)
    with path.open("rb") as file:
        data = file.read((LARGEST_MIB << 20) + 1)
    if len(data) > LARGEST_MIB << 20:
        raise ValueError(f"{name} has more than {LARGEST_MIB} MiB")
    records = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if line.strip():
            try:
                records.append(_record(line))
            except ValueError as error:
                raise ValueError(f"{name}:{number}: {error}") from error
    if not records:
        raise ValueError(f"{name} has no prompt")
    return tuple(records), sha256(data).hexdigest()


def _record(line: bytes) -> Record:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError("not a JSON object") from error
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    output_len = value.get("output_len")
    if output_len is not None and (not isinstance(output_len, int) or isinstance(output_len, bool) or output_len < 2):
        raise ValueError("output_len must be a whole number of at least 2 tokens")
    prompt = value["prompt"] if "prompt" in value else _conversation(value)
    if not isinstance(prompt, str) or not prompt.strip():
        raise ValueError("the prompt must be text, and not empty")
    return Record(prompt, output_len)


def _conversation(value: dict[str, object]) -> str:
    """What was said up to the last question of a person."""
    for key, role, text, person in _TURNS:
        turns = value.get(key)
        if isinstance(turns, list) and turns:
            if not all(isinstance(turn, dict) and isinstance(turn.get(text), str) for turn in turns):
                raise ValueError(f"each of {key} must have its {text} as text")
            asked = [index for index, turn in enumerate(turns) if turn.get(role) == person]
            if not asked:
                raise ValueError(f"none of {key} is by {person}")
            return "\n\n".join(turn[text] for turn in turns[: asked[-1] + 1])
    raise ValueError("needs prompt, messages or conversations")
