"""The flags of an installed server, read from its source tree: nothing of it is imported or run."""
