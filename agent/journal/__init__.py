"""The append-only record of a session: one JSON line an event, written before the event counts."""
