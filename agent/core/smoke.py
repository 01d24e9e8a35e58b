"""Smoke loads: a launch with dummy weights shows in a minute what would end the real load after ten.

It reads no weights and is never measured. One that gets ready is stopped, and the real load follows; one that does not
ends its experiment, as a real one would.
"""

from dataclasses import replace

from agent.core.model import LaunchConfig
from agent.core.plan import config_of
from agent.core.scope import model_of
from agent.core.state import ExperimentState, Launch, State
from agent.playbook.model import Experiment, Playbook
from agent.playbook.smoke import DUMMY, FORMAT, NOT_WITH_DUMMY


def has_smoke(playbook: Playbook, experiment: Experiment, config: LaunchConfig) -> bool:
    """Whether the first launch of an experiment, which runs `config`, has a smoke load before it.

    The playbook asks for it, its kind of server can make it, and the model has other weights than dummy ones.
    """
    asked = playbook.smoke if experiment.smoke is None else experiment.smoke
    if not asked or config.kind not in NOT_WITH_DUMMY or experiment.baseline == "attach":
        return False
    return not is_dummy(config) and not _needs_its_format(model_of(config))


def is_wanted(state: State, experiment: ExperimentState) -> bool:
    """Whether a smoke load comes before the next launch of an experiment.

    None does where a load of its present flags got ready, of whichever weights, and none where a person tries it again
    after a load (the dummy weights may be all that did not work).
    """
    if experiment.overruled and experiment.since:
        return False
    if any(state.launches[name].load_s is not None for name in experiment.launches[experiment.since :]):
        return False
    return has_smoke(state.playbook, experiment.spec, config_of(state, experiment.id))


def is_dummy(config: LaunchConfig) -> bool:
    """Whether a launch runs on dummy weights."""
    return config.args.get(FORMAT) == DUMMY


def _needs_its_format(model: str) -> bool:
    """Whether dummy weights do not do for a model.

    A GGUF file is only understood with the format `gguf` or `auto`, and object storage has one of its own whatever is
    asked (`_handle_load_format` in SGLang 0.5.9's server_args.py).
    """
    return model.lower().endswith(".gguf") or "://" in model


def smoke_config(config: LaunchConfig) -> LaunchConfig:
    """A configuration as its smoke load runs it: with dummy weights, without the flags that refuse those."""
    refused = NOT_WITH_DUMMY[config.kind]
    # vLLM takes --model-loader-extra-config.KEY as a part of that flag.
    args = {flag: value for flag, value in config.args.items() if flag.partition(".")[0] not in (*refused, FORMAT)}
    return replace(config, args={**args, FORMAT: DUMMY})


def config_of_launch(state: State, launch: Launch) -> LaunchConfig:
    """What a launch runs, made anew from the plan."""
    config = config_of(state, launch.experiment)
    return smoke_config(config) if launch.purpose == "smoke" else config


def real_launches(state: State, experiment: ExperimentState) -> list[Launch]:
    """The launches of an experiment but its smoke loads, first to last."""
    launches = (state.launches[name] for name in experiment.launches)
    return [launch for launch in launches if launch.purpose != "smoke"]
