"""Events to JSON-ready values and back. Fields keep their names; a playbook's parts keep the keys of the file."""

from typing import Any

from pydantic import TypeAdapter, ValidationError

from agent.core.events import Event


class UnknownEvent(ValueError):
    """A record that this version cannot read. The message says which event and why."""


_adapters: dict[str, TypeAdapter[Event]] = {}


def _adapter(kind: type[Event]) -> TypeAdapter[Event]:
    # Building one takes milliseconds, and a session of replay needs a few of the many.
    if kind.__name__ not in _adapters:
        _adapters[kind.__name__] = TypeAdapter(kind)
    return _adapters[kind.__name__]


def encode(event: Event) -> dict[str, Any]:
    """The event as JSON-ready values: its class name under `event`, its fields under `data`."""
    kind = type(event)
    return {"event": kind.__name__, "data": _adapter(kind).dump_python(event, mode="json", by_alias=True)}


def decode(record: dict[str, Any]) -> Event:
    """The event that `encode` made the record from. Raises UnknownEvent."""
    name = record.get("event")
    kind = _kind(name)
    try:
        return _adapter(kind).validate_python(record.get("data"))
    except ValidationError as error:
        raise _unlike(kind, error) from error


def decode_json(name: str, data: bytes) -> Event:
    """As `decode`, of the name of an event and its data as JSON text: a third of the time. Raises UnknownEvent."""
    kind = _kind(name)
    try:
        return _adapter(kind).validate_json(data)
    except ValidationError as error:
        raise _unlike(kind, error) from error


def _kind(name: object) -> type[Event]:
    kind = Event.kinds.get(name) if isinstance(name, str) else None
    if kind is None:
        raise UnknownEvent(f"this version knows no event {name!r}; a newer tunebot may have written the journal")
    return kind


def _unlike(kind: type[Event], error: ValidationError) -> UnknownEvent:
    first = error.errors(include_url=False)[0]
    where = ".".join(map(str, (kind.__name__, *first["loc"])))
    told = {
        "missing": f"{where} is not there, and this version needs it",
        "extra_forbidden": f"this version knows no {where}",
    }
    return UnknownEvent(told.get(first["type"], f"{where}: {first['msg']}"))
