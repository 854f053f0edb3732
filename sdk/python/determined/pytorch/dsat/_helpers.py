"""Helpers for configurations and reports."""
import contextlib
import json
import pathlib
import random

import dsat

from . import defaults


@contextlib.contextmanager
def dsat_reporting_context(core_context, op, steps_completed=None, **named):
    """Wraps the engine's forward and step, and completes the figures with which the engine ends a trial."""
    with dsat.dsat_reporting_context(core_context, op, steps_completed, **named) as timer:
        yield timer


def smaller_is_better(metric):
    if metric in defaults.SMALLER_IS_BETTER_METRICS:
        return True
    if metric in defaults.LARGER_IS_BETTER_METRICS:
        return False
    known = ", ".join(defaults.SMALLER_IS_BETTER_METRICS + defaults.LARGER_IS_BETTER_METRICS)
    raise ValueError(f"{metric!r} is no metric of dsat: use one of {known}")


def get_batch_config_from_mbs_gas_and_slots(ds_config, slots):
    """The three batch sizes. An accumulation of "auto" counts as 1."""
    micro_batch = ds_config["train_micro_batch_size_per_gpu"]
    accumulation = ds_config.get("gradient_accumulation_steps", defaults.GAS_DEFAULT)
    if accumulation == "auto":
        accumulation = 1
    return {"train_batch_size": micro_batch * accumulation * slots, "train_micro_batch_size_per_gpu": micro_batch,
            "gradient_accumulation_steps": accumulation}


def get_random_zero_optim_config(zero_stage):
    """Draws a configuration of a stage with Python's `random`. dsat-host has its own generator."""
    if zero_stage not in defaults.DEFAULT_ZERO_SEARCH_SPACE:
        raise AssertionError(f"{zero_stage!r} is no ZeRO stage: use one of {list(defaults.DEFAULT_ZERO_SEARCH_SPACE)}")
    space = {}
    for stage in range(1, max(zero_stage, 1) + 1):
        space.update(defaults.DEFAULT_ZERO_SEARCH_SPACE[stage])
    return {**{key: random.choice(values) for key, values in space.items()}, "stage": zero_stage}


def _as_integer(text):
    try:
        return int(text)
    except ValueError:
        return text


def get_dict_from_yaml_or_json_path(path, convert_json_keys_to_int=True):
    """The object in a .json or YAML file. YAML needs the package yaml."""
    path = pathlib.Path(path)
    if path.suffix == ".json":
        try:
            value = json.loads(path.read_text())
        except (OSError, ValueError) as error:
            raise dsat.Error(f"cannot read {path}: {error}") from error
        if not isinstance(value, dict):
            raise dsat.Error(f"{path} holds no object")
        return {_as_integer(key) if convert_json_keys_to_int else key: entry for key, entry in value.items()}
    try:
        import yaml
    except ImportError as error:
        raise dsat.Error(f"{path}: reading YAML needs the package yaml, which is missing: install PyYAML") from error
    try:
        return yaml.safe_load(path.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise dsat.Error(f"cannot read {path}: {error}") from error
