"""A playbook, or an experiment of it, as a file holds it."""

from typing import Any

import yaml

from agent.playbook.model import Experiment, Playbook


def yaml_text(playbook: Playbook) -> str:
    """A playbook, its experiments last; what has its usual value is left out."""
    data = _dumped(playbook)
    experiments = data.pop("experiments", [])
    return _text({**data, "experiments": experiments})


def experiment_text(experiment: Experiment) -> str:
    """An experiment as an entry of `experiments`."""
    return _text([_dumped(experiment)])


def _dumped(model: Playbook | Experiment) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def _text(data: Any) -> str:
    return yaml.safe_dump(_with_units(data), sort_keys=False, allow_unicode=True, width=110)


def _with_units(value: Any, key: str = "") -> Any:
    """The value with seconds, fractions and bytes written as a person does, such as `90s` and `2%`."""
    match value:
        case dict() if key not in ("args", "env"):
            return {name: _with_units(inner, name) for name, inner in value.items()}
        case list():
            return [_with_units(inner) for inner in value]
        case float() if key in ("load_timeout", "timeout", "ramp"):
            return f"{value:.9g}s"
        case float() if key in ("each", "each_verify"):
            return f"{value * 1e6:.9g}us"
        case float() if key in ("memory_free", "at_least"):
            return f"{value / 1e6:.15g}MB"
        case float() if key in ("each", "each_verify"):
            return f"{value * 1e6:.9g}us"
        case float() if key == "min_gain":
            return f"{value * 100:.9g}%"
        case _:
            return value
