"""What tasks are called: one line each, whatever a playbook holds."""

from agent.core import events as ev
from tests.core.conftest import World, playbook


def test_a_probe_that_is_a_whole_program_has_a_title_of_one_line(world: World) -> None:
    program = "import sys\n" + "print(1)\n" * 100
    world.play(playbook({"id": "base", "research": [{"probe": {"run": ["python3", "-c", program]}}]}))
    (title,) = (event.task.title for event in world.events if isinstance(event, ev.TaskRequested))
    assert title.startswith("python3 -c import sys print(1) ") and len(title) < 250 and title.isprintable()
