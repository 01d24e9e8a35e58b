"""The views of the run screen as plain values, and how they are laid out in cells."""

from dataclasses import replace

import pytest
from textual.content import Content

from agent.core import events as ev
from agent.core.actions import cannot_retry, cannot_skip, launch_to_end
from agent.core.model import Finding
from agent.core.schedule import missing_approvals
from agent.core.state import State
from agent.core.views.background import background_view
from agent.core.views.board import BoardRow, board_view
from agent.core.views.panels import GpuUse, Step, header_view, server_view
from agent.telemetry import parse
from tests.core.conftest import playbook
from tests.tui.kit import GPUS, START, Session, story
from tui.content import cut, fit, fit_right
from tui.widgets.board import columns
from tui.widgets.server import bar, gpu_lines, strip


def words(state: State) -> dict[str, str]:
    """What the board says of each experiment, in one line."""
    rows = [row for section in board_view(state) for row in section.rows]
    return {
        row.experiment: " ".join(filter(None, (row.glyph, row.word, row.value, row.spread, row.change, row.text)))
        for row in rows
    }


@pytest.mark.parametrize(
    ("moment", "experiment", "line"),
    [
        ("start", "baseline", "○ in line"),
        ("start", "eagle3", "○ waits for baseline"),
        ("start", "cuda13", "○ waits for approval"),
        ("begun", "baseline", "● starting"),
        ("begun", "nccl-tree", "○ waits for baseline"),
        ("loading", "baseline", "● loading 43 %  6:40 left"),
        ("loading", "nccl-tree", "✖ ruled-out NCCL_ALGO is Tree: bare Tree has no AllGather"),
        ("measuring", "baseline", "● measuring 3/3"),
        ("second", "baseline", "★ incumbent 89.6 ±0.4 the baseline"),
        ("failed", "eagle3", "✖ failed torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"),
        ("finished", "cuda13", "○ not-reached: skipped by hand"),
    ],
)
def test_a_row_of_the_board(moment: str, experiment: str, line: str) -> None:
    assert words(story(moment).state)[experiment] == line


def test_the_incumbent_and_what_it_gained() -> None:
    row = words(story("waiting").state)["ep-plain"]
    assert row.startswith("★ incumbent 101.1 ±") and "+12.9 %" in row


def test_sections_come_in_their_order_and_only_where_there_is_something() -> None:
    assert [str(s.place) for s in board_view(story("start").state)] == ["TODO"]
    assert [str(s.place) for s in board_view(story("third").state)] == ["NOW", "TODO", "RESULTS", "DEAD ENDS"]


def test_without_a_basis_there_is_no_time() -> None:
    session = Session().begin().loading(fraction=None, remaining_s=None)
    assert words(session.state)["baseline"] == "● load-weights  no ETA yet"
    view = server_view(session.state, session.now())
    assert (view.fraction, view.status) == (23 / 64, "no ETA yet")


@pytest.mark.parametrize(
    ("moment", "mark", "needs"),
    [("start", "", "1"), ("loading", "", "1"), ("waiting", "", "1 now")],
)
def test_the_header(moment: str, mark: str, needs: str) -> None:
    session = story(moment)
    view = header_view(session.state, session.now())
    assert (view.mark, view.needs) == (mark, needs)
    assert (view.playbook, view.host, view.simulated) == ("kimi-k2.5-8x-rtx-pro-6000", "gpu8", False)


def test_what_needs_a_person_says_when() -> None:
    book = playbook({"id": "base"}, {"id": "new", "prepare": [{"run": ["true"]}]})
    session = Session(book).begin().loading(remaining_s=160.0)
    assert header_view(session.state, session.now()).needs == "1 in 2:40"


def test_the_header_says_what_is_not_as_usual() -> None:
    session = story("loading")
    session.give(ev.PauseSet(at=session.at, on=True))
    assert header_view(session.state, session.now()).mark.startswith("‖ paused")
    session.give(ev.LinkLost(at=session.at, reason="no route to host"))
    assert header_view(session.state, session.now() + 41).mark == "✖ unreachable for 0:41"
    session.give(ev.LinkRestored(at=session.at))
    session.give(ev.InterruptRequested(at=session.at, keep=False))
    assert header_view(session.state, session.now()).mark == "■ stopping…"
    session.stopped()
    view = header_view(session.state, session.now() + 60)
    assert view.mark == "ended: interrupted"
    assert view.elapsed == header_view(session.state, session.now()).elapsed, "time stands still after the end"


