"""Which ranks read data and report metrics."""
import dataclasses


@dataclasses.dataclass
class ModelParallelUnit:
    """This rank's place where a model is spread over ranks: pass one to `context.set_mpu`."""

    data_parallel_rank: int
    data_parallel_world_size: int
    should_report_metrics: bool  # does train_batch return metrics here?
    should_build_data_loader: bool  # does this rank read the data?


def make_data_parallel_mpu(dist_context):
    """Every rank has the whole model."""
    return ModelParallelUnit(dist_context.get_rank(), dist_context.get_size(), True, True)


def make_deepspeed_mpu(topology):
    """A pipeline's grid: the first and the last stage read data, one rank of each slice."""
    stage, last = topology.get_pipe_parallel_rank(), topology.get_pipe_parallel_world_size() - 1
    reads = topology.get_slice_parallel_rank() == 0 and stage in (0, last)
    return ModelParallelUnit(topology.get_data_parallel_rank(), topology.get_data_parallel_world_size(), True, reads)
