"""What is in force: the environment goes before the file, the file before the default."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from agent.config.file import Config, read_config
from agent.config.settings import SETTINGS, Setting, Value
from agent.paths import config_file


@dataclass(frozen=True, slots=True, kw_only=True)
class InForce:
    """A setting with its present value, and where that comes from. A value of the environment is its text."""

    setting: Setting
    value: Value
    origin: Literal["default", "file", "environment"]


def in_force(environ: Mapping[str, str], config: Config | None = None) -> dict[str, InForce]:
    """Every setting by its key, those of the user's file among them unless another one is given. Raises UserError."""
    config = read_config(config_file()) if config is None else config
    return {setting.key: _of(setting, environ, config) for setting in SETTINGS}


def _of(setting: Setting, environ: Mapping[str, str], config: Config) -> InForce:
    if text := environ.get(setting.variable, "").strip():
        value: Value = text != "0" if isinstance(setting.default, bool) else text
        return InForce(setting=setting, value=value, origin="environment")
    if setting.key in config.values:
        return InForce(setting=setting, value=config.values[setting.key], origin="file")
    return InForce(setting=setting, value=setting.default, origin="default")


def with_config(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment, with what the user's file says of the LLM under the names of its variables. Raises UserError."""
    from_file = {
        found.setting.variable: str(found.value)
        for found in in_force(environ).values()
        if found.origin == "file" and found.setting.key.startswith("llm.")
    }
    return {**environ, **from_file}
