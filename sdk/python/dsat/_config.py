"""DeepSpeed configurations from a file and its overwrites."""
import copy
import os
from typing import Any, Mapping, Optional, Union

from ._errors import Error
from ._files import Json, read_json
from ._trial import CONFIG_VARIABLE, current_trial

CONFIG_KEY = "deepspeed_config"
OVERWRITE_KEY = "overwrite_deepspeed_args"

PathLike = Union[str, "os.PathLike[str]"]


def merge(base: Mapping[str, Any], source: Mapping[str, Any]) -> Json:
    """`base` with the leaves of `source` over it. Objects merge; anything else, lists too, is replaced."""
    result = copy.deepcopy(dict(base))
    for key, value in source.items():
        below = result.get(key)
        if isinstance(below, dict) and isinstance(value, Mapping):
            result[key] = merge(below, value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def overwrite_deepspeed_config(base_ds_config: Union[PathLike, Mapping[str, Any]],
                               source_ds_dict: Mapping[str, Any]) -> Json:
    """A configuration (a path or a dictionary) with the leaves of `source_ds_dict` over it.

    The arguments do not change. Raises dsat.Error for an unreadable file and for an argument of another type.
    """
    if not isinstance(source_ds_dict, Mapping):
        raise Error(f"the second argument, with DeepSpeed keys to overwrite, is a dictionary, not {source_ds_dict!r}")
    if isinstance(base_ds_config, Mapping):
        return merge(base_ds_config, source_ds_dict)
    if not isinstance(base_ds_config, (str, os.PathLike)):
        raise Error(f"a DeepSpeed configuration is a path or a dictionary, not {base_ds_config!r}")
    return merge(read_json(os.fspath(base_ds_config)), source_ds_dict)


def overwrites_of(hparams: Mapping[str, Any]) -> Mapping[str, Any]:
    """`hparams.overwrite_deepspeed_args`; empty if it is absent."""
    if not isinstance(hparams, Mapping):
        raise Error(f"hparams is a dictionary of hyperparameters, not {hparams!r}")
    overwrites = hparams.get(OVERWRITE_KEY)
    if overwrites is None:
        return {}
    if not isinstance(overwrites, Mapping):
        raise Error(f"hparams['{OVERWRITE_KEY}'] is a dictionary of DeepSpeed keys, not {overwrites!r}")
    return overwrites


def get_hparams(default: Optional[Mapping[str, Any]] = None) -> Json:
    """The hyperparameters of dsat-host's experiment file; a copy of `default` without one.

    They are there in a tuning run and in the full experiment after it. Raises dsat.Error for an unreadable file, and
    if `default` is no dictionary.
    """
    if default is not None and not isinstance(default, Mapping):
        raise Error(f"the default of hyperparameters is a dictionary, not {default!r}")
    path = os.environ.get("DSAT_HPARAMS")
    return merge(default or {}, read_json(path) if path else {})


def get_ds_config_from_hparams(hparams: Mapping[str, Any], base_dir: PathLike = ".") -> Json:
    """The DeepSpeed configuration to train with, for `deepspeed.initialize(config=...)`.

    It is the file `hparams["deepspeed_config"]`, relative to `base_dir`, with `hparams["overwrite_deepspeed_args"]`
    over it. In a trial it is the trial's configuration, and in the full training after a study the best one; overwrites
    are added, but do not replace its values. Raises dsat.Error for a missing key or file.
    """
    overwrites = overwrites_of(hparams)
    trial = current_trial()
    if trial is not None:
        return merge(overwrites, trial.config)
    given = os.environ.get(CONFIG_VARIABLE)
    if given:
        return merge(overwrites, read_json(given))
    name = hparams.get(CONFIG_KEY)
    if not isinstance(name, (str, os.PathLike)):
        raise Error(f"hparams has no '{CONFIG_KEY}': set it to the path of the DeepSpeed configuration")
    return overwrite_deepspeed_config(os.path.join(os.fspath(base_dir), os.fspath(name)), overwrites)
