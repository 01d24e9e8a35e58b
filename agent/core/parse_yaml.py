"""An experiment as an entry of the playbook, for a person to edit: written as YAML, read again by the loader."""

from agent.core.parse_new import Flags, id_problems
from agent.core.state import State
from agent.playbook.load import KnownFlags, load_playbook
from agent.playbook.model import Experiment, Playbook
from agent.playbook.problems import Place, Problem, Report, shown
from agent.playbook.tree import Items, Scalar, Table, parse_tree
from agent.playbook.write import experiment_text, yaml_text
from agent.text import clean

HEAD = """\
# An experiment as the playbook has it. Change args, env and why; null takes an inherited flag or variable away.
# Save and leave the editor: it is checked like a playbook. Left as it is, nothing happens.
"""
TYPED = ("args", "env", "why")
"""What of an experiment may be changed: the rest may run commands, or others may refer to it."""

_BARE = ("id", "based_on", "baseline", "args", "env")


def edited_yaml(spec: Experiment) -> str:
    """The text to edit. Where flags or variables are missing there is a place for them."""
    text = HEAD + experiment_text(spec)
    for key in ("args", "env"):
        text += "" if getattr(spec, key) else f"  {key}: {{}}\n"
    return text


def read_yaml(
    state: State, wanted: Experiment, text: str, known_flags: Flags = (), *, new: bool
) -> Experiment | list[Problem]:
    """The experiment in an edited text, or its problems by line. `wanted` is what was to be edited.

    A `new` one may also have another id. `known_flags` are as for `parse_new`.
    """
    report = Report(wanted.id, text)
    if clean(text, len(text)) != text:
        report.add(Place(1, 1), (), "it holds control or invisible characters")
        return report.sorted()
    table = _entry(text, report)
    if table is None:
        return report.sorted()
    name = table.get("id")
    if new and isinstance(name, Scalar) and (wrong := id_problems(state, name.text)):
        report.add(name.place, ("id",), wrong[0])
        return report.sorted()
    others = [e.spec for e in state.experiments.values() if e.id != wanted.id]
    before = _playbook_text(state.playbook, others)
    names = {spec.id: spec.id.replace("@", "_") for spec in (*others, wanted) if "@" in spec.id}
    whole = before + text
    for odd, stand_in in names.items():
        whole = whole.replace(odd, stand_in)
    flags: KnownFlags = {state.playbook.server.kind: known_flags} if known_flags else {}
    found = load_playbook(whole.encode(), wanted.id, flags)
    if isinstance(found, list):
        _report(found, before, len(others), names, report)
    if report.count:
        return report.sorted()
    playbook = found if isinstance(found, Playbook) else load_playbook(whole.encode(), wanted.id, {})
    if not isinstance(playbook, Playbook):
        report.add(Place(1, 1), (), f"the playbook around it cannot be read: {playbook[0].message}")
        return report.sorted()
    spec = _with_names(playbook.experiments[-1], names)
    _check_fixed(spec, wanted, table, report, new=new)
    return report.sorted() or spec


def _with_names(spec: Experiment, names: dict[str, str]) -> Experiment:
    """The experiment with the ids that a playbook file cannot have."""
    back = {stand_in: name for name, stand_in in names.items()}
    parent = back.get(spec.based_on, spec.based_on) if spec.based_on else None
    return spec.model_copy(update={"id": back.get(spec.id, spec.id), "based_on": parent})


def _entry(text: str, report: Report) -> Table | None:
    """The one entry of the text, or None with what is wrong."""
    root = parse_tree(text, report)
    entries = root.nodes if isinstance(root, Items) else ()
    if len(entries) == 1 and isinstance(entries[0], Table):
        return entries[0]
    if not report.count:
        place = root.place if root else Place(1, 1)
        report.add(place, (), "one experiment is expected here", hint="it begins with '- id: NAME'")
    return None


def _playbook_text(playbook: Playbook, others: list[Experiment]) -> str:
    """What stands before the entry: the playbook, with as much of the other experiments as this one may refer to."""
    bare = tuple(Experiment(**{key: getattr(spec, key) for key in _BARE}) for spec in others)
    return yaml_text(playbook.model_copy(update={"experiments": bare}))


def _report(problems: list[Problem], before: str, index: int, names: dict[str, str], report: Report) -> None:
    """The problems of the entry, as those of a file of its own."""
    above = before.count("\n")
    for problem in problems:
        if problem.line > above:
            message = problem.message.replace(f"experiments[{index}].", "").replace(f"experiments[{index}]", "it")
            for name, stand_in in names.items():
                message = message.replace(stand_in, name)
            report.add(Place(problem.line - above, problem.column), (), message, hint=problem.hint)


def _check_fixed(spec: Experiment, wanted: Experiment, table: Table, report: Report, *, new: bool) -> None:
    for key in Experiment.model_fields:
        if key in TYPED or (new and key == "id") or getattr(spec, key) == getattr(wanted, key):
            continue
        entry = table.entries.get(key)
        hint = f"while a session runs, {', '.join(TYPED)} can; write the rest into a playbook"
        report.add(entry[0].place if entry else table.place, (key,), f"{shown(key)} cannot be changed here", hint=hint)
