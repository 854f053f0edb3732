"""The callbacks of a trial class."""


class PyTorchCallback:
    """A base class. `build_callbacks()` returns instances. Every rank calls them."""

    def on_trial_startup(self, first_batch_idx, checkpoint_uuid):
        """Before data loaders are built. `checkpoint_uuid`: the checkpoint to continue from, or None."""

    def on_trial_shutdown(self):
        """At the end of this process's training, even after an exception."""

    def on_training_start(self):
        """After a checkpoint was loaded, before the first batch."""

    def on_training_epoch_start(self, epoch_idx):
        """Before the first batch of an epoch."""

    def on_training_epoch_end(self, epoch_idx):
        """After the last batch of an epoch."""

    def on_training_workload_end(self, avg_metrics, batch_metrics):
        """After some batches (at most `scheduling_unit`), with their metrics."""

    def on_validation_start(self):
        """Before a validation."""

    def on_validation_epoch_start(self):
        """Before the first batch of a validation."""

    def on_validation_epoch_end(self, outputs):
        """After the last batch of a validation, with the outputs of this rank's batches."""

    def on_validation_end(self, metrics):
        """After a validation, with its metrics."""

    def on_checkpoint_load_start(self, checkpoint):
        """Before a checkpoint is restored. `checkpoint`: this rank's state, which may be changed."""

    def on_checkpoint_save_start(self, checkpoint):
        """Before a checkpoint is written. `checkpoint`: this rank's state, which may be extended."""

    def on_checkpoint_end(self, checkpoint_dir):
        """Older name of on_checkpoint_write_end."""

    def on_checkpoint_write_end(self, checkpoint_dir):
        """After this rank has written its part of a checkpoint."""

    def on_checkpoint_upload_end(self, uuid):
        """After the checkpoint of that id is complete."""

    def state_dict(self):
        """The state to keep in a checkpoint; it must be picklable."""
        return {}

    def load_state_dict(self, state_dict):
        """Restores the result of state_dict()."""
