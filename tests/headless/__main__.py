"""Writes the lines of the sample session that the tests compare with."""

from tests.headless.golden import FORMS, HERE, printed

for name, form in FORMS.items():
    (HERE / name).write_text(printed(form), encoding="utf-8")
