"""What the tests of the Python package share: the environment and the files of a trial, a torch that is none."""
import itertools
import json
import os
import pathlib
import shutil
import sys
import tempfile
import types
import unittest
from unittest import mock

PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "sdk/python"
CONFIG = {
    "train_batch_size": 32,
    "train_micro_batch_size_per_gpu": 4,
    "gradient_accumulation_steps": 2,
    "zero_optimization": {"stage": 1},
}
_ids = itertools.count()
OUR_VARIABLES = ("DSAT_TRIAL_ID", "DSAT_HPARAMS", "DSAT_TRIAL_DIR", "DSAT_DS_CONFIG", "RANK", "WORLD_SIZE",
                 "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE", "SLURM_PROCID",
                 "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS")


class PackageTest(unittest.TestCase):
    """A test with a folder of its own, `self.dir`, outside a tuning run until it says otherwise."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="dsat-python-"))
        self.addCleanup(shutil.rmtree, self.dir, ignore_errors=True)
        environment = mock.patch.dict(os.environ)
        environment.start()
        self.addCleanup(environment.stop)
        for name in OUR_VARIABLES:
            os.environ.pop(name, None)

    def write(self, name, content):
        path = self.dir / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def begin_trial(self, model_info=False, config=None, start=3, end=5, **autotuning):
        """The environment and the configuration file that dsat-host gives a trial."""
        section = {"enabled": True, "start_profile_step": start, "end_profile_step": end,
                   "metric_path": str(self.dir / "metrics.json")}
        if model_info:
            section.update(model_info={"profile": True}, model_info_path=str(self.dir / "model_info.json"))
        section.update(autotuning)
        path = self.write("ds_config.json", {**(CONFIG if config is None else config), "autotuning": section})
        os.environ.update(DSAT_TRIAL_ID=str(next(_ids)), DSAT_TRIAL_DIR=str(self.dir), DSAT_DS_CONFIG=path)
        return path

    def result(self, name="metrics.json"):
        return json.loads((self.dir / name).read_text())

    def files(self):
        return sorted(path.name for path in self.dir.iterdir())

    def use_torch(self, torch):
        modules = mock.patch.dict(sys.modules, torch=torch)
        modules.start()
        self.addCleanup(modules.stop)

    def use_clock(self):
        """Time stands still but for what a test adds to `[0]`, in seconds."""
        now = [100.0]
        clock = mock.patch("time.perf_counter", lambda: now[0])
        clock.start()
        self.addCleanup(clock.stop)
        return now


class Device:
    """torch.cuda, as far as the package asks it: two devices, the first is current, the process trains on `own`."""

    def __init__(self, used=100, peak=700, total=1000, own=0):
        self.used, self.peak, self.total, self.own, self.synchronized = used, peak, total, own, 0

    def is_available(self):
        return True

    def is_initialized(self):
        return True

    def synchronize(self, index):
        self.synchronized += index == self.own

    def memory_allocated(self, index):
        return self.used if index == self.own else 0

    def max_memory_allocated(self, index):
        return self.peak if index == self.own else 0

    def device_count(self):
        return 2

    def current_device(self):
        return 0

    def get_device_properties(self, index):
        return types.SimpleNamespace(total_memory=self.total if index == self.own else 1)


class Distributed:
    """torch.distributed: this rank, and what its collective finds on the others."""

    ReduceOp = types.SimpleNamespace(MAX="max")

    def __init__(self, rank, world_size, others, backend="nccl"):
        self.rank, self.world_size, self.others, self.backend = rank, world_size, others, backend

    def is_available(self):
        return True

    def is_initialized(self):
        return True

    def get_rank(self):
        return self.rank

    def get_world_size(self):
        return self.world_size

    def get_backend(self):
        return self.backend

    def all_reduce(self, tensor, op):
        assert op == "max"
        tensor.values = [max(mine, theirs) for mine, theirs in zip(tensor.values, self.others)]


class Tensor:
    def __init__(self, values, device):
        self.values, self.device = values, device

    def tolist(self):
        return self.values


def fake_torch(device=None, distributed=None):
    torch = types.SimpleNamespace(int64="int64", tensor=lambda values, dtype, device: Tensor(values, device))
    if device is not None:
        torch.cuda = device
    if distributed is not None:
        torch.distributed = distributed
    return torch


class Parameter:
    def __init__(self, count, requires_grad=True, **more):
        self.count, self.requires_grad = count, requires_grad
        vars(self).update(more)

    def numel(self):
        return self.count


class Model:
    def __init__(self, *parameters):
        self.list = parameters

    def parameters(self):
        return iter(self.list)
