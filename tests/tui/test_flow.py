"""Content in a width: nothing raises, nothing is wider than it may be, nothing is lost that should wrap."""

from hypothesis import given
from hypothesis import strategies as st

from tui.content import plain
from tui.flow import facts, fit, hang, table

CELLS = st.text(max_size=40)
WIDTHS = st.integers(min_value=1, max_value=120)


def widths(content):
    return [line.cell_length for line in content.split("\n", allow_blank=True)]


@given(CELLS, WIDTHS)
def test_a_line_that_is_fitted_has_exactly_its_width(text, width):
    assert fit(plain(text.replace("\n", " ").replace("\t", " ")), width).cell_length == width


@given(CELLS, st.integers(min_value=24, max_value=120))
def test_what_hangs_stays_in_its_width_and_keeps_its_words(text, width):
    made = hang(plain("12  "), plain(text), width)
    assert max(widths(made)) <= width
    assert "".join(made.plain.split()) == "12" + "".join(plain(text).plain.split())


@given(st.lists(st.lists(st.text("ab 日", max_size=60), min_size=4, max_size=4), max_size=5), st.integers(48, 160))
def test_a_table_stays_in_its_width(rows, width):
    made = table([[plain(cell) for cell in row] for row in rows], width, right=(1,), whole=0)
    assert max(widths(made), default=0) <= width


def test_columns_are_aligned_and_the_whole_one_is_cut_last():
    rows = [[plain("--a-long-name-of-a-flag"), plain("x" * 60), plain("ok")], [plain("b"), plain("y"), plain("no")]]
    first, second = table(rows, 54, whole=0).plain.split("\n")
    assert first.startswith("--a-long-name-of-a-flag  xxxxx") and first.endswith("…  ok")
    assert second.index("y") == first.index("x") and second.index("no") == first.index("ok")


def test_facts_stand_beside_their_names():
    assert facts([("a", plain("one two")), ("long", plain("x"))], 40).plain == "a     one two\nlong  x"
