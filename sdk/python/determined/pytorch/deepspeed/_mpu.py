"""The ranks that read data and report metrics."""
import dataclasses


@dataclasses.dataclass
class ModelParallelUnit:
    """This rank's place in a model that is spread over ranks. Pass it to `context.set_mpu`."""

    data_parallel_rank: int
    data_parallel_world_size: int
    should_report_metrics: bool  # train_batch returns metrics on this rank
    should_build_data_loader: bool  # this rank reads data


def make_data_parallel_mpu(dist_context):
    """For a model that every rank holds as a whole."""
    return ModelParallelUnit(dist_context.get_rank(), dist_context.get_size(), True, True)


def make_deepspeed_mpu(topology):
    """For a pipeline's grid: one rank of each slice reads data, in the first and the last stage."""
    stage, last = topology.get_pipe_parallel_rank(), topology.get_pipe_parallel_world_size() - 1
    reads = topology.get_slice_parallel_rank() == 0 and stage in (0, last)
    return ModelParallelUnit(topology.get_data_parallel_rank(), topology.get_data_parallel_world_size(), True, reads)
