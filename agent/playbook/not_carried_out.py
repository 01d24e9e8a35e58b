"""What the format accepts and tunebot does not do yet. Said before a run, so that nobody believes it was done."""

from agent.playbook.model import Playbook


def not_carried_out(playbook: Playbook) -> list[str]:
    """One sentence for each key of this playbook that is accepted and has no effect yet, in the order of the file."""
    said = []
    if playbook.server.version is not None:
        said.append("server.version: the version of the server is not checked yet.")
    if playbook.guard is not None:
        said.append("guard: answers are not compared yet, so a configuration that is faster and wrong goes unnoticed.")
    if playbook.launches > 1 and "launches" in playbook.model_fields_set:
        said.append(f"launches: each experiment is launched once so far, not up to {playbook.launches} times.")
    for index, experiment in enumerate(playbook.experiments):
        place = f"experiments[{index}] ({experiment.id})"
        if experiment.server and experiment.server.version is not None:
            said.append(f"{place}.server.version: the version of the server is not checked yet.")
    return said
