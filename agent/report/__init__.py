"""What became of a session, for people who were not there: a frozen Report, and pure functions that write it out."""
