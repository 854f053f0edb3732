"""The context of a DeepSpeedTrial: engines, ranks, device."""
import logging

import torch

from ..._once import say_once
from ..._trial_context import TrialContext
from ...errors import InternalException, InvalidExperimentException
from .._data import to_device
from .._reducer import ReducerContext
from ._mpu import make_data_parallel_mpu, make_deepspeed_mpu

logger = logging.getLogger("determined.pytorch")


def is_pipeline_engine(engine):
    """Is it a deepspeed.PipelineEngine? The class's name decides if the installed deepspeed exports none."""
    import deepspeed

    kind = getattr(deepspeed, "PipelineEngine", None)
    return isinstance(engine, kind) if kind is not None else type(engine).__name__ == "PipelineEngine"


class DeepSpeedTrialContext(TrialContext, ReducerContext):
    """The context of a trial class. The harness makes one; `from_config` makes one for debugging.

    `models`: the wrapped engines. `device`: this rank's accelerator or CPU. `distributed`: the ranks.
    """

    def __init__(self, core_context, env):
        TrialContext.__init__(self, core_context, env)
        ReducerContext.__init__(self, self.distributed.allgather)
        self.n_gpus = self.distributed.local_size
        self.device = self._choose_device()
        self.models = []
        self.profiler = None
        self._mpu = make_data_parallel_mpu(self.distributed)
        self._called_set_mpu = False
        self._micro_batch = None
        self._micro_batches_per_slot = None
        self._uses_pipeline = False
        self._checks_data_loaders = True
        self._manual_accumulation = False
        self._epoch_len = None
        self._batch_idx = None
        self._unmovable_types = set()
        self._writer = None
        self._logs_to_tensorboard = True
        self._read_optimizations()

    def _choose_device(self):
        if not torch.cuda.is_available():
            return torch.device("cpu")
        device = torch.device("cuda", self.distributed.local_rank % torch.cuda.device_count())
        torch.cuda.set_device(device)
        return device

    def _read_optimizations(self):
        given = self.get_experiment_config().get("optimizations") or {}
        self._averages_training_metrics = given.get("average_training_metrics", True)
        for key, default, place in (("mixed_precision", "O0", "fp16 or bf16"),
                                    ("aggregation_frequency", 1, "gradient_accumulation_steps")):
            if given.get(key, default) != default:
                raise InvalidExperimentException(
                    f"optimizations.{key} is {given[key]!r}: with DeepSpeed, set {place} in its configuration")
        others = sorted(set(given) - {"average_training_metrics", "mixed_precision", "aggregation_frequency"})
        if others:
            say_once(f"optimizations.{', '.join(others)}: no effect, DeepSpeed's configuration has its own settings")

    def wrap_model_engine(self, model):
        """Registers an engine. The first one decides the batch sizes and, for a pipeline, the grid."""
        for name in ("train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "save_checkpoint"):
            if not callable(getattr(model, name, None)):
                raise InvalidExperimentException(
                    f"wrap_model_engine() got a {type(model).__name__}: give the engine of deepspeed.initialize()")
        if is_pipeline_engine(model):
            self._uses_pipeline = True
            if not self.models and not self._called_set_mpu:
                self._mpu = make_deepspeed_mpu(model.mpu)
        micro_batch = int(model.train_micro_batch_size_per_gpu())
        if not self.models:
            self._micro_batch = micro_batch
            self._micro_batches_per_slot = int(model.gradient_accumulation_steps())
        elif micro_batch != self._micro_batch:
            logger.warning("engine %d has micro batch %d, the first one %d: samples are counted by the first",
                           len(self.models) + 1, micro_batch, self._micro_batch)
        self.models.append(model)
        return model

    def set_mpu(self, mpu):
        """Sets the trial's own model parallelism, once, after the first engine was wrapped."""
        if not self.models:
            raise InvalidExperimentException("set_mpu() before wrap_model_engine(): wrap the engine first")
        if self._called_set_mpu:
            raise InvalidExperimentException("set_mpu() was called twice: all engines share one ModelParallelUnit")
        for name in ("data_parallel_rank", "data_parallel_world_size", "should_report_metrics",
                     "should_build_data_loader"):
            if not hasattr(mpu, name):
                raise InvalidExperimentException(
                    f"set_mpu() got a {type(mpu).__name__} without {name}: give a ModelParallelUnit")
        if self.distributed.rank == 0 and not mpu.should_report_metrics and not self._averages_training_metrics:
            raise InvalidExperimentException(
                "set_mpu(): rank 0 reports no metrics, so optimizations.average_training_metrics must be true")
        self._called_set_mpu = True
        self._mpu = mpu

    wrap_mpu = set_mpu  # an older name that some texts use

    def disable_auto_grad_accumulation(self):
        """Makes train_batch responsible for all micro batches of a batch."""
        self._manual_accumulation = True

    def disable_dataset_reproducibility_checks(self):
        """Lets build_*_data_loader return any iterable."""
        self._checks_data_loaders = False

    @property
    def use_pipeline_parallel(self):
        return self._uses_pipeline

    @property
    def train_micro_batch_size_per_gpu(self):
        return self._known(self._micro_batch, "train_micro_batch_size_per_gpu")

    @property
    def num_micro_batches_per_slot(self):
        return self._known(self._micro_batches_per_slot, "num_micro_batches_per_slot")

    # Determined's own examples use these names.
    _train_micro_batch_size_per_gpu = train_micro_batch_size_per_gpu
    _num_micro_batches_per_slot = num_micro_batches_per_slot

    @staticmethod
    def _known(value, name):
        if value is None:
            raise InvalidExperimentException(f"context.{name} comes from the engine: call wrap_model_engine() first")
        return value

    def to_device(self, data):
        """Moves a batch to this rank's device."""
        return to_device(data, self.device, self._unmovable_types)

    def current_train_batch(self):
        """The current batch, counted from the start of the training."""
        if self._batch_idx is None:
            raise InternalException("current_train_batch(): the training has not begun")
        return self._batch_idx

    def _epoch_length(self):
        if self._epoch_len is None:
            raise InternalException("the length of an epoch is unknown before the training's data loader is built")
        return self._epoch_len

    def current_train_epoch(self):
        return self.current_train_batch() // self._epoch_length()

    def is_epoch_start(self):
        return self.current_train_batch() % self._epoch_length() == 0

    def is_epoch_end(self):
        return (self.current_train_batch() + 1) % self._epoch_length() == 0

    def set_profiler(self, *args, **kwargs):
        """Sets torch.profiler.profile with these arguments. Its traces go to the folder for event files in any case."""
        kwargs["on_trace_ready"] = torch.profiler.tensorboard_trace_handler(str(self.get_tensorboard_path()))
        self.profiler = torch.profiler.profile(*args, **kwargs)

    def get_tensorboard_writer(self):
        """torch's SummaryWriter for the folder of event files. Needs the package tensorboard."""
        if self._writer is None:
            try:
                from torch.utils.tensorboard import SummaryWriter
            except ImportError as error:
                raise InvalidExperimentException(
                    f"get_tensorboard_writer() needs the package tensorboard ({error}): install it") from error
            self._writer = SummaryWriter(str(self.get_tensorboard_path()))
        return self._writer

    def set_enable_tensorboard_logging(self, enable_tensorboard_logging):
        """Turns event files with metrics on or off. They need the package tensorboard."""
        if not isinstance(enable_tensorboard_logging, bool):
            raise AssertionError(
                f"set_enable_tensorboard_logging takes True or False, not {enable_tensorboard_logging!r}")
        self._logs_to_tensorboard = enable_tensorboard_logging

    def get_enable_tensorboard_logging(self):
        return self._logs_to_tensorboard
