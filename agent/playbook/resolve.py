"""What a playbook leaves unsaid."""

from agent.playbook.model import Playbook


def with_default_parents(playbook: Playbook) -> Playbook:
    """The playbook with `based_on: <the baseline>` in every experiment that names no parent and is not the baseline."""
    baseline = next((experiment.id for experiment in playbook.experiments if experiment.baseline), None)
    experiments = tuple(
        experiment
        if experiment.baseline or experiment.based_on
        else experiment.model_copy(update={"based_on": baseline})
        for experiment in playbook.experiments
    )
    return playbook.model_copy(update={"experiments": experiments})
