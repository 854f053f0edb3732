"""DeepSpeed's autotuning for its pipeline engine: the model's size, or the time of the window's steps, then the end.

The pipeline engine reads the section `autotuning` and goes wrong by it: it never writes the result file, its first
stage leaves in the first forward while the others wait, and from 0.18 on backward stops at timers of a profiler that
nobody ends. So the section is hidden from it, and its train_batch() is watched here. sitecustomize.py, beside this
file, loads it once the script has imported that engine. docs/probe.md has more.
"""
import json
import os
import sys
import time


class Pipelines(object):
    """`module` is deepspeed.runtime.pipe.engine."""

    def __init__(self, module):
        self.reduce = module.dist.all_reduce
        self.measurements = {}  # of each engine that trains, by its id
        engine = module.PipelineEngine
        is_trial, train_batch = engine.autotuning_enabled, engine.train_batch

        def watched_train_batch(engine, *arguments, **named):
            if not is_trial(engine):
                return train_batch(engine, *arguments, **named)
            measurement = self.measurements.get(id(engine)) or Measurement(engine)
            self.measurements[id(engine)] = measurement
            if is_model_information(engine):
                leave(engine, engine.autotuning_model_info_path(), self.size_of(engine))
            measurement.begin()
            result = train_batch(engine, *arguments, **named)
            measurement.end_step()
            if measurement.is_complete():
                leave(engine, engine.autotuning_metric_path(), measurement.result())
            return result

        for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
            setattr(watched_train_batch, attribute, getattr(train_batch, attribute))
        watched_train_batch.__wrapped__ = train_batch
        engine.train_batch = watched_train_batch
        engine.autotuning_enabled = lambda self: False

    def size_of(self, engine):
        """The parameters of all stages. Layers that are tied over stages count once, with their first rank."""
        own = list(engine.module.parameters())
        tied = [p for layers in engine.module.tied_comms.values() if engine.global_rank != min(layers["ranks"])
                for p in layers["module"].parameters()]
        counts = [count(own) - count(tied), count(own, True) - count(tied, True)]
        sums = sys.modules["torch"].tensor(counts, device=engine.device)
        self.reduce(sums, group=engine.grid.get_model_parallel_group())
        return dict(zip(("num_params", "trainable_num_params"), sums.tolist()))


class Measurement(object):
    """The steps of one engine from start_profile_step to end_profile_step, with what the script does between them."""

    def __init__(self, engine):
        self.engine = engine
        self.first, self.last = engine.autotuning_start_profile_step(), engine.autotuning_end_profile_step()
        self.steps = 0  # that have ended
        self.ends = []  # the moment at which the window begins, and each of its steps' end

    def begin(self):
        if self.steps == self.first == 0:
            self.ends = [now(self.engine)]

    def end_step(self):
        self.steps += 1
        if self.steps >= self.first:
            self.ends.append(now(self.engine))

    def is_complete(self):
        return self.steps == self.last + 1

    def result(self):
        seconds = [end - begin for begin, end in zip(self.ends, self.ends[1:])]
        middle, mean = median(seconds), sum(seconds) / len(seconds)
        samples = self.engine.train_batch_size()
        result = {"latency": middle * 1e6, "wall_latency": mean * 1e6, "throughput": samples / middle,
                  "samples": samples * len(seconds), "world_size": self.engine.world_size}
        if len(seconds) > 1:
            deviation = (sum((s - mean) ** 2 for s in seconds) / (len(seconds) - 1)) ** 0.5
            result.update(latency_steps=len(seconds), latency_spread=deviation / middle)
        return result


def is_model_information(engine):
    asked = engine._config.autotuning_config.model_info
    return bool(asked and asked.get("profile"))


def leave(engine, path, result):
    """Rank 0 writes the file, and every rank ends, as DeepSpeed's own engine does it."""
    if engine.global_rank == 0:
        with open(path + ".new", "w") as file:
            json.dump(result, file)
        os.rename(path + ".new", path)
    sys.exit(0)


def now(engine):
    """The device has done by then what it was asked to do."""
    device = getattr(sys.modules["torch"], engine.device.type, None)
    if hasattr(device, "synchronize"):
        device.synchronize()
    return time.perf_counter()


def count(parameters, trained=False):
    return sum(p.numel() for p in parameters if p.requires_grad or not trained)


def median(values):
    values = sorted(values)
    return (values[len(values) // 2] + values[(len(values) - 1) // 2]) / 2
