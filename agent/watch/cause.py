"""The one line that names why a server failed, chosen among everything that may name it."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agent.core.model import Phase
from agent.text import one_line
from agent.watch.frames import ORDER, later, phase_of_frames
from agent.watch.records import Record
from agent.watch.rules import Fault, rules
from agent.watch.traces import Suspect

# What an exception or a line counts that no table knows, against the weights in the tables.
_FATAL_EXCEPTION, _EXCEPTION, _BARE_LINE = 4.5, 3.2, 1.5
_STRONG = 7.5
"""A fault of this weight is one even in words that otherwise tell a consequence."""
_CONSEQUENCE = 2.0
"""A fault of at most this weight is a consequence itself: it is named where nothing else is."""
_BELOW_COSTS = 0.4
_LOOSE = 0.3
"""What a line costs that is only told by its level: the exception itself is the better line."""
_SURVIVED = 0.4
"""What is left of a suspect after which the load went on, or which ended one request only."""

_DIES = re.compile(
    r"hit an exception|EngineCore|WorkerProc|Exception in worker|Initialization failed|encountered a fatal"
    r"|Process \S+:$"
)
_CAPTURE = re.compile(r"(?:\w+: )?(?:Exception: )?Capture (?:cuda|npu|CUDA) graph failed: ?")
_PYDANTIC = re.compile(r" \[type=\w+, input_value=.*|\s*For further information visit https://errors\.pydantic.*")
_LOCATION = re.compile(r"^[\w.`\[\]-]+$")
_MODULES = re.compile(r"^(?:[a-z_]\w*\.)+(?=[A-Z])")
_RANKS = (
    re.compile(r"closed by localRank (\d+)"),
    re.compile(r"/rank_(\d+)_\d+/"),
    re.compile(r"\bRank (\d+) scheduler died|Worker proc \S*?(\d+) died"),
    re.compile(r"\[[Rr]ank (\d+)\]|\bGPU (\d+) has a total capacity|on device (\d+): cudaMalloc"),
)


@dataclass(slots=True, kw_only=True)
class Judged:
    """A suspect with what it was taken for: `fault` None is unknown, `aside` why it cannot be the cause."""

    suspect: Suspect
    fault: Fault | None
    root: Record
    said: str
    score: float
    aside: str = ""


def judge(suspect: Suspect, phase: Phase, *, went_on: bool, was_ready: bool) -> Judged:
    """Weigh one suspect. `went_on`: its writer passed another milestone later."""
    fault, root, said, weight = _best_fault(suspect, phase)
    main, table = suspect.text, rules()
    judged = Judged(suspect=suspect, fault=fault, root=root, said=said, score=weight - _LOOSE * suspect.loose)
    if weight < _STRONG:
        for kind, aside in (("follows", "follows from another death"), ("cleanup", "noise of the end"),
                            ("advice", "advice or a harmless warning")):  # fmt: skip
            if table.is_a(kind, main) and not (kind == "advice" and _is_raised(suspect, fault)):
                judged.score, judged.aside = (0.5 if fault and fault.weight <= _CONSEQUENCE else 0.0), aside
                return judged
        if table.is_a("wraps", main) and (root is suspect.line or weight < 4):
            judged.score, judged.aside = min(weight, 1.2), "only announces what stands elsewhere"
            return judged
    if went_on and not (suspect.native and weight >= _STRONG):
        judged.score, judged.aside = weight * _SURVIVED, "the load went on after it"
    elif was_ready and not suspect.native and not _DIES.search(suspect.header) and not _in_loop(suspect):
        judged.score, judged.aside = weight * _SURVIVED, "ended a request, not the server"
    return judged


def _is_raised(suspect: Suspect, fault: Fault | None) -> bool:
    """An exception may give advice and still be one."""
    return bool(suspect.frames) or (fault is not None and not suspect.native)


def _in_loop(suspect: Suspect) -> bool:
    return bool(suspect.frames) and _told(suspect) is Phase.SERVING


def _best_fault(suspect: Suspect, phase: Phase) -> tuple[Fault | None, Record, str, float]:
    """The heaviest fault that the line, or what belongs to it, names; with the record and the text that do."""
    texts = list(_texts(suspect))
    below = "\n".join(record.message for record in suspect.below)
    frames = "\n".join(frame.replace("\\", "/") for frame in suspect.frames[-6:])
    best: tuple[Fault | None, Record, str, float] = (None, texts[0][0], texts[0][1], _unknown_weight(suspect))
    surest = best[3]
    phase = later(phase, _told(suspect) or phase)
    for fault in rules().faults:
        if fault.phases is not None and phase not in fault.phases:
            continue
        for record, text, cost in texts:
            if fault.weight - cost > surest and (sure := fault.weighs(text, below) - cost) > surest:
                best, surest = (fault, record, text, fault.weight - cost), sure
                break
        else:
            if fault.frames is not None and fault.frames_weight > surest and fault.frames.search(frames):
                best, surest = (fault, texts[0][0], texts[0][1], fault.frames_weight), fault.frames_weight
    return best


def _texts(suspect: Suspect) -> Iterable[tuple[Record, str, float]]:
    """What may name the fault, the line to be shown first: the line, its source line, the lines below it."""
    announced = _announced(suspect)
    if announced is not None:
        yield announced, announced.message, 0.0
    if suspect.source is not None and is_bare(suspect):
        place = suspect.frames[-1].rpartition("/")[2] if suspect.frames else ""
        if suspect.text.startswith("AssertionError"):
            yield suspect.source, f"{suspect.source.message.strip()} AssertionError {place}", 0.0
        else:
            yield suspect.line, f"{suspect.text} {suspect.source.message.strip()} {place}", 0.0
    yield suspect.line, suspect.text, 0.0 if announced is None else 0.1
    if suspect.native and not suspect.loose:
        return
    for record in suspect.below[:6]:
        text = record.message
        if text.strip() and not any(rules().is_a(kind, text) for kind in ("advice", "cleanup", "stack")):
            yield record, text, _BELOW_COSTS


def _announced(suspect: Suspect) -> Record | None:
    """The line below an exception that only announces it: `1 validation error for ..`, `.. graph failed:`."""
    text = suspect.text.rstrip()
    if not suspect.below or not (text.endswith(("failed:", "raised:", "error:", "Error:", "errors:")) or (
        re.search(r"\d validation errors? for", text)
    )):  # fmt: skip
        return None
    lines = [record for record in suspect.below if record.message.strip()]
    if len(lines) > 1 and _LOCATION.match(lines[0].message) and not lines[0].message.startswith(" "):
        return lines[1]
    return lines[0] if lines else None


def is_bare(suspect: Suspect) -> bool:
    """An exception without a message of its own: `AssertionError`, `KeyError: 12`."""
    return len(suspect.text.partition(":")[2].strip()) < 8


def _unknown_weight(suspect: Suspect) -> float:
    if suspect.native:
        return 0.0 if rules().is_a("stack", suspect.text) else _BARE_LINE
    return _FATAL_EXCEPTION if _DIES.search(suspect.header) and suspect.frames else _EXCEPTION


def choose(judged: Sequence[Judged]) -> Judged | None:
    """The cause: the heaviest, among equals the one whose block began first."""
    best = max(judged, key=_rank_key, default=None)
    if best is None or best.score <= 0:
        return None
    inner = best.suspect.above
    if best.suspect.text.rstrip().endswith(":") and inner is not None and not is_bare(inner):
        # A compiler's complaint with its source below; what is wrong stands in the exception that it wraps.
        best.root, best.said = inner.line, inner.text
    return best


def _rank_key(judged: Judged) -> tuple[float, float, int, int]:
    suspect = judged.suspect
    return (judged.score, -(suspect.time or 0.0) if suspect.clock else 0.0, -suspect.opened, -suspect.line.number)


def phase_of(judged: Judged, phase: Phase) -> Phase:
    """The phase in which it happened: that of the log's marks, or a later one that frames or the fault tell."""
    suspect, fault = judged.suspect, judged.fault
    if fault is not None and fault.phase is not None:
        return fault.phase
    told = _told(suspect)
    importing = sum(frame.endswith(" <module>") for frame in suspect.frames) > 2
    if importing and told is not Phase.SERVING and ORDER[phase] <= ORDER[Phase.ARGS]:
        return Phase.IMPORT if suspect.frames[-1].endswith(" <module>") or told is None else phase
    if told is Phase.SERVING and ORDER[Phase.DIST_INIT] <= ORDER[phase] <= ORDER[Phase.WARMUP]:
        told = Phase.WARMUP
    if phase is not Phase.WARMUP and told is not None:
        phase = later(phase, told)
    return later(phase, fault.not_before) if fault is not None else phase


