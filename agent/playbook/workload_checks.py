"""Workloads whose keys do not fit together."""

from collections.abc import Iterator
from dataclasses import dataclass

from agent.playbook.outline import items_at, scalar_at, table_at
from agent.playbook.problems import Report, shown
from agent.playbook.tree import Scalar, Table
from agent.playbook.values import resolve

_NOT_OF_TOOLS = ("data", "api", "arrivals", "ramp", "shared_prefix_len", "slo")


@dataclass(frozen=True, slots=True)
class _Draft:
    """One entry of `workloads`, as it is written."""

    index: int
    table: Table

    def scalar(self, key: str) -> Scalar | None:
        """The value under a key, where it is one word."""
        return scalar_at(self.table, key)

    def text(self, key: str) -> str:
        """That value as text, or nothing."""
        value = self.scalar(key)
        return value.text if value else ""

    def whole(self, key: str, default: int) -> int | None:
        """That value as a number; None for what is none."""
        value = self.scalar(key)
        number = resolve(value) if value else default
        return number if isinstance(number, int) else None


@dataclass(frozen=True, slots=True)
class _Misfit:
    """What is wrong with the value of a key, and what to do."""

    key: str
    message: str
    hint: str


def check_workloads(root: Table, report: Report) -> None:
    """Report keys of a workload that have no effect or cannot be carried out, and an objective without its limits."""
    server = table_at(root, "server")
    kind = scalar_at(server, "kind") if server else None
    for index, item in items_at(root, "workloads"):
        if not isinstance(item, Table):
            continue
        for misfit in _misfits(_Draft(index, item), kind.text if kind else ""):
            key = item.entries[misfit.key][0]
            value = scalar_at(item, misfit.key)
            place = value.place if value else key.place
            report.add(place, ("workloads", index, misfit.key), misfit.message, hint=misfit.hint)
    _check_goodput(root, report)


def _misfits(draft: _Draft, kind: str) -> Iterator[_Misfit]:
    yield from _arrival_misfits(draft)
    yield from _data_misfits(draft)
    yield from _tool_misfits(draft)
    if draft.text("api") == "generate" and kind not in ("", "sglang"):
        yield _Misfit("api", f"api generate is SGLang's own; {kind} does not have it", "write completions or chat")


def _arrival_misfits(draft: _Draft) -> Iterator[_Misfit]:
    if "rate" in draft.table.entries:
        return
    for key in ("arrivals", "ramp"):
        if key in draft.table.entries:
            yield _Misfit(key, f"{key} has no effect without a rate", "write 'rate: 4.0' for 4 requests a second")
    wanted, given = draft.whole("concurrency", 1), draft.whole("requests", 16)
    if draft.scalar("concurrency") and wanted is not None and given is not None and given < wanted:
        message = f"concurrency {wanted} is never reached with {given} requests"
        yield _Misfit("concurrency", message, f"write 'requests: {4 * wanted}' or more")


def _data_misfits(draft: _Draft) -> Iterator[_Misfit]:
    data = draft.text("data")
    if data == "random-tokens" and draft.text("api") == "chat":
        yield _Misfit("data", "a chat takes text, and random-tokens are token ids", "write 'api: completions'")
    if isinstance(draft.table.get("data"), Table) and "input_len" in draft.table.entries:
        message = "input_len has no effect: the prompts of a file are as long as they are"
        yield _Misfit("input_len", message, "remove it")
    length, prefix = draft.whole("input_len", 512), draft.whole("shared_prefix_len", 0)
    if data == "shared-prefix" and "shared_prefix_len" not in draft.table.entries:
        yield _Misfit("data", "shared-prefix needs to know how long the prefix is", "write 'shared_prefix_len: 256'")
    elif data != "shared-prefix" and "shared_prefix_len" in draft.table.entries:
        yield _Misfit("shared_prefix_len", "shared_prefix_len has no effect", "write 'data: shared-prefix' with it")
    elif length is not None and prefix is not None and prefix >= length:
        message = f"a prefix of {prefix} tokens leaves nothing of an input of {length}"
        yield _Misfit("shared_prefix_len", message, f"write 'input_len: {2 * prefix}' or more")


def _tool_misfits(draft: _Draft) -> Iterator[_Misfit]:
    tool, written = draft.text("tool"), draft.table.entries
    if not tool:
        if "run" in written:
            yield _Misfit("run", "run has no effect without a tool", "write 'tool: command' with it")
        return
    for key in _NOT_OF_TOOLS:
        if key in written:
            yield _Misfit(key, f"{key} has no effect: the requests are made by {tool}", "remove it, or the tool")
    if tool == "command":
        words = [word.text for _, word in items_at(draft.table, "run") if isinstance(word, Scalar)]
        hint = 'write for example \'run: [~/bench.sh, "{url}", "{result}"]\''
        if not words:
            yield _Misfit("tool", "which command?", hint)
        elif "{result}" not in words:  # inside a longer word the `~/` of its path would not be expanded
            yield _Misfit("run", "no word of the command is {result}, where its result is to be read", hint)


def _check_goodput(root: Table, report: Report) -> None:
    objective = table_at(root, "objective")
    metric = scalar_at(objective, "metric") if objective else None
    wanted = scalar_at(objective, "workload") if objective else None
    if metric is None or metric.text != "goodput" or wanted is None:
        return
    for _, item in items_at(root, "workloads"):
        name = scalar_at(item, "name") if isinstance(item, Table) else None
        if isinstance(item, Table) and name and name.text == wanted.text and "slo" not in item.entries:
            message = f"goodput counts requests that meet an slo, and workload {shown(name.text)} has none"
            hint = "write 'slo: {ttft_ms: 200, tpot_ms: 20}' there"
            report.add(metric.place, ("objective", "metric"), message, hint=hint)
