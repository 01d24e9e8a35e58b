"""What a bad file is told: each mistake at its place, in plain words, and all of them at once."""

from pathlib import Path

import pytest

from agent.playbook.problems import Problem
from tests.playbook.kit import BASELINE, HEAD, SMALL, bad

TWENTY = Path(__file__).parent / "bad" / "twenty.yaml"
MORE = HEAD + BASELINE  # experiments added to it begin on line 14


def said(problem: Problem) -> str:
    return f"{problem.line}:{problem.column}: {problem.message}" + (f"; {problem.hint}" if problem.hint else "")


def test_twenty_mistakes_are_told_at_once() -> None:
    problems = bad(TWENTY.read_bytes())
    assert len(problems) == 20
    assert [said(problem).partition(", found")[0] for problem in problems] == [
        "1:10: this tunebot reads playbooks of format 1",
        "6:12: server.command: expected a list",
        "8:33: flags are written without leading dashes",
        "8:42: sglang has no flag 'max-runing-requests'; did you mean 'max-running-requests'?",
        "8:73: 'data-parallel-size' is another spelling of 'dp', which is given already; remove one of the two",
        "9:20: the value of a variable must be text",
        "10:17: server.load_timeout: expected a duration above zero and up to 720h, such as 90s, 25m or 2h",
        "11:23: objective: there is no workload 'singel'; did you mean 'single'?",
        "13:20: unknown key 'requets' in workloads[0]; did you mean 'requests'?",
        "14:12: workload 'single' is defined twice, first on line 13",
        "16:9: experiments[0].id: 'base line' cannot be a name here; "
        "use up to 64 letters, digits, '.', '_' or '-', beginning with a letter or digit",
        "17:15: experiments[0].baseline: expected one of true, false, attach",
        "19:15: based_on: there is no experiment 'secnod'; did you mean 'second'?",
        "21:5: duplicate key 'args', first on line 20",
        "23:9: unknown preflight check 'table-has-keys'; did you mean 'table-has-key'?",
        "24:9: missing key 'module' in experiments[1].preflight[1].module-importable",
        "26:18: when goes in a circle: second -> third -> second",
        "26:32: experiments[2].when.are[0]: expected one of keep, worse, no-gain, inconclusive, invalid, failed, "
        "ruled-out, not-reached",
        "30:49: one entry of experiments[3].research holds one thing",
        "31:14: aliases ('*second') are not supported; write the value out",
    ]


def test_a_problem_prints_like_one_of_a_compiler() -> None:
    (problem,) = bad(SMALL.replace("{name: single}", "{name: single, requets: 16}"))
    assert str(problem) == (
        "file.yaml:11:20: unknown key 'requets' in workloads[0]; did you mean 'requests'?\n"
        "   11 |   - {name: single, requets: 16}\n"
        "      |                    ^^^^^^^"
    )
    assert problem.key_path == "workloads[0].requets"


def test_the_caret_stands_under_wide_characters_and_in_long_lines() -> None:
    (problem,) = bad(SMALL.replace("{name: single}", "{name: single, 漢字: 1}"))
    assert problem.excerpt.splitlines()[1].endswith(" ^^^^")
    (problem,) = bad(SMALL.replace("name: small", f"name: small  # {'x' * 5000}\nnam: {'y' * 500}"))
    assert all(len(line) < 130 for line in str(problem).splitlines()[1:])