def _told(suspect: Suspect) -> Phase | None:
    """What the frames tell; those of an exception that was raised in its wake reach further out."""
    outer: Suspect | None = suspect
    told: Phase | None = None
    while outer is not None and (told is None or told is not Phase.SERVING):
        more = phase_of_frames(outer.frames)
        told = more if told is None or more is Phase.SERVING else told
        outer = outer.outer
    return told


def category_of(judged: Judged, phase: Phase) -> str:
    """The category of the fault; of an unknown exception the one that its phase makes likely."""
    if judged.fault is not None:
        return rules().category(judged.fault, phase)
    text = judged.suspect.text
    if ORDER[phase] <= ORDER[Phase.IMPORT]:
        return "import-error"
    if ORDER[phase] <= ORDER[Phase.CONFIG]:
        return "config-validation"
    if phase is Phase.LOAD_WEIGHTS and text.startswith(("KeyError", "AssertionError", "ValueError")):
        return "weights-name-mismatch"
    return "model-runtime-assert"


def reason_of(judged: Judged, phase: Phase) -> str:
    """One line for the board."""
    text = _PYDANTIC.sub("", _CAPTURE.sub("", judged.said).removesuffix(" AssertionError"))
    suspect = judged.suspect
    if judged.root is suspect.line and is_bare(suspect) and suspect.frames:
        text = f"{suspect.text} ({suspect.frames[-1].rpartition('/')[2]})"
    elif judged.root is suspect.source:
        text = f"{suspect.source.message.strip()} ({suspect.frames[-1].rpartition('/')[2]})" if suspect.frames else text
    template = judged.fault.reason if judged.fault is not None else "{text}"
    return one_line(template.replace("{text}", text.strip()), 240)


def rank_of(judged: Judged, around: Iterable[Record]) -> int | None:
    """The rank that failed first: of the prefix, else where a line near it names one."""
    suspect = judged.suspect
    if suspect.rank is not None:
        return suspect.rank
    told = [suspect.text, judged.root.message, *suspect.frames, *(record.message for record in suspect.below)]
    told += [record.message for record in around]
    for pattern in _RANKS:
        for text in told:
            if match := pattern.search(text):
                return int(next(filter(None, match.groups())))
    return None
