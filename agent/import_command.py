"""`tunebot import`: results of other benchmark clients, with the definitions of each."""

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from agent.diagnostics import Exit, UserError
from agent.imports.formats import read_results
from agent.imports.model import Imported, Unreadable
from agent.imports.show import as_json, cleaned, result_lines
from agent.redact import Redactor
from agent.text import clean, one_line

MOST_BYTES = 512 << 20
"""Of a result file; those with the details of a million requests are about this size."""


def import_files(files: Sequence[Path], in_json: bool, say: Callable[[str], None]) -> Exit:
    """Print what the files hold. Raises UserError with the first that cannot be read, before anything is printed."""
    redact = Redactor.of(os.environ)
    found = [
        (file, cleaned(result, lambda text: one_line(redact(clean(text))))) for file in files for result in _read(file)
    ]
    if in_json:
        rows = [{"file": one_line(str(file)), **as_json(result)} for file, result in found]
        say(json.dumps({"results": rows}, ensure_ascii=False, indent=2, allow_nan=False))
        return Exit.OK
    for number, (file, result) in enumerate(found):
        if number:
            say("")
        say(one_line(str(file)))
        for line in result_lines(result):
            say(line)
    return Exit.OK


def _read(file: Path) -> tuple[Imported, ...]:
    try:
        if not file.is_file() and file.exists():
            raise UserError(f"{file}: no file", "give the result file of a benchmark client")
        if file.stat().st_size > MOST_BYTES:
            raise UserError(f"{file}: larger than {MOST_BYTES >> 20} MiB", "write it again without details per request")
        text = file.read_bytes().decode("utf-8")
    except OSError as error:
        raise UserError(f"{file}: {error.strerror or error}", "give the result file of a benchmark client") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: no text", "give the JSON file, uncompressed") from error
    try:
        return read_results(text)
    except Unreadable as error:
        raise UserError(one_line(f"{file}: {error}"), error.hint) from error