def test_a_finished_session_says_what_to_do_next() -> None:
    session = story("finished")
    view = header_view(session.state, session.now())
    assert "finished" in view.mark and "n adds" in view.mark and "leaves" in view.mark
    server = server_view(session.state, session.now())
    assert server.title == "Server" and "every experiment has ended" in server.note
    assert server.more.startswith("The best: ")


def test_the_time_goes_on_between_events() -> None:
    state = story("loading").state
    assert header_view(state, START + 75).elapsed == "1:15"


@pytest.mark.parametrize(
    ("moment", "title", "status", "note"),
    [
        ("begun", "Server: baseline · launch 1", "is being started", ""),
        ("loading", "Server: baseline · launch 1", "43 %   6:40 left", "pid 4711 · port 30000"),
        ("measuring", "Server: baseline · launch 1", "measures single, round 3", "single round 2: 89.5 tok/s"),
        ("failed", "Server: eagle3 · launch 2", "is being stopped", "✖ rank 3: torch.OutOfMemoryError"),
        ("waiting", "Server: ep-plain · launch 3", "3 of 3 rounds measured", "waits for your approval of cuda13: y"),
    ],
)
def test_the_server_panel(moment: str, title: str, status: str, note: str) -> None:
    session = story(moment)
    view = server_view(session.state, session.now(), GPUS)
    assert (view.title, view.status, view.gpus) == (title, status, GPUS)
    assert view.note.startswith(note)


def test_the_steps_of_a_load() -> None:
    session = story("loading")
    steps = server_view(session.state, session.now()).steps
    assert [(step.phase, step.stands, step.detail) for step in steps] == [
        ("launch", "passed", "13s"),
        ("dist-init", "passed", "30s"),
        ("load-weights", "present", "23/64"),
        ("graph-capture", "ahead", ""),
        ("ready", "ahead", ""),
    ]


def test_the_steps_of_a_failure_and_of_a_success() -> None:
    failed, good = (server_view(story(moment).state, START) for moment in ("failed", "measuring"))
    assert failed.steps[-1] == Step(phase="load-weights", stands="failed", detail="failed")
    assert all(step.stands == "passed" for step in good.steps) and good.steps[-1].phase == "ready"


def test_what_is_ahead_is_known_from_the_load_before() -> None:
    session = story("second").loading()
    ahead = [step.phase for step in server_view(session.state, session.now()).steps if step.stands == "ahead"]
    assert ahead == ["ready"]


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (ev.PauseSet(at=START, on=True), "paused: nothing is launched until p"),
        (ev.InterruptRequested(at=START, keep=False), "nothing more is launched"),
    ],
)
def test_what_an_empty_lane_waits_for(event: ev.Event, text: str) -> None:
    session = Session().give(event)
    assert server_view(session.state, session.now()).note == text


def test_a_probe_with_the_gpus_holds_up_the_lane() -> None:
    probe = {"probe": {"run": ["python3", "-c", "import deep_ep"], "gpu": True}}
    session = Session(playbook({"id": "base", "research": [probe]})).begin()
    view = server_view(session.state, session.now())
    assert (view.note, view.tone) == ("waits for a probe of base: python3 -c import deep_ep", "busy")


def test_preparing_is_shown() -> None:
    session = story("waiting")
    needed = missing_approvals(session.state, session.state.experiments["cuda13"].spec)[0]
    session.give(ev.ApprovalGiven(at=session.at, needed=needed)).stopped()
    view = server_view(session.state, session.now())
    assert view.note == "prepares cuda13, step 1 of 1: python3 -m venv ~/venvs/cu130"
    assert words(session.state)["cuda13"] == "● preparing 1/1"


def test_the_background_puts_what_runs_first() -> None:
    session = story("begun")
    session.ahead_s = 41
    view = background_view(session.state, session.now())
    assert view.title == "Background (2 running)"
    assert [(r.glyph, r.kind, r.text, r.elapsed) for r in view.rows] == [
        ("◐", "preflight", "running", "41s"),
        ("◐", "grep", "running", "41s"),
    ]
    session.finish_tasks(nccl_tree=Finding(summary="has no AllGather", outcome="fails"))
    view = background_view(session.state, session.now())
    assert view.title == "Background (0 running, 2 done)"
    assert [(r.glyph, r.text) for r in view.rows] == [
        ("✔", "3 hits  server_args.py:7"),
        ("✖", "would fail: has no AllGather"),
    ]


