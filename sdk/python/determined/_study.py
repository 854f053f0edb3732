"""Data from dsat-host for this process: hyperparameters, experiment file, trial, and the folder for output."""
import json
import os
import uuid

from dsat import Error, current_trial, get_hparams

from ._once import say_once

HPARAMS_VARIABLE = "DSAT_HPARAMS"
EXPERIMENT_VARIABLE = "DSAT_EXPERIMENT"
_UNITS = ("batches", "epochs", "records")
_DEFAULT_LENGTH = 100  # Determined's scheduling unit
_DEFAULTS = {
    "searcher": {"name": "single", "smaller_is_better": True},
    "resources": {"slots_per_trial": 1},
    "scheduling_unit": _DEFAULT_LENGTH,
    "max_restarts": 5,
}


def is_managed():
    """Does this process belong to an experiment, as a trial or as the full training after a study?"""
    return HPARAMS_VARIABLE in os.environ or current_trial() is not None


def hyperparameters():
    trial = current_trial()
    if HPARAMS_VARIABLE in os.environ or trial is None:
        return get_hparams()
    return {"deepspeed_config": trial.config_path, "overwrite_deepspeed_args": trial.config}


def experiment_config():
    """The experiment file, with this trial's hyperparameters in place of its own."""
    path = os.environ.get(EXPERIMENT_VARIABLE)
    config = {}
    if path:
        try:
            with open(path, encoding="utf-8") as file:
                config = json.load(file)
        except (OSError, ValueError) as error:
            raise Error(f"{EXPERIMENT_VARIABLE}={path}: {error}") from error
    if not isinstance(config, dict):
        raise Error(f"{EXPERIMENT_VARIABLE}={path}: holds no object")
    config["hyperparameters"] = hyperparameters()
    # Determined's master fills in these values, and a script may index them.
    for section, defaults in _DEFAULTS.items():
        given = config.get(section)
        if isinstance(defaults, dict):
            config[section] = {**defaults, **(given if isinstance(given, dict) else {})}
        elif given is None:
            config[section] = defaults
    config.setdefault("checkpoint_storage", {"type": "directory", "container_path": folder()})
    if current_trial() is not None:
        # Trials of Determined's dsat had a custom searcher.
        config["searcher"] = {**config["searcher"], "name": "custom"}
    return config


def folder():
    """The folder for checkpoints, metrics and event files: the trial's; the study's in the full training."""
    trial = current_trial()
    if trial is not None:
        return trial.directory
    path = os.environ.get(HPARAMS_VARIABLE)
    return os.path.dirname(os.path.abspath(path)) if path else os.path.join(os.getcwd(), "determined")


def trial_id():
    text = os.environ.get("DSAT_TRIAL_ID", "")
    return int(text) if text.isdigit() else 0


def cluster_id():
    return str(uuid.uuid5(uuid.NAMESPACE_URL, "file://" + os.path.abspath(folder())))


def seed(config):
    """`reproducibility.experiment_seed`, or 0, so that two runs of one configuration see the same data."""
    value = (config.get("reproducibility") or {}).get("experiment_seed", 0)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def configured_length(config):
    """(length, unit) of `searcher.max_length`. The unit of a bare number is None."""
    length = config.get("searcher", {}).get("max_length")
    unit = config.get("searcher", {}).get("unit")
    if isinstance(length, dict) and len(length) == 1:
        unit, length = next(iter(length.items()))
    if unit is not None and unit not in _UNITS:
        raise Error(f"searcher.max_length is given in {unit!r}: use one of {', '.join(_UNITS)}")
    if length is None:
        say_once(f"the experiment has no searcher.max_length: it is taken as {_DEFAULT_LENGTH} batches")
        return _DEFAULT_LENGTH, "batches"
    if isinstance(length, bool) or not isinstance(length, int) or length < 1:
        raise Error(f"searcher.max_length is {length!r}: it must be a whole number of at least 1")
    return length, unit


def training_length(config):
    """(length, unit) of this process's training.

    A trial has one step more than its engine needs: a script may count a step at its first micro step, and the engine
    has to reach the end of the profile window first.
    """
    trial = current_trial()
    if trial is not None:
        return (1 if trial.model_info else trial.end_step + 2), "batches"
    return configured_length(config)
