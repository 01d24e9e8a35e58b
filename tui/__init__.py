"""The screen. It sees views of a state and hands events in; it knows no target, server or LLM."""
