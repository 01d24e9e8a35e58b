"""The playbook of the story: every flag is one of the server that its experiment is for.

The trees are those of the simulated host, which have a part of the real ones' flags under the same names;
`make preflights-real` asks the real ones.
"""

import pytest

from agent.core.plan import planned_configs
from agent.flags.check import check_args
from agent.flags.model import FlagTable
from agent.paths import shipped_playbooks
from agent.playbook.model import Playbook
from agent.playbook.versions import satisfies
from tests.flags.trees import simulated, table
from tests.playbook.kit import good

NEW = {"cuda13", "pcie-ipc", "eagle3-pcie-ipc", "mla-draft", "adaptive-drafts", "dcp-8"}


@pytest.fixture(scope="module")
def playbook() -> Playbook:
    return good((shipped_playbooks() / "kimi-k2.5-8x-rtx-pro-6000.yaml").read_text())


@pytest.fixture(scope="module")
def tables() -> dict[str, FlagTable]:
    return {version: table(simulated(version)) for version in ("0.5.9", "0.5.23")}


def test_every_flag_is_known_to_the_server_that_its_experiment_is_for(
    playbook: Playbook, tables: dict[str, FlagTable]
) -> None:
    asked: dict[str, set[str]] = {version: set() for version in tables}
    planned = planned_configs(playbook)
    for name, config in planned.items():
        for version, known in tables.items():
            if config.version and satisfies(version, config.version):
                asked[version].add(name)
                assert not check_args(known, config.args), name
    assert asked == {"0.5.9": planned.keys() - NEW, "0.5.23": NEW}


def test_the_baseline_of_the_first_build_does_not_parse_in_the_second(
    playbook: Playbook, tables: dict[str, FlagTable]
) -> None:
    (problem,) = check_args(tables["0.5.23"], {**playbook.server.args, **playbook.experiments[0].args})
    assert problem.fatal and problem.flag == "cuda-graph-max-bs"


def test_it_has_what_a_reader_needs(playbook: Playbook) -> None:
    ideas = [one for one in playbook.experiments if not one.baseline]
    assert all(one.why for one in ideas)
    assert {group.id: group.then for group in playbook.groups} == {"allreduce": "ep", "ep": None, "verify": None}
    assert {one.id for one in ideas if one.prepare} == {"custom-forced", "cuda13"}
