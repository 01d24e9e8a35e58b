"""Which lines of a session the page quotes."""

from tests.story.excerpts import WIDTH, excerpts

LINES = f"""\
tunebot · kimi · simulated
   0:05  ar-fusion                preflight started: ruled-out: not yet
   0:08  ar-fusion                ruled-out: would fail: {"no such kernel " * 8}
   0:30  baseline                 loading: load-weights 1/64
   0:35  baseline                 ready after 0:13
   0:36  late                     ruled-out: too late for the first section
   0:40  eagle3                   single round 1: 53.7 tok/s
   0:41  eagle3                   stopping the server: next

RESULTS
  ✔ baseline   keep
DEAD ENDS
  ✖ ar-fusion  ruled-out {"x" * WIDTH}

1 loads paid (0:13), 1 saved by preflights
best launch command:
""".splitlines()


def test_what_the_page_quotes() -> None:
    told = excerpts(LINES)
    first, *more, ready = told["first"]
    assert first.startswith(" 0:08  ar-fusion") and more and ready == " 0:35  baseline                 ready after 0:13"
    assert told["eagle3"] == [" 0:40  eagle3                   single round 1: 53.7 tok/s"]
    assert told["board"][0] == "RESULTS" and told["board"][-1].startswith("1 loads paid")
    assert all(len(line) <= WIDTH for lines in told.values() for line in lines)
