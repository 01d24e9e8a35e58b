"""What the format accepts and tunebot does not do yet. Said before a run, so that nobody believes it was done."""

from agent.playbook.model import Playbook


def not_carried_out(playbook: Playbook) -> list[str]:
    """One sentence for each key of this playbook that is accepted and has no effect yet, in the order of the file."""
    said = []
    if playbook.server.version is not None:
        said.append("server.version: the version of the server is not checked yet.")
    for index, experiment in enumerate(playbook.experiments):
        place = f"experiments[{index}] ({experiment.id})"
        if experiment.server and experiment.server.version is not None:
            said.append(f"{place}.server.version: the version of the server is not checked yet.")
    return said
