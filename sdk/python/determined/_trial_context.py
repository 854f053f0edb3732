"""The part of the context that every trial class has: hyperparameters, the experiment, ids, stopping."""
import logging

from ._absent import Refusing
from .errors import InvalidExperimentException
from ._once import say_once
from ._sample import sample_hyperparameters

logger = logging.getLogger("determined")


class Environment:
    """The experiment of a trial class, for `context.env`."""

    def __init__(self, experiment_config, hparams, trial_id=0, experiment_id=1, trial_seed=0, latest_checkpoint=None,
                 steps_completed=0):
        self.experiment_config = experiment_config
        self.hparams = hparams
        self.det_trial_id = str(trial_id)
        self.det_experiment_id = str(experiment_id)
        self.trial_seed = trial_seed
        self.latest_checkpoint = latest_checkpoint
        self.steps_completed = steps_completed


class TrialContext(Refusing):
    def __init__(self, core_context, env):
        self._core = core_context
        self.env = env
        self.distributed = core_context.distributed
        self._stop_requested = False

    @classmethod
    def from_config(cls, config):
        """A context for debugging, outside of any study. `config`: an experiment file as a dictionary."""
        from . import core

        if not isinstance(config, dict):
            raise InvalidExperimentException(f"from_config takes an experiment file as a dictionary, not {config!r}")
        return cls(core.init(), Environment(config, sample_hyperparameters(config.get("hyperparameters", {}))))

    def get_experiment_config(self):
        return self.env.experiment_config

    def get_data_config(self):
        return self.get_experiment_config().get("data", {})

    def get_experiment_id(self):
        return int(self.env.det_experiment_id)

    def get_trial_id(self):
        return int(self.env.det_trial_id)

    def get_trial_seed(self):
        return self.env.trial_seed

    def get_hparams(self):
        return self.env.hparams

    def get_hparam(self, name):
        if name not in self.env.hparams:
            known = ", ".join(sorted(self.env.hparams)) or "none"
            raise ValueError(
                f"get_hparam({name!r}): the experiment file's hyperparameters have no such name; they are {known}")
        return self.env.hparams[name]

    def get_stop_requested(self):
        return self._stop_requested

    def set_stop_requested(self, stop_requested):
        """Ends the training with a checkpoint after the current batches."""
        if not isinstance(stop_requested, bool):
            raise AssertionError(f"set_stop_requested takes True or False, not {stop_requested!r}")
        self._stop_requested = stop_requested

    def get_initial_batch(self):
        return self.env.steps_completed

    def get_tensorboard_path(self):
        return self._core.train.get_tensorboard_path()

    def get_global_batch_size(self):
        size = self.env.hparams.get("global_batch_size")
        if size is None:
            raise InvalidExperimentException(
                "get_global_batch_size(): hyperparameters.global_batch_size is missing; "
                "with DeepSpeed the engine has the sizes: context.train_micro_batch_size_per_gpu")
        return size

    def get_per_slot_batch_size(self):
        say_once("get_per_slot_batch_size() divides hyperparameters.global_batch_size; "
                 "DeepSpeed's engine has its own sizes")
        return max(1, self.get_global_batch_size() // self.distributed.size)
