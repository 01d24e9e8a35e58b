"""All commands of `tunebot`, in the order of its help."""

from agent.commands import measuring, own, playbooks, replay, review, sessions

COMMANDS = (
    sessions.RUN,
    sessions.DEMO,
    sessions.ATTACH,
    sessions.RESUME,
    sessions.TRY,
    playbooks.CHECK,
    measuring.DOCTOR,
    playbooks.SCHEMA,
    replay.REPLAY,
    review.REPORT,
    playbooks.FLAGS,
    measuring.EXPLAIN,
    measuring.IMPORT,
    measuring.BENCH,
    own.CONFIG,
    own.COMPLETION,
    own.HELP,
)
