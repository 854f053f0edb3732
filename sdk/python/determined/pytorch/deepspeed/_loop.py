"""The training loop of a trial class: for a study's trial, which the engine ends, and for the full training."""
import contextlib
import logging
import math

import dsat

from ... import _absent
from ..._once import say_once
from ...errors import InvalidExperimentException
from ...util import is_overridden
from .._callback import PyTorchCallback
from .._reducer import has_mean
from ..dsat import defaults
from . import _state
from ._batches import Batches
from ._loaders import Loaders
from ._periods import Periods
from ._trial import DeepSpeedTrial

logger = logging.getLogger("determined.pytorch")
_METRICS_OF_THE_SEARCH = defaults.SMALLER_IS_BETTER_METRICS + defaults.LARGER_IS_BETTER_METRICS


class Loop:
    def __init__(self, trial, context):
        self._trial, self._context, self._core = trial, context, context._core
        self._config = context.get_experiment_config()
        self._callbacks = trial.build_callbacks() or {}
        for name, callback in self._callbacks.items():
            if not isinstance(callback, PyTorchCallback):
                raise InvalidExperimentException(f"build_callbacks() gave '{name}' as a {type(callback).__name__}: "
                                                 "derive it from determined.pytorch.PyTorchCallback")
            if is_overridden(callback.on_checkpoint_end, PyTorchCallback):
                say_once("on_checkpoint_end is an older name: use on_checkpoint_write_end")
        if type(trial).trial_controller_class is not DeepSpeedTrial.trial_controller_class:
            raise InvalidExperimentException(_absent.sentence("DeepSpeedTrial.trial_controller_class"))
        if not context.models:
            raise InvalidExperimentException(
                "the trial class wrapped no engine: call context.wrap_model_engine() in __init__")
        self._is_chief = context.distributed.rank == 0
        self._done = context.env.steps_completed  # batches
        self._validated_at = self._saved_at = None
        self._metrics = {}
        self._best = None

    def run(self):
        with contextlib.ExitStack() as at_end:
            for callback in self._callbacks.values():
                callback.on_trial_startup(self._done, self._context.env.latest_checkpoint)
                at_end.callback(callback.on_trial_shutdown)
            loaders = Loaders(self._trial, self._context, self._done)
            self._context._epoch_len = loaders.epoch_batches
            self._batches = Batches(self._trial, self._context, self._callbacks, loaders)
            at_end.callback(self._batches.close)
            self._periods = Periods(self._config, self._train_batch_size(), loaders.epoch_batches, _unit(self._config))
            self._restore()
            for callback in self._callbacks.values():
                callback.on_training_start()
            if self._context.profiler is not None:
                at_end.enter_context(self._context.profiler)
            if dsat.current_trial() is not None:
                self._tune()
            else:
                self._train()

    def _train_batch_size(self):
        context = self._context
        return (context.train_micro_batch_size_per_gpu * context.num_micro_batches_per_slot
                * context._mpu.data_parallel_world_size)

    def _restore(self):
        name = self._context.env.latest_checkpoint
        if name is None:
            return
        logger.info("the training goes on from checkpoint %s", name)
        with self._core.checkpoint.restore_path(name) as path:
            progress = _state.load(path, self._trial, self._context, self._callbacks)
        self._validated_at, self._best = progress.get("validated_at"), progress.get("best")
        self._metrics = progress.get("metrics", {})
        self._saved_at = self._done

    def _tune(self):
        """The engine measures itself and ends the process. A pipeline's engine does not, so the timer measures, too."""
        operation = next(self._core.searcher.operations())
        for engine in self._context.models:
            engine.train()
        timer = self._timer()
        if self._context.use_pipeline_parallel and dsat.current_trial().model_info:
            timer.step()  # reports and ends: stages that left in a forward pass would leave others waiting
        with dsat.dsat_reporting_context(self._core, operation, timer=timer):
            for batch_idx in range(operation.length):
                self._batches.train(batch_idx)
                timer.step()
        raise SystemExit("the engine trained past the end of its profile window and reported nothing: "
                         "check that the trial class gives dsat.get_ds_config_from_hparams(hparams) to "
                         "deepspeed.initialize()")

    def _timer(self):
        """A pipeline engine counts its own stage only, so the model's size is summed over one replica's ranks."""
        module = getattr(self._context.models[0], "module", None)
        if not self._context.use_pipeline_parallel:
            return dsat.StepTimer(module)
        sizes = [(p.numel(), p.numel() if p.requires_grad else 0) for p in module.parameters()]
        mine = _sums(sizes) if self._context._mpu.data_parallel_rank == 0 else (0, 0)
        total, trained = _sums(self._context.distributed.allgather(mine))
        return dsat.StepTimer(num_params=total, trainable_num_params=trained)

    def _train(self):
        unit = _unit(self._config)
        for operation in self._core.searcher.operations():
            target = self._periods.in_batches(operation.length, unit)
            if self._validation_is_missing():
                self._validate()
            while self._done < target:
                self._train_until(self._periods.next_stop(self._done, target))
                if self._is_chief:
                    operation.report_progress(operation.length * self._done / target)
                if self._stops_before(target):
                    return
                self._do_what_is_due()
                if self._stops_before(target):
                    return
            if self._validated_at != self._done:
                self._validate()
            self._save()
            if self._is_chief:
                operation.report_completed(self._searcher_metric())

    def _validation_is_missing(self):
        """Before the first batch, or after a stop, which comes before the validation that is due."""
        if self._validated_at == self._done:
            return False
        if self._done == 0:
            return self._periods.validates_first
        return self._periods.is_due(self._done, self._periods.validation)

    def _train_until(self, end):
        means, of_batches = self._batches.train_stretch(self._done, end)
        self._done = end
        self._report("training", means, of_batches)

    def _do_what_is_due(self):
        if self._periods.is_due(self._done, self._periods.validation):
            self._validate()
        if self._periods.is_due(self._done, self._periods.checkpoint):
            self._save()

    def _report(self, group, metrics, of_batches=None):
        if not self._is_chief:
            return
        if group == "training":
            self._core.train.report_training_metrics(self._done, metrics, of_batches)
        else:
            self._core.train.report_validation_metrics(self._done, metrics)
        self._log_to_tensorboard(group, metrics, of_batches or [])

    def _log_to_tensorboard(self, group, metrics, of_batches):
        """Determined's names: a metric of batches has a value for each of them, and no mean."""
        if not self._context.get_enable_tensorboard_logging():
            return
        try:
            writer = self._context.get_tensorboard_writer()
        except InvalidExperimentException:  # metrics.jsonl still has the metrics
            self._context.set_enable_tensorboard_logging(False)
            return
        for index, batch in enumerate(of_batches):
            _add_scalars(writer, batch, self._done - len(of_batches) + index)
        seen = {name for batch in of_batches for name in batch}
        _add_scalars(writer, {name if group == "training" or name.startswith("val") else f"val_{name}": value
                              for name, value in metrics.items() if name not in seen}, self._done)
        writer.flush()

    def _stops_before(self, target):
        if self._done == target:
            return False
        asked = any(self._context.distributed.allgather(self._context.get_stop_requested()))
        if not self._core.preempt.should_preempt() and not asked:
            return False
        self._save()
        logger.info("the training stops at batch %d and can continue from there", self._done)
        return True

    def _validate(self):
        self._metrics, samples = self._batches.validate()
        self._validated_at = self._done
        logger.info("validated on %d samples", samples)
        self._report("validation", self._metrics)
        value = _number(self._searcher_metric())
        smaller = self._config.get("searcher", {}).get("smaller_is_better", True)
        is_best = value is not None and (self._best is None or (
            value < self._best if smaller else value > self._best))
        if is_best:
            self._best = value
        if self._periods.policy == "all" or (self._periods.policy == "best" and is_best):
            self._save()

    def _save(self):
        if self._saved_at == self._done:
            return
        progress = {"batches": self._done, "validated_at": self._validated_at,
            "best": self._best, "metrics": self._metrics}
        with self._core.checkpoint.store_path({"steps_completed": self._done}, shard=True) as (path, name):
            _state.save(path, self._trial, self._context, self._callbacks, progress)
        for callback in self._callbacks.values():
            callback.on_checkpoint_upload_end(uuid=name)
        self._saved_at = self._done

    def _searcher_metric(self):
        name = self._config.get("searcher", {}).get("metric")
        if name in self._metrics:
            return self._metrics[name]
        if name and name not in _METRICS_OF_THE_SEARCH:
            raise InvalidExperimentException(
                f"searcher.metric is '{name}', and the validation has {', '.join(sorted(self._metrics)) or 'none'}: "
                "name one of these, or return it in evaluate_batch")
        return None


def _add_scalars(writer, metrics, step):
    for name, value in metrics.items():
        if has_mean(value) and getattr(value, "ndim", 0) == 0 and not isinstance(value, (list, tuple)):
            writer.add_scalar(f"Determined/{name}", float(value), step)


def _sums(pairs):
    return sum(first for first, _ in pairs), sum(second for _, second in pairs)


def _number(metric):
    """A metric as a float, from numpy's numbers and arrays too; None: NaN or no number."""
    with contextlib.suppress(TypeError, ValueError):
        value = float(metric.item() if hasattr(metric, "item") else metric)
        return None if math.isnan(value) else value
    return None


def _unit(config):
    from ... import _study

    return _study.configured_length(config)[1]
