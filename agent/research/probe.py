"""The research task probe: a command of the playbook, its exit code, and what its last lines say."""

import re
from collections.abc import Sequence

from agent.core.model import Finding, LaunchConfig, Quote
from agent.playbook.model import Probe
from agent.research.common import Progress, Result, launch_env, quote_text, sentence
from agent.research.sources import Sources

PROBE_PATH = "probe output"
"""The path of the quotes of a probe; their line numbers count the output that was kept."""

_QUOTED_LINES = 20
_COUNT = r"\d+ (?:passed|failed|errors?|skipped|xfailed|xpassed|deselected|warnings?|rerun)"
_PYTEST = re.compile(rf"^(?:=+ )?(?P<counts>{_COUNT}(?:, {_COUNT})*|no tests ran) in \d[\d.]*s")
_RAN = re.compile(r"^Ran (\d+) tests? in \d")
_UNITTEST = re.compile(r"^(?:OK|FAILED|NO TESTS RAN)(?: \((?P<counts>[a-z]+[a-z ]*=\d+(?:, [a-z]+[a-z ]*=\d+)*)\))?$")
_UNITTEST_WORDS = {
    "failures": "failed",
    "errors": "errors",
    "skipped": "skipped",
    "expected failures": "xfailed",
    "unexpected successes": "xpassed",
}


async def probe_task(sources: Sources, entry: Probe, config: LaunchConfig, progress: Progress) -> Result:
    """Run the command to its end. That it fails is a result; that it cannot be started, or its end learnt, is not."""
    progress(f"running {entry.run[0]}")
    result = await sources.target.run(
        entry.run,
        timeout_s=entry.timeout,
        env=launch_env(config, entry.gpu),
        background=not entry.gpu,
        hide_gpus=not entry.gpu,
    )
    # Of a progress bar that redraws its line, the last state counts.
    rows = [row.rstrip(b"\r").rpartition(b"\r")[2] for row in result.output.split(b"\n")]
    lines = [quote_text(row, sources.redact) for row in rows]
    told = [(number, text) for number, text in enumerate(lines, 1) if text.strip()]
    quotes = tuple(Quote(path=PROBE_PATH, line=number, text=text) for number, text in told[-_QUOTED_LINES:])
    if result.timed_out:
        return "timeout", Finding(summary=f"no end within {entry.timeout:.0f} s", quotes=quotes)
    if result.exit_code is None:
        return "failed", Finding(summary="end unknown: whether it succeeded could not be learnt", quotes=quotes)
    code = result.exit_code
    parts = [f"exit {code}" if code >= 0 else f"signal {-code}", verdict_line(lines)]
    return "done", Finding(summary=sentence(" · ".join(filter(None, parts)), sources.redact), quotes=quotes)


def verdict_line(lines: Sequence[str]) -> str:
    """What the output says at its end: a test runner's counts, or else the last line that is not empty."""
    for index in range(len(lines) - 1, -1, -1):
        line = lines[index].strip()
        if match := _PYTEST.match(line):
            return match["counts"]
        if match := _UNITTEST.match(line):
            ran = next((found[1] for before in reversed(lines[:index]) if (found := _RAN.match(before.strip()))), None)
            if ran is not None:
                return _unittest(int(ran), match["counts"] or "")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _unittest(ran: int, counts: str) -> str:
    others = [part.rpartition("=")[::2] for part in counts.split(", ") if part]
    passed = ran - sum(int(count) for name, count in others if name in _UNITTEST_WORDS)
    words = [f"{count} {_UNITTEST_WORDS.get(name, name)}" for name, count in others]
    return ", ".join([f"{max(0, passed)} passed", *words])
