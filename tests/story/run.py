"""`make story`: the story's campaign on the simulated host as it ships, beside the same plan without looking first.

    python -m tests.story.run [FOLDER]

Both sessions run at once, each on a host of its own; FOLDER keeps what they wrote, and what is there already is not
run again. The figures go to figures.json and docs/story.md. Exit code 0 only if the first ended as the story does, and
its report's estimate of what was saved holds: as many loads as the second paid more; those that came to their end took
what is estimated, give or take three tenths, and those that died no more than that.
"""

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from agent.core import events as ev
from agent.core.state import ExperimentState, State
from agent.journal.journal import read_journal
from agent.sim.ledger import launches
from tests.session.test_kimi import NEAR, REST, STORY, TOK_S
from tests.story import page
from tests.story.costs import costs_of, loads_of
from tests.story.excerpts import excerpts
from tests.story.plans import shipped, unchecked, world
from tests.story.session import Ended, begin, finish

FIGURES = Path(__file__).with_name("figures.json")
TOLERANCE = 0.3
"""How far off the estimate of a load may be that comes to its end, as a fraction: where the machine is so busy that
processes take seconds to start, loads of the same flags differ by as much."""

TRUE_TOLERANCE, MEASURED_TOLERANCE = 0.01, 0.15
"""Of the rate of a launch beside the story's, and of what was measured beside it, unless its rounds spread more."""


def main() -> int:
    """Run both, write the figures, print them; the exit code."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.mkdtemp(prefix="story-"))
    plan, host = shipped(), world()
    runs = [begin(plan, host, folder / "checked"), begin(unchecked(plan), host, folder / "unchecked")]
    checked, blind = map(finish, runs)
    speed = host["speed"]
    figures = {
        "speed": speed,
        "cores": os.cpu_count(),
        "checked": facts(checked, speed),
        "unchecked": facts(blind, speed),
        "saved": saved(checked, blind, speed),
        "lines": excerpts((folder / "checked" / "lines").read_text().splitlines()),
    }
    FIGURES.write_text(json.dumps(figures, indent=2, ensure_ascii=False) + "\n")
    page.main()
    tell(figures)
    wrong = [*wrong_outcomes(figures), *wrong_estimates(figures["saved"])]
    print("\n".join(wrong) or "the outcomes are those of the story, and the estimates hold")
    print(f"kept in {folder}")
    return 1 if wrong else 0


def facts(ended: Ended, speed: float) -> dict[str, Any]:
    """What one session did. Hours are the host's."""
    state, costs = ended.state, costs_of(ended.ledger, speed)
    events = [event for event in read_journal(ended.folder) if isinstance(event, ev.PivotReached)]
    measured = {line.experiment: line for line in ended.report.board if line.mean is not None}
    hours = {"loading": costs.loading_s, "stopping": costs.stopping_s, "preparing": costs.preparing_s}
    return {
        "experiments": len(state.experiments),
        "loads": costs.loads,
        "ready": costs.ready,
        "hours": {name: round(value / 3600, 2) for name, value in (hours | {"all": costs.host_s}).items()},
        "others_busy": round(ended.others_busy, 2),
        "mean_load_s": round(ended.report.ledger.mean_load_s or 0.0, 1),
        "took_s": round(ended.report.ledger.elapsed_s),
        "tasks": dict(ended.report.ledger.tasks),
        "incumbent": state.incumbent,
        "pivots": [{"from": pivot.group, "to": pivot.to} for pivot in events],
        "words": ended.words,
        "spread": sorted(name for name, one in state.experiments.items() if _spread(one, state)),
        "tok_s": {name: round(line.mean or 0.0, 1) for name, line in measured.items()},
        "half_width_95": {name: round(line.half_width_95 or 0.0, 1) for name, line in measured.items()},
        "true_tok_s": {
            name: round(launch["tok_s"], 1) for name, launch in _launches(ended).items() if name in measured
        },
    }


def _spread(experiment: ExperimentState, state: State) -> bool:
    """Whether the machine made rounds differ so much that "inconclusive" is the right word, whatever the truth is."""
    verdict = experiment.verdict
    if verdict is None or verdict.word != "inconclusive" or verdict.low is None or verdict.high is None:
        return False
    return verdict.high - verdict.low > 2 * state.playbook.objective.min_gain


