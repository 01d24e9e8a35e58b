"""A command that there is not: the nearest one is named."""

import pytest

from agent.cli import main


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("rnu", "did you mean tunebot run?"),
        ("Report", "did you mean tunebot report?"),
        ("atach", "did you mean tunebot attach?"),
        ("xyzzy", "tunebot --help lists them all"),
        ("", "tunebot --help lists them all"),
        ("\x1b[31mrun" + "n" * 500, "tunebot --help lists them all"),
    ],
)
def test_the_nearest_command_is_named(typed: str, hint: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([typed, "my.yaml"]) == 2
    told = capsys.readouterr()
    assert not told.out and told.err.startswith("tunebot: there is no command '")
    assert told.err.endswith(f"\n  hint: {hint}\n") and "\x1b" not in told.err and len(told.err) < 200
