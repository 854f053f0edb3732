"""The class that trial classes derive from."""
import abc

from ._context import DeepSpeedTrialContext


class DeepSpeedTrial(abc.ABC):
    """A training as a class: engines in __init__, batches in train_batch and evaluate_batch, data loaders.

    `python3 -m determined.launch.deepspeed --trial module:Class` trains one.
    """

    trial_context_class = DeepSpeedTrialContext

    @abc.abstractmethod
    def __init__(self, context):
        """Builds the model, `deepspeed.initialize`s it, and gives the engine to `context.wrap_model_engine`."""

    @abc.abstractmethod
    def train_batch(self, dataloader_iter, epoch_idx, batch_idx):
        """One micro batch (forward, backward, step), or with a pipeline one `engine.train_batch()`; the metrics.

        It is called as often as a batch has micro batches, once after `disable_auto_grad_accumulation`. It returns a
        dictionary of metrics, or a tensor that is the loss.
        """

    @abc.abstractmethod
    def evaluate_batch(self, dataloader_iter, batch_idx):
        """A dictionary of metrics of one batch of the validation's data; its mean over the batches is the metric."""

    @abc.abstractmethod
    def build_training_data_loader(self):
        """A determined.pytorch.DataLoader with batches of `train_micro_batch_size_per_gpu`."""

    @abc.abstractmethod
    def build_validation_data_loader(self):
        """A determined.pytorch.DataLoader."""

    def build_callbacks(self):
        """A dictionary of names and PyTorchCallbacks."""
        return {}

    def save(self, context, path):
        """Writes the engines to a checkpoint's folder. Every rank calls it."""
        for number, engine in enumerate(context.models):
            engine.save_checkpoint(str(path), tag=f"model{number}")

    def load(self, context, path):
        """Reads what save() wrote. Every rank calls it."""
        for number, engine in enumerate(context.models):
            found = engine.load_checkpoint(str(path), tag=f"model{number}")
            if isinstance(found, tuple) and found and found[0] is None:
                raise AssertionError(f"the engine found no checkpoint model{number} in {path}")
