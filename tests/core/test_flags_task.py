"""Every experiment's flags are held against the source of its server before its launch."""

from typing import Any

import pytest

from agent.core import events as ev
from agent.core.model import Finding
from agent.core.plan import config_of
from agent.core.state import State
from tests.core.conftest import World, playbook

SOURCE = {"sglang": "~/sglang"}
SERVER = {"kind": "sglang", "command": ["python3", "-m", "sglang.launch_server"], "args": {"tp": "8"}, "source": SOURCE}
NEEDS = Finding(
    summary="needs --moe-runner-backend flashinfer_cutlass", requires={"moe-runner-backend": "flashinfer_cutlass"}
)
EP = {"id": "ep", "args": {"moe-a2a-backend": "flashinfer"}}


def asked(world: World) -> list[str]:
    return [event.task.id for event in world.events if isinstance(event, ev.TaskRequested)]


def word(state: State, experiment: str) -> str:
    verdict = state.experiments[experiment].verdict
    return verdict.word if verdict else "open"


def test_it_comes_before_the_launch_it_is_about(world: World) -> None:
    world.play(playbook({"id": "base"}, EP, server=SERVER))
    assert asked(world) == ["base/flags", "ep/flags"]
    launched = [index for index, event in enumerate(world.events) if isinstance(event, ev.LaunchRequested)]
    ended = [index for index, event in enumerate(world.events) if isinstance(event, ev.TaskFinished)]
    assert ended[0] < launched[0] and ended[1] < launched[1]


@pytest.mark.parametrize(
    ("server", "experiment"),
    [({**SERVER, "source": {"flashinfer": "~/f"}}, {"id": "base"}), (SERVER, {"id": "base", "baseline": "attach"})],
    ids=["no source is named", "the server runs already"],
)
def test_where_there_is_nothing_to_hold_them_against_nothing_is_asked(
    world: World, server: dict[str, Any], experiment: dict[str, Any]
) -> None:
    world.play(playbook({"args": {"port": "1"}, **experiment}, server=server))
    assert asked(world) == []


def test_what_the_source_demands_is_added_where_the_playbook_says_so(world: World) -> None:
    world.findings = {"ep/flags": NEEDS}
    book = playbook({"id": "base"}, EP, server=SERVER)
    state = world.play(book)
    launch = state.launches[state.experiments["ep"].launches[0]]
    assert launch.config.args["moe-runner-backend"] == "flashinfer_cutlass"
    unaccepted = World(findings=world.findings).play(book.model_copy(update={"accept": None}))
    assert "moe-runner-backend" not in config_of(unaccepted, "ep").args


def test_a_flag_that_the_server_does_not_have_saves_the_load(world: World) -> None:
    world.findings = {"ep/flags": Finding(summary="SGLang 0.5.9 has no flag 'x'", outcome="fails")}
    state = world.play(playbook({"id": "base"}, EP, server=SERVER))
    assert word(state, "ep") == "ruled-out"
    assert world.launched() == ["base"]


def test_what_could_not_be_read_holds_nothing_up(world: World) -> None:
    world.findings = {"ep/flags": Finding(summary="no python3 there", outcome="unknown")}
    world.play(playbook({"id": "base"}, EP, server=SERVER))
    assert world.launched() == ["base", "ep"]


def test_an_environment_that_is_not_built_is_not_read(world: World) -> None:
    built = {"id": "built", "prepare": [{"run": ["make"]}]}
    world.play(playbook({"id": "base"}, built, server=SERVER))
    assert asked(world) == ["base/flags"]