def test_nothing_that_a_terminal_acts_on_is_printed() -> None:
    for problem in bad(SMALL.replace("baseline: true", '"\\e[31m\\u202e": 1, why: x').encode()):
        assert "\x1b" not in str(problem) and "\u202e" not in str(problem)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "1:1: the file is empty"),
        (b"# only a comment\n\n", "1:1: the file is empty"),
        (b"a: b\nc: \xff\n", "2:4: not UTF-8 text: byte 0xff at offset 8"),
        (b"\x7fELF\x02\x01", "1:1: YAML does not allow the character U+007F"),
        (b"a: b\n\x00", "2:1: YAML does not allow the character U+0000"),
        (b"x" * 300_000, "1:1: the file has 300,000 bytes; a playbook has at most 262,144"),
        (b"- a\n", "1:1: a playbook is a mapping that begins with 'tunebot: 1', found a list"),
        (b"hello", "1:1: a playbook is a mapping that begins with 'tunebot: 1', found 'hello'"),
        (b"a: [1, 2\nb: 3\n", "2:2: YAML: expected ',' or ']'; a '[' is not closed"),
        (b"a: 'x\nb: 3\n", "1:4: YAML: a quote is never closed"),
        (b"a:\n\tb: 1\n", "2:1: YAML: a tab cannot be used here; indent with spaces"),
        (b"a: b: c\n", "1:5: YAML: a ':' is not expected here; put the text in quotes"),
        (b"a: @b\n", "1:4: YAML: text cannot begin with this character; put it in quotes"),
        (b"a:\n  b: 1\n c: 2\n", "3:2: YAML: this line does not fit the indentation above it"),
        (b'a: "\\q"\n', "1:6: YAML: unknown escape in double quotes"),
        (b'a: "\\UFFFFFFFF"\n', "1:7: a number in an escape or a directive is too large"),
        (b"[" * 40, "1:17: nested more than 16 levels deep"),
    ],
)
def test_what_cannot_be_read(data: bytes, expected: str) -> None:
    (problem,) = bad(data)
    assert said(problem).startswith(expected)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        # the file and its keys
        ("name: small", "name: small\nname: b\nname: c", "3:1: duplicate key 'name', first on line 2"),
        ("name: small", "name: small\nname: b\nname: c", "4:1: duplicate key 'name', first on line 2"),
        ("name: small\n", "", "1:1: missing key 'name'"),
        ("name: small\ntarget: local\n", "", "1:1: missing keys 'name', 'target'"),
        ("name: small", "name:", "2:6: name: expected text, found nothing; give it a value or remove the key"),
        ("name: small", "name: [a]", "2:7: name: expected text, found a list"),
        ("name: small", "name: ''", "2:7: name: the text must have at least 1 characters"),
        ("name: small", "name: &n small", "2:7: anchors ('&n') are not supported; remove it"),
        ("name: small", "name: !!str 5", "2:7: tags ('tag:yaml.org,2002:str') are not supported"),
        ("name: small", "name: small\n<<: {}", "3:1: merge keys ('<<') are not supported; write the keys out"),
        ("name: small", "name: small\n? [a]\n: b", "3:3: a key must be text, found a list"),
        ("name: small", "name: small\n---\nname: b", "3:1: a second document begins here"),
        ("name: small", 'name: "\\0"', "2:7: this text holds a character that no program can be given"),
        ("tunebot: 1", "tunebot: 2", "1:10: this tunebot reads playbooks of format 1, found '2'; write 'tunebot: 1'"),
        ("tunebot: 1", "tunebot: true", "1:10: this tunebot reads playbooks of format 1, found 'true'"),
        ("name: small", "name: small\nat_ned: stop", "3:1: unknown key 'at_ned'; did you mean 'at_end'?"),
        ("name: small", "name: small\nat_end: kep", "3:9: at_end: expected one of serve-best, baseline, stop, keep"),
        ("name: small", "name: small\nlaunches: 0", "3:11: launches: must be at least 1, found '0'"),
        ("name: small", "name: small\nlaunches: '3'", "3:11: launches: expected a whole number, found the text '3'"),
        ("name: small", "name: small\nguard: {max_logprob_drop: a}", "3:27: guard.max_logprob_drop: expected a number"),
        ("name: small", "name: small\nguard: []", "3:8: guard: expected a mapping, found a list"),
        # the target and the server
        ("target: local", "target: {ssh: -oProxyCommand=x}", "3:15: target.ssh: '-oProxyCommand=x' cannot be"),
        ("target: local", "target: {sssh: gpu8}", "3:10: unknown key 'sssh' in target; did you mean 'ssh'?"),
        ("target: local", "target: [local]", "3:9: target: expected text, found a list"),
        ("kind: sglang", "kind: tgi", "5:9: server kind 'tgi' is not supported; supported are sglang, vllm and llama"),
        ("kind: sglang", "kind: sglang\n  version: 0.5", "6:12: server.version: '0.5' is not a range of versions"),
        ("[python3, -m, sglang.launch_server]", "[]", "6:12: server.command: the list needs at least 1 element"),
        (
            "[python3, -m, sglang.launch_server]",
            "[python3, ~]",
            "6:22: server.command[1]: expected text",
        ),
        ("{sglang: ~/sglang}", "~/sglang", "7:11: server.source: expected a mapping, found '~/sglang'"),
        ("{model-path: /m}", "[--tp, 8]", "8:9: server.args: expected a mapping, found a list"),
        ("{model-path: /m}", "", "8:8: server.args: expected a mapping, found nothing"),
        ("{model-path: /m}", "{--tp-size=8: x}", "8:10: flags are written without leading dashes"),
        (
            "{model-path: /m}",
            "{mem_fraction_static: 1}",
            "8:10: sglang has no flag 'mem_fraction_static'; did",
        ),
        ("{model-path: /m}", "{tp: 8, tp: 4}", "8:17: duplicate key 'tp', first on line 8"),
        ("{model-path: /m}", "{tp: 8, tp-size: 4}", "8:17: 'tp-size' is another spelling of 'tp', which is given"),
        ("{model-path: /m}", "{tp: {a: 1}}", "8:14: the value of a flag cannot be a mapping; JSON must be quoted"),
        ("{model-path: /m}", "{tp: []}", "8:14: a list of values needs at least one; null takes a flag away"),
        ("{model-path: /m}", "{tp: [a, [b]]}", "8:18: several values of a flag must each be text, found a list"),
        ("{model-path: /m}", "{model-path: /m}\n  env: {A: [b]}", "9:12: the value of a variable must be text"),
        ("{model-path: /m}", "{model-path: /m}\n  env: {a-b: c}", "9:9: 'a-b' cannot be the name of an environment"),
        ("{model-path: /m}", "{model-path: /m}\n  load_timeout: 0s", "9:17: server.load_timeout: expected a duration"),
        ("{model-path: /m}", "{model-path: /m}\n  load_timeout: 90.0", "9:17: server.load_timeout: expected a durati"),
        # the objective and the workloads
        ("{workload: single}", "{workload: single, metric: tpot}", "9:39: objective.metric: expected one of output_t"),
        ("{workload: single}", "{workload: single, min_gain: 2}", "9:41: objective.min_gain: expected a percentage"),
        ("{workload: single}", "{workload: single, min_gain: -2%}", "9:41: objective.min_gain: expected a percentage"),
        ("{workload: single}", "{workload: single, min_gain: 101%}", "9:41: objective.min_gain: expected a percenta"),
        ("{workload: single}", "{metric: ttft_ms}", "9:1: missing key 'workload' in objective"),
        ("{name: single}", "single", "11:5: workloads[0]: expected a mapping, found 'single'"),
        ("{name: single}", "{name: single, rounds: 1.5}", "11:28: workloads[0].rounds: expected a whole number, found"),
        (
            "{name: single}",
            "{name: single, concurrency: 32}",
            "11:33: concurrency 32 is never reached with 16",
        ),
        # the baseline
        ("baseline: true", "why: x", "12:1: no experiment is the baseline"),
        (
            "baseline: true",
            "baseline: yes",
            "13:26: experiments[0].baseline: expected one of true, false, attach, found 'yes'",
        ),
        ("{id: base, ", "{id: b@se, ", "13:10: id: 'b@se' cannot be a name here"),
        ("{id: base, ", "{", "13:5: missing key 'id' in experiments[0]"),
        ("{id: base, baseline: true}", "base", "13:5: experiments[0]: expected a mapping, found 'base'"),
        ("experiments:\n  - {id: base, baseline: true}\n", "experiments: []\n", "12:14: experiments: the list needs"),
    ],
)
def test_a_mistake_in_a_small_playbook(before: str, after: str, expected: str) -> None:
    assert before in SMALL
    told = [said(problem) for problem in bad(SMALL.replace(before, after, 1))]
    assert any(text.startswith(expected) for text in told), "\n".join(told)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("{id: base}", "14:10: experiment 'base' is defined twice, first on line 13"),
        ("{id: b, baseline: true}", "14:13: a second baseline; the first is on line 13"),
        ("{id: b, based_on: bas}", "14:23: based_on: there is no experiment 'bas'; did you mean 'base'?"),
        ("{id: b, based_on: b}", "14:23: based_on: 'b' is based on itself"),
        ("{id: b, when: {all: [b], are: [keep]}}", "14:26: when: 'b' waits for itself"),
        ("{id: b, when: {any: [basee], are: [keep]}}", "14:26: when: there is no experiment 'basee'; did you mean 'b"),
        ("{id: b, when: {are: [keep]}}", "14:13: experiments[1].when: needs either 'all' or 'any'"),
        ("{id: b, when: {all: [base], any: [base], are: [keep]}}", "14:13: experiments[1].when: needs either 'all'"),
        ("{id: b, when: {all: [base]}}", "14:13: missing key 'are' in experiments[1].when"),
        ("{id: b, when: {all: base, are: [keep]}}", "14:25: experiments[1].when.all: expected a list, found 'base'; w"),
        ("{id: b, revisit: [c]}", "14:23: revisit: there is no experiment 'c'"),
        ("{id: b, revisit: [base]}", "14:23: revisit: the baseline is never retried"),
        (
            "{id: b, based_on: c}\n  - {id: c, based_on: d}\n  - {id: d, based_on: b}",
            "14:23: based_on goes in a circle: b -> c -> d -> b",
        ),
        (
            "{id: b, when: {all: [c], are: [keep]}}\n  - {id: c, based_on: b}",
            "14:26: these can never run: 'b' waits for 'c', 'c' is based on 'b'",
        ),
        (
            "{id: b, when: {all: [c], are: [keep]}}\n  - {id: c, when: {any: [b], are: [keep]}}",
            "14:26: when goes in a circle: b -> c -> b",
        ),
        ("{id: b, args: {model: /n}}", "14:20: 'model' is another spelling of 'model-path' from line 8; write 'model-"),
        (
            "{id: b, args: {tp: 2}}\n  - {id: c, based_on: b, args: {tp-size: null}}",
            "15:33: 'tp-size' is another spelling of 'tp' from line 14",
        ),
        ("{id: b, preflight: [nvlink]}", "14:25: expected a preflight check, one of table-has-key, list-contains, g"),
        ("{id: b, preflight: [{nvlink: full}]}", "14:26: unknown preflight check 'nvlink'; known here: table-has-key"),
        ("{id: b, preflight: [{topology: {nvlink: ful}}]}", "14:45: experiments[1].preflight[0].topology.nvlink: exp"),
        (
            "{id: b, preflight: [{env: {name: A}}]}",
            "14:26: experiments[1].preflight[0].env: needs 'not_in'",
        ),
        (
            "{id: b, preflight: [{table-has-key: {file: sglang:a, table: T, key: k}}]}",
            "14:42: unknown key 'file' in experiments[1].preflight[0].table-has-key",
        ),
        (
            "{id: b, preflight: [{table-has-key: {in: sglang:a, table: T, key: '{gpu.major}'}}]}",
            "14:71: key: '{gpu.major}' is not a fact of a host; did you mean 'gpu.sm_major'?",
        ),
        ("{id: b, research: [{grep: {pattern: x, in: sglang:a}}]}", "14:48: experiments[1].research[0].grep.in: expe"),
        ("{id: b, research: [{grep: {pattern: x, paths: [sglang:a]}}]}", "14:44: unknown key 'paths' in experiments"),
        ("{id: b, research: [{read: {in: sglan:a, around: x}}]}", "14:36: in: server.source has no 'sglan'; did you m"),
        ("{id: b, research: [{read: {in: a.py, around: x}}]}", "14:36: in: expected NAME:path with a name from server"),
        ("{id: b, research: [{read: {in: 'sglang:../x', around: x}}]}", "14:36: in: 'sglang:../x' leads out of its s"),
        ("{id: b, research: [{ask: why so slow, needd: true}]}", "14:43: unknown key 'needd' in experiments[1].resea"),
        ("{id: b, research: [{ask: why so slow, probe: {run: [a]}}]}", "14:43: one entry of experiments[1].research "),
        ("{id: b, research: [{probe: {run: [a], gpu: on}}]}", "14:48: experiments[1].research[0].probe.gpu: expected "),
        ("{id: b, prepare: [{run: pip install x}]}", "14:29: experiments[1].prepare[0].run: expected a list, found 'p"),
        ("{id: b, server: {kind: vllm}}", "14:22: unknown key 'kind' in experiments[1].server; known here: command"),
        ("{id: b, server: {env: {A: {}}}}", "14:31: the value of a variable must be text, found a mapping"),
    ],
)
def test_a_mistake_in_an_experiment(body: str, expected: str) -> None:
    told = [said(problem) for problem in bad(f"{MORE}  - {body}\n")]
    assert any(text.startswith(expected) for text in told), "\n".join(told)
    assert len(told) <= 2, "\n".join(told)


