"""The prefix of a log line, taken apart: which process wrote it, which rank that is, when, and what it says."""

import re
from typing import NamedTuple


class Record(NamedTuple):
    """One line of a log. `writer` is empty for the parent process, `rank` its rank where the prefix tells.

    `place` is the source line that logged it (vLLM), `level` the first letter of its level, `time` seconds on the
    clock of its own format: two times can be compared where `clock` is the same.
    """

    number: int
    text: str
    message: str
    writer: str = ""
    rank: int | None = None
    prefixed: bool = False
    level: str = ""
    place: str = ""
    time: float | None = None
    clock: str = ""


# Marks that launchers, shippers and quoting put in front of a line, outermost first.
_OUTER = re.compile(
    r"(?:(?:> ?)+(?=\S))"
    r"|\S{3} \S{3} +\d+ \d\d:\d\d:\d\d \d{4}\[\d+,\d+\]<std\w+>: ?"  # mpirun --tag-output
    r"|\[\d+,\d+\]<std\w+>: ?"
    r"|(?:DEFAULT|ERROR|INFO|WARNING|NOTICE|DEBUG) (?=20\d\d-\d\d-\d\dT\S+Z )"  # a cloud console's severity
    r"|(?:\w{3} +\d+ \d\d:\d\d:\d\d|20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?[+-]\d\d:?\d\d)"  # journalctl
    r" [\w.-]+ [\w.@/-]+\[\d+\]: ?"
    r"|[\w.-]+(?:-\d+)? +\| (?=\S)"  # docker compose
    r"|\[pod/[\w./-]+\] ?"  # kubectl logs --prefix
    r"|(?:std(?:out|err)) [FP] "  # CRI
)
_ISO = re.compile(r"(20\d\d)-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)([.,]\d+)?Z?(?:[+-]\d\d:?\d\d)? ")
_SGLANG = re.compile(
    r"\[(?:20(\d\d)-(\d\d)-(\d\d) )?(\d\d):(\d\d):(\d\d)([.,]\d+)?((?: [A-Z_]+\d+)*)\] ?"
    r"(?:\[?(INFO|WARNING|ERROR|CRITICAL)\]?:? +(?:\w+\.py:\d+: )?)?"
)
_PROCESS = re.compile(
    r"(?:\x1b\[[\d;]*m|←\[[\d;]*m|\[[\d;]+m)?"
    r"\((\w*Worker\w*|EngineCore\w*|APIServer\w*|\w*Engine\w*|ServeReplica\S*|Process\S*|ApiServer\w*|DPCoordinator\w*)"
    r"([^()]*)\)(?:←\[[\d;]*m|\[[\d;]+m)? ?"
)
_LEVEL = re.compile(
    r"(DEBUG|INFO|WARNING|ERROR|CRITICAL) (\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(\.\d+)? ?\[?([\w./]+:\d+)\](?: |$)"
)
_DATED = re.compile(
    r"20(\d\d)-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)([.,]\d+)(?: - |\s+)(DEBUG|INFO|WARNING|ERROR|CRITICAL)\b"
)
_TORCH = re.compile(r"\[rank(\d+)\]: ?")
_GLOG = re.compile(r"\[([IWEF])(\d?\d)(\d\d) (\d\d):(\d\d):(\d\d)(\.\d+)? [\w./-]+:\d+\] ?")
_NCCL = re.compile(r"([\w.-]+:\d+):\d+ \[(\d+)\] (?=.*\bNCCL )")
_LLAMA = re.compile(r"(\d+)\.(\d\d)\.(\d\d\d)\.(\d\d\d) ([DIWE]) ")  # minutes, seconds, ms and us since the start
_GPU_ID = re.compile(r"\[gpu(?:_id)?=(\d+)\] ?")
_RANK = re.compile(r"\bTP(\d+)|_TP(\d+)|rank=(\d+)")
_DP_RANK = re.compile(r"\b(?:DP|EP)(\d+)|_(?:DP|EP)(\d+)")


def record(number: int, text: str) -> Record:
    """A line with its prefix taken apart; any text has an answer."""
    rest, outer_time = text, None
    for _ in range(4):
        if outer := _OUTER.match(rest):
            rest = rest[outer.end() :]
        elif iso := _ISO.match(rest):
            outer_time, rest = _seconds(iso[1][2:], *iso.groups()[1:7]), rest[iso.end() :]
        else:
            break
    found = _inner(number, text, rest)
    if outer_time is not None:
        return found._replace(time=outer_time, clock="iso")
    return found


def _inner(number: int, text: str, rest: str) -> Record:
    writer, rank, prefixed = "", None, False
    while process := _PROCESS.match(rest):  # two writers that share a line: the last prefix is the one that counts
        writer, rank, prefixed = process[1] + process[2], _rank_of(process[1] + process[2]), True
        rest = rest[process.end() :]
    first = rest[:1]
    if first == "[" and not prefixed and (match := _SGLANG.match(rest)):
        writer = match[8].strip()
        time = _seconds(match[1] or "0", match[2] or "1", match[3] or "1", *match.group(4, 5, 6, 7))
        message = rest[match.end() :]
        return Record(number, text, message, writer, _rank_of(match[8]), True, (match[9] or "")[:1], "", time, "sglang")
    if level := _LEVEL.match(rest):
        time = _seconds("0", *level.group(2, 3, 4, 5, 6, 7))
        message = rest[level.end() :]
        return Record(number, text, message, writer, rank, True, level[1][0], level[8], time, "vllm")
    if first == "[" and (torch := _TORCH.match(rest) or _GPU_ID.match(rest)):
        rest = rest[torch.end() :]
        writer, rank, prefixed = f"rank{torch[1]}", int(torch[1]), True
    if rest[:1] == "[" and (glog := _GLOG.match(rest)):
        time = _seconds("0", *glog.group(2, 3, 4, 5, 6, 7))
        message = rest[glog.end() :]
        return Record(number, text, message, writer, rank, True, glog[1], "glog", time, "glog")
    if llama := _LLAMA.match(rest):
        minutes, seconds, millis, micros = map(int, llama.group(1, 2, 3, 4))
        time = minutes * 60 + seconds + millis / 1e3 + micros / 1e6
        return Record(number, text, rest[llama.end() :], "", None, True, llama[5], "", time, "llama")
    if nccl := _NCCL.match(rest):
        return Record(number, text, rest[nccl.end() :], nccl[1], int(nccl[2]), True)
    if dated := _DATED.match(rest):
        time = _seconds(*dated.group(1, 2, 3, 4, 5, 6, 7))
        return Record(
            number, text, rest[dated.end() :].lstrip(" -"), writer, rank, True, dated[8][0], "", time, "dated"
        )
    return Record(number, text, rest, writer, rank, prefixed)


def _rank_of(prefix: str) -> int | None:
    """The tensor-parallel rank; where a prefix has none (`Worker_DP2_EP2`) the expert- or data-parallel one."""
    found = _RANK.search(prefix) or ("EngineCore" not in prefix and _DP_RANK.search(prefix)) or None
    return int(next(filter(None, found.groups()))) if found else None


def _seconds(year: str, month: str, day: str, hour: str, minute: str, second: str, fraction: str | None) -> float:
    """Seconds on a calendar of months of 31 days: good enough to say which of two lines is older."""
    days = (int(year) * 12 + int(month)) * 31 + int(day)
    whole = ((days * 24 + int(hour)) * 60 + int(minute)) * 60 + int(second)
    return whole + float("0." + fraction[1:]) if fraction else float(whole)
