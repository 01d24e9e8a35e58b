"""`make chaos`: tunebot is killed N times, resumed as often, and judged by the simulator's ledger.

    python -m tests.chaos.run [N] [--seed S] [--only K --places W,L,R] [--figures FILE] [--lanes 3]

Exit code 0 only if no promise was broken, each state was hit at least ten times (from 200 kills on), and each negative
control was noticed.
"""

import argparse
import json
import platform
import secrets
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import astuple
from pathlib import Path
from typing import Any

import asyncssh

from agent import __version__
from tests.chaos.case import Result, measure_places, play
from tests.chaos.controls import controls, is_seen
from tests.chaos.plan import AIMS, Places, SessionPlan, aimed, plans, thinning
from tests.chaos.session import Without

FEWEST = 10
"""Kills that each state must have seen, from ENOUGH kills on."""
ENOUGH = 200
TOLD_EVERY = 10
AIMED = 6
"""Turns at most in which sessions are aimed at the states that were hit too seldom."""


def main() -> int:
    """Run the harness; its exit code."""
    options = _options()
    began = time.monotonic()
    places = options.places or measure_places()
    shown = ",".join(map(str, astuple(places)))
    print(f"chaos: seed {options.seed}, {options.kills} kills; a session nobody disturbs has {places.writes} journal")
    print(f"writes, {places.local_steps} requests to a local target, {places.ssh_steps} over SSH", flush=True)
    results = _play_all(options, places, f"{options.kills} --seed {options.seed} --places {shown}")
    broken = any(result.violations for result in results)
    if options.only is not None:
        return int(broken)
    seen = controls(options.seed)
    figures = _figures(options, places, results, time.monotonic() - began)
    figures["controls"] = {name: is_seen(name, found) for name, found in seen.items()}
    _print_table(figures)
    for name, found in seen.items():
        kinds = Counter(violation.kind for result in found for violation in result.violations)
        told = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "nothing"
        print(f"control without {name}: noticed {told}" + ("" if is_seen(name, found) else "   THE HARNESS IS BLIND"))
    print(f"{figures['kills']} kills, {figures['violations']} broken promises, {figures['duration_s']} s")
    if options.figures:
        options.figures.write_text(json.dumps(figures, indent=2) + "\n")
    few = too_few(options.kills, results)
    if few:
        print(f"too few kills: {figures['kills']}, or in: {', '.join(few)}")
    return 1 if broken or few or not all(figures["controls"].values()) else 0


def _places(text: str) -> Places:
    writes, local_steps, ssh_steps = map(int, text.split(","))
    return Places(writes=writes, local_steps=local_steps, ssh_steps=ssh_steps)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.run")
    parser.add_argument("kills", nargs="?", type=int, default=ENOUGH)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 31))
    parser.add_argument("--only", type=int, metavar="K", help="only the session of that number")
    parser.add_argument("--places", type=_places, help="the three counts that a run printed, for the very same plans")
    parser.add_argument("--figures", type=Path, help="where the figures go, as JSON")
    parser.add_argument("--lanes", type=int, default=3, help="sessions at a time: mostly they wait")
    return parser.parse_args()


def _play_all(options: argparse.Namespace, places: Places, words: str) -> list[Result]:
    """Play the plans, then aim at what they hit too seldom. `words` make the very same plans again."""
    todo = plans(options.seed, options.kills, places)
    # Numbered so that a number says at which state it aims, whatever was hit before.
    turns = [
        {state: aimed(options.seed, len(todo) + turn * len(AIMS) + k, state) for k, state in enumerate(AIMS)}
        for turn in range(AIMED)
    ]
    if options.only is not None:
        every = [*todo, *(plan for turn in turns for plan in turn.values())]
        return _play([every[options.only]], options.lanes, words)
    results = _play(todo, options.lanes, words)
    for turn in turns:
        if few := too_few(options.kills, results):
            print(f"aimed at what was hit too seldom: {', '.join(few)}", flush=True)
            results += _play([turn[state] for state in few], options.lanes, words)
    return results


