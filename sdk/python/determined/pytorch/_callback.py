"""What a trial class may hook into."""


class PyTorchCallback:
    """Derive from it and return instances from `build_callbacks()`. Every rank calls them."""

    def on_trial_startup(self, first_batch_idx, checkpoint_uuid):
        """Before data loaders are built; `checkpoint_uuid` is what the training goes on from, or None."""

    def on_trial_shutdown(self):
        """At the end of this process's training, after an exception too."""

    def on_training_start(self):
        """After a checkpoint was loaded, before the first batch."""

    def on_training_epoch_start(self, epoch_idx):
        """Before the first batch of an epoch."""

    def on_training_epoch_end(self, epoch_idx):
        """After the last batch of an epoch."""

    def on_training_workload_end(self, avg_metrics, batch_metrics):
        """After a stretch of batches (`scheduling_unit`, or fewer), with what they reported."""

    def on_validation_start(self):
        """Before a validation."""

    def on_validation_epoch_start(self):
        """Before the first batch of a validation."""

    def on_validation_epoch_end(self, outputs):
        """After the last batch of a validation, with what this rank's batches returned."""

    def on_validation_end(self, metrics):
        """After a validation, with its metrics."""

    def on_checkpoint_load_start(self, checkpoint):
        """Before a checkpoint is restored; `checkpoint` is this rank's state, to be read or changed."""

    def on_checkpoint_save_start(self, checkpoint):
        """Before a checkpoint is written; `checkpoint` is this rank's state, to be added to."""

    def on_checkpoint_end(self, checkpoint_dir):
        """Older name of on_checkpoint_write_end."""

    def on_checkpoint_write_end(self, checkpoint_dir):
        """After this rank has written its part of a checkpoint."""

    def on_checkpoint_upload_end(self, uuid):
        """After the checkpoint of that id is complete."""

    def state_dict(self):
        """What a checkpoint keeps of this callback; it must be picklable."""
        return {}

    def load_state_dict(self, state_dict):
        """Gives back what state_dict() returned."""