def saved(checked: Ended, blind: Ended, speed: float) -> dict[str, Any]:
    """What the checks saved: as the report of the first session estimates it, and as the second paid it.

    Minutes and hours are the host's. `else_min` has the loads of other experiments that differ by more than a minute.
    """
    ledger, paid, ours = checked.report.ledger, _by_experiment(blind, speed), _by_experiment(checked, speed)
    each = {
        one.experiment: {
            "why": checked.state.experiments[one.experiment].reason,
            "estimate_min": round((one.estimate_s or 0.0) * speed / 60, 1),
            "paid_min": round(paid[one.experiment][0] / 60, 1),
            "ready": paid[one.experiment][1],
        }
        for one in ledger.saved
    }
    differ = {name: paid[name][0] - seconds for name, (seconds, _) in ours.items() if name in paid}
    return {
        "loads": costs_of(blind.ledger, speed).loads - costs_of(checked.ledger, speed).loads,
        "hours": round((costs_of(blind.ledger, speed).host_s - costs_of(checked.ledger, speed).host_s) / 3600, 2),
        "estimate_loads": len(ledger.saved),
        "estimate_hours": round(ledger.saved_s * speed / 3600, 2),
        "paid_hours": round(sum(paid[name][0] for name in each) / 3600, 2),
        "each": each,
        "else_min": {name: round(seconds / 60, 1) for name, seconds in differ.items() if abs(seconds) > 60},
    }


def _by_experiment(ended: Ended, speed: float) -> dict[str, tuple[float, bool]]:
    """The load of each experiment, of which each has one."""
    known = ended.state.launches
    return {known[name].experiment: load for name, load in loads_of(ended.ledger, speed).items()}


def _launches(ended: Ended) -> dict[str, dict[str, Any]]:
    """The launch of each experiment, as the ledger of the host has it."""
    known = ended.state.launches
    return {known[launch["launch_id"]].experiment: launch for launch in launches(ended.ledger)}


def wrong_outcomes(figures: dict[str, Any]) -> list[str]:
    """What the first session ended with that is not the story, but for what a busy machine kept from being told."""
    found = figures["checked"]
    wanted = {name: word for name, word in {**STORY, **REST}.items() if name not in found["spread"]}
    told = {name: word for name, word in found["words"].items() if name not in NEAR and name not in found["spread"]}
    names = [name for name in {**told, **wanted} if told.get(name) != wanted.get(name)]
    wrong = [f"{name} is {told.get(name)}, not {wanted.get(name)}" for name in names]
    for name, value in TOK_S.items():
        true, measured, half = (found[what].get(name, 0.0) for what in ("true_tok_s", "tok_s", "half_width_95"))
        if abs(true / value - 1) > TRUE_TOLERANCE or abs(measured - true) > max(half, MEASURED_TOLERANCE * true):
            wrong.append(f"{name} ran at {true} tok/s and was measured at {measured}; in the story it is {value}")
    if found["pivots"] != [{"from": "allreduce", "to": "ep"}]:
        wrong.append(f"the strategies given up are {found['pivots']}")
    return wrong


def wrong_estimates(told: dict[str, Any]) -> list[str]:
    """Where the report's estimate of what was saved does not hold."""
    wrong = []
    if told["loads"] != told["estimate_loads"]:
        wrong.append(f"the report says {told['estimate_loads']} loads were saved; the other plan paid {told['loads']}")
    for name, one in told["each"].items():
        off = one["paid_min"] / one["estimate_min"] - 1
        if off > TOLERANCE or (one["ready"] and off < -TOLERANCE):
            wrong.append(f"{name} took {one['paid_min']} min; the estimate is {one['estimate_min']} min")
    return wrong


def tell(figures: dict[str, Any]) -> None:
    """Print both sessions beside each other, and each load that was saved."""
    plans = {"as it ships": figures["checked"], "without looking first": figures["unchecked"]}
    print(f"{'':<24}{'':>4}" + "".join(f"{name:>24}" for name in plans))
    for name in ("experiments", "loads", "ready"):
        print(f"{name:<28}" + "".join(f"{one[name]:>24}" for one in plans.values()))
    for name in ("loading", "stopping", "preparing", "all"):
        print(f"{'hours ' + name:<28}" + "".join(f"{one['hours'][name]:>24}" for one in plans.values()))
    one = figures["saved"]
    print(
        f"\nsaved: {one['loads']} loads, {one['hours']} hours; the report says {one['estimate_loads']} loads, "
        f"at most {one['estimate_hours']} hours; those loads took {one['paid_hours']} hours"
    )
    for name, load in one["each"].items():
        end = "ready" if load["ready"] else "died"
        print(
            f"  {name:<26}{load['estimate_min']:>6} min estimated{load['paid_min']:>8} min paid, {end:<6} {load['why']}"
        )
    for name, minutes in one["else_min"].items():
        print(f"  {name}: {minutes:+} min")


if __name__ == "__main__":
    sys.exit(main())
