"""The user's configuration file: what it may say, what is in force, and how it is written."""
