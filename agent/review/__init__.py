"""Reviewing a recorded session: moments worth going to, times as people write them, and its decisions made again."""
