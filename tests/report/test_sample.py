"""The numbers of the report of logs/sample, recomputed from the lines of its journal in another way."""

import json
from collections import Counter, defaultdict
from itertools import pairwise
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from agent.cli import main

ROOT = Path(__file__).parent.parent.parent
SAMPLE = ROOT / "logs" / "sample"

T_OF_TWO_DEGREES = 4.303
"""97.5 % quantile of Student's t for three rounds."""

Lines = list[tuple[str, dict[str, Any]]]


@pytest.fixture(scope="module")
def lines() -> Lines:
    """Event names with their data; nothing of tunebot reads them."""
    records = map(json.loads, (SAMPLE / "journal.jsonl").read_text().splitlines())
    return [(record["event"], record["data"]) for record in records]


@pytest.fixture
def told(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert main(["report", str(SAMPLE), "--json"]) == 0
    made: dict[str, Any] = json.loads(capsys.readouterr().out)
    return made


def of(lines: Lines, *names: str) -> list[dict[str, Any]]:
    return [data for name, data in lines if name in names]


def seconds(lines: Lines, begins: str, ends: tuple[str, ...], key: str) -> dict[str, list[tuple[float, float]]]:
    """From each `begins` to the first of `ends` with the same `key` after it, for each of the key's values."""
    found: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for place, (name, data) in enumerate(lines):
        if name == begins:
            end = next(d["at"] for n, d in lines[place:] if n in ends and d[key] == data[key])
            found[data[key]].append((data["at"], end))
    return found


def total(spans: dict[str, list[tuple[float, float]]]) -> float:
    return sum(end - begin for many in spans.values() for begin, end in many)


def loading(lines: Lines) -> dict[str, list[tuple[float, float]]]:
    return seconds(lines, "LaunchRequested", ("ServerReady", "ServerFailed"), "launch")


def experiment_of(lines: Lines) -> dict[str, str]:
    return {data["launch"]: data["experiment"] for data in of(lines, "LaunchRequested")}


def objective_rounds(lines: Lines) -> dict[str, list[float]]:
    """The output throughput of every round, by experiment."""
    rounds: dict[str, list[float]] = defaultdict(list)
    for data in of(lines, "RoundMeasured"):
        rounds[experiment_of(lines)[data["launch"]]].append(data["metrics"]["output_throughput"])
    return rounds


def half_width(values: list[float]) -> float:
    mean = sum(values) / len(values)
    return T_OF_TWO_DEGREES * sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values))


def test_the_time_of_the_server_lane(lines: Lines, told: dict[str, Any]) -> None:
    ledger = told["ledger"]
    began, ended = lines[0][1]["at"], lines[-1][1]["at"]
    loads = loading(lines)
    measuring = {
        launch: [(min(times), max(times))]
        for launch in loads
        if (times := [d["at"] for d in of(lines, "RoundRequested", "RoundMeasured") if d["launch"] == launch])
    }
    stopping = seconds(lines, "StopRequested", ("ServerStopped",), "launch")
    preparing = seconds(lines, "PrepareRequested", ("PrepareFinished",), "experiment")
    assert ledger["elapsed_s"] == pytest.approx(ended - began)
    assert ledger["loading_s"] == pytest.approx(total(loads))
    assert ledger["measuring_s"] == pytest.approx(total(measuring))
    assert ledger["stopping_s"] == pytest.approx(total(stopping))
    assert ledger["preparing_s"] == pytest.approx(total(preparing))
    rest = ended - began - sum(map(total, (loads, measuring, stopping, preparing)))
    assert ledger["idle_s"] == pytest.approx(rest, abs=1e-5)
    assert ledger["away_s"] == 0
    spans = told["timeline"]
    assert spans[0]["start_s"] == 0 and spans[-1]["end_s"] == pytest.approx(ended - began)
    assert all(one["end_s"] == two["start_s"] for one, two in pairwise(spans))


def test_loads_paid_and_saved(lines: Lines, told: dict[str, Any]) -> None:
    ledger = told["ledger"]
    ready = {data["launch"]: data["load_s"] for data in of(lines, "ServerReady")}
    assert ledger["loads"] == len([data for data in of(lines, "LaunchStarted") if data["pid"]]) == 8
    assert ledger["loads_ready"] == len(ready) == 7
    assert ledger["mean_load_s"] == pytest.approx(sum(ready.values()) / len(ready))
    specs = [*lines[0][1]["playbook"]["experiments"], *(data["spec"] for data in of(lines, "ExperimentReopened"))]
    parents = {spec["id"]: spec["based_on"] for spec in specs}
    family = defaultdict(list)
    for launch, load_s in ready.items():
        name = experiment_of(lines)[launch]
        for parent in {name, parents[name]} - {None}:
            family[parent].append(load_s)
    expected = {
        data["experiment"]: sum(near) / len(near)
        for data in of(lines, "ExperimentRuledOut")
        if (near := family[parents[data["experiment"]]])
    }
    assert {one["experiment"]: one["estimate_s"] for one in ledger["saved"]} == pytest.approx(expected)
    assert len(expected) == 4 and ledger["saved_s"] == pytest.approx(sum(expected.values()))


