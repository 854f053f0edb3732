"""The part of a checkpoint beside the engines: random numbers, callbacks, progress."""
import logging
import pathlib
import random

import numpy as np
import torch

from ...errors import InvalidExperimentException
from ...util import is_overridden
from .._callback import PyTorchCallback

logger = logging.getLogger("determined.pytorch")


def _file(path, rank):
    return pathlib.Path(path) / f"det_state_dict_rank{rank}.pth"


def _random_state():
    state = {"python": random.getstate(), "numpy": np.random.get_state(), "torch": torch.random.get_rng_state()}
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def _set_random_state(state):
    random.setstate(state["python"])
    np.random.set_state(state["numpy"])
    torch.random.set_rng_state(state["torch"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])


def save(path, trial, context, callbacks, progress):
    """Writes this rank's part to `path`. Every rank calls it."""
    state = {"random": _random_state(), "progress": progress,
             "callbacks": {name: callback.state_dict() for name, callback in callbacks.items()}}
    for callback in callbacks.values():
        callback.on_checkpoint_save_start(state)
    torch.save(state, str(_file(path, context.distributed.rank)))
    trial.save(context, pathlib.Path(path))
    for callback in callbacks.values():
        callback.on_checkpoint_end(str(path))
        callback.on_checkpoint_write_end(str(path))


def load(path, trial, context, callbacks):
    """Reads this rank's part from `path`. Returns the progress. Every rank calls it."""
    file = _file(path, context.distributed.rank)
    if not file.exists():
        raise InvalidExperimentException(f"checkpoint {path} has no {file.name}: was it made with as many ranks?")
    state = _read(file)
    for callback in callbacks.values():
        callback.on_checkpoint_load_start(state)
    trial.load(context, pathlib.Path(path))
    if "random" in state:
        _set_random_state(state["random"])
    kept = state.get("callbacks", {})
    for name, callback in callbacks.items():
        if name in kept:
            callback.load_state_dict(kept[name])
        elif is_overridden(callback.load_state_dict, PyTorchCallback):
            logger.warning("callback '%s' has no state in the checkpoint: it starts without one", name)
    return state.get("progress", {})


def _read(file):
    try:
        state = _load(file)
    except Exception as error:
        raise InvalidExperimentException(f"checkpoint {file} cannot be read: {error}") from error
    if not isinstance(state, dict):
        raise InvalidExperimentException(f"checkpoint {file} holds a {type(state).__name__}, not a dictionary")
    return state


def _load(file):
    try:
        return torch.load(str(file), map_location="cpu")
    except Exception as error:  # a newer torch accepts tensors only, unless weights_only is False
        if "weights_only" not in str(error):
            raise
        return torch.load(str(file), map_location="cpu", weights_only=False)
