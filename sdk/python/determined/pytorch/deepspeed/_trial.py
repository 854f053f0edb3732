"""The base class of trial classes."""
import abc
import pathlib

from ... import _absent
from ._context import DeepSpeedTrialContext


class DeepSpeedTrial(abc.ABC):
    """A training as a class: engines in __init__, batches in train_batch and evaluate_batch, data loaders.

    `python3 -m determined.launch.deepspeed --trial module:Class` trains it.
    """

    trial_context_class = DeepSpeedTrialContext
    trial_controller_class = _absent.Refused("DeepSpeedTrial.trial_controller_class")

    @abc.abstractmethod
    def __init__(self, context):
        """Builds the model, calls deepspeed.initialize and passes the engine to `context.wrap_model_engine`."""

    @abc.abstractmethod
    def train_batch(self, dataloader_iter, epoch_idx, batch_idx):
        """Trains one micro batch (forward, backward, step), or one `engine.train_batch()` of a pipeline.

        It is called for each micro batch, but only once a batch after `disable_auto_grad_accumulation`. Returns a
        dictionary of metrics, or the loss as a tensor.
        """

    @abc.abstractmethod
    def evaluate_batch(self, dataloader_iter, batch_idx):
        """Returns the metrics of one validation batch as a dictionary. Metrics are averaged over the batches."""

    @abc.abstractmethod
    def build_training_data_loader(self):
        """Returns a determined.pytorch.DataLoader with batches of `train_micro_batch_size_per_gpu`."""

    @abc.abstractmethod
    def build_validation_data_loader(self):
        """Returns a determined.pytorch.DataLoader."""

    def build_callbacks(self):
        """Returns a dictionary of names and PyTorchCallbacks."""
        return {}

    def save(self, context, path):
        """Writes the engines to a checkpoint's folder. Every rank calls it."""
        for number, engine in enumerate(context.models):
            engine.save_checkpoint(str(path), tag=f"model{number}")

    def load(self, context, path):
        """Reads the files of save(). Every rank calls it."""
        saved = len(list(pathlib.Path(path).glob("model[0-9]*")))
        if saved < len(context.models):
            raise AssertionError(f"Failed to load deepspeed checkpoint {path}: it has the state of {saved} engines, "
                                 f"and the trial class wraps {len(context.models)}")
        for number, engine in enumerate(context.models):
            found = engine.load_checkpoint(str(path), tag=f"model{number}")
            if isinstance(found, tuple) and found and found[0] is None:
                raise AssertionError(f"Failed to load deepspeed checkpoint {path}: there is no model{number} in it")