def test_a_source_that_only_the_experiments_own_server_has_is_known_there() -> None:
    other = "{id: b, server: {source: {fi: ~/fi}}, research: [{read: {in: 'fi:a.py', around: x}}]}"
    child = "{id: c, based_on: b, research: [{read: {in: 'fi:a.py', around: x}}]}"
    stranger = "{id: d, research: [{read: {in: 'fi:a.py', around: x}}]}"
    (problem,) = bad(f"{MORE}  - {other}\n  - {child}\n  - {stranger}\n")
    assert said(problem).startswith("16:36: in: server.source has no 'fi'")


def test_the_baseline_depends_on_nothing() -> None:
    body = "experiments:\n  - {id: base, baseline: true, based_on: b, when: {all: [b], are: [keep]}}\n  - id: b\n"
    told = [said(problem) for problem in bad(HEAD + body)]
    assert told == [
        "13:32: the baseline cannot be based on another experiment",
        "13:45: the baseline runs first; it cannot wait for another experiment",
    ]


def test_too_many_experiments_are_one_problem() -> None:
    body = "".join(f"  - {{id: e{number}}}\n" for number in range(600))
    (problem,) = bad(MORE + body)
    assert said(problem) == "13:3: experiments: the list is too long (601; at most 500)"


def test_many_circles_are_told_in_part_and_in_time() -> None:
    names = ", ".join(f"e{number}" for number in range(120))
    body = "".join(f"  - {{id: e{number}, when: {{any: [{names}], are: [keep]}}}}\n" for number in range(120))
    told = [said(problem) for problem in bad(MORE + body)]
    assert sum("goes in a circle" in text for text in told) == 50
    assert sum("waits for itself" in text for text in told) == 120
