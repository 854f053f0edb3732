"""One stretch of training and one validation of a trial class, over all ranks."""
import itertools
import logging

import torch

from ..._once import say_once
from ...errors import InvalidExperimentException
from .._reducer import has_mean, mean_of, mean_over_batches, to_numpy
from ._context import is_pipeline_engine

logger = logging.getLogger("determined.pytorch")


def _repeated(loader, first):
    yield from first
    while True:
        yield from loader


class Batches:
    def __init__(self, trial, context, callbacks, loaders):
        self._trial, self._context, self._callbacks, self._loaders = trial, context, callbacks, loaders
        # An iterator draws a random number at its start. It starts now, before a checkpoint restores the generators.
        self._training = None if loaders.training is None else _repeated(loaders.training, iter(loaders.training))

    def close(self):
        """Ends the processes of the data loader."""
        if self._training is not None:
            self._training.close()

    def _tell(self, hook, *arguments, **named):
        for callback in self._callbacks.values():
            getattr(callback, hook)(*arguments, **named)

    def train(self, batch_idx):
        """Trains one batch. Returns the metrics of its micro batches on this rank."""
        context = self._context
        context._batch_idx = batch_idx
        epoch = context.current_train_epoch()
        if context.is_epoch_start():
            self._tell("on_training_epoch_start", epoch)
        takes_all = context.use_pipeline_parallel or context._manual_accumulation
        calls = 1 if takes_all else context.num_micro_batches_per_slot
        metrics = [self._train_once(epoch, batch_idx) for _ in range(calls)]
        self._check_accumulation()
        if context.is_epoch_end():
            self._tell("on_training_epoch_end", epoch)
        return [entry for entry in metrics if entry is not None]

    def _train_once(self, epoch, batch_idx):
        profiler = self._context.profiler
        returned = self._trial.train_batch(self._training, epoch, batch_idx)
        if profiler is not None:
            profiler.step()
        if not self._context._mpu.should_report_metrics:
            return None
        if isinstance(returned, torch.Tensor):
            returned = {"loss": returned}
        if not isinstance(returned, dict):
            raise InvalidExperimentException(f"train_batch returned a {type(returned).__name__}: "
                                             "return a dictionary of metrics or the loss as a tensor")
        return to_numpy(returned)

    def _check_accumulation(self):
        engine, expected = self._context.models[0], self._context.num_micro_batches_per_slot
        steps = getattr(engine, "micro_steps", 0)
        if not is_pipeline_engine(engine) and steps % expected:
            raise AssertionError(
                f"train_batch trained {steps % expected} of the {expected} micro batches of a batch: after "
                "disable_auto_grad_accumulation() it trains gradient_accumulation_steps of them")

    def train_stretch(self, start, end):
        """Trains the batches `start` to `end` - 1: (means, metrics of each micro batch), equal on all ranks."""
        self._context.reset_reducers()
        for engine in self._context.models:
            engine.train()
        mine = []
        for batch_idx in range(start, end):
            mine.extend(self.train(batch_idx))
        of_batches = self._over_ranks(mine)
        means = mean_over_batches(_numbers_only(of_batches), "train_batch")
        means.update(to_numpy(self._context.reduce_metrics(for_training=True)))
        self._tell("on_training_workload_end", avg_metrics=means, batch_metrics=of_batches)
        return means, of_batches

    def _over_ranks(self, mine):
        """Per batch, the means over the ranks that report; rank 0's metrics if averaging is off."""
        of_ranks = [metrics for metrics in self._context.distributed.allgather(mine) if metrics]
        if not of_ranks:
            return []
        if len(of_ranks) == 1 or not self._context._averages_training_metrics:
            return of_ranks[0]
        return [_mean_of(rows) for rows in zip(*of_ranks)]

    @torch.no_grad()
    def validate(self):
        """The metrics of a validation, equal on all ranks, and the number of samples."""
        context = self._context
        context.reset_reducers()
        for engine in context.models:
            engine.eval()
        self._tell("on_validation_start")
        self._tell("on_validation_epoch_start")
        iterator = None if self._loaders.validation is None else iter(self._loaders.validation)
        mine = []
        for batch_idx in range(self._loaders.validation_batches):
            returned = self._trial.evaluate_batch(iterator, batch_idx)
            if context._mpu.should_report_metrics:
                mine.append(_checked(returned, mine))
        self._tell("on_validation_epoch_end", mine)
        of_ranks = [metrics for metrics in context.distributed.allgather(mine) if metrics]
        if any(metrics.keys() != of_ranks[0][0].keys() for metrics in itertools.chain(*of_ranks)):
            raise InvalidExperimentException(
                "evaluate_batch returned other metrics on another rank: return the same names on every rank")
        metrics = mean_over_batches([mean_over_batches(rank, "evaluate_batch") for rank in of_ranks], "evaluate_batch")
        metrics.update(to_numpy(context.reduce_metrics(for_training=False)))
        self._tell("on_validation_end", metrics)
        return metrics, (self._loaders.validation_batches * self._loaders.validation_batch_size
                         * context._mpu.data_parallel_world_size)


def _checked(returned, earlier):
    if not isinstance(returned, dict):
        raise InvalidExperimentException(
            f"evaluate_batch returned a {type(returned).__name__}: return a dictionary of metrics")
    if earlier and returned.keys() != earlier[0].keys():
        raise ValueError(
            f"evaluate_batch returned {sorted(returned)} after {sorted(earlier[0])}: "
            "return the same metrics for every batch")
    return to_numpy(returned)


def _mean_of(rows):
    """The means of one batch's metrics over ranks. A metric without a mean keeps a value that is no number."""
    result = {}
    for name, first in rows[0].items():
        try:
            result[name] = mean_of([row[name] for row in rows])
        except (TypeError, ValueError, KeyError):
            result[name] = next((row.get(name) for row in rows if not has_mean(row.get(name))), first)
    return result


def _numbers_only(batches):
    """The batches without metrics that have no mean. Those are reported per batch only."""
    names = {name for batch in batches for name in batch}
    left_out = {name for name in names
                if not all(name in batch and has_mean(batch[name]) for batch in batches)}
    if left_out:
        say_once(f"metrics of train_batch without a mean: {', '.join(sorted(left_out))}")
    return [{name: batch[name] for name in batch if name not in left_out} for batch in batches]
