"""Under which terms a round was measured: only numbers of one contract are compared."""

import hashlib
import json

from agent.playbook.model import Workload


def contract_of(workload: Workload, client: str) -> str:
    """Twelve hex digits that stand for all of a workload and for the version of tunebot that measured it.

    Seeds are not part of it: every round has one of its own, on purpose.
    """
    terms = [workload.model_dump(mode="json"), client]
    return hashlib.sha256(json.dumps(terms, sort_keys=True).encode()).hexdigest()[:12]
