"""The trial of this process, from the environment that dsat-host set."""
import functools
import os
from typing import NamedTuple, Optional

from ._errors import Error
from ._files import Json, read_json


CONFIG_VARIABLE = "DSAT_DS_CONFIG"  # path of a trial's configuration; in the full training, of the best one


class Trial(NamedTuple):
    """One run of the script by dsat-host."""

    id: str
    directory: str  # the trial's files; the script may write here too
    config_path: str  # of `config`
    config: Json  # DeepSpeed configuration with its `autotuning` section; not to be changed
    model_info: bool  # measure the model's size (one forward pass), not the speed
    start_step: int  # the first measured optimizer step; earlier ones warm up
    end_step: int  # the last measured step; steps count from 0
    result_path: str  # rank 0 writes the result here


def _step(section: Json, name: str, path: str) -> int:
    value = section.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Error(f"{path}: autotuning.{name} is {value!r}: it counts optimizer steps from 0")
    return value


@functools.lru_cache(maxsize=1)  # a loop asks at every batch
def _read_trial(config_path: str, trial_id: str, directory: str) -> Optional[Trial]:
    config = read_json(config_path)
    section = config.get("autotuning")
    if not isinstance(section, dict) or section.get("enabled") is not True:
        return None
    info = section.get("model_info")
    model_info = isinstance(info, dict) and info.get("profile") is True
    key = "model_info_path" if model_info else "metric_path"
    path = section.get(key)
    if not isinstance(path, str) or not path:
        raise Error(f"{config_path}: autotuning.{key} is not a path: the file is not a configuration of dsat-host's")
    start = _step(section, "start_profile_step", config_path)
    end = _step(section, "end_profile_step", config_path)
    if end < start:
        raise Error(f"{config_path}: autotuning.end_profile_step {end} is before start_profile_step {start}")
    return Trial(trial_id, directory or os.path.dirname(os.path.abspath(path)), config_path, config, model_info, start,
                 end, path)


def current_trial() -> Optional[Trial]:
    """The trial that dsat-host started this process for; None outside a tuning run."""
    path = os.environ.get(CONFIG_VARIABLE)
    if not path:
        return None
    return _read_trial(path, os.environ.get("DSAT_TRIAL_ID", ""), os.environ.get("DSAT_TRIAL_DIR", ""))
