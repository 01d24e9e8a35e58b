"""What a session prints without a screen. `python -m tests.headless` writes the golden lines of the sample anew."""
