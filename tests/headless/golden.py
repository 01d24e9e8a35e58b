"""The lines of the sample session, in each form."""

from pathlib import Path

from agent.headless import Form, Printer, retell
from agent.journal.journal import read_journal

HERE = Path(__file__).parent
SAMPLE = HERE.parent.parent / "logs" / "sample"

FORMS = {
    "sample.txt": Form(),
    "sample.quiet.txt": Form(quiet=True),
    "sample.jsonl": Form(as_json=True),
    "sample.quiet.jsonl": Form(as_json=True, quiet=True),
}


def printed(form: Form) -> str:
    """What `tunebot replay logs/sample --headless` prints in that form."""
    lines: list[str] = []
    retell(read_journal(SAMPLE), Printer(lines.append, form))
    return "".join(f"{line}\n" for line in lines)