def too_few(kills: int, results: list[Result]) -> list[str]:
    """The states that were hit less than they must be; the rarest one where only the sum of all falls short."""
    states = _states(results)
    few = [state for state in AIMS if kills >= ENOUGH and states[state] < FEWEST]
    short = sum(len(result.kills) for result in results) < kills
    return few or [min(AIMS, key=lambda state: states[state])] * short


def _states(results: list[Result]) -> Counter[str]:
    kills = [kill for result in results for kill in result.kills]
    states = Counter("serving or ended" if k.state in ("serving", "ended") else k.state for k in kills)
    states["researching"] = sum(kill.researching for kill in kills)
    return states


def _play(todo: list[SessionPlan], lanes: int, words: str) -> list[Result]:
    """Play plans side by side; a line of progress every ten kills or so."""
    results: list[Result] = []
    told = 0
    pool = ThreadPoolExecutor(lanes)
    try:
        # Backwards: the longest ones are at the end.
        for done in as_completed([pool.submit(play, plan, Without()) for plan in reversed(todo)]):
            results.append(done.result())
            _tell(results[-1], words)
            kills, broken = sum(len(r.kills) for r in results), sum(len(r.violations) for r in results)
            if kills >= told + TOLD_EVERY:
                told = kills
                print(f"{kills:5} kills, {len(results)} of {len(todo)} sessions, {broken} broken promises", flush=True)
    finally:
        pool.shutdown(cancel_futures=True)  # those that run come to their end: nothing of them is left then
    return results


def _tell(result: Result, words: str) -> None:
    """Print every broken promise, and how to see it again."""
    for violation in result.violations:
        print(f"BROKEN ({violation.kind}) in session {result.plan.number}: {violation.text}")
    if result.violations:
        ends = ", ".join(f"{kill.state} ({kill.cue})" for kill in result.kills)
        print(f"  {result.plan.schedule}{' over SSH' if result.plan.ssh else ''}, killed in: {ends}")
        print(f"  kept: {result.kept}")
        print(f"  again: python -m tests.chaos.run {words} --only {result.plan.number}", flush=True)


def _figures(options: argparse.Namespace, places: Places, results: list[Result], duration_s: float) -> dict[str, Any]:
    states = _states(results)
    per_schedule: Counter[str] = Counter()
    faults: Counter[str] = Counter()
    worlds = Counter(f"sessions with launches: {result.plan.launches}" for result in results)
    worlds["sessions with a guard"] = sum(result.plan.guard for result in results)
    for result in results:
        per_schedule[f"{result.plan.schedule}{' over ssh' if result.plan.ssh else ''}"] += len(result.kills)
        faults += result.faults
    stride = thinning(options.kills, places)
    ssh = subprocess.run(["ssh", "-V"], capture_output=True, text=True).stderr.strip()
    return {
        "seed": options.seed,
        "kills": sum(len(result.kills) for result in results),
        "sessions": len(results),
        "states": {state: states[state] for state in (*AIMS, "not begun")},
        "schedules": dict(sorted(per_schedule.items())),
        "places": {
            "journal writes": places.writes,
            "local steps": places.local_steps,
            "ssh steps": places.ssh_steps,
            "taken": "all" if stride == 1 else f"every {stride}th of their moments",
        },
        "faults": dict(sorted(faults.items())),
        "worlds": dict(sorted(worlds.items())),
        "violations": sum(len(result.violations) for result in results),
        "duration_s": round(duration_s),
        "versions": {
            "tunebot": __version__,
            "python": platform.python_version(),
            "openssh": ssh.partition(",")[0],
            "asyncssh": asyncssh.__version__,
        },
    }


def _print_table(figures: dict[str, Any]) -> None:
    for title in ("states", "schedules", "faults", "worlds"):
        print(title)
        for name, count in figures[title].items():
            print(f"  {name:<26} {count:5}")


if __name__ == "__main__":
    sys.exit(main())
