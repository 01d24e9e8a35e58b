"""From the wrapper's answers to the values of agent.ports: the same for every target."""

from collections.abc import Mapping, Sequence
from typing import Any

from agent.ports import (
    LaunchSpec,
    LaunchStatus,
    LaunchVoid,
    PortOwners,
    Process,
    Started,
    StopReport,
    TargetBusy,
    TargetUnusable,
)
from agent.text import one_line

_HINTS = {
    "cut-off": "start it anew under another id",
    "locked": "wait until that server is stopped, or stop it where it was started",
    "alive": "stop that launch first",
    "program": "is it installed, and in the PATH of the playbook's environment?",
}

_REFUSALS = {"locked": TargetBusy, "alive": TargetBusy, "cut-off": LaunchVoid}


def order_of(spec: LaunchSpec, container: Mapping[str, Any] | None) -> dict[str, Any]:
    """What the wrapper has to know of a launch, beside where launches live."""
    return {
        "launch": spec.launch,
        "port": spec.port,
        "gpus": True,
        "owner": spec.owner,
        "argv": list(spec.argv),
        "env": dict(spec.env),
        "unset": list(spec.unset),
        "container": container,
    }


def job_order(job: str, argv: Sequence[str], env: Mapping[str, str]) -> dict[str, Any]:
    """What the wrapper has to know of a command that is run once."""
    order = {"launch": job, "port": 0, "gpus": False, "owner": ""}
    return {**order, "argv": list(argv), "env": dict(env), "unset": [], "container": None}


def started(answer: Mapping[str, Any]) -> Started:
    """What a start left running. Raises TargetBusy, LaunchVoid and TargetUnusable where it left nothing."""
    if "error" in answer:
        unusable = _REFUSALS.get(answer["error"], TargetUnusable)
        hint = str(answer.get("hint") or _HINTS.get(answer["error"], ""))
        raise unusable(one_line(str(answer["message"]), 400), one_line(hint))
    return Started(
        pid=answer["pid"],
        start_ticks=answer["start_ticks"],
        port=answer["port"],
        started_at=answer["time"],
        age_s=answer["age_s"],
    )


def outcome_of(answer: Mapping[str, Any]) -> Started | None:
    """What became of an earlier start, as `started`; None where there was none."""
    return None if answer.get("error") == "none" else started(answer)


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
