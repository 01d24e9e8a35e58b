"""The preflight checks, by what they look at. `agent/research/preflight.py` says which entry goes where."""