def test_a_missing_key_is_shown_as_such() -> None:
    session = Session(playbook({"id": "base", "research": [{"ask": "Does it fit?"}]})).begin()
    gone = Finding(summary="set ANTHROPIC_API_KEY")
    session.give(ev.TaskFinished(at=session.at, task="base/1", status="needs-key", finding=gone))
    row = background_view(session.state, session.now()).rows[0]
    assert (row.glyph, row.text) == ("!", "needs-key: set ANTHROPIC_API_KEY")


def test_the_background_is_quiet_while_measuring() -> None:
    assert "quiet" in background_view(story("measuring").state, START).title


def test_what_a_person_can_do_now() -> None:
    state = story("failed").state
    assert cannot_skip(state, "eagle3") == "eagle3 has ended"
    assert cannot_skip(state, "ep-plain") is None
    assert cannot_retry(state, "ep-plain") == "ep-plain has not ended"
    assert cannot_retry(state, "baseline") == "baseline is kept: nothing to retry"
    assert cannot_retry(state, "eagle3") is None
    assert launch_to_end(state) is None
    loading = story("loading").state
    assert launch_to_end(loading) is loading.current
    assert cannot_skip(loading, "baseline") == "baseline runs: e ends its launch"


# Cells


@pytest.mark.parametrize("width", [20, 40, 62, 110])
def test_the_strip_fits_and_shows_where_the_load_is(width: int) -> None:
    session = story("loading")
    content = strip(server_view(session.state, session.now()).steps, width)
    assert content.cell_length <= width and "load-weights" in content.plain
    if width >= 40:
        assert "ready" in content.plain


@pytest.mark.parametrize("fraction", [-1.0, 0.0, 0.37, 0.999, 1.0, 7.0])
@pytest.mark.parametrize("width", [0, 1, 17])
def test_a_bar_has_its_width(fraction: float, width: int) -> None:
    assert bar(fraction, width).cell_length == width


@pytest.mark.parametrize(("width", "height", "lines"), [(62, 2, 2), (51, 2, 2), (120, 1, 1), (30, 2, 1), (62, 0, 0)])
def test_the_gpus_fit(width: int, height: int, lines: int) -> None:
    drawn = gpu_lines(GPUS, width, height)
    assert len(drawn) == lines and all(line.cell_length <= width for line in drawn)


def row_of(**changes: str) -> BoardRow:
    """A measured row."""
    fields = {"experiment": "ep-plain", "glyph": "✔", "word": "keep", "value": "101.2", "spread": "±0.9"}
    fields |= {"change": "+13.1 %", "text": "because"} | changes
    return BoardRow(tone="good", **fields)  # type: ignore[arg-type]


def test_columns_give_way_in_order() -> None:
    rows = [row_of(), row_of(experiment="torch-symm-mem@cuda13", word="inconclusive")]
    wide, middle, narrow = (columns(rows, width) for width in (90, 50, 40))
    assert wide.text and wide.spread and wide.id == 21
    assert not middle.text and middle.spread and middle.id < 21
    assert not narrow.spread and narrow.value and narrow.id >= 8


def test_text_in_cells() -> None:
    assert cut("[/nope] a\nb", 8) == "[/nope]…"
    assert fit("ab", 4) == "ab  " and fit_right("ab", 4) == "  ab"
    wide = "日本語のモデル"
    assert all(Content(make(wide, 7)).cell_length == 7 for make in (fit, fit_right))
    assert "\x1b" not in fit("\x1b[31mred", 5)


# Telemetry


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("", ()),
        ("NVIDIA-SMI has failed because it could not communicate", ()),
        (
            "0, 88064, 97887, 97, 330.10\n",
            (GpuUse(index=0, used_mib=88064, total_mib=97887, busy=0.97, power_w=330.1),),
        ),
        ("1, 4, 97887, [N/A], [N/A]", (GpuUse(index=1, used_mib=4, total_mib=97887),)),
        ("0, nan, 97887, 1, 1\n0, 1, 0, 1, 1\n0, 1, 2\nx, 1, 2, 3, 4", ()),
    ],
)
def test_telemetry_is_read_or_left_out(text: str, gpus: tuple[GpuUse, ...]) -> None:
    assert parse(text) == gpus


def test_equal_moments_make_equal_views() -> None:
    state = story("loading").state
    later = replace(state, now=state.now + 0.2)
    for view in (header_view, server_view, background_view):
        assert view(state, state.now) == view(later, state.now + 0.2)
    assert board_view(state) == board_view(later)