def test_background_work(lines: Lines, told: dict[str, Any]) -> None:
    ledger = told["ledger"]
    tasks = [data["task"] | {"at": data["at"]} for data in of(lines, "TaskRequested")]
    finished = {data["task"]: data["at"] for data in of(lines, "TaskFinished")}
    assert ledger["tasks"] == Counter(task["kind"] for task in tasks)
    assert ledger["tasks_s"] == pytest.approx(sum(finished[task["id"]] - task["at"] for task in tasks))
    inside = []
    for task in tasks:
        spans = [span for many in loading(lines).values() for span in many]
        inside.append(sum(max(0.0, min(finished[task["id"]], end) - max(task["at"], begin)) for begin, end in spans))
    assert ledger["tasks_in_loads_s"] == pytest.approx(sum(inside))
    assert ledger["tasks_in_loads"] == sum(one > 0 for one in inside)
    assert {task["id"] for task in told["tasks"]} == set(finished)
    began = lines[0][1]["at"]
    for task in told["tasks"]:
        assert task["end_s"] == pytest.approx(finished[task["id"]] - began)


def test_what_the_llm_used(lines: Lines, told: dict[str, Any]) -> None:
    spent = of(lines, "LlmSpent")
    asked = [data for data in of(lines, "TaskRequested") if data["task"]["kind"] == "ask"]
    assert spent == []
    assert told["ledger"]["llm"] == {
        "questions": len(asked),
        "calls": 0,
        "read_bytes": 0,
        "input_tokens": 0,
        "output_tokens": 0,
        "cost_usd": 0.0,
        "unpriced": 0,
    }


def test_every_verdict(lines: Lines, told: dict[str, Any]) -> None:
    expected: dict[str, Any] = {}
    for name, data in lines:
        if name == "VerdictReached":
            expected[data["experiment"]] = {"parent": data["parent"], "incumbent": data["incumbent"]}
        elif name == "ExperimentRuledOut":
            expected[data["experiment"]] = data["reason"]
    assert len(told["experiments"]) == len(expected) == 12
    rounds = objective_rounds(lines)
    for experiment in told["experiments"]:
        wanted, verdicts = expected[experiment["id"]], experiment["verdicts"]
        if isinstance(wanted, str):
            assert {v["word"] for v in verdicts.values()} == {"ruled-out"}
            assert {v["reason"] for v in verdicts.values()} == {wanted}
            continue
        assert verdicts == wanted
        for verdict in verdicts.values():
            if verdict["gain"] is not None:
                means = [sum(v) / len(v) for v in (rounds[experiment["id"]], rounds[verdict["against"]])]
                assert verdict["gain"] == pytest.approx(means[0] / means[1] - 1)
                assert verdict["low"] < verdict["gain"] < verdict["high"]


def test_every_round_and_every_mean(lines: Lines, told: dict[str, Any]) -> None:
    measured = defaultdict(list)
    for data in of(lines, "RoundMeasured"):
        measured[data["launch"]].append(data["metrics"])
    launches = {launch["id"]: launch for one in told["experiments"] for launch in one["launches"]}
    assert set(launches) == set(experiment_of(lines))
    assert {launch for launch, facts in launches.items() if facts["measured"]} == set(measured)
    for launch, rounds in measured.items():
        (workload,) = launches[launch]["measured"]
        assert [one | wanted for one, wanted in zip(workload["rounds"], rounds, strict=True)] == workload["rounds"]
        assert {mean["metric"] for mean in workload["means"]} >= {"output_throughput", "ttft_ms", "tpot_ms"}
        for mean in workload["means"]:
            values = [one[mean["metric"]] for one in rounds]
            assert mean["mean"] == pytest.approx(sum(values) / len(values))
            assert mean["half_width_95"] == pytest.approx(half_width(values), rel=1e-3)


def test_the_board(lines: Lines, told: dict[str, Any]) -> None:
    rounds = objective_rounds(lines)
    baseline = sum(rounds["baseline"]) / len(rounds["baseline"])
    for line in told["board"]:
        values = rounds.get(line["experiment"])
        if values is None:
            assert line["mean"] is line["half_width_95"] is line["change"] is None
            continue
        mean = sum(values) / len(values)
        assert line["mean"] == pytest.approx(mean)
        assert line["half_width_95"] == pytest.approx(half_width(values), rel=1e-3)
        if line["experiment"] != "baseline":
            assert line["change"] == pytest.approx(mean / baseline - 1)
    best = max(rounds, key=lambda name: sum(rounds[name]))
    assert told["best"]["experiment"] == best
    (launch,) = (data for data in of(lines, "LaunchStarted") if experiment_of(lines)[data["launch"]] == best)
    assert told["best"]["launch_command"] == " ".join(["NCCL_P2P_LEVEL=SYS", *launch["argv"]])


def test_every_phase_of_every_load(lines: Lines, told: dict[str, Any]) -> None:
    requested = {data["launch"]: data["at"] for data in of(lines, "LaunchRequested")}
    entered = defaultdict(list)
    for data in of(lines, "PhaseEntered"):
        entered[data["launch"]].append((data["phase"], data["at"] - requested[data["launch"]]))
    for launch in (launch for one in told["experiments"] for launch in one["launches"]):
        assert [bar["phase"] for bar in launch["phases"]] == ["launch", *(phase for phase, _ in entered[launch["id"]])]
        for bar, (_, start) in zip(launch["phases"][1:], entered[launch["id"]], strict=True):
            assert bar["start_s"] == pytest.approx(start, abs=0.051)
