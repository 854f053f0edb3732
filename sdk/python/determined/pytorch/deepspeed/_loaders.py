"""The data loaders of a trial class, checked and prepared for this rank."""
import logging

from ...errors import InvalidExperimentException
from .._data import DataLoader, data_length, new_seed

logger = logging.getLogger("determined.pytorch")


class Loaders:
    """`training` and `validation` (None on ranks without data), and their lengths in batches, equal on all ranks."""

    def __init__(self, trial, context, skip):
        self._context = context
        self.training = self.validation = None
        batches = size = length = None
        self._seed = context.distributed.broadcast(new_seed())
        if context._mpu.should_build_data_loader:
            self.training = self._build(trial, "build_training_data_loader", repeat=True, skip=skip)
            self.validation = self._build(trial, "build_validation_data_loader", repeat=False, skip=0)
            length = _length(self.training, "build_training_data_loader")
            batches = self._validation_batches()
            size = data_length(next(iter(self.validation))) if batches else 0
            if context.use_pipeline_parallel:
                size *= context.num_micro_batches_per_slot
        self._agree(context.distributed.allgather((length, batches, size)))

    def _build(self, trial, method, repeat, skip):
        given = getattr(trial, method)()
        mpu = self._context._mpu
        if isinstance(given, DataLoader):
            given.share_order(self._seed)
            # `skip` counts batches, the loader counts micro batches.
            return given.get_data_loader(repeat, skip * self._context.num_micro_batches_per_slot,
                                         mpu.data_parallel_world_size, mpu.data_parallel_rank)
        if self._context._checks_data_loaders:
            raise RuntimeError(
                f"{method}() returned a {type(given).__name__}: return a determined.pytorch.DataLoader, "
                "which shares the data among the ranks, "
                "or call context.disable_dataset_reproducibility_checks() in __init__")
        if given is None or not hasattr(given, "__iter__"):
            raise InvalidExperimentException(f"{method}() returned {given!r}: return an iterable")
        return given

    def _validation_batches(self):
        batches = _length(self.validation, "build_validation_data_loader")
        per_batch = self._context.num_micro_batches_per_slot
        if not self._context.use_pipeline_parallel:
            return batches
        if batches < per_batch:
            raise InvalidExperimentException(
                f"the validation's data loader has {batches} micro batches, a pipeline takes {per_batch} at a time "
                "(gradient_accumulation_steps): give it more data, or smaller batches")
        if batches % per_batch:
            logger.warning("%d micro batches of the validation are left out: a pipeline takes %d at a time",
                           batches % per_batch, per_batch)
        return batches // per_batch

    def _agree(self, of_ranks):
        lengths, batches, sizes = ([entry[i] for entry in of_ranks if entry[i] is not None] for i in range(3))
        if not lengths:
            raise InvalidExperimentException(
                "no rank builds a data loader: should_build_data_loader must be true on at least one")
        if min(lengths) < max(lengths):
            logger.warning("the ranks' training data loaders differ in length: the shortest counts")
        per_batch = self._context.num_micro_batches_per_slot
        self.epoch_batches = min(lengths) // per_batch
        if self.epoch_batches == 0:
            raise InvalidExperimentException(
                f"the training's data loader has {min(lengths)} micro batches on a rank, "
                f"and one batch takes {per_batch} (gradient_accumulation_steps): "
                "it is too short, give it more data")
        if min(batches) < max(batches) or min(sizes) < max(sizes):
            logger.warning("the ranks' validation data loaders differ: %s batches of %s samples; the fewest count",
                           _span(batches), _span(sizes))
        self.validation_batches = min(batches)
        if self.validation_batches == 0:
            raise InvalidExperimentException(
                "the validation's data loader has no batch on one of the ranks: give it more data")
        self.validation_batch_size = min(sizes)


def _span(numbers):
    return str(min(numbers)) if min(numbers) == max(numbers) else f"{min(numbers)} to {max(numbers)}"


def _length(loader, method):
    # DeepSpeed's repeating loader has no length, but the loader inside it has.
    for candidate in (loader, getattr(loader, "loader", None)):
        try:
            return len(candidate)
        except TypeError:
            continue
    raise InvalidExperimentException(f"{method}() returned a {type(loader).__name__} without a length: give it __len__")
