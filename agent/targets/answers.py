"""From the wrapper's answers to the values of agent.ports: the same for every target."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent.ports import LaunchSpec, LaunchStatus, PortOwners, Process, StopReport, TargetBusy, TargetUnusable
from agent.text import one_line

_HINTS = {
    "exists": "a launch id is used once; ask for its status",
    "locked": "wait until that server is stopped, or stop it where it was started",
    "alive": "stop that launch first",
    "program": "is it installed, and in the PATH of the playbook's environment?",
}


def order_of(spec: LaunchSpec) -> dict[str, Any]:
    """What the wrapper has to know of a launch, beside where launches live."""
    return {
        "launch": spec.launch,
        "owner": spec.owner,
        "argv": list(spec.argv),
        "env": dict(spec.env),
        "unset": list(spec.unset),
    }


def started(answer: Mapping[str, Any]) -> Process:
    """The leader that a start left running. Raises TargetBusy and TargetUnusable where it left none."""
    if "error" in answer:
        unusable = TargetBusy if answer["error"] in ("locked", "alive") else TargetUnusable
        hint = str(answer.get("hint") or _HINTS.get(answer["error"], ""))
        raise unusable(one_line(str(answer["message"]), 400), one_line(hint))
    return Process(pid=answer["pid"], start_ticks=answer["start_ticks"])


def status_of(answer: Mapping[str, Any]) -> LaunchStatus:
    """What the host knows of a launch."""
    return LaunchStatus(
        state=answer["state"],
        leader_exit_code=answer["leader_exit_code"],
        processes=_processes(answer["processes"]),
    )


def owners_of(answer: Mapping[str, Any]) -> PortOwners:
    """Whose sockets listen on a port."""
    return PortOwners(ours=tuple(answer["ours"]), others=bool(answer["others"]))


def stopped(launch: str, answer: Mapping[str, Any]) -> StopReport:
    """The end of a stop. Raises TargetUnusable where it could not be carried out."""
    if "error" in answer:
        raise TargetUnusable(f"cannot stop launch {launch}: {one_line(str(answer['message']))}")
    return StopReport(exit_code=answer["exit_code"], left=_processes(answer["left"]))


def _processes(items: Sequence[Mapping[str, int]]) -> tuple[Process, ...]:
    return tuple(Process(pid=item["pid"], start_ticks=item["start_ticks"]) for item in items)
