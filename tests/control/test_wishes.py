"""What a session takes from an attached screen: a person's wishes, and no line more."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.control.wishes import Refused, read_wish, write_wish
from agent.core import events as ev
from agent.playbook.model import AskEntry, Experiment, GrepEntry

SPEC = Experiment(id="new", based_on="base", args={"tp": "4", "x": None}, env={"A": "b"}, why="because")
ASK = AskEntry.model_validate({"ask": "does it fit?"})
GREP = GrepEntry.model_validate({"grep": {"pattern": "x|y", "in": ["sglang:srt"]}})

WISHES: list[ev.Event] = [
    ev.ApprovalGiven(at=1.0, needed="cuda13@1f2e3d4c5b6a"),
    ev.ExperimentAdded(at=1.0, spec=SPEC),
    ev.ExperimentSkipped(at=1.0, experiment="base"),
    ev.ExperimentRetried(at=1.0, experiment="base"),
    ev.ExperimentCompleted(at=1.0, experiment="base", adds={"moe-runner-backend": "x"}, task="base/1"),
    ev.ProposalApproved(at=1.0, experiment="idea", digest="1f2e3d4c5b6a"),
    ev.LaunchAbandoned(at=1.0, launch="s-01"),
    ev.ResearchAdded(at=1.0, experiment="base", entry=ASK),
    ev.ResearchAdded(at=1.0, experiment="base", entry=GREP),
    ev.ExperimentMoved(at=1.0, experiment="idea", past="base"),
    ev.ExperimentChanged(at=1.0, experiment="idea", args={"tp": "4", "x": None}, env={"A": None}, why="because"),
    ev.DeadEndMarked(at=1.0, experiment="idea", reason="it swaps"),
    ev.DeadEndReopened(at=1.0, experiment="idea", base="cuda13"),
    ev.NoteWritten(at=1.0, experiment="idea", text="the fans were loud"),
    ev.NoteTakenBack(at=1.0, experiment="idea", written_at=0.1),
    ev.TodoAdded(at=1.0, text="check the power limits"),
    ev.TodoTicked(at=1.0, todo=0, done=True),
    ev.TaskAbandoned(at=1.0, task="base/1"),
    ev.PauseSet(at=1.0, on=True),
    ev.InterruptRequested(at=1.0, keep=False),
]


@pytest.mark.parametrize("wish", WISHES, ids=lambda wish: type(wish).__name__)
def test_a_wish_arrives_with_the_sessions_own_time(wish: ev.Event) -> None:
    read = read_wish(write_wish(wish), 7.0)
    assert read.at == 7.0 and json.loads(write_wish(read))["data"] == {
        **json.loads(write_wish(wish))["data"],
        "at": 7.0,
    }
    assert type(read) is type(wish)


def test_every_kind_of_wish_was_tried() -> None:
    kinds = {kind for kind in ev.Event.kinds.values() if issubclass(kind, ev.Wish) and kind is not ev.Wish}
    assert kinds <= {type(wish) for wish in WISHES}


def added(**spec: Any) -> dict[str, Any]:
    return {"event": "ExperimentAdded", "data": {"spec": {"id": "new", "based_on": "base", **spec}}}


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ({"event": "ServerReady", "data": {"launch": "s-01", "load_s": 1.0, "flags": []}}, "nothing that a person"),
        ({"event": "SessionEnded", "data": {"ending": "completed", "serving": None}}, "nothing that a person"),
        ({"event": "Wish", "data": {"x": "y"}}, "nothing that a person"),
        ({"event": "Nope", "data": {}}, "Nope is nothing"),
        ({"event": ["PauseSet"], "data": {}}, "nothing that a person"),
        ({"event": "PauseSet"}, "nothing that a person"),
        ({"event": "PauseSet", "data": {}}, "PauseSet.on"),
        ({"event": "PauseSet", "data": {"on": "perhaps"}}, "PauseSet.on"),
        ({"event": "ExperimentSkipped", "data": {"experiment": "\x1b[31m"}}, "control"),
        ({"event": "ExperimentSkipped", "data": {"experiment": "a\u202eb"}}, "invisible"),
        ({"event": "ExperimentSkipped", "data": {"experiment": "\ud800"}}, "invisible"),
        ({"event": "ExperimentSkipped", "data": {"experiment": "x" * 5000}}, "too long"),
        ({"event": "ExperimentSkipped", "data": {"experiment": "a", "at\x07": 1}}, "control"),
        (added(prepare=[{"run": ["rm", "x"]}]), "nothing else"),
        (added(when={"all": ["nope"], "are": ["keep"]}), "nothing else"),
        (added(revisit=["nope"]), "nothing else"),
        (added(server={"command": ["sh"]}), "nothing else"),
        (added(research=[{"probe": {"run": ["sh"]}}]), "nothing else"),
        (added(baseline=True), "nothing else"),
        (added(based_on=None), "nothing else"),
        (
            {"event": "ResearchAdded", "data": {"experiment": "a", "entry": {"probe": {"run": ["sh"]}}}},
            "only questions",
        ),
        ([1], "nothing that a person"),
        (None, "nothing that a person"),
    ],
)
def test_a_wrong_line_says_why(record: Any, why: str) -> None:
    with pytest.raises(Refused) as refused:
        read_wish(json.dumps(record).encode(), 7.0)
    assert why in str(refused.value) and str(refused.value).isprintable()


@pytest.mark.parametrize(
    "line",
    [b"", b"{", b"\xff\xfe", b"[" * 100_000, b"[" * 600 + b"]" * 600, b'{"event": "PauseSet", "data": {"on": true}'],
)
def test_what_is_no_json_is_refused(line: bytes) -> None:
    with pytest.raises(Refused, match="not a line of JSON"):
        read_wish(line, 7.0)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text() | st.integers(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
NAMES = st.sampled_from([*ev.Event.kinds, "x"])


@given(
    st.fixed_dictionaries(
        {"event": NAMES, "data": JSON | st.dictionaries(st.sampled_from(["on", "keep", "spec"]), JSON)}
    )
)
def test_no_line_does_more_than_a_wish(record: dict[str, Any]) -> None:
    try:
        event = read_wish(json.dumps(record).encode(), 7.0)
    except Refused:
        return
    assert isinstance(event, ev.Wish | ev.ExperimentCompleted | ev.InterruptRequested) and event.at == 7.0


@given(st.binary())
def test_any_bytes_are_refused_in_words(line: bytes) -> None:
    with pytest.raises(Refused):
        read_wish(line, 7.0)
