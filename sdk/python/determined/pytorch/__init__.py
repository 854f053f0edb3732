"""determined.pytorch: data loaders, samplers, callbacks and reducers of trial classes.

The parts are imported on first use, because most need torch and dsat's command line does not.
"""
import importlib

from .. import _absent

_WHERE = {"DataLoader": "_data", "TorchData": "_data", "adapt_batch_sampler": "_data", "data_length": "_data",
          "to_device": "_data", "PyTorchCallback": "_callback", "LRScheduler": "_lr_scheduler",
          "MetricReducer": "_reducer", "Reducer": "_reducer"}
_refuse = _absent.attributes(__name__)
__all__ = sorted(_WHERE) + ["samplers"]


def __getattr__(name):
    if name in ("samplers", "dsat", "deepspeed"):
        return importlib.import_module(f"{__name__}.{name}")
    if name in _WHERE:
        return getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
    return _refuse(name, 2)
